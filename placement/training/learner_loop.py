"""The learner's loop (read episodes, learn, publish, evaluate, save), and the steps around it in every runtime."""

import contextlib
import dataclasses
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from placement.config import TrainConfig
from placement.episode import Episode
from placement.modelcache.store import ParameterPublisher
from placement.netlist.design import Design
from placement.ppo.learner import Hosts, Learner
from placement.replay.replay import ReplayClosed, ReplayReader
from placement.training.best import BestTracker
from placement.training.checkpoint import Counters, Saver, TrainingState, on_host
from placement.training.input_pipeline import Batch, InputPipeline
from placement.training.metrics import MetricsWriter, ProgressSink, episode_metrics
from placement.training.rollout import Evaluator
from placement.training.run_folder import CHECKPOINTS_NAME, STOPPING, Run, dotted, plain, working_folder
from placement.utils.disk import checked_space
from placement.utils.interruption import Interrupted, Interruption
from placement.utils.worker_threads import Supervisor, WorkerStuck

_log = logging.getLogger(__name__)
LOST_ITERATIONS = 5  # number of consecutive iterations with only dead ends after which the run makes suggestions
MAX_SKIPPED_STEPS = 20
"""Maximum consecutive gradient steps skipped for a loss or gradient that is not finite; training then fails."""
STOP_SECONDS = 30.0  # timeout for actors to end, in seconds


class Diverged(RuntimeError):
    """The network reached values that are not finite; the message gives the iteration and suggestions."""


@dataclasses.dataclass(frozen=True)
class LearnerComponents:
    """The components of the loop, built by `placement.runtimes.components` (`Setup`, `Connections`).

    `evaluation_key` is the JAX random key of the evaluations.
    """

    learner: Learner
    replay: ReplayReader
    store: ParameterPublisher
    evaluator: Evaluator
    best: BestTracker
    evaluation_key: jax.Array
    evaluate_every: int
    supervisor: Supervisor
    interruption: Interruption
    progress: ProgressSink
    saver: Saver
    measures: Callable[[], Mapping[str, float]] = dict
    received: Callable[[Sequence[Episode]], None] = lambda episodes: None
    hosts: Hosts = dataclasses.field(default_factory=Hosts)


class LearnerLoop:
    """The learner's loop of a run with the settings `config`, starting from `counters`.

    `state` is consistent, and may be saved at any time.
    """

    def __init__(self, config: TrainConfig, components: LearnerComponents, folder: Path, counters: Counters) -> None:
        self.config, self.components, self.folder = config, components, folder
        self._began = time.monotonic() - counters.seconds
        self.state = self._capture(counters)
        self._good = self.state  # the newest state after an iteration that learned something
        self._skipped = 0  # consecutive skipped gradient steps
        self.last: dict[str, float] = {}  # the newest row of metrics
        self._lost = 0  # consecutive iterations with only dead ends

    @property
    def settings(self) -> dict[str, Any]:
        """The run's settings by their dotted names."""
        return dotted(plain(self.config))

    def done(self) -> bool:
        return dataclasses.replace(self.state.counters, seconds=self._seconds()).done(self.config)

    def run(self, metrics: MetricsWriter) -> None:
        """Iterates until done; raises Interrupted, DiskFull, Diverged, WorkerFailed or ReplayTimeout.

        After Diverged, `state` is the last good one.
        """
        roles, every = self.components, self.components.evaluate_every
        share = self.config.ppo.episodes_per_iteration // roles.hosts.count
        done = self.done()
        if not done:
            roles.progress.note("compiling the policy and playing the first episodes …")
        with InputPipeline(roles.replay, roles.learner, episodes=share) as pipeline:
            while not done:
                row = self._iterate(pipeline)
                done = self._note_done()
                iteration, row["seconds"] = self.state.counters.iteration, self.state.counters.seconds
                if done or (every and iteration % every == 0):
                    row |= self._evaluate(iteration)
                row["best_so_far"] = roles.best.mean_cost()
                # Published only now; otherwise actors would begin the next iteration, whose placements do not belong to
                # this row.
                if not done:
                    roles.store.publish(iteration, self.state.parameters)
                row |= roles.measures()
                self.last = row
                self._watch_dead_ends(row)
                with checked_space(metrics.path):
                    metrics.write(row)
                roles.best.write(self.folder, iteration=iteration)
                if (done or (every and iteration % every == 0)) and self.config.drawn is None:
                    with checked_space(metrics.path):
                        metrics.add_pictures(iteration, roles.best.pictures())
                roles.progress.iteration(row)
                if done or (iteration % self.config.runtime.checkpoint_every == 0 and not self._skipped):
                    self.save()

    def _note_done(self) -> bool:
        """Whether the run is done; its checkpoint and its last row record it, although the clock keeps running."""
        counters = dataclasses.replace(self.state.counters, seconds=self._seconds())
        done = counters.done(self.config)
        if done:
            self.state = dataclasses.replace(self.state, counters=counters)
        return done

    def save(self) -> None:
        """Saves the newest consistent state, unless it is on disk already; thread-safe."""
        self.components.saver.save(self.state, self.components.best)

    def result(self, *, interrupted: bool) -> Run:
        """The current state of the run; writes the best placements first."""
        counters, best = self.state.counters, self.components.best
        best.write(self.folder, iteration=counters.iteration)
        mean_cost = self.last.get("cost_mean", math.nan)
        return _run(self.folder, counters, best, mean_cost=mean_cost, interrupted=interrupted)

    def _watch_dead_ends(self, row: Mapping[str, float]) -> None:
        """Makes suggestions, once, if no episode ever places all macros."""
        all_lost = row["dead_ends"] == self.config.ppo.episodes_per_iteration
        self._lost = self._lost + 1 if all_lost else 0
        if self._lost == LOST_ITERATIONS and not math.isfinite(self.components.best.mean_cost()):
            self.components.progress.note(
                f"no episode of {LOST_ITERATIONS} iterations placed all macros; try "
                "policy.whitespace_bias=6 (packs closer), env.action_scale=2 (a finer grid of actions), smaller halos"
            )

    def _iterate(self, pipeline: InputPipeline) -> dict[str, float]:
        roles, before = self.components, self.state.counters
        start = time.monotonic()
        with roles.interruption.breakable():
            episodes, prepared = self._next(pipeline)
            received = time.monotonic()
            roles.received(episodes)
            if not self.last:
                roles.progress.note("compiling the learner's step …")
            elapsed = roles.hosts.first(self._elapsed())
            learned = roles.learner.learn(prepared, iteration=before.iteration, elapsed=elapsed)
        learned_at = time.monotonic()
        steps = sum(int(episode.length) for episode in episodes)
        counters = Counters(
            iteration=before.iteration + 1,
            episodes=before.episodes + len(episodes),
            steps=before.steps + steps,
            seconds=self._seconds(),
        )
        self._take(self._capture(counters), learned)
        elapsed = time.monotonic() - start
        return {
            **dataclasses.asdict(counters),
            **episode_metrics(episodes, version=before.iteration, by_design=self.config.drawn is None),
            "episodes_per_second": len(episodes) / elapsed,
            "steps_per_second": steps / elapsed,
            "infeed_wait_seconds": received - start,
            "infeed_wait_share": (received - start) / elapsed,
            "learner_seconds": learned_at - received,
            "rejected_episodes": float(getattr(roles.replay, "rejected", 0) + pipeline.rejected),
            **{f"learner_{name}": float(value) for name, value in learned.items()},
        }

    def _take(self, new: TrainingState, learned: Mapping[str, float]) -> None:
        """Makes `new` the state; if training has diverged, raises Diverged and keeps a good state."""
        learned_nothing = not learned.get("gradient_steps", 1)
        self._skipped = self._skipped + int(learned.get("skipped_steps", 0)) if learned_nothing else 0
        if self._skipped >= MAX_SKIPPED_STEPS:
            self.state = self._good
            raise self._diverged(f"{self._skipped} gradient steps in a row were skipped: loss or gradient not finite")
        if not self._skipped:
            if not self.components.evaluator.finite(new.parameters):
                raise self._diverged(f"iteration {new.counters.iteration} made the network's outputs not finite")
            self._good = new
        self.state = new

    def _diverged(self, what: str) -> Diverged:
        good, ppo = self.state.counters.iteration, self.config.ppo
        return Diverged(
            f"training has broken down: {what}. The newest checkpoint is the last good one: "
            f"{self.folder / CHECKPOINTS_NAME / str(good)}. To resume from it, give run_dir={self.folder} and a lower "
            f"ppo.learning_rate (it was {ppo.learning_rate:g}), or a lower ppo.max_gradient_norm "
            f"(it was {ppo.max_gradient_norm:g})"
        )

    def _next(self, pipeline: InputPipeline) -> Batch:
        try:
            return pipeline.next(timeout=self.config.replay.timeout)
        except ReplayClosed:
            if self.components.interruption.requested.is_set():
                raise Interrupted from None
            self.components.supervisor.check()
            raise

    def _evaluate(self, iteration: int) -> dict[str, float]:
        """The greedy episodes' mean cost over the designs; their placements may be the best."""
        roles = self.components
        key = jax.random.fold_in(roles.evaluation_key, iteration)
        stopped = roles.interruption.requested.is_set
        costs = []
        for found in roles.evaluator.evaluate(self.state.parameters, key, stopped=stopped):
            if found.costs is not None and found.placement is not None:
                origin = f"{'greedy' if found.greedy else 'sampled'} evaluation, parameters of iteration {iteration}"
                roles.best.report(found.design, found.costs, found.placement, origin=origin)
            if found.greedy:
                costs.append(math.nan if found.costs is None else found.costs.total)
        return {"greedy_cost": sum(costs) / len(costs)} if costs else {}

    def _capture(self, counters: Counters) -> TrainingState:
        learner = self.components.learner
        return TrainingState(counters, on_host(learner.state), on_host(learner.parameters()))

    def _elapsed(self) -> float:
        """Elapsed fraction of the time limit; 0 without one."""
        minutes = self.config.runtime.minutes
        return min(self._seconds() / (60 * minutes), 1.0) if minutes else 0.0

    def _seconds(self) -> float:
        """Elapsed seconds, including earlier starts."""
        return time.monotonic() - self._began


def finished(
    config: TrainConfig, designs: Sequence[Design], saver: Saver, *, note: Callable[[str], None]
) -> Run | None:
    """Returns the run in its folder, and reports it, if it is complete; builds no network and no environments."""
    folder, best = working_folder(config.run_dir), BestTracker(designs, config.env.cost.weights())
    counters = saver.finished(config, best)
    if counters is None:
        return None
    best.recover(folder)
    best.write(folder, iteration=counters.iteration)
    run = _run(folder, counters, best, already_complete=True)
    limit = "ppo.iterations" if counters.iteration >= config.ppo.iterations else "runtime.minutes"
    listed = f"best placement {', '.join(_listed(run, best)) or 'none'}; " if config.drawn is None else ""
    note(f"complete: {counters.iteration} iterations; nothing to do; {listed}raise {limit} to continue")
    flips = config.flips and config.drawn is None
    if flips and not any(folder.glob("best_flipped*")):  # The run was killed after its last checkpoint.
        _flip(run, best, note)
    note(f"run folder: {folder}")
    return run


def complete(loop: LearnerLoop, *, flips: bool) -> Run:
    """Runs the loop; at any end, the last good state is saved and the actors are stopped.

    With `flips`, the best placements' macros are mirrored at the end if that is cheaper.
    """
    interrupted, best, note = False, loop.components.best, loop.components.progress.note
    with contextlib.ExitStack() as files:
        with contextlib.ExitStack() as ending:
            ending.callback(_end_actors, loop)
            ending.callback(loop.save)
            iteration = loop.state.counters.iteration
            metrics = files.enter_context(
                MetricsWriter(loop.folder, iteration=iteration, hyperparameters=loop.settings)
            )
            try:
                loop.run(metrics)
            except Interrupted:
                interrupted = True
                note(STOPPING)
        with checked_space(metrics.path):  # Actors may have found better placements after the last row.
            metrics.amend(best_so_far=best.mean_cost())
    run = loop.result(interrupted=interrupted)
    if interrupted:
        note(f"stopped after iteration {run.iterations} with a checkpoint: the same command resumes from there")
    for found in _listed(run, best) if loop.config.drawn is None else ():
        note(f"best placement: {found}")
    if flips and not interrupted:
        _flip(run, best, note)
    note(f"run folder: {run.folder}")
    return run


def _flip(run: Run, best: BestTracker, note: Callable[[str], None]) -> None:
    for path, flipped in best.write_flipped(run.folder):
        cost = f"{best.weights.name} cost {flipped.costs.total:.4f}"
        note(f"the same, {flipped.flipped} macros flipped: {path} ({cost})")


def _listed(run: Run, best: BestTracker) -> list[str]:
    """The best placements' files with their costs."""
    found = zip(run.best_files, best.costs(), strict=True)
    return [f"{file} ({best.weights.name} cost {cost:.4f})" for file, cost in found]


def _run(folder: Path, counters: Counters, best: BestTracker, **more: float | bool) -> Run:
    return Run(
        folder=folder,
        iterations=counters.iteration,
        episodes=counters.episodes,
        seconds=counters.seconds,
        best_cost=best.mean_cost(),
        best_files=best.files(folder),
        **more,  # type: ignore[arg-type]
    )


def _end_actors(loop: LearnerLoop) -> None:
    try:
        loop.components.supervisor.shut_down(timeout=STOP_SECONDS)
    except WorkerStuck as error:
        _log.warning("%s", error)
