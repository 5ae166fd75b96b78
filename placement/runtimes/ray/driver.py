"""`runtime=ray`: the driver starts every role in its own processes, restarts dead ones, and ends all.

The driver is the command's own process. It has no state that a run needs; the same command resumes from the last
checkpoint.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.config import ConfigError, TrainConfig
from placement.netlist.design import Design
from placement.runtimes.ray import ray_connection
from placement.runtimes.ray.coordinator import COORDINATOR, OPTIONS, Coordinator
from placement.runtimes.ray.learner_process import LearnerProcess
from placement.runtimes.ray.messages import Heartbeat, RoleName, RunView, Timing, Who, processes_of, require_shares
from placement.runtimes.ray.role_process import MAX_CALLS, CacheProcess, Factories, ShardProcess
from placement.runtimes.ray.rollout_process import ActorProcess, EvaluatorProcess
from placement.runtimes.ray.telemetry import processes_table
from placement.training import run_folder
from placement.training.run_folder import STOPPING, Run, working_folder
from placement.transport.addresses import accepts, is_loopback
from placement.transport.gate import new_token
from placement.utils.worker_threads import WorkerFailed

if TYPE_CHECKING:
    from placement.training.metrics import TrainingProgress

_log = logging.getLogger(__name__)
LOOK_SECONDS = 0.25
STOP_SECONDS = 6.0  # timeout for the learner to save and end after a stop is requested, in seconds
ANSWER_SECONDS = 3.0
LOST_SECONDS = 15.0  # seconds without an answer after which a cluster that accepts no connections counts as gone
LEAVE_SECONDS = 10.0  # timeout for a learner to end after another one has died, in seconds
MAX_DEATHS = 5  # number of learner deaths without a finished iteration after which the run fails
CLASSES = {
    RoleName.LEARNER: LearnerProcess,  # first: others, which fit anywhere, must not take the last CPU beside the GPU
    RoleName.SHARD: ShardProcess,
    RoleName.CACHE: CacheProcess,
    RoleName.ACTOR: ActorProcess,
    RoleName.EVALUATOR: EvaluatorProcess,
}


@dataclasses.dataclass
class Member:
    """A process with Ray's handle, as seen by the driver.

    `running` is Ray's reference to the result of `run`, or to that of `ping` while Ray restarts it.
    """

    who: Who
    handle: Any
    running: Any
    restarts: int = 0
    restarting: bool = False


def run(
    config: TrainConfig,
    *,
    progress: TrainingProgress | None = None,
    factories: Factories | None = None,
    timing: Timing | None = None,
    watch: Callable[[RunView], None] = lambda view: None,
) -> Run:
    """Trains on Ray with the settings `config`, from the run folder's newest checkpoint if there is one.

    `watch` is called with all processes' heartbeats, several times a second.

    Raises:
        The errors of `placement.runtimes.local.run`, and:
        ConfigError: Ray is not installed, or not at the address.
        ReplayTimeout: no episodes arrived.
        WorkerFailed: a process keeps failing after restarts; a checkpoint of the last good state is saved.
    """
    from placement.training.metrics import make_progress
    from placement.training.trained_policy import policy_folder
    from placement.utils.interruption import Interrupted, Interruption

    require_shares(config)
    designs = run_folder.load_designs(config)  # This rejects unusable designs before anything starts.
    if config.initial_policy is not None:  # The learner reads the rest of it.
        run_folder.read_settings(policy_folder(config.initial_policy, key="initial_policy"), key="initial_policy")
    folder = working_folder(config.run_dir)
    shown = progress or make_progress(config.ppo.iterations, config.runtime.minutes, cost=config.env.cost.name)
    with run_folder.locked(folder), Interruption() as interruption:
        run_folder.write_record(folder, config)
        if (done := _finished(config, designs, folder, shown)) is not None:
            return done
        try:
            with ray_connection.opened(config.runtime, folder, breakable=interruption.breakable) as ray, shown:
                driver = Driver(ray, config, factories or Factories(), timing or Timing(), shown)
                return driver.run(interruption.requested.is_set, watch)
        except Interrupted:  # while Ray started
            return Run(folder, interrupted=True)


def _finished(config: TrainConfig, designs: Sequence[Design], folder: Path, progress: TrainingProgress) -> Run | None:
    """Calls `learner_loop.finished`, but only for a complete run: JAX could take the learner's accelerator."""
    if not _seems_finished(config, folder):
        return None
    import jax

    from placement.training.checkpoint import Saver
    from placement.training.learner_loop import finished

    jax.config.update("jax_platforms", "cpu")
    with Saver(folder, run_folder.identity(config, designs)) as saver:
        saver.require_same_run()
        return finished(config, designs, saver, note=progress.note)


def _seems_finished(config: TrainConfig, folder: Path) -> bool:
    """Whether the iterations or the minutes are over, by the names of the checkpoints and the last row of metrics."""
    if run_folder.newest_checkpoint(folder) >= config.ppo.iterations:
        return True
    if not config.runtime.minutes:
        return False
    from placement.training.metrics import FILE_NAME, read_rows

    _, rows = read_rows(folder / FILE_NAME)
    return bool(rows) and float(rows[-1]["seconds"]) >= 60 * config.runtime.minutes


class Driver:
    """Supervises the processes of a run; `ray` is the connected module, and the other arguments are those of `run`."""

    def __init__(
        self, ray: Any, config: TrainConfig, factories: Factories, timing: Timing, progress: TrainingProgress
    ) -> None:
        self._ray, self._config, self._timing, self._progress = ray, config, timing, progress
        self._cluster, self._answered, self._lost = ray.get_runtime_context().gcs_address, time.monotonic(), False
        runtime = config.runtime
        self._coordinator = self._start_coordinator()
        token = None if is_loopback(runtime.bind) else new_token()
        self._rendezvous = 1
        counts = processes_of(runtime)
        self._members = [
            self._start(Who(role, number), factories, token) for role in CLASSES for number in range(counts[role])
        ]
        self._learners = [member for member in self._members if member.who.role is RoleName.LEARNER]
        self._learner = self._learners[0]
        self._leaving: dict[Who, float] = {}  # learners that must restart because another one died, with their deadline
        self._started = time.monotonic()
        self._all_started = self._learner_is_ready = False
        self._iteration, self._deaths = -1.0, 0

    def run(self, stopped: Callable[[], bool], watch: Callable[[RunView], None] = lambda view: None) -> Run:
        """Waits until the learner is done or `stopped()`, and ends all processes."""
        self._watch = watch
        try:
            while True:
                finished = self._wait()
                self._look()
                if finished is not None:
                    return finished
                if stopped():
                    return self._interrupt()
        finally:
            self._end_all()

    def _start_coordinator(self) -> Any:
        """Starts the coordinator on the driver's own node, without which the run ends anyway."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        made = self._ray.remote(Coordinator).options(name=COORDINATOR, scheduling_strategy=here, **OPTIONS)
        runtime = self._config.runtime
        return made.remote(
            shards=runtime.shards,
            caches=runtime.caches,
            learners=runtime.learners,
            heartbeat_seconds=self._timing.heartbeat,
        )

    def _start(self, who: Who, factories: Factories, token: str | None) -> Member:
        resources = getattr(self._config.runtime.roles, who.role.value)
        options: dict[str, Any] = {"num_cpus": resources.cpus, "num_gpus": resources.gpus}
        if self._config.runtime.address != ray_connection.LOCAL:
            options["memory"] = resources.memory_mb * 1024 * 1024 or None
            options["scheduling_strategy"] = "SPREAD"
        made = self._ray.remote(CLASSES[who.role]).options(
            max_restarts=-1, max_task_retries=0, max_concurrency=MAX_CALLS, **options
        )
        handle = made.remote(self._config, who, factories, self._timing, token)
        return Member(who, handle, self._run_role(who, handle))

    def _run_role(self, who: Who, handle: Any) -> Any:
        """Makes a process run its role; returns Ray's reference to its result."""
        return handle.run.remote(self._rendezvous) if who.role is RoleName.LEARNER else handle.run.remote()

    def _wait(self) -> Run | None:
        """Waits a moment and restarts dead processes; returns the learner's result, if it is done."""
        self._end_late_leavers()
        by_reference = {member.running: member for member in self._members}
        ended, _ = self._ray.wait(list(by_reference), num_returns=len(by_reference), timeout=LOOK_SECONDS)
        for reference in ended:
            member = by_reference[reference]
            if member.restarting:
                self._finish_restart(member)
                continue
            try:
                result = self._ray.get(reference)
            except self._ray.exceptions.RayActorError as error:
                self._restart(member, error)
            except self._ray.exceptions.RayTaskError as error:
                raise _failure(member.who, error) from error
            else:
                if member is self._learner:
                    return result
                raise WorkerFailed(f"{member.who} ended unexpectedly")
        return None

    def _restart(self, member: Member, error: Exception) -> None:
        """Handles a dead process, which Ray restarts; its role runs again once it answers."""
        member.restarts += 1
        if self._leaving.pop(member.who, None) is not None:
            self._progress.note(f"{member.who} is restarted with the others")
        else:
            self._progress.note(f"{member.who} died and is restarted")
            if member.who.role is RoleName.LEARNER:
                self._restart_learners(member, error)
        _log.info("%s died: %s", member.who, error)
        self._tell("forget", member.who)
        restarts = collections.Counter[str]()
        for each in self._members:
            restarts[f"{each.who.role}_restarts"] += each.restarts
        self._tell("restarts", {name: float(count) for name, count in restarts.items()})
        member.running, member.restarting = member.handle.ping.remote(), True

    def _finish_restart(self, member: Member) -> None:
        """Runs the role of a restarted process once it answers; earlier, it would seem to have died again."""
        try:
            self._ray.get(member.running)
        except self._ray.exceptions.RayActorError as error:
            _log.debug("%s is not available yet: %s", member.who, error)
            time.sleep(LOOK_SECONDS)
            member.running = member.handle.ping.remote()
        else:
            member.running, member.restarting = self._run_role(member.who, member.handle), False

    def _restart_learners(self, dead: Member, error: Exception) -> None:
        """Handles a learner's death. Learner hosts act as one, so all others restart from the last checkpoint."""
        self._deaths += 1
        if self._deaths >= MAX_DEATHS:
            times = f"learners {MAX_DEATHS} times without finishing an iteration"
            raise WorkerFailed(f"{dead.who} died, and {times}: {error}")
        self._rendezvous += 1
        for other in self._learners:
            if other is not dead and not other.restarting and other.who not in self._leaving:
                self._leaving[other.who] = time.monotonic() + LEAVE_SECONDS
                # Most end by themselves; `kill` might end the process that already replaces them.
                other.handle.leave.remote(self._rendezvous)

    def _end_late_leavers(self) -> None:
        """Kills learners that must restart and did not end in time."""
        for learner in self._learners:
            if time.monotonic() > self._leaving.get(learner.who, math.inf):
                self._leaving[learner.who] = math.inf
                self._ray.kill(learner.handle, no_restart=False)

    def _tell(self, method: str, *arguments: Any) -> None:
        getattr(self._coordinator, method).remote(*arguments)

    def _look(self) -> None:
        try:
            view: RunView = self._ray.get(self._coordinator.view.remote(), timeout=ANSWER_SECONDS)
        except self._ray.exceptions.RayError as error:  # The coordinator is being restarted.
            _log.debug("no view: %s", error)
            self._check_cluster()
            return
        self._answered = time.monotonic()
        for note in view.notes:
            if note != STOPPING:  # This was already shown when the user requested the stop.
                self._progress.note(note)
        for row in view.rows:
            self._progress.iteration(row)
            if row["iteration"] > self._iteration:
                self._iteration, self._deaths = row["iteration"], 0
        restarts = {str(member.who): member.restarts for member in self._members}
        self._progress.processes(processes_table(view.heartbeats, restarts))
        self._learner_is_ready = any(one.who == self._learner.who and one.ready for one in view.heartbeats)
        self._watch(view)
        self._check_start(view.heartbeats)

    def _check_cluster(self) -> None:
        """Raises WorkerFailed if the cluster's head is gone, and with it Ray's state of the run."""
        silent = time.monotonic() - self._answered
        if silent > LOST_SECONDS and not accepts(self._cluster, timeout=ANSWER_SECONDS):
            self._lost = True
            raise WorkerFailed(
                f"the Ray cluster at {self._cluster} has not answered for {silent:.0f} s: its head is gone, and the "
                "run's processes end with it. Start the cluster again (head first, then the other nodes) and give the "
                f"same command: the run resumes from the last checkpoint in {self._config.run_dir}"
            )

    def _check_start(self, heartbeats: tuple[Heartbeat, ...]) -> None:
        """Raises WorkerFailed if some processes have not started in time."""
        if self._all_started:
            return
        ready = {one.who for one in heartbeats if one.ready}
        missing = [str(member.who) for member in self._members if member.who not in ready]
        self._all_started = not missing
        if missing and time.monotonic() - self._started > self._timing.start:
            raise WorkerFailed(
                f"{', '.join(missing[:5])} did not start within {self._timing.start:g} s; Ray has "
                f"{self._ray.available_resources()} left of {self._ray.cluster_resources()}"
            )

    def _interrupt(self) -> Run:
        """Makes the learner save and end; returns its result, or the state that it saved."""
        self._progress.note(STOPPING)
        self._tell("stop")
        unfinished = Run(working_folder(self._config.run_dir), interrupted=True)
        if not self._learner_is_ready or self._learner.restarting:  # nothing is learned, or it does not answer
            return unfinished
        saved = self._learner.handle.stop.remote()
        deadline = time.monotonic() + STOP_SECONDS
        try:
            while time.monotonic() < deadline:
                ended, _ = self._ray.wait([self._learner.running], timeout=LOOK_SECONDS)
                if ended:
                    return self._ray.get(self._learner.running)
            # The learner is in a long computation; the saved state suffices.
            so_far = self._ray.get(saved, timeout=ANSWER_SECONDS)
        except self._ray.exceptions.RayError as error:
            _log.debug("the learner died while stopping: %s", error)
            so_far = None
        finally:
            self._look()
        if so_far is None:
            return unfinished
        stopped = f"stopped after iteration {so_far.iterations} with a checkpoint"
        self._progress.note(f"{stopped}: the same command resumes from there")
        return so_far

    def _end_all(self) -> None:
        """Requests all processes to stop, then ends the remaining ones."""
        if self._lost:  # Ray would wait for its head.
            return
        self._tell("stop")
        for member in self._members:
            self._ray.kill(member.handle, no_restart=True)
        self._ray.kill(self._coordinator, no_restart=True)


def _failure(who: Who, error: Any) -> Exception:
    """The process's exception in the form for the user."""
    from placement.netlist.errors import DesignError
    from placement.replay.replay import ReplayTimeout
    from placement.training.checkpoint import CheckpointError
    from placement.training.learner_loop import Diverged
    from placement.utils.disk import DiskFull

    cause = error.cause if isinstance(error.cause, Exception) else error
    if isinstance(cause, (ConfigError, CheckpointError, DesignError, DiskFull, Diverged, ReplayTimeout)):
        return cause
    return WorkerFailed(f"{who} failed: {type(cause).__name__}: {cause}")
