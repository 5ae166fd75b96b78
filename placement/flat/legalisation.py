"""Legalisation of standard cells: a global placement's cells on sites of rows, clear of cells, macros and blockages.

Axis legend: N nodes, M movable cells. Lengths in µm.
"""

import dataclasses
import time
from typing import NamedTuple

import numpy as np

from placement.flat import _native
from placement.flat.problem import Core, fixed_rectangles, half_perimeter
from placement.flat.row_area import row_columns
from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.floorplan import Rows

MOST_SITES, MOST_ROWS = 500, 100
"""Maximum displacement of a cell across and up, OpenROAD's default; a cell that would have to move farther has no
place.
"""


class LegalCells(NamedTuple):
    """Cells after legalisation."""

    # the given placement with the cells on sites, in the orientation of their rows; a cell without any free sites is
    # not moved
    placement: Placement
    wirelength: float  # weighted half-perimeter wirelength of the counted nets
    without_place: int  # number of cells without free sites within `MOST_SITES` and `MOST_ROWS`
    mean_displacement: float  # mean_displacement, most_displacement: displacement of the cells, across and up together
    most_displacement: float
    seconds: float  # processor time


def legalise_cells(netlist: Netlist, placement: Placement, core: Core, rows: Rows) -> LegalCells | None:
    """Puts the movable cells of a global placement on sites close to their positions; None if there are no rows.

    Cells several rows tall come first, each on the nearest free sites; the others follow by Abacus (Spindler,
    Schlichtmann, Johannes, ISPD 2008).

    Args:
        netlist: the flat netlist.
        placement: positions of all nodes.
        core: the core, with blockages and halos that are closed to cells.
        rows: the rows of the floorplan.
    """
    if not len(rows):
        return None
    begun = time.process_time()
    movable = (netlist.kind == NodeKind.CELL) & ~placement.fixed
    columns, cells = row_columns(rows, core), np.flatnonzero(movable)
    blocked = fixed_rectangles(netlist, placement, core, movable=movable)
    width, height = netlist.width[cells], netlist.height[cells]
    x, y = placement.x[cells] - core.x - width / 2, placement.y[cells] - core.y - height / 2
    row, at_x, at_y = _native.legalise(*columns, np.ascontiguousarray(blocked, np.float64), x, y, width, height)
    has_place = row >= 0
    away_x, away_y = (np.abs(np.where(has_place, to - at, 0.0)) for to, at in ((at_x, x), (at_y, y)))
    far = (away_x > MOST_SITES * columns.site.max()) | (away_y > MOST_ROWS * rows.row_height)
    placed = cells[has_place]
    orientation = placement.orientation.copy()
    turned = rows.orientation[np.isclose(rows.height, rows.row_height)]
    orientation[placed] = turned[row[has_place]]
    result = dataclasses.replace(placement, orientation=orientation).moved(
        placed, (at_x + core.x + width / 2)[has_place], (at_y + core.y + height / 2)[has_place]
    )
    away = away_x + away_y
    return LegalCells(
        placement=result,
        wirelength=half_perimeter(netlist, result),
        without_place=int((far | ~has_place).sum()),
        mean_displacement=float(away.mean()) if len(away) else 0.0,
        most_displacement=float(away.max(initial=0.0)),
        seconds=time.process_time() - begun,
    )
