"""Straightens a placement at a bounded cost: as tidy as can be had for so much.

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
"""Of tidiness, in the cost that is straightened: so much that only what a macro's line costs in wire is weighed."""
STAGES = 10
"""In each the largest empty rectangle is to grow once more."""
ROUNDS = 100
"""Changes of the temperature where the number of moves is given."""
SLACK, SLACK_UNTIL = 0.02, 0.8
"""Share of the cost beyond the bound at first; and the progress from which on there is none."""
FINAL_SHARE = 0.05
"""Share of the time at the end that accepts only what is no worse."""


class Straightened(NamedTuple):
    """What `straighten` found: the placement, CPU seconds and moves that it took, and whether it was not stopped."""

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
    """`placement`, tidier: its cost rises by at most the share `config.tidy` of it.

    Args:
        design: whose macros.
        placement: a legal one.
        weights: of the cost that is kept; that of tidiness is passed over.
        config: of the search.
        seconds: CPU seconds of this thread.
        moves: instead of `seconds`.
        seed: of the moves.
        stopped: called between rounds; once true, the tidiest placement so far is returned.

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
