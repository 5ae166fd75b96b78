"""Straightening: makes a placement as tidy as a bound on its cost allows.

Axis legend: H hard macros. Lengths are in µm.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from placement.annealing.anneal_config import FINAL_TEMPERATURE, INITIAL_TEMPERATURE, ROUND_MOVES, AnnealConfig
from placement.annealing.annealer import Annealer
from placement.engine.costs import CostWeights, compute_costs
from placement.netlist.design import Design, Placement

WEIGHT = 0.1
"""Weight of tidiness relative to the base cost; so high that the wirelength a macro's alignment costs is all that
competes.
"""
STAGES = 10  # number of stages; each enlarges the largest empty rectangle once more
ROUNDS = 100  # number of temperature changes if the number of moves is given
SLACK, SLACK_UNTIL = 0.02, 0.8
"""Initial excess over the bound, as a share of the cost, and the progress at which it reaches 0."""
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
    annealer = Annealer(
        design, placement, config=config, weights=weights._replace(tidy=WEIGHT * (base or 1.0)), seed=seed
    )
    most = base * (1 + (config.tidy or 0.0))
    movable = len(design.placing_order) + int((~design.initial.fixed[design.netlist.soft]).sum())
    first, last = (
        share_of * base / max(1, movable) for share_of in (INITIAL_TEMPERATURE[weights.name], FINAL_TEMPERATURE)
    )
    begun, done, stage = time.thread_time(), 0, -1

    while True:
        spent = time.thread_time() - begun
        now = spent / seconds if seconds is not None else done / max(1, moves or 1)
        if now >= 1 or stopped():
            within = [at for at in (annealer.placement, annealer.best) if cost_of(at) <= most]
            return Straightened(within[0] if within else placement, spent, done, now >= 1)
        if int(now * STAGES) != stage:
            stage = int(now * STAGES)
            annealer.grow_clear()
        count = ROUND_MOVES if moves is None else min(max(1, moves // ROUNDS), moves - done)
        temperature = first * (last / first) ** now if now < 1 - FINAL_SHARE else 0.0
        annealer.run(count, temperature, most + base * SLACK * max(0.0, 1 - now / SLACK_UNTIL))
        done += count
