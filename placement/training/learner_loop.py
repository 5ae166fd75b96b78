"""The learner's loop: read episodes, learn, publish, measure, save."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax

from placement.config import TrainConfig
from placement.episode import Episode
from placement.modelcache.store import ParameterPublisher
from placement.ppo.hosts import Hosts
from placement.ppo.learner import Learner
from placement.replay.base import ReplayClosed, ReplayReader
from placement.training.best import BestTracker
from placement.training.divergence import Diverged, SkippedSteps
from placement.training.evaluator import Evaluator
from placement.training.input_pipeline import Batch, InputPipeline
from placement.training.metrics import MetricsWriter, episode_metrics
from placement.training.progress import ProgressSink
from placement.training.saving import FOLDER_NAME, Counters, Saver, TrainingState, on_host
from placement.utils.disk import checked_room
from placement.utils.interruption import Interrupted, Interruption
from placement.utils.supervisor import Supervisor

MOST_SKIPPED_STEPS = 20
"""Gradient steps skipped in a row, because their loss or gradient is not finite, after which training ends."""
LOST_ITERATIONS = 5
"""With dead ends alone, after which the run says what to try."""


@dataclasses.dataclass(frozen=True)
class LearnerParts:
    """What the loop works with.

    Attributes:
        learner, replay, store, evaluator, best: the roles.
        evaluation_key: JAX random key of the evaluations.
        evaluate_every: iterations between two evaluations; 0 = only when the run is done.
        supervisor: of the actors.
        interruption: says when to stop.
        progress: is shown what happens.
        saver: of checkpoints.
        measures: more numbers for each iteration's row.
        received: is shown each iteration's episodes, before they are learned from.
        hosts: the learner hosts that this is one of.
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
    """The learner's loop, from where the run had come before (`counters`).

    Attributes:
        parts, folder: the roles, and the run folder.
        state: the newest consistent state, which may be saved at any time.
        last: the newest row of metrics; empty before the first.
    """

    def __init__(self, config: TrainConfig, parts: LearnerParts, folder: Path, counters: Counters) -> None:
        self._config, self.parts, self.folder = config, parts, folder
        self._began = time.monotonic() - counters.seconds
        self.state = self._capture(counters)
        self._good = self.state  # the newest one that an iteration's learning led to
        self._skipped = SkippedSteps(MOST_SKIPPED_STEPS)
        self.last: dict[str, float] = {}
        self._lost = 0  # iterations in a row that brought dead ends alone

    def done(self) -> bool:
        """Whether the iterations are done or the time is up."""
        return self.state.counters.iteration >= self._config.ppo.iterations or self._elapsed() >= 1

    def run(self) -> None:
        """Iterates until done.

        Raises:
            Interrupted: somebody asked to stop.
            DiskFull: there is no room for metrics, the best placements or a checkpoint.
            Diverged: the network came to values that are not finite; `state` is the last good one.
            WorkerFailed: an actor failed.
            ReplayTimeout: the actors did not bring enough episodes in time.
        """
        parts, every = self.parts, self.parts.evaluate_every
        share = self._config.ppo.episodes_per_iteration // parts.hosts.count
        with (
            MetricsWriter(self.folder, iteration=self.state.counters.iteration) as metrics,
            InputPipeline(parts.replay, parts.learner, episodes=share) as pipeline,
        ):
            done = self.done()
            while not done:
                row = self._iterate(pipeline)
                done = self.done()
                iteration = self.state.counters.iteration
                if done or (every and iteration % every == 0):
                    row |= self._evaluate(iteration)
                row["best_so_far"] = parts.best.mean_cost()
                # Not before: actors would begin the next iteration, whose placements are not this row's.
                parts.store.publish(iteration, self.state.parameters)
                row |= parts.measures()
                self.last = row
                self._watch_dead_ends(row)
                with checked_room(metrics.path):
                    metrics.write(row)
                parts.best.write(self.folder, iteration=iteration)
                parts.progress.iteration(row)
                if done or (iteration % self._config.runtime.checkpoint_every == 0 and not self._skipped.going_on):
                    self.save()

    def _watch_dead_ends(self, row: Mapping[str, float]) -> None:
        """Says once what to try where no episode ever places all macros."""
        all_lost = row["dead_ends"] == self._config.ppo.episodes_per_iteration
        self._lost = self._lost + 1 if all_lost else 0
        if self._lost == LOST_ITERATIONS and not math.isfinite(self.parts.best.mean_cost()):
            self.parts.progress.note(
                f"no episode of {LOST_ITERATIONS} iterations found room for all macros; what may help: "
                "policy.room_bias=6 (packs closer), env.action_scale=2 (a finer grid of actions), smaller halos"
            )

    def save(self) -> None:
        """Saves the newest consistent state, unless it is on disk already. Any thread may call this."""
        self.parts.saver.save(self.state, self.parts.best)

    def _iterate(self, pipeline: InputPipeline) -> dict[str, float]:
        """One iteration; returns its row."""
        parts, before = self.parts, self.state.counters
        start = time.monotonic()
        with parts.interruption.breakable():
            episodes, prepared = self._next(pipeline)
            received = time.monotonic()
            parts.received(episodes)
            elapsed = parts.hosts.first(self._elapsed())
            learned = parts.learner.learn(prepared, iteration=before.iteration, elapsed=elapsed)
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
            **episode_metrics(episodes, version=before.iteration),
            "episodes_per_second": len(episodes) / elapsed,
            "steps_per_second": steps / elapsed,
            "infeed_wait_seconds": received - start,
            "infeed_wait_share": (received - start) / elapsed,
            "learner_seconds": learned_at - received,
            "refused_episodes": float(getattr(parts.replay, "rejected", 0) + pipeline.refused),
            **{f"learner_{name}": float(value) for name, value in learned.items()},
        }

    def _take(self, new: TrainingState, learned: Mapping[str, float]) -> None:
        """Makes `new` the state, unless training has broken down; raises Diverged then, the state being a good one."""
        self._skipped.note(learned)
        if self._skipped.too_many:
            self.state = self._good
            raise self._diverged(str(self._skipped))
        if not self._skipped.going_on:
            if not self.parts.evaluator.finite(new.parameters):
                raise self._diverged(f"iteration {new.counters.iteration} made the network's outputs not finite")
            self._good = new
        self.state = new

    def _diverged(self, what: str) -> Diverged:
        good, ppo = self.state.counters.iteration, self._config.ppo
        return Diverged(
            f"training has broken down: {what}. The newest checkpoint is the last good one: "
            f"{self.folder / FOLDER_NAME / str(good)}. To go on from it, give run_dir={self.folder} and a lower "
            f"ppo.learning_rate (it was {ppo.learning_rate:g}), or a lower ppo.max_gradient_norm "
            f"(it was {ppo.max_gradient_norm:g})"
        )

    def _next(self, pipeline: InputPipeline) -> Batch:
        try:
            return pipeline.next(timeout=self._config.replay.timeout)
        except ReplayClosed:
            if self.parts.interruption.requested.is_set():
                raise Interrupted from None
            self.parts.supervisor.check()
            raise

    def _evaluate(self, iteration: int) -> dict[str, float]:
        """The greedy episodes' mean proxy cost over the designs; their placements may be the best."""
        parts = self.parts
        key = jax.random.fold_in(parts.evaluation_key, iteration)
        stopped = parts.interruption.requested.is_set
        evaluations = parts.evaluator.evaluate(self.state.parameters, key, stopped=stopped)
        costs = []
        for found in evaluations:
            if found.costs is not None and found.placement is not None:
                origin = f"{'greedy' if found.greedy else 'sampled'} evaluation, parameters of iteration {iteration}"
                parts.best.report(found.design, found.costs, found.placement, origin=origin)
            if found.greedy:
                costs.append(math.nan if found.costs is None else found.costs.total)
        return {"greedy_cost": sum(costs) / len(costs)} if costs else {}

    def _capture(self, counters: Counters) -> TrainingState:
        learner = self.parts.learner
        return TrainingState(counters, on_host(learner.state), on_host(learner.parameters()))

    def _elapsed(self) -> float:
        """Share of the time limit that has passed; 0 without one."""
        minutes = self._config.runtime.minutes
        return min(self._seconds() / (60 * minutes), 1.0) if minutes else 0.0

    def _seconds(self) -> float:
        """Spent so far, before the run was resumed included."""
        return time.monotonic() - self._began
