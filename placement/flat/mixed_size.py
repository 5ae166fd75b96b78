"""Mixed-size placement: movable hard macros and standard cells placed together, electrostatically.

Macros are charges like cells, with their halos (Lu et al.: "ePlace-MS", IEEE TCAD 2015). What comes out is a global
placement: macros may overlap a little, and a legaliser has to follow.

Lengths in µm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from placement.flat.core import Core
from placement.flat.global_placement import PlacerSettings, Progress, place_cells
from placement.flat.grid import grid_for
from placement.flat.problem import flat_problem, with_room
from placement.netlist.design import Netlist, NodeKind, Orientation, Placement


def place_mixed_size(
    netlist: Netlist,
    placement: Placement,
    core: Core,
    *,
    settings: PlacerSettings | None = None,
    report: Callable[[Progress], None] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Placement:
    """Places the cells and hard macros of `netlist` that are not fixed.

    Args:
        netlist: the flat one, with nodes of kind CELL.
        placement: ports, fixed macros and fixed cells, and how the other macros are turned; their positions, and
            all else of the cells, are not read.
        core: where cells and macros may stand, with the macros' halos.
        settings: of the placer; the bins go by the mean cell, macros left out, unless they are given.
        report: is called with the progress after every ten iterations.
        stopped: is asked as often; once it says True, the result is what was reached.

    Returns:
        `placement` with the cells placed, in orientation N, and the macros, as they were turned; macros lie in the
        core, but may overlap.

    Raises:
        DesignError: what cannot be placed, in words (see `flat_problem`, `place_cells`), or the cells flew apart.
        KeyboardInterrupt: on Ctrl-C.
    """
    settings = settings or PlacerSettings()
    problem = flat_problem(netlist, placement, core, mixed_size=True)
    cells = netlist.kind[problem.cells] == NodeKind.CELL
    if settings.bins is None and cells.any():
        grid = grid_for(problem.only(cells))
        settings = dataclasses.replace(settings, bins=(grid.across, grid.up))
    problem = with_room(problem, cells, settings.density)
    settings = dataclasses.replace(settings, density=1.0)
    placed = place_cells(problem, settings, report=report, stopped=stopped)
    orientation = placement.orientation.copy()
    orientation[problem.cells[cells]] = Orientation.N
    result = dataclasses.replace(placement, orientation=orientation)
    return result.moved(problem.cells, placed.x + core.x, placed.y + core.y)
