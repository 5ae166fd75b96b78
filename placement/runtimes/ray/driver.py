"""`runtime=ray`: the driver starts every role in processes of its own, restarts what dies, and ends all.

The command's own process. It holds no state that a run needs: the same command goes on from the last checkpoint.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from placement.config import ConfigError, TrainConfig
from placement.runtimes.ray import host_assignment, session
from placement.runtimes.ray.actor_process import ActorProcess
from placement.runtimes.ray.coordinator import COORDINATOR, OPTIONS, Coordinator
from placement.runtimes.ray.evaluator_process import EvaluatorProcess
from placement.runtimes.ray.learner_process import LearnerProcess
from placement.runtimes.ray.messages import Heartbeat, RoleName, RunView, Who
from placement.runtimes.ray.process_table import processes_table
from placement.runtimes.ray.role_process import MAX_CALLS, Makers
from placement.runtimes.ray.server_processes import CacheProcess, ShardProcess
from placement.training.run_folder import working_folder
from placement.training.run_result import STOPPING, RunResult
from placement.transport.addresses import accepts, is_loopback
from placement.transport.gate import new_token
from placement.utils.supervisor import WorkerFailed

if TYPE_CHECKING:
    from placement.training.progress import TrainingProgress

_log = logging.getLogger(__name__)
LOOK_SECONDS = 0.25
STOP_SECONDS = 6.0
"""That the learner may take to save and end once it is told to stop."""
ANSWER_SECONDS = 3.0
LOST_SECONDS = 15.0
"""A cluster that has answered nothing for so long, and takes no connections, is gone."""
LEAVE_SECONDS = 10.0
"""That a learner may take to end when another one has died."""
MAX_DEATHS = 5
"""After so many deaths of learners without a finished iteration the run fails."""
CLASSES = {
    RoleName.SHARD: ShardProcess,
    RoleName.CACHE: CacheProcess,
    RoleName.LEARNER: LearnerProcess,
    RoleName.ACTOR: ActorProcess,
    RoleName.EVALUATOR: EvaluatorProcess,
}


@dataclasses.dataclass
class Member:
    """A process as the driver knows it.

    Attributes:
        who: it is.
        handle: Ray's.
        running: Ray's reference to what `run` returns at the end, or to what `ping` returns while it restarts.
        restarts: how often it was restarted.
        restarting: whether Ray is restarting the process.
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
    makers: Makers | None = None,
    watch: Callable[[RunView], None] = lambda view: None,
) -> RunResult:
    """Trains as `config` says on Ray, from the run folder's newest checkpoint if there is one.

    Args:
        config: all settings.
        progress: is shown what happens; default: a live table on a terminal, plain lines elsewhere.
        makers: of the network and its learner.
        watch: is shown all processes' heartbeats, several times a second.

    Raises what `placement.runtimes.local.run` raises, and:

    Raises:
        ConfigError: Ray is not installed, or not at the address.
        ReplayTimeout: no episodes came.
        WorkerFailed: a process failed in a way that a restart does not mend; a checkpoint of the last good state is
            saved.
    """
    from placement.training import run_record
    from placement.training.designs import load_designs
    from placement.training.progress import make_progress
    from placement.training.shipped_policies import policy_folder
    from placement.utils.interruption import Interrupted, Interruption

    host_assignment.require_shares(config)
    load_designs(config)  # refuses what cannot be used before anything starts
    if config.initial_policy is not None:  # the learner reads the rest of it
        run_record.read_settings(policy_folder(config.initial_policy, key="initial_policy"), key="initial_policy")
    folder = working_folder(config.run_dir)
    shown = progress or make_progress(config.ppo.iterations, config.runtime.minutes, cost=config.env.cost.name)
    with run_record.locked(folder), Interruption() as interruption:
        run_record.write_record(folder, config)
        try:
            with session.opened(config.runtime, folder, breakable=interruption.breakable) as ray, shown:
                return Driver(ray, config, makers or Makers(), shown, watch).run(interruption.requested.is_set)
        except Interrupted:  # while Ray started
            return RunResult(folder, interrupted=True)


class Driver:
    """Supervises the processes of a run; `ray` is the module, connected, all else as `run` takes it."""

    def __init__(
        self,
        ray: Any,
        config: TrainConfig,
        makers: Makers,
        progress: TrainingProgress,
        watch: Callable[[RunView], None],
    ) -> None:
        self._ray, self._config, self._progress, self._watch = ray, config, progress, watch
        self._cluster, self._answered, self._lost = ray.get_runtime_context().gcs_address, time.monotonic(), False
        runtime = config.runtime
        coordinator = ray.remote(Coordinator)
        self._coordinator = coordinator.options(name=COORDINATOR, **OPTIONS, **self._here()).remote(
            shards=runtime.shards,
            caches=runtime.caches,
            heartbeat_seconds=runtime.timing.heartbeat,
            learners=runtime.learners,
        )
        self._token = None if is_loopback(runtime.bind) else new_token()
        self._rendezvous = 1
        counts = host_assignment.processes_of(runtime)
        # Learners first: others, which fit anywhere, must not take the last processor of the node with the GPU.
        self._members = [
            self._start(Who(role, number), makers)
            for role in sorted(counts, key=lambda role: role is not RoleName.LEARNER)
            for number in range(counts[role])
        ]
        self._learners = [member for member in self._members if member.who.role is RoleName.LEARNER]
        self._learner = self._learners[0]
        self._leaving: dict[Who, float] = {}  # learners that are to restart because another one died, and the deadline
        self._started = time.monotonic()
        self._all_started = self._learner_is_ready = False
        self._iteration, self._deaths = -1.0, 0

    def run(self, stopped: Callable[[], bool]) -> RunResult:
        """Waits until the learner is done or `stopped()`, and ends all processes."""
        try:
            while True:
                finished = self._wait()
                if finished is not None:
                    self._look()
                    return finished
                self._look()
                if stopped():
                    return self._interrupt()
        finally:
            self._end_all()

    def _here(self) -> dict[str, Any]:
        """Has Ray keep a process on the driver's node, without which the run ends anyway."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = self._ray.get_runtime_context().get_node_id()
        return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)}

    def _start(self, who: Who, makers: Makers) -> Member:
        resources = getattr(self._config.runtime.roles, who.role.value)
        options: dict[str, Any] = {"num_cpus": resources.cpus, "num_gpus": resources.gpus}
        if self._config.runtime.address != session.LOCAL:
            options["memory"] = resources.memory_mb * 1024 * 1024 or None
            options["scheduling_strategy"] = "SPREAD"
        made = self._ray.remote(CLASSES[who.role]).options(
            max_restarts=-1, max_task_retries=0, max_concurrency=MAX_CALLS, **options
        )
        handle = made.remote(self._config, who, makers, self._token)
        return Member(who, handle, self._run_role(who, handle))

    def _run_role(self, who: Who, handle: Any) -> Any:
        """Has a process run its role; Ray's reference to its end."""
        return handle.run.remote(self._rendezvous) if who.role is RoleName.LEARNER else handle.run.remote()

    # While it runs.

    def _wait(self) -> RunResult | None:
        """Waits a moment and restarts what has died. The learner's result, if it is done."""
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
                raise WorkerFailed(f"{member.who} ended although it was not told to")
        return None

    def _restart(self, member: Member, error: Exception) -> None:
        """Ray restarts a dead process; its role runs again once it answers."""
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
            _log.debug("%s is not there yet: %s", member.who, error)
            time.sleep(LOOK_SECONDS)
            member.running = member.handle.ping.remote()
        else:
            member.running, member.restarting = self._run_role(member.who, member.handle), False

    def _restart_learners(self, dead: Member, error: Exception) -> None:
        """A learner died. Learner hosts act as one, so all others end and meet again at the last checkpoint."""
        self._deaths += 1
        if self._deaths >= MAX_DEATHS:
            raise WorkerFailed(
                f"{dead.who} died, and learners {MAX_DEATHS} times without finishing an iteration: {error}"
            )
        self._rendezvous += 1
        for other in self._learners:
            if other is not dead and not other.restarting and other.who not in self._leaving:
                self._leaving[other.who] = time.monotonic() + LEAVE_SECONDS
                # Many end by themselves: `kill` might end the process that already comes after them.
                other.handle.leave.remote(self._rendezvous)

    def _end_late_leavers(self) -> None:
        """Kills learners that were told to restart and did not end in time."""
        for learner in self._learners:
            if time.monotonic() > self._leaving.get(learner.who, math.inf):
                self._leaving[learner.who] = math.inf
                self._ray.kill(learner.handle, no_restart=False)

    def _tell(self, method: str, *arguments: Any) -> None:
        """Calls a method of the coordinator and does not wait."""
        getattr(self._coordinator, method).remote(*arguments)

    def _look(self) -> None:
        """Shows what is new."""
        try:
            view: RunView = self._ray.get(self._coordinator.view.remote(), timeout=ANSWER_SECONDS)
        except self._ray.exceptions.RayError as error:  # the coordinator is being restarted
            _log.debug("no view: %s", error)
            self._check_cluster()
            return
        self._answered = time.monotonic()
        for note in view.notes:
            if note != STOPPING:  # was said when the user asked
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
        """Raises WorkerFailed if the cluster's head is gone, with which Ray loses all that it knew of the run."""
        silent = time.monotonic() - self._answered
        if silent > LOST_SECONDS and not accepts(self._cluster, timeout=ANSWER_SECONDS):
            self._lost = True
            raise WorkerFailed(
                f"the Ray cluster at {self._cluster} has not answered for {silent:.0f} s: its head is gone, and the "
                "run's processes end with it. Start the cluster again (head first, then the other nodes) and give the "
                f"same command: the run goes on from the last checkpoint in {self._config.run_dir}"
            )

    def _check_start(self, heartbeats: tuple[Heartbeat, ...]) -> None:
        """Raises WorkerFailed if some processes have not started in time."""
        if self._all_started:
            return
        ready = {one.who for one in heartbeats if one.ready}
        missing = [str(member.who) for member in self._members if member.who not in ready]
        self._all_started = not missing
        timeout = self._config.runtime.timing.start
        if missing and time.monotonic() - self._started > timeout:
            raise WorkerFailed(
                f"{', '.join(missing[:5])} did not start within {timeout:g} s; Ray has "
                f"{self._ray.available_resources()} left of {self._ray.cluster_resources()}"
            )

    # At the end.

    def _interrupt(self) -> RunResult:
        """Has the learner save and end; its result, or how far it was when it saved."""
        self._progress.note(STOPPING)
        self._tell("stop")
        if not self._learner_is_ready or self._learner.restarting:  # nothing is learned, or nobody answers
            return RunResult(working_folder(self._config.run_dir), interrupted=True)
        said = self._learner.handle.stop.remote()
        deadline = time.monotonic() + STOP_SECONDS
        try:
            while time.monotonic() < deadline:
                ended, _ = self._ray.wait([self._learner.running], timeout=LOOK_SECONDS)
                if ended:
                    return self._ray.get(self._learner.running)
            # In the middle of a long computation: what is saved is all that is needed.
            so_far = self._ray.get(said, timeout=ANSWER_SECONDS)
        except self._ray.exceptions.RayError as error:
            _log.debug("the learner died while stopping: %s", error)
            so_far = None
        finally:
            self._look()
        if so_far is not None:
            iterations = f"stopped after iteration {so_far.iterations} with a checkpoint"
            self._progress.note(f"{iterations}: the same command goes on from there")
        return so_far or RunResult(working_folder(self._config.run_dir), interrupted=True)

    def _end_all(self) -> None:
        """Tells all to stop, then ends them whether they have or not."""
        if self._lost:  # Ray would wait for its head
            return
        self._tell("stop")
        for member in self._members:
            self._ray.kill(member.handle, no_restart=True)
        self._ray.kill(self._coordinator, no_restart=True)


def _failure(who: Who, error: Any) -> Exception:
    """What the process raised, as the user is to see it."""
    from placement.netlist.errors import DesignError
    from placement.replay.base import ReplayTimeout
    from placement.training.checkpoint import CheckpointError
    from placement.training.divergence import Diverged
    from placement.utils.disk import DiskFull

    cause = error.cause if isinstance(error.cause, Exception) else error
    if isinstance(cause, (ConfigError, CheckpointError, DesignError, DiskFull, Diverged, ReplayTimeout)):
        return cause
    return WorkerFailed(f"{who} failed: {type(cause).__name__}: {cause}")
