"""The canvas of a flat design: the core of its rows, with a grid and the routing capacity."""

from __future__ import annotations

import contextlib

import numpy as np

from placement.netlist.capacity import RoutingCapacity, routing_capacity
from placement.netlist.constraints import Constraints
from placement.netlist.design import Canvas, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.grid import GridRating, GridRule, choose_grid

# Circuit Training's default: congestion is spread over this many gcells on each side.
_SMOOTHING = 2


def canvas_of(
    design: FlatDesign,
    *,
    columns: int | None = None,
    rows: int | None = None,
    rule: GridRule | None = None,
    constraints: Constraints | None = None,
) -> tuple[Canvas, RoutingCapacity]:
    """The canvas of a flat design, and what its routing capacity is made of.

    Args:
        design: its core becomes the canvas.
        columns: of the grid; None: chosen by the rule.
        rows: of the grid; None: chosen by the rule.
        rule: see `placement.netlist.grid`.
        constraints: of the flat netlist's nodes; the rule leaves their halos between macros. None: no halos.

    Raises:
        DesignError: no grid takes the macros.
    """
    netlist, core = design.netlist, design.floorplan.core
    movable = netlist.hard[~design.placement.fixed[netlist.hard]]
    if columns is None or rows is None:
        # Without a macro to place any gcell size will do: cells of about one four-hundredth of the core.
        grid = _grid(design, movable, rule, constraints)
        columns, rows = columns or grid.columns, rows or grid.rows
    capacity = routing_capacity(design)
    canvas = Canvas(
        width=core.width,
        height=core.height,
        columns=columns,
        rows=rows,
        routes_horizontal=capacity.horizontal,
        routes_vertical=capacity.vertical,
        macro_routes_horizontal=capacity.macro_horizontal,
        macro_routes_vertical=capacity.macro_vertical,
        smoothing=_SMOOTHING,
    )
    return canvas, capacity


def _grid(
    design: FlatDesign, movable: np.ndarray, rule: GridRule | None, constraints: Constraints | None
) -> GridRating:
    """The rule's grid for the movable macros with their halos; where these cannot be packed, without."""
    core, rule = design.floorplan.core, rule or GridRule()
    turned = design.placement.orientation
    if constraints is not None:
        turned = np.where(constraints.lying(turned), Orientation.E, Orientation.N)
    width, height = (side[movable] for side in design.netlist.sides(turned))
    if constraints is not None:
        across, up = (2 * halo[movable] for halo in constraints.sides(turned))
        own = np.maximum(across - rule.spacing, 0.0), np.maximum(up - rule.spacing, 0.0)
        with contextlib.suppress(DesignError):
            return choose_grid(core.width, core.height, width + own[0], height + own[1], rule=rule)
    return choose_grid(core.width, core.height, width, height, rule=rule)
