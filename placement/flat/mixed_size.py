"""Mixed-size placement: movable hard macros and standard cells placed together, electrostatically.

Macros are charges like cells, with their halos (Lu et al.: "ePlace-MS", IEEE TCAD 2015). What comes out is a global
placement: macros may overlap a little, and a legaliser has to follow.

Lengths in µm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from placement.flat.core import Core
from placement.flat.global_placement import PlacerSettings, Progress, grid_for, place_cells
from placement.flat.problem import FlatProblem, flat_problem
from placement.flat.routable import FULLEST
from placement.netlist.design import Netlist, NodeKind, Orientation, Placement
from placement.netlist.rectangles import union_area


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
        placement: ports, fixed macros and fixed cells; other positions are not read.
        core: where cells and macros may stand, with the macros' halos.
        settings: of the placer; the bins go by the mean cell, macros left out, unless they are given.
        report: is called with the progress after every ten iterations.
        stopped: is asked as often; once it says True, the result is what was reached.

    Returns:
        `placement` with the cells and macros placed, in orientation N; macros lie in the core, but may overlap.

    Raises:
        DesignError: what cannot be placed, in words (see `flat_problem`, `place_cells`), or the cells flew apart.
        KeyboardInterrupt: on Ctrl-C.
    """
    settings = settings or PlacerSettings()
    problem = flat_problem(netlist, placement, core, mixed_size=True)
    cells = netlist.kind[problem.cells] == NodeKind.CELL
    if settings.bins is None and cells.any():
        small = dataclasses.replace(
            problem, cells=problem.cells[cells], width=problem.width[cells], height=problem.height[cells]
        )
        grid = grid_for(small)
        settings = dataclasses.replace(settings, bins=(grid.across, grid.up))
    problem = _with_room(problem, cells, settings.density)
    settings = dataclasses.replace(settings, density=1.0)
    placed = place_cells(problem, settings, report=report, stopped=stopped)
    orientation = placement.orientation.copy()
    orientation[problem.cells] = Orientation.N
    result = dataclasses.replace(placement, orientation=orientation)
    return result.moved(problem.cells, placed.x + core.x, placed.y + core.y)


def _with_room(problem: FlatProblem, cells: np.ndarray, density: float) -> FlatProblem:
    """`problem` with its standard cells (bool [M]) drawn so large that they fill `density` of the room they take.

    Macros stay as they are: they fill their bins. Where the cells do not fit so, they get what there is.
    """
    area = problem.width.astype(np.float64) * problem.height
    free = problem.core.width * problem.core.height - union_area(problem.fixed) - float(area[~cells].sum())
    density = max(density, float(area[cells].sum()) / (FULLEST * free)) if free > 0 else 1.0
    side = np.where(cells, 1 / np.sqrt(min(density, 1.0)), 1.0).astype(np.float32)
    return dataclasses.replace(problem, width=problem.width * side, height=problem.height * side)
