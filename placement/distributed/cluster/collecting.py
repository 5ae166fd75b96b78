"""The learner's hands on the sharded replay: what is too old or not true is dropped, and hunger is told.

Axis legend: T macros to place (the longest design's).
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from placement.config import EnvConfig
from placement.distributed.best import BestTracker
from placement.distributed.cluster.board import Hunger
from placement.distributed.cluster.evaluator_process import is_evaluation
from placement.distributed.cluster.player import INCARNATION_BITS
from placement.distributed.cluster.publications import Publications
from placement.distributed.interruption import Interrupted
from placement.engine.costs import Costs
from placement.engine.pool import EnvironmentPool
from placement.netlist.design import Design, Placement
from placement.ppo.trajectory import Episode
from placement.replay.base import ReplayClosed, ReplayReader, ReplayTimeout

_log = logging.getLogger(__name__)
SLICE_SECONDS = 0.5
"""After this long without an episode it is looked whether to stop, and how long nothing has come."""
HUNGRY_SECONDS = 3.0
"""Without an episode for so long, while some are missing, the learner says that it starves."""
COST_TOLERANCE = 1e-6
REPEATED = 100


class Stage:
    """Plays episodes again on the learner's engine: whether they can be, and where they lead.

    Args:
        designs: the run's.
        env: how episodes were played.
    """

    def __init__(self, designs: Sequence[Design], env: EnvConfig) -> None:
        self._designs, self._env = tuple(designs), env
        self._pools: dict[int, EnvironmentPool] = {}
        self._renderer = EnvironmentPool(self._designs, 1, env=env)
        self._rendered = self._renderer.rendered_arrays(1, self._renderer.steps)

    def refusal(self, episode: Episode) -> str | None:
        """Why the episode's actions cannot have been taken; None if they can."""
        try:
            self._renderer.render_episodes(
                episode.design[None], episode.actions[None], episode.length[None], out=self._rendered
            )
        except (ValueError, IndexError) as error:
            return str(error)
        return None

    def placement(self, episode: Episode) -> tuple[Costs, Placement] | None:
        """Where the episode led, with its exact costs; None if it did not place everything."""
        design = int(episode.design)
        pool = self._pools.get(design)
        if pool is None:
            pool = EnvironmentPool(self._designs, 1, env=self._env, design_of_env=[design])
            self._pools[design] = pool
        pool.reset()
        result = None
        for action in episode.actions[: int(episode.length)]:
            result = pool.step(np.array([action], np.int32))
        if result is None or not result.terminated[0] or result.dead_end[0]:
            return None
        return Costs(*(float(cost) for cost in result.costs[0])), pool.placement(0)


class Collecting:
    """A `Replay` for the learner's loop: whole, possible, young enough episodes, each once, from all shards.

    The best placements are found here: an episode that says that it is cheaper than any before is played again.

    Args:
        source: the sharded replay.
        publications: says of which iteration an episode's parameters were.
        stage: plays episodes again.
        best: is told of placements that are better than any before.
        oldest: versions that an episode may lag behind when it is learned from.
        stop: set to end all waits with Interrupted.
        hungry: is told when episodes do not come.
        waiting_for: who is to bring them, for messages.

    Attributes:
        stale: episodes dropped because they were too old.
        orphaned: episodes dropped because they were made with a dead learner's parameters.
        untrue: episodes refused because they cannot be played or do not cost what they say.
    """

    def __init__(
        self,
        source: ReplayReader,
        publications: Publications,
        stage: Stage,
        best: BestTracker,
        *,
        oldest: int,
        stop: threading.Event,
        hungry: Callable[[Hunger], None] = lambda hunger: None,
        waiting_for: Callable[[], str] = lambda: "the actors",
    ) -> None:
        self._source, self._publications, self._stage, self._best = source, publications, stage, best
        self._oldest, self._stop, self._hungry, self._waiting_for = oldest, stop, hungry, waiting_for
        self._hunger = Hunger()
        self._evaluated: dict[int, tuple[int, float]] = {}
        self.stale = self.orphaned = self.untrue = 0

    @property
    def refused(self) -> int:
        """Items that were malformed or untrue, and thrown away."""
        return int(getattr(self._source, "refused", 0)) + self.untrue

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        """Takes `count` episodes.

        Their version is the iteration whose parameters they were made with.

        Raises:
            ReplayTimeout: no episode came for `timeout` seconds. Those that had come are dropped.
            Interrupted: `stop` was set.
        """
        episodes: list[Episode] = []
        came = told = time.monotonic()
        waiting = -1
        while len(episodes) < count:
            missing = count - len(episodes)
            got = self._take(missing)
            now, waiting_before, waiting = time.monotonic(), waiting, self._source.size()
            if got or waiting > waiting_before:
                came = told = now
            elif now - came > timeout:
                raise ReplayTimeout(
                    f"the learner waited {timeout:g} s for {missing} of {count} episodes from {self._waiting_for()}: "
                    f"{waiting} came"
                )
            elif now - told > HUNGRY_SECONDS:
                told = now
                self._tell(missing - waiting)
            episodes += [judged for judged in map(self._judge, got) if judged is not None]
        if self._hunger.missing:
            self._tell(0)
        return episodes

    def size(self) -> int:
        """Episodes waiting to be read, as they came."""
        return self._source.size()

    def close(self) -> None:
        """Wakes who waits. May be called twice."""
        self._source.close()

    def evaluation(self) -> dict[str, float]:
        """Mean cost of the greedy episodes that came since the last call (one for each design), and their iteration."""
        evaluated, self._evaluated = self._evaluated, {}
        if not evaluated:
            return {}
        iterations, costs = zip(*evaluated.values(), strict=True)
        return {"greedy_proxy_cost": sum(costs) / len(costs), "greedy_iteration": float(max(iterations))}

    def _take(self, count: int) -> list[Episode]:
        """`count` episodes, or none if they do not come for a moment; raises Interrupted."""
        if self._stop.is_set():
            raise Interrupted
        try:
            return self._source.read(count, timeout=SLICE_SECONDS)
        except ReplayTimeout:
            return []
        except ReplayClosed:
            if self._stop.is_set():
                raise Interrupted from None
            raise

    def _tell(self, missing: int) -> None:
        self._hunger = Hunger(self._hunger.number + 1, missing)
        self._hungry(self._hunger)

    def _judge(self, episode: Episode) -> Episode | None:
        """The episode with its iteration as version, or None if it is not to be learned from."""
        iteration = self._publications.iteration(int(episode.version))
        if iteration is None:
            self.orphaned += 1
            return None
        newest, evaluation = self._publications.newest, is_evaluation(episode)
        if newest - iteration > self._oldest and not evaluation:
            self.stale += 1
            return None
        reason = self._stage.refusal(episode) if iteration <= newest else f"parameters {iteration} do not exist"
        if reason is None and not episode.dead_end and episode.costs[4] < self._best.limit(int(episode.design)):
            reason = self._keep(episode, iteration)
        if reason is not None:
            self._refuse(reason)
            return None
        if evaluation:
            self._evaluated[int(episode.design)] = iteration, float(episode.costs[4])
            return None
        return episode._replace(version=np.array(iteration, np.int32))

    def _keep(self, episode: Episode, iteration: int) -> str | None:
        """Plays the episode again and keeps its placement; why it is refused, if it does not cost what it says."""
        found = self._stage.placement(episode)
        said = float(episode.costs[4])
        if found is None or not math.isclose(found[0].proxy_cost, said, rel_tol=COST_TOLERANCE):
            return f"says that it costs {said:.9g}, but costs {'nothing' if found is None else found[0].proxy_cost}"
        actor, count = int(episode.identity[0]) >> INCARNATION_BITS, int(episode.identity[1])
        who = "greedy evaluation" if is_evaluation(episode) else f"actor {actor}, episode {count}"
        origin = f"{who}, parameters of iteration {iteration}"
        self._best.report(int(episode.design), *found, origin=origin)
        return None

    def _refuse(self, reason: str) -> None:
        self.untrue += 1
        if self.untrue == 1 or self.untrue % REPEATED == 0:
            _log.warning("an episode is refused (%d so far): %s", self.untrue, reason)
