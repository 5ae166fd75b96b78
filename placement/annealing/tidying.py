"""Straightening: makes a placement as tidy as a bound on its cost allows.

Axis legend: H hard macros. Lengths are in µm.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from placement.annealing.anneal_config import FINAL_TEMPERATURE, ROUND_MOVES, AnnealConfig
from placement.annealing.annealer import Annealer
from placement.annealing.turning import turn_groups
from placement.engine.costs import CostWeights, compute_costs
from placement.netlist.design import Design, Placement

WEIGHTS = 0.003, 0.1
"""First and last weight of tidiness relative to the base cost. It rises, so what costs least is straightened first."""
STAGES = 10
"""Number of weights. Each stage first turns groups of macros and extends the largest empty rectangle."""
ROUNDS = 100  # number of temperature changes if the number of moves is given
FINAL_SHARE = 0.05  # share of the budget at the end that accepts no worse placement


class Straightened(NamedTuple):
    """Result of `straighten`: the placement, the CPU seconds and moves spent, and whether the budget is used up."""

    placement: Placement
    seconds: float
    moves: int
    finished: bool


def straighten(
    design: Design,
    placement: Placement,
    *,
    weights: CostWeights,
    config: AnnealConfig,
    seconds: float | None = None,
    moves: int | None = None,
    seed: int = 0,
    stopped: Callable[[], bool] = lambda: False,
) -> Straightened:
    """Returns a tidier `placement` whose cost is at most the share `config.tidy` higher.

    Args:
        design: the design of the placement.
        placement: a legal placement.
        weights: weights of the bounded cost; its weight of tidiness is ignored.
        config: settings of the search.
        seconds: CPU seconds of this thread.
        moves: number of moves, instead of `seconds`.
        seed: seed of the moves.
        stopped: called between rounds; once it returns true, the tidiest placement so far is returned.

    Raises:
        DesignError: `placement` is not a whole placement of `design`, or not legal.
    """
    weights = weights._replace(tidy=0.0)

    def cost_of(at: Placement) -> float:
        return compute_costs(design, at, weights=weights).total

    base = cost_of(placement)
    most = base * (1 + (config.tidy or 0.0))
    movable = len(design.placing_order) + int((~design.initial.fixed[design.netlist.soft]).sum())
    warm = FINAL_TEMPERATURE * base / max(1, movable)
    begun, done, stage = time.thread_time(), 0, -1

    while True:
        spent = time.thread_time() - begun
        now = spent / seconds if seconds is not None else done / max(1, moves or 1)
        if now >= 1 or stopped():
            return Straightened(placement, spent, done, now >= 1)
        if int(now * STAGES) != stage:
            stage = int(now * STAGES)
            weight = WEIGHTS[0] * (WEIGHTS[1] / WEIGHTS[0]) ** (stage / (STAGES - 1))
            tidier = weights._replace(tidy=weight * (base or 1.0))
            placement = turn_groups(design, placement, weights=tidier, config=config, most=most)
            annealer = Annealer(design, placement, config=config, weights=tidier, seed=seed + stage)
            annealer.grow_clear()
        count = ROUND_MOVES if moves is None else min(max(1, moves // ROUNDS), moves - done)
        annealer.run(count, warm if now < 1 - FINAL_SHARE else 0.0, most)
        placement = annealer.placement
        done += count
