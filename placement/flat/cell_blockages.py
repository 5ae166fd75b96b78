"""Blockages for cells but not macros: soft and partial ones (DEF BLOCKAGES, PLACEMENT + SOFT, + PARTIAL).

A soft blockage excludes cells in the initial placement, which is the stage of a full evaluation; only later steps of a
flow, such as buffering, may use it. A partial blockage may be covered up to a share of its area. Lengths in µm.
"""

import dataclasses

import numpy as np

from placement.flat.problem import Core
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Rows

_ROUNDING = 1e-9


def without_cell_blockages(core: Core, flat: FlatDesign) -> Core:
    """Returns the core without soft blockages and without the rows that exceed the density of partial ones.

    Whole rows, evenly distributed over a partial blockage, are removed, so that its capacity holds for a global
    placer's density as well as for a legaliser's rows. A density of 0 makes it a soft blockage. Without rows, partial
    blockages have no effect.
    """
    found: list[tuple[float, ...]] = []
    for blockage in flat.floorplan.blockages:
        if blockage.layer or blockage.node >= 0:
            continue
        for box in blockage.rectangles.tolist():
            if blockage.density is not None:
                found += _rows_taken(box, blockage.density, flat.floorplan.rows)
            elif blockage.is_soft:
                found.append(tuple(box))
    return dataclasses.replace(core, blockages=(*core.blockages, *found))  # type: ignore[arg-type]


def _rows_taken(box: list[float], density: float, rows: Rows) -> list[tuple[float, ...]]:
    """Returns the parts of rows in a box to keep free of cells, so that a share `density` of all remains."""
    left, low, right, high = box
    inside = (rows.y < high - _ROUNDING) & (rows.y + rows.height > low + _ROUNDING)
    bottoms, first = np.unique(rows.y[inside], return_index=True)
    tops = bottoms + rows.height[inside][first]
    taken = np.floor(np.arange(len(bottoms) + 1) * (1 - density) + _ROUNDING)
    return [
        (left, max(low, float(bottoms[row])), right, min(high, float(tops[row])))
        for row in np.flatnonzero(np.diff(taken))
    ]
