"""Mirroring hard macros in place by coordinate descent on the exact cost, Circuit Training's last step.

Axis legend: N nodes. Lengths are in µm.
"""

from __future__ import annotations

from typing import NamedTuple

from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, compute_costs
from placement.engine.incremental import IncrementalCost
from placement.netlist.design import Design, Placement

MOST_SWEEPS = 50
"""Every sweep but the last one lowers the cost; this only bounds how many there can be."""
LEAST_GAIN = 1e-12
"""Of the proxy cost, below which a flip is not worth it."""
_MIRRORS = (1, 2, 3)


class Flipped(NamedTuple):
    """What flipping came to.

    Attributes:
        placement: with the orientations found; the one given, itself, where none was better.
        costs: of it, by a full evaluation.
        flipped: macros that are turned otherwise than before.
        sweeps: over all macros, the last one without a gain included.
    """

    placement: Placement
    costs: Costs
    flipped: int
    sweeps: int


def flip_macros(design: Design, placement: Placement, *, weights: CostWeights = DEFAULT_WEIGHTS) -> Flipped:
    """Gives every movable hard macro in turn its cheapest orientation, until no macro has a cheaper one.

    Only the three orientations with the same sides as a macro's own are tried (the two mirrorings and the turn by half
    a circle), if the macro may have them, so nothing moves and what was legal stays legal. The result is never dearer
    than `placement`.

    Args:
        design: whose macros.
        placement: of all nodes; soft macros stay where they are.
        weights: of the cost that is lowered.

    Raises:
        DesignError: `placement` is not a whole placement of `design`.
    """
    cost = IncrementalCost(design, placement, weights=weights)
    before, sweeps = placement.orientation, 0
    macros = [int(node) for node in design.placing_order if not placement.fixed[node]]
    improved = True
    while improved and sweeps < MOST_SWEEPS:
        improved = False
        for node in macros:
            improved |= _turned(design, cost, node)
        sweeps += 1
    found = cost.placement
    flipped = int((found.orientation != before).sum())
    result = found if flipped else placement
    return Flipped(result, compute_costs(design, result, weights=weights), flipped, sweeps)


def _turned(design: Design, cost: IncrementalCost, node: int) -> bool:
    """Turns a macro to its cheapest orientation of the same sides; whether that is another than before."""
    before = cost.orientation(node)
    best, lowest = before, cost.costs.total - LEAST_GAIN
    for mirror in _MIRRORS:
        other = before ^ mirror  # N, FN, S, FS are 0 to 3, and E, FE, W, FW 4 to 7
        if not design.constraints.allows(node, other):
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
