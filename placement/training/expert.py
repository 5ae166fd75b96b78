"""The expert: search improves the policy's best placements, and what comes out teaches the policy.

The idea of expert iteration (Anthony, Tian, Barber 2017) with annealing as the expert. The search may exchange macros
but not leave the gcell centres, as the policy cannot; what it finds is played as an episode, which pays its true cost,
and joins the episodes that are imitated (`ppo.self_imitation`) if it is better than what it came from.

Axis legend: T macros to place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placement.config import EnvConfig, ExpertConfig
from placement.engine.pool import EnvironmentPool, make_pool
from placement.engine.soft import SOFT_PLACERS
from placement.episode import Episode, signature
from placement.netlist.design import Design, Placement
from placement.ppo.elites import Elites
from placement.search.config import MOVES, AnnealConfig, Budget
from placement.search.search import search
from placement.search.starts import Start

EXCHANGES = ("hard_swap", "hard_permute", "hard_roll")
"""Moves that keep macros of equal size on the grid."""
ACTOR = -1
"""In the identity of the expert's episodes."""


class Expert:
    """Improves episodes by searching.

    Args:
        designs: in the order that the episodes' `design` indexes.
        env: the environment's settings.
        config: how much to search.
        seed: of the searches.
    """

    def __init__(self, designs: Sequence[Design], env: EnvConfig, config: ExpertConfig, *, seed: int) -> None:
        self._designs, self._config, self._seed = tuple(designs), config, seed
        self._weights = env.cost.weights()
        placer = env.soft_placer if env.soft_placer in SOFT_PLACERS else "analytic_fast"
        self._anneal = AnnealConfig(
            soft_moves=False,
            soft_placer=placer,
            without=tuple(move for move in MOVES if move not in EXCHANGES),
        )
        self._pools = [make_pool(designs, 1, config=env, design_of_env=[index]) for index in range(len(designs))]

    def due(self, iteration: int) -> bool:
        """Whether the expert teaches after `iteration` iterations."""
        return self._config.every > 0 and iteration % self._config.every == 0

    def lessons(self, elites: Elites, iteration: int) -> list[Episode]:
        """Episodes better than those they were made from.

        Args:
            elites: the best episodes so far; the first `config.placements` of each design are improved.
            iteration: done so far; makes the searches of each time different.
        """
        found = []
        for design in range(len(self._designs)):
            for place in range(min(self._config.placements, elites.length.shape[1])):
                length = int(elites.length[design, place])
                if not length:
                    continue
                start = self._placement(design, elites.actions[design, place, :length])
                better = self._improved(design, start, [self._seed, iteration, design, place])
                if better is not None and better.reward > elites.reward[design, place]:
                    found.append(better._replace(identity=np.array([ACTOR, iteration], np.int64)))
        return found

    def _placement(self, design: int, actions: np.ndarray) -> Placement:
        pool = self._pools[design]
        pool.reset()
        for action in actions:
            pool.step([action])
        return pool.placement(0)

    def _improved(self, design: int, start: Placement, seed: list[int]) -> Episode | None:
        """The search's result as an episode; None where it came to a dead end."""
        result = search(
            self._designs[design],
            [Start("elite", start)],
            config=self._anneal,
            budget=Budget(moves=self._config.moves),
            weights=self._weights,
            seed=int(np.random.SeedSequence(seed).generate_state(1)[0]),
        )
        return onto_grid(self._pools[design], result.placement)


def onto_grid(pool: EnvironmentPool, placement: Placement) -> Episode | None:
    """An episode that puts each macro on the legal gcell nearest to where it stands in `placement`.

    Args:
        pool: one environment.
        placement: of its design; soft macros are placed anew, as at every episode's end.

    Returns:
        None where a macro has no legal cell left.
    """
    design_index, steps = pool.config.design_of_env[0], pool.spec.steps
    design = pool.designs[design_index]
    canvas, order = design.action_canvas, design.placing_order
    observation, info = pool.reset()
    across = _distances(pool.spec.columns, canvas.cell_width, placement.x[order], off_grid=design.off_grid)
    up = _distances(pool.spec.rows, canvas.cell_height, placement.y[order], off_grid=design.off_grid)
    actions = np.full(steps, -1, np.int32)
    for step in range(len(order)):
        legal = observation["mask"][0] != 0
        distance = up[step][:, None] ** 2 + across[step][None, :] ** 2
        actions[step] = int(np.argmin(np.where(legal, distance, np.inf)))
        observation, reward, _, _, info = pool.step(actions[step : step + 1])
        if info["dead_end"][0]:
            return None
    return signature(steps)._replace(
        design=np.array(design_index, np.int32),
        length=np.array(len(order), np.int32),
        actions=actions,
        reward=np.array(reward[0], np.float32),
        costs=np.array(info["costs"][0], np.float64),
    )


def _distances(cells: int, size: float, places: np.ndarray, *, off_grid: bool) -> np.ndarray:
    """How far each of `places` (float64 [T], µm) is from where each cell of an axis puts a macro, float64 [T, cells].

    Off the grid a cell puts it where there is room, at best at the place itself: the centre then decides among equals.
    """
    away = np.abs((np.arange(cells) + 0.5) * size - places[:, None])
    return np.maximum(away - size / 2, 1e-3 * away) if off_grid else away
