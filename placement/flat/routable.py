"""The cells as a flow has to leave them: room in every bin for buffers and clock trees, and clear of the power straps.

A placement may be short because its cells stand in slivers between the macros. A flow cannot use these: power straps
take some ten microns around a macro, and cells are spread to about 70% of what is left. Then an array of macros that
divides the core pushes a part of the cells to its far side. The routing estimate is made with the cells there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from placement.flat.check import FlatResult, flat_check
from placement.flat.core import Core
from placement.flat.global_placement import PlacerSettings, Progress
from placement.flat.grid import blocked_share, grid_for
from placement.flat.problem import FULLEST, fixed_rectangles, flat_problem
from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.straps import DENSITY, straps_between

SCATTERED = 2.0
"""Times the dense cells' wirelength, beyond which the density's weight grew faster than the cells found their way. They
do not come back from there."""


def spread_cells(
    netlist: Netlist,
    placement: Placement,
    core: Core,
    *,
    dense: float = np.inf,
    straps: float | None = None,
    settings: PlacerSettings | None = None,
    report: Callable[[Progress], None] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> FlatResult:
    """Places all standard cells as `flat_check` does, at `DENSITY` and clear of the macros by `straps`.

    Where the cells do not fit so, the density rises; where they still do not, or fly apart, the straps get less.
    Where they scatter, to more than `SCATTERED` times `dense`, or do not converge, they are placed once more, with half
    the growth of the weight. Where they scatter again the result has not converged: no flow could leave them so.

    Args:
        netlist: the flat one.
        placement: macros, ports and fixed cells.
        core: where cells may stand, with halos of its own; the larger one counts.
        dense: µm, the wirelength of `flat_check`; infinite: one attempt, whatever comes of it.
        straps: µm around each macro; of a design with clusters its `own_straps`, which its cost counts, too. None: as
            `straps_of` the netlist.
        settings: of the placer; its density is not read.
        report: is called with the progress after every ten iterations.
        stopped: is asked as often.

    Raises:
        DesignError: as `flat_check`, of the last of these rooms.
        KeyboardInterrupt: on Ctrl-C.
    """
    settings = settings or PlacerSettings()
    failed: DesignError | None = None
    for room, share in _rooms(netlist, placement, core, straps_of(netlist, core) if straps is None else straps):
        try:
            roomy = dataclasses.replace(settings, density=share)
            return _spread(netlist, placement, room, dense=dense, settings=roomy, report=report, stopped=stopped)
        except DesignError as error:
            failed = error
    assert failed is not None
    raise failed


def _spread(
    netlist: Netlist,
    placement: Placement,
    room: Core,
    *,
    dense: float,
    settings: PlacerSettings,
    report: Callable[[Progress], None] | None,
    stopped: Callable[[], bool] | None,
) -> FlatResult:
    """`flat_check`; once more, more slowly, where the cells end scattered."""
    now = 0.0

    def show(progress: Progress) -> None:
        nonlocal now
        now = progress.wirelength
        if report:
            report(progress)

    def ends() -> bool:
        return now > SCATTERED * dense or bool(stopped and stopped())

    found: list[FlatResult] = []
    for slower in (1.0, 0.5):
        growth = 1 + (settings.growth - 1) * slower
        slow = dataclasses.replace(settings, growth=growth)
        found.append(flat_check(netlist, placement, room, settings=slow, report=show, stopped=ends))
        if found[-1].converged or dense == np.inf or (stopped and stopped()):
            break
    return found[-1]._replace(seconds=sum(one.seconds for one in found))


def straps_of(netlist: Netlist, core: Core) -> float:
    """`straps_between` the macros of the flat netlist.

    Args:
        netlist: the flat one.
        core: where cells may stand.
    """
    cells, hard = netlist.kind == NodeKind.CELL, netlist.hard
    area = float((netlist.width[cells] * netlist.height[cells]).sum())
    return straps_between(netlist.width[hard], netlist.height[hard], core=core.width * core.height, cells=area)


def _rooms(netlist: Netlist, placement: Placement, core: Core, widest: float) -> Iterator[tuple[Core, float]]:
    """Cores with halos up to `widest` µm, and densities, the first choice first; all but the last hold the cells."""
    problem = flat_problem(netlist, placement, core)
    grid = grid_for(problem)
    movable = np.zeros(netlist.num_nodes, bool)
    movable[problem.cells] = True
    for straps in dict.fromkeys((widest, widest / 2)):
        room = dataclasses.replace(core, halo=np.maximum(np.asarray(core.halo), straps))
        fixed = fixed_rectangles(netlist, placement, room, movable=movable)
        free = float((1 - blocked_share(fixed, grid)).sum()) * grid.bin_area
        if problem.cell_area <= FULLEST * free:
            yield room, max(DENSITY, problem.cell_area / (FULLEST * free))
    yield core, 1.0
