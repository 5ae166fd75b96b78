"""Episodes played again on the learner's engine, to see whether they are true and where they lead."""

from __future__ import annotations

import math
from collections.abc import Sequence

from placement.config import EnvConfig
from placement.engine.actions import IllegalAction
from placement.engine.costs import Costs
from placement.engine.observation import Observation
from placement.engine.pool import EnvironmentPool, make_pool
from placement.engine.rendering import EpisodeRenderer
from placement.episode import Episode
from placement.netlist.design import Design, Placement
from placement.training.best import BestTracker
from placement.training.episode_identity import INCARNATION_BITS, is_evaluation

COST_TOLERANCE = 1e-6


class EpisodeVerifier:
    """Plays episodes again on the learner's engine, to see where they lead; for one thread.

    Args:
        designs: the run's.
        env: how episodes were played.
        best: is told of placements that are better than any before.
    """

    def __init__(self, designs: Sequence[Design], env: EnvConfig, best: BestTracker) -> None:
        self._designs, self._env, self._best = tuple(designs), env, best
        self._pools: dict[int, EnvironmentPool] = {}
        self._renderer: EpisodeRenderer | None = None
        self._rendered: Observation | None = None

    def placement(self, episode: Episode) -> tuple[Costs, Placement] | None:
        """Where the episode led, with its exact costs; None if it did not place everything.

        Raises:
            IllegalAction: it cannot have been played.
        """
        design = int(episode.design)
        pool = self._pools.get(design)
        if pool is None:
            pool = make_pool(self._designs, 1, config=self._env, design_of_env=[design])
            self._pools[design] = pool
        pool.reset()
        for action in episode.actions[: int(episode.length)]:
            pool.step([action])
        _, _, terminated, _, info = pool.observe()
        if not terminated[0] or info["dead_end"][0]:
            return None
        return Costs(*info["costs"][0].tolist()), pool.placement(0)

    def require_legal(self, episode: Episode) -> None:
        """Raises IllegalAction unless every action may be taken; quicker than `placement`."""
        if self._renderer is None:
            self._renderer = EpisodeRenderer(self._designs)
            self._rendered = self._renderer.arrays(1, self._renderer.spec.steps)
        self._renderer.render(episode.design[None], episode.actions[None], episode.length[None], out=self._rendered)

    def keep(self, episode: Episode, iteration: int) -> str | None:
        """Keeps the placement if it is the best; why the episode is refused, if it does not cost what it says.

        Only an episode that says that it is cheaper than any before is played again.

        Args:
            episode: that led there.
            iteration: whose parameters it was made with.
        """
        said = float(episode.costs[4])
        if episode.dead_end or said >= self._best.limit(int(episode.design)):
            return None
        try:
            found = self.placement(episode)
        except IllegalAction as error:
            return str(error)
        if found is None or not math.isclose(found[0].total, said, rel_tol=COST_TOLERANCE):
            return f"says that it costs {said:.9g}, but costs {'nothing' if found is None else found[0].total}"
        actor, count = int(episode.identity[0]) >> INCARNATION_BITS, int(episode.identity[1])
        who = "greedy evaluation" if is_evaluation(episode) else f"actor {actor}, episode {count}"
        origin = f"{who}, parameters of iteration {iteration}"
        self._best.report(int(episode.design), *found, origin=origin)
        return None
