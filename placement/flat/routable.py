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
from placement.netlist.pdn_channel import DENSITY, pdn_channel

SCATTERED = 2.0
"""Times the dense cells' wirelength, beyond which the density's weight grew faster than the cells found their way. They
do not come back from there."""
NO_ROOM = 10.0
"""Cells' area over the room, at most."""
STRAPS_PRECISION = 1e-3
"""Of the straps' width, where it is searched for."""


def spread_cells(
    netlist: Netlist,
    placement: Placement,
    core: Core,
    *,
    dense: FlatResult | None = None,
    straps: float | None = None,
    settings: PlacerSettings | None = None,
    report: Callable[[Progress], None] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> FlatResult:
    """Places all standard cells as `flat_check` does, at `DENSITY` and clear of the macros by `straps`.

    Where the cells do not fit so, the density rises; where they still do not, the straps get less, as little as will
    do, and half of that where the cells fly apart. Where they scatter, to more than `SCATTERED` times the wirelength of
    `dense`, or do not converge, they are placed once more, from the middle, with half the growth of the weight. Where
    they scatter again the result has not converged: no flow could leave them so.

    Args:
        netlist: the flat one.
        placement: macros, ports and fixed cells.
        core: where cells may stand, with halos of its own; the larger one counts.
        dense: the cells as `flat_check` placed them, where they begin. None: in the middle of the core, and one
            attempt, whatever comes of it.
        straps: µm around each macro; of a design with clusters its `own_pdn_channel`, which its cost counts, too.
            None: as `straps_of` the netlist.
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
    dense: FlatResult | None,
    settings: PlacerSettings,
    report: Callable[[Progress], None] | None,
    stopped: Callable[[], bool] | None,
) -> FlatResult:
    """`flat_check`; once more, from the middle and more slowly, where the cells end scattered."""
    now = 0.0

    def show(progress: Progress) -> None:
        nonlocal now
        now = progress.wirelength
        if report:
            report(progress)

    def ends() -> bool:
        return bool(dense and now > SCATTERED * dense.wirelength) or bool(stopped and stopped())

    found: list[FlatResult] = []
    for slower, start in ((1.0, None if dense is None else dense.placement), (0.5, None)):
        slow = dataclasses.replace(settings, growth=1 + (settings.growth - 1) * slower)
        found.append(flat_check(netlist, placement, room, settings=slow, start=start, report=show, stopped=ends))
        if found[-1].converged or dense is None or (stopped and stopped()):
            break
    return found[-1]._replace(seconds=sum(one.seconds for one in found))


def straps_of(netlist: Netlist, core: Core) -> float:
    """`pdn_channel` the macros of the flat netlist.

    Args:
        netlist: the flat one.
        core: where cells may stand.
    """
    cells, hard = netlist.kind == NodeKind.CELL, netlist.hard
    area = float((netlist.width[cells] * netlist.height[cells]).sum())
    return pdn_channel(netlist.width[hard], netlist.height[hard], core=core.width * core.height, cells=area)


def cell_utilization(netlist: Netlist, placement: Placement, core: Core, *, straps: float | None = None) -> float:
    """The cells' area over the room that is clear of the macros by `straps`, up to `NO_ROOM`.

    Args:
        netlist: the flat one.
        placement: macros, ports and fixed cells.
        core: as of `spread_cells`.
        straps: as of `spread_cells`.

    Raises:
        DesignError: see `flat_problem`.
    """
    room = _Room(netlist, placement, core)
    free = room.free(straps_of(netlist, core) if straps is None else straps)
    return min(room.cell_area / free, NO_ROOM) if free > 0 else NO_ROOM


class _Room:
    """What macros leave free of straps of any width."""

    def __init__(self, netlist: Netlist, placement: Placement, core: Core) -> None:
        problem = flat_problem(netlist, placement, core)
        self._netlist, self._placement, self._core = netlist, placement, core
        self._grid = grid_for(problem)
        self._movable = np.zeros(netlist.num_nodes, bool)
        self._movable[problem.cells] = True
        self.cell_area = problem.cell_area  # µm²

    def core(self, straps: float) -> Core:
        """The core whose halos are `straps` µm at least."""
        return dataclasses.replace(self._core, halo=np.maximum(np.asarray(self._core.halo), straps))

    def free(self, straps: float) -> float:
        """µm²."""
        fixed = fixed_rectangles(self._netlist, self._placement, self.core(straps), movable=self._movable)
        return float((1 - blocked_share(fixed, self._grid)).sum()) * self._grid.bin_area

    def holds(self, straps: float) -> bool:
        """Whether the cells fit at all."""
        return self.cell_area <= FULLEST * self.free(straps)

    def widest(self, straps: float) -> float:
        """The widest straps, up to `straps` µm, beside which the cells fit; 0 where they never do."""
        if self.holds(straps):
            return straps
        low, high = 0.0, straps
        while high - low > STRAPS_PRECISION * straps:
            middle = (low + high) / 2
            low, high = (middle, high) if self.holds(middle) else (low, middle)
        return low


def _rooms(netlist: Netlist, placement: Placement, core: Core, widest: float) -> Iterator[tuple[Core, float]]:
    """Cores with halos up to `widest` µm, and densities, the first choice first; all but the last hold the cells."""
    room = _Room(netlist, placement, core)
    straps = room.widest(widest)
    for width in dict.fromkeys((straps, straps / 2)):
        if room.holds(width):
            yield room.core(width), max(DENSITY, room.cell_area / (FULLEST * room.free(width)))
    yield core, 1.0
