"""A placement of the flat netlist as a design whose hard macros move among its cells.

The cells stay where they are, as soft macros that are fixed. So a search on the chip cost sees every net and pin, on
gcells as fine as a router's, where the clustered netlist has clusters on gcells many times as large.

Axis legend: N nodes of the flat netlist. Lengths in µm; the design counts from the core's lower left corner.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from placement.flat.from_clusters import clustered_nodes
from placement.flat.problem import counted_nets
from placement.netlist.constraints import Constraints
from placement.netlist.design import Canvas, Design, Netlist, NodeKind, Orientation, Placement
from placement.netlist.flat_design import FlatDesign

GCELL = 10.0
"""Side of a gcell, µm, at most: as `RoutingResources.gcell`."""
MOST_LINES = 256
"""Rows or columns, at most: on larger chips gcells are larger."""
DRAWN = 2.0
"""The chip cost takes soft macros to be drawn twice as large as their cells are."""


def among_cells(flat: FlatDesign, design: Design, placed: Placement) -> Design:
    """The flat netlist's hard macros and ports, as `design` has them, and its cells as soft macros that are fixed.

    Args:
        flat: the design before clustering.
        design: the clustered one; its canvas, constraints and fixed macros count.
        placed: of the flat netlist's nodes, cells included, µm from the user's origin.

    Returns:
        A design with the flat netlist's nodes; its `initial` is `placed`. Nets of more than `MOST_PINS` pins are
        left out.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one.
    """
    hard, there = flat.netlist.hard, clustered_nodes(flat, design.netlist)
    fixed = np.ones(flat.netlist.num_nodes, dtype=np.bool_)
    fixed[hard] = design.initial.fixed[there]
    core, turns = flat.floorplan.core, flat.netlist.kind == NodeKind.HARD
    initial = Placement(
        x=placed.x - core.x_low,
        y=placed.y - core.y_low,
        orientation=np.where(turns, placed.orientation, Orientation.N),
        placed=np.ones_like(fixed),
        fixed=fixed,
    )
    constraints = _constraints(design.constraints, flat.netlist.num_nodes, hard, there)
    # No straps: the cells stand where they are, some of them beside macros.
    return Design(
        design.name, _netlist(flat.netlist), _canvas(design.canvas), initial, constraints=constraints, pdn_channel=0.0
    )


def macros_of(flat: FlatDesign, design: Design, placement: Placement, found: Placement) -> Placement:
    """`placement` of the clustered design with its hard macros as `found`, of `among_cells`, has them."""
    hard, there = flat.netlist.hard, clustered_nodes(flat, design.netlist)
    orientation = placement.orientation.copy()
    orientation[there] = found.orientation[hard]
    return dataclasses.replace(placement, orientation=orientation).moved(there, found.x[hard], found.y[hard])


def _netlist(flat: Netlist) -> Netlist:
    counted, pins = counted_nets(flat), np.diff(flat.net_start)
    cells = flat.kind == NodeKind.CELL
    return dataclasses.replace(
        flat,
        kind=np.where(cells, NodeKind.SOFT, flat.kind),
        width=np.where(cells, DRAWN * flat.width, flat.width),
        net_weight=flat.net_weight[counted],
        net_start=np.concatenate([[0], np.cumsum(pins[counted])]),
        net_pins=flat.net_pins[np.repeat(counted, pins)],
    )


def _canvas(canvas: Canvas) -> Canvas:
    columns, rows = (min(MOST_LINES, math.ceil(side / GCELL)) for side in (canvas.width, canvas.height))
    return dataclasses.replace(canvas, columns=max(columns, canvas.columns), rows=max(rows, canvas.rows))


def _constraints(constraints: Constraints, nodes: int, hard: np.ndarray, there: np.ndarray) -> Constraints:
    """Those of the nodes `there` of the clustered netlist for the nodes `hard` of the flat one, int [·] each."""
    nothing = Constraints.none(nodes)
    halo, orientations = nothing.halo.copy(), nothing.orientations.copy()
    halo[hard], orientations[hard] = constraints.halo[there], constraints.orientations[there]
    number = dict(zip(there.tolist(), hard.tolist(), strict=True))
    regions = tuple(
        dataclasses.replace(region, nodes=np.array([number[node] for node in region.nodes.tolist()]))
        for region in constraints.regions
    )
    return dataclasses.replace(constraints, halo=halo, orientations=orientations, regions=regions)
