"""The flat check: what a macro placement is worth once all standard cells are placed around it.

Lengths in µm.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from placement.flat.core import Core
from placement.flat.global_placement import PlacerSettings, Progress, place_cells
from placement.flat.grid import blocked_share, density_overflow, grid_for
from placement.flat.problem import flat_problem
from placement.flat.wirelength import half_perimeter
from placement.netlist.design import Netlist, Orientation, Placement
from placement.netlist.errors import DesignError


class FlatResult(NamedTuple):
    """What the flat check found.

    Attributes:
        wirelength: µm, half perimeters of the nets of 2 to 3,000 pins, weighted.
        density_overflow: share of the cells' area in bins beyond their free area (`grid.density_overflow`).
        converged: whether the overflow came down to the goal; False also where it was stopped before.
        iterations: of the placer.
        seconds: processor time of this process.
        placement: the placement that came in, with the cells where they were placed, in orientation N.
    """

    wirelength: float
    density_overflow: float
    converged: bool
    iterations: int
    seconds: float
    placement: Placement


def flat_check(
    netlist: Netlist,
    placement: Placement,
    core: Core,
    *,
    settings: PlacerSettings | None = None,
    start: Placement | None = None,
    report: Callable[[Progress], None] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> FlatResult:
    """Places all standard cells of `netlist` around its macros as they stand.

    Args:
        netlist: the flat one, with nodes of kind CELL.
        placement: macros, ports and fixed cells; positions and orientations of other cells are not read.
        core: where cells may stand.
        settings: of the placer.
        start: a placement of the same netlist whose cells to begin from, as of a neighbouring macro placement: a few
            seconds instead of half a minute for Ariane.
        report: is called with the progress after every ten iterations.
        stopped: is asked as often; once it says True, the result is what was reached.

    Raises:
        DesignError: what cannot be placed, in words (see `flat_problem`, `place_cells`), or `start` has unplaced cells.
        KeyboardInterrupt: on Ctrl-C, within ten iterations; nothing is left behind.
    """
    begun = time.process_time()
    settings = settings or PlacerSettings()
    problem = flat_problem(netlist, placement, core)
    placed = place_cells(
        problem,
        settings,
        start=None if start is None else _cells_of(start, netlist, problem.cells, core=core),
        report=report,
        stopped=stopped,
    )
    upright = placement.orientation.copy()
    upright[problem.cells] = Orientation.N  # as the placer takes them, however a file has turned them
    result = dataclasses.replace(placement, orientation=upright)
    result = result.moved(problem.cells, placed.x + core.x, placed.y + core.y)
    grid = grid_for(problem, settings.bins)
    free = settings.density * (1 - blocked_share(problem.fixed, grid))
    return FlatResult(
        wirelength=half_perimeter(netlist, result),
        density_overflow=density_overflow(placed.x, placed.y, (problem.width, problem.height), free, grid=grid),
        converged=placed.converged,
        iterations=placed.progress.iteration,
        seconds=time.process_time() - begun,
        placement=result,
    )


def _cells_of(start: Placement, netlist: Netlist, cells: np.ndarray, *, core: Core) -> tuple[np.ndarray, np.ndarray]:
    """Where `cells` (int32 [M]) stand in `start`, relative to the core."""
    if len(start.x) != netlist.num_nodes:
        raise DesignError(f"start: a placement of {len(start.x)} nodes for a netlist of {netlist.num_nodes}")
    homeless = cells[~start.placed[cells]]
    if len(homeless):
        raise DesignError(f"start: cell {netlist.names[homeless[0]]!r} has no position ({len(homeless)} such cells)")
    return start.x[cells] - core.x, start.y[cells] - core.y
