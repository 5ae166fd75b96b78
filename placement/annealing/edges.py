"""Moves macros that are close to an edge of the core onto the edge.

Axis legend: M movable hard macros. Lengths in µm.
"""

from __future__ import annotations

import numpy as np

from placement.annealing.displacement import TOLERANCE
from placement.annealing.legaliser import fits
from placement.netlist.design import Design, Placement


def onto_edges(design: Design, placement: Placement, *, spacing: float) -> Placement:
    """Moves each movable hard macro whose gap to an edge of the core is too narrow for cells onto that edge.

    A gap is too narrow below `spacing` less the macro's halo on that side. A macro that would not be legal on the edge
    is not moved.

    Args:
        design: the design of the placement.
        placement: a legal placement.
        spacing: spacing of the macros; 0: nothing moves.
    """
    width, height = design.netlist.sides(placement.orientation)
    halo = design.constraints.turned_halo(placement.orientation)
    for node in design.placing_order.tolist():
        for axis, (size, end) in enumerate(((width, design.canvas.width), (height, design.canvas.height))):
            at = (placement.x, placement.y)[axis]
            low, high = at[node] - size[node] / 2, end - at[node] - size[node] / 2
            gap, step, side = (low, -low, axis) if low <= high else (high, high, axis + 2)
            if not TOLERANCE < gap < spacing - halo[node, side]:
                continue
            x, y = placement.x[node] + (1 - axis) * step, placement.y[node] + axis * step
            moved = placement.moved(np.array([node]), np.array([x]), np.array([y]))
            if fits(design, moved, spacing=spacing):
                placement = moved
    return placement
