"""Macros in the context of their cells: a placement of the flat netlist as a design whose cells are fixed soft macros.

A search on the chip cost of this design sees every net and pin on gcells as fine as a router's; the clustered netlist
has clusters on gcells many times as large.

Axis legend: N nodes of the flat netlist. Lengths in µm; the origin of the design is the core's lower left corner.
"""

import dataclasses
import math

import numpy as np

from placement.flat.correspondence import clustered_nodes
from placement.flat.problem import counted_nets
from placement.netlist.design import Canvas, Design, Netlist, NodeKind, Orientation, Placement
from placement.netlist.flat_design import FlatDesign
from placement.netlist.pdn_channel import CELL_SHARE

GCELL = 10.0  # maximum side of a gcell in µm, as in `RoutingResources.gcell`
MOST_LINES = 256  # maximum number of rows or columns; larger chips have larger gcells


def cell_context(flat: FlatDesign, design: Design, placed: Placement) -> Design:
    """Returns a design with the flat netlist's hard macros and ports as in `design` and its cells as fixed soft macros.

    Args:
        flat: the design before clustering.
        design: the clustered design, with the canvas, the constraints and the set of fixed macros.
        placed: a placement of the flat netlist with all cells, µm from the user's origin.

    Returns:
        A design with the flat netlist's nodes; its `initial` is `placed`. Nets of more than `MOST_PINS` pins are
            omitted.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one.
    """
    hard, there = flat.netlist.hard, clustered_nodes(flat, design.netlist)
    fixed = np.ones(flat.netlist.num_nodes, dtype=np.bool_)
    fixed[hard] = design.initial.fixed[there]
    core, macros = flat.floorplan.core, flat.netlist.kind == NodeKind.HARD
    initial = Placement(
        x=placed.x - core.x_low,
        y=placed.y - core.y_low,
        orientation=np.where(macros, placed.orientation, Orientation.N),
        placed=np.ones_like(fixed),
        fixed=fixed,
    )
    number = np.full(design.netlist.num_nodes, -1)
    number[there] = hard
    constraints = design.constraints.renumbered(number, flat.netlist.num_nodes)
    # No PDN channels: some of the cells are next to macros.
    return Design(
        design.name, _netlist(flat.netlist), _canvas(design.canvas), initial, constraints=constraints, pdn_channel=0.0
    )


def macros_of(flat: FlatDesign, design: Design, placement: Placement, found: Placement) -> Placement:
    """Copies the hard macros of `found`, a placement of `cell_context`, to `placement` of the clustered design."""
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
        width=np.where(cells, flat.width / CELL_SHARE, flat.width),
        net_weight=flat.net_weight[counted],
        net_start=np.concatenate([[0], np.cumsum(pins[counted])]),
        net_pins=flat.net_pins[np.repeat(counted, pins)],
    )


def _canvas(canvas: Canvas) -> Canvas:
    columns, rows = (min(MOST_LINES, math.ceil(side / GCELL)) for side in (canvas.width, canvas.height))
    return dataclasses.replace(canvas, columns=max(columns, canvas.columns), rows=max(rows, canvas.rows))
