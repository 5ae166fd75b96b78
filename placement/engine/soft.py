"""Placement of the soft macros (clusters of standard cells) around placed hard macros.

Axis legend: N nodes. Lengths are in µm.
"""

from __future__ import annotations

import numpy as np

from placement.engine import _native
from placement.engine.costs import DEFAULT_WEIGHTS, CostWeights
from placement.engine.native_design import native_design
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError

SOFT_PLACERS: tuple[str, ...] = tuple(_native.soft_placer_names())  # names of the soft-macro placers, the default first


ANNEALED = "annealed"
"""`analytic_fast`, then moves of single soft macros that lower the cost: the slowest placer with the lowest cost."""


def place_soft_macros(
    design: Design, placement: Placement, placer: str = "force_directed", *, weights: CostWeights = DEFAULT_WEIGHTS
) -> Placement:
    """Returns `placement` with its movable soft macros placed again; hard macros, ports and fixed nodes do not move.

    The result does not depend on the previous positions of the soft macros.

    Args:
        design: the design of `placement`.
        placement: positions of all nodes; every hard macro and fixed soft macro must be placed.
        placer: one of `SOFT_PLACERS`, or `ANNEALED`.
        weights: weights of the cost that `ANNEALED` lowers.

    Raises:
        ValueError: `placer` is unknown.
        DesignError: `placement` has another number of nodes, or a required node is not placed.
    """
    netlist = design.netlist
    if len(placement.x) != netlist.num_nodes:
        raise DesignError(f"placement of {len(placement.x)} nodes for a netlist of {netlist.num_nodes}")
    movable = netlist.soft[~design.initial.fixed[netlist.soft]]
    placed = placement.placed.copy()
    placed[movable] = True
    if not placed.all():
        raise DesignError(f"node {netlist.names[int(np.flatnonzero(~placed)[0])]!r} is not placed")
    native = _native.SoftPlacer(placer, native_design(design), tuple(weights))
    x, y = placement.x.copy(), placement.y.copy()
    native.place(x, y, placement.orientation)
    return placement.moved(movable, x[movable], y[movable])
