"""Improvements that leave hard macros in place: flipping hard macros and annealing soft macros."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import NamedTuple

from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.search import search
from placement.annealing.starts import Start
from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, IncrementalCost, compute_costs
from placement.engine.soft import place_soft_macros
from placement.flat.clusters import spread_clusters
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError

MOST_SWEEPS = 50  # upper bound of the number of sweeps; every sweep but the last lowers the cost
LEAST_GAIN = 1e-12  # decrease of the cost below which no macro is flipped
_MIRRORS = (1, 2, 3)

MOVES = 100_000
"""Default number of moves. Longer annealing of the soft macros ranks placements of synthetic designs better, but beyond
this number it gains little for the time; on CT-Ariane it gains something (docs/experiments/costs.md).
"""
INITIAL_TEMPERATURE = 0.1  # initial temperature in multiples of the cost per movable macro
_FULL_MOVES_EACH, _FULL_TEMPERATURE = 1_000, 1.0  # moves per soft macro in a full evaluation
_ROUNDS = 50


class Flipped(NamedTuple):
    """Result of flipping: `flipped` macros changed their orientation; if none did, `placement` is the given object.

    `sweeps` counts the sweeps over all macros, including the last one without gain.
    """

    placement: Placement
    costs: Costs
    flipped: int
    sweeps: int


def flip_macros(design: Design, placement: Placement, *, weights: CostWeights = DEFAULT_WEIGHTS) -> Flipped:
    """Gives each movable hard macro in turn its cheapest orientation until no macro has a cheaper one.

    This is coordinate descent on the exact cost, the last step of Circuit Training. It tries only the three
    orientations that keep the macro's sides (two mirrorings and the half turn), if they are allowed and keep its corner
    on its grid; nothing moves, so a legal placement remains legal. The result never costs more than `placement` under
    `weights`. Raises DesignError if `placement` is not a whole placement of `design`.
    """
    cost = IncrementalCost(design, placement, weights=weights)
    macros = [int(node) for node in design.placing_order if not placement.fixed[node]]
    sweeps, improved = 0, True
    while improved and sweeps < MOST_SWEEPS:
        improved = sum(_flip(design, cost, node) for node in macros) > 0
        sweeps += 1
    found = cost.placement
    flipped = int((found.orientation != placement.orientation).sum())
    result = found if flipped else placement
    return Flipped(result, compute_costs(design, result, weights=weights), flipped, sweeps)


def _flip(design: Design, cost: IncrementalCost, node: int) -> bool:
    """Gives a macro its cheapest orientation with the same sides; returns whether its orientation changed."""
    before = cost.orientation(node)
    best, lowest = before, cost.costs.total - LEAST_GAIN
    for mirror in _MIRRORS:
        other = before ^ mirror  # N, FN, S, FS are 0 to 3, and E, FE, W, FW 4 to 7
        if not (design.constraints.allows(node, other) and _on_grid(design, cost, node, other)):
            continue
        found = cost.orient(node, other).total
        if found < lowest:
            best, lowest = other, found
        cost.undo()
    if best == before:
        return False
    cost.orient(node, best)
    cost.commit()
    return True


def _on_grid(design: Design, cost: IncrementalCost, node: int, orientation: int) -> bool:
    """Returns whether a macro's corner, which does not move, is on its grid in another orientation of equal sides."""
    if not design.constraints.macro_grids:
        return True
    at = cost.placement
    width, height = design.netlist.sides(at.orientation)
    corner = float(at.x[node] - width[node] / 2), float(at.y[node] - height[node] / 2)
    return design.constraints.grid_of(node, orientation).holds(*corner)


def anneal_soft_macros(
    design: Design,
    placement: Placement,
    *,
    weights: CostWeights = DEFAULT_WEIGHTS,
    moves: int = MOVES,
    initial_temperature: float = INITIAL_TEMPERATURE,
    seed: int = 0,
) -> Placement:
    """Returns `placement` with its soft macros placed and then annealed; hard macros do not move.

    The search has two starts: soft macros placed by `analytic`, and spread around the macros as charges. With a
    thousand moves or more per soft macro, an initial temperature of 1.0 ends some percent cheaper on Ariane, and no
    cheaper on synthetic designs. Raises DesignError if `placement` is not whole or its hard macros are not legal.
    """
    fixed = placement.fixed.copy()
    fixed[design.netlist.hard] = True
    if fixed[design.netlist.soft].all():
        return placement
    held = dataclasses.replace(place_soft_macros(design, placement, "analytic"), fixed=fixed)
    starts = [Start("analytic", held)]
    with contextlib.suppress(DesignError):  # no whitespace clear of the macros
        starts.append(Start("spread", spread_clusters(design, held)))
    found = search(
        dataclasses.replace(design, initial=held),
        starts,
        config=AnnealConfig(initial_temperature=initial_temperature),
        moves=moves,
        round_moves=max(1, moves // _ROUNDS),
        weights=weights,
        seed=seed,
    )
    return dataclasses.replace(found.placement, fixed=placement.fixed)


def anneal_for_full_evaluation(design: Design, placement: Placement) -> Placement:
    """Anneals soft macros on the chip cost for the initial cells of a full evaluation (`FlatEvaluator`'s `anneal`)."""
    moves = max(MOVES, _FULL_MOVES_EACH * len(design.netlist.soft))
    return anneal_soft_macros(design, placement, moves=moves, initial_temperature=_FULL_TEMPERATURE)
