"""Global placement of all standard cells of a flat netlist: around the macros, spread as by a flow, or with the macros.

Cells may overlap a little in the results. Lengths in µm.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from placement.flat.correspondence import core_of
from placement.flat.electrostatic import PlacerSettings, Progress, place
from placement.flat.grid import blocked_share, grid_for
from placement.flat.problem import MOST_UTILIZATION, Core, fixed_rectangles, flat_problem, half_perimeter
from placement.netlist.design import Design, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.pdn_channel import DENSITY

SCATTERED = 2.0
"""Multiple of the initial wirelength beyond which cells have scattered: the density weight grew faster than they found
their positions, and they do not recover.
"""
NO_WHITESPACE = 10.0  # upper limit of the reported cell utilization
CHANNEL_PRECISION = 1e-3  # relative precision of the search for a PDN channel's width


class CellPlacement(NamedTuple):
    """All cells placed around the macros."""

    wirelength: float  # weighted half-perimeter wirelength of the counted nets in µm
    density_overflow: float  # share of the cells' area beyond the free area of the bins
    converged: bool  # whether the overflow reached the target; False if the placer was stopped before
    iterations: int  # number of iterations of the placer
    seconds: float  # processor time of this process
    placement: Placement  # the given placement with the cells at their new positions, in orientation N


def place_cells(
    netlist: Netlist,
    placement: Placement,
    core: Core,
    *,
    settings: PlacerSettings | None = None,
    start: Placement | None = None,
    report: Callable[[Progress], None] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> CellPlacement:
    """Places all standard cells of `netlist` around its macros.

    Args:
        netlist: the flat netlist, with nodes of kind CELL.
        placement: macros, ports and fixed cells; positions and orientations of other cells are not read.
        core: the area for cells.
        settings: settings of the placer.
        start: a placement of the same netlist with initial positions of the cells; a higher `PlacerSettings.balance`
            holds them there. None: the middle of the core.
        report: called with the progress after every ten iterations.
        stopped: called as often; once it returns True, the result so far is returned.

    Raises:
        DesignError: the cells cannot be placed (see `flat_problem`, `electrostatic.place`), or `start` has unplaced
            cells.
    """
    begun = time.process_time()
    problem = flat_problem(netlist, placement, core)
    first = None if start is None else _positions(start, netlist, problem.cells, core=core)
    placed = place(problem, settings or PlacerSettings(), start=first, report=report, stopped=stopped)
    orientation = placement.orientation.copy()
    orientation[problem.cells] = Orientation.N  # the placer assumes N; a file may have other orientations
    result = dataclasses.replace(placement, orientation=orientation)
    result = problem.moved(result, placed.x, placed.y)
    return CellPlacement(
        wirelength=half_perimeter(netlist, result),
        density_overflow=placed.progress.overflow,
        converged=placed.converged,
        iterations=placed.progress.iteration,
        seconds=time.process_time() - begun,
        placement=result,
    )


def _positions(start: Placement, netlist: Netlist, cells: np.ndarray, *, core: Core) -> np.ndarray:
    """Returns the positions of `cells` (int32 [M]) in `start`, float64 [2, M], relative to the core."""
    if len(start.x) != netlist.num_nodes:
        raise DesignError(f"start: a placement of {len(start.x)} nodes for a netlist of {netlist.num_nodes}")
    unplaced = cells[~start.placed[cells]]
    if len(unplaced):
        raise DesignError(f"start: cell {netlist.names[unplaced[0]]!r} has no position ({len(unplaced)} such cells)")
    return np.stack([start.x[cells] - core.x, start.y[cells] - core.y])


def spread_cells(
    netlist: Netlist,
    placement: Placement,
    core: Core,
    *,
    channel: float,
    attempts: Sequence[PlacerSettings],
    start: Placement | None = None,
    report: Callable[[Progress], None] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> CellPlacement:
    """Places all standard cells at `DENSITY` and clear of the macros, as flows leave them for buffers and clock trees.

    A dense placement may be short because cells lie in slivers between the macros. A flow cannot use these: its power
    network takes a channel around each macro. An array of macros that divides the core therefore pushes some of the
    cells to its far side.

    Cells avoid the core's slivers, too, unless they need more than `DENSITY` of the remaining whitespace or diverge in
    it.

    If the cells do not fit, the density rises; if they still do not fit, the channels shrink, as little as possible,
    and by half if the cells diverge. Cells that scatter, to more than `SCATTERED` times the wirelength of `start`, or
    do not converge are placed once more. If they scatter in the last attempt, the result has not converged: no flow
    could leave them so.

    Args:
        netlist: the flat netlist.
        placement: macros, ports and fixed cells.
        core: the area for cells, with its own halos; the larger of halo and channel counts.
        channel: width in µm around each macro that the power network occupies.
        attempts: settings of the placer for each attempt, their densities ignored; the first attempt begins from
            `start`, if given, all others from the middle of the core.
        start: as for `place_cells`.
        report: called with the progress after every ten iterations.
        stopped: called as often.

    Raises:
        DesignError: as for `place_cells`, in the last of these cores.
    """
    failed: DesignError | None = None
    for within, density in _cores(netlist, placement, core, channel):
        try:
            dense_enough = [dataclasses.replace(one, density=density) for one in attempts]
            return _spread(netlist, placement, within, start, dense_enough, report, stopped)
        except DesignError as error:
            failed = error
    assert failed is not None
    raise failed


def _spread(
    netlist: Netlist,
    placement: Placement,
    core: Core,
    start: Placement | None,
    attempts: list[PlacerSettings],
    report: Callable[[Progress], None] | None,
    stopped: Callable[[], bool] | None,
) -> CellPlacement:
    """Runs `place_cells`, the first attempt from `start`, until one converges without scattering."""
    wirelength, limit = 0.0, np.inf if start is None else SCATTERED * half_perimeter(netlist, start)

    def show(progress: Progress) -> None:
        nonlocal wirelength
        wirelength = progress.wirelength
        if report:
            report(progress)

    def ends() -> bool:
        return wirelength > limit or bool(stopped and stopped())

    found: list[CellPlacement] = []
    for number, settings in enumerate(attempts):
        first = start if number == 0 else None
        found.append(place_cells(netlist, placement, core, settings=settings, start=first, report=show, stopped=ends))
        if found[-1].converged or (stopped and stopped()):
            break
    return found[-1]._replace(seconds=sum(one.seconds for one in found))


def _cores(netlist: Netlist, placement: Placement, core: Core, channel: float) -> Iterator[tuple[Core, float]]:
    """Yields cores with halos up to `channel` µm, and densities, best first; all but the last hold the cells."""
    whitespace = _Whitespace(netlist, placement, core)
    widest = whitespace.widest(channel)
    if core.slivers and (utilization := whitespace.utilization(widest, closed=True)) <= DENSITY:
        yield whitespace.core(widest, closed=True), max(DENSITY, utilization / MOST_UTILIZATION)
    for width in dict.fromkeys((widest, widest / 2)):
        utilization = whitespace.utilization(width)
        if utilization <= MOST_UTILIZATION:
            yield whitespace.core(width), max(DENSITY, utilization / MOST_UTILIZATION)
    yield core, 1.0


def cell_utilization(netlist: Netlist, placement: Placement, core: Core, *, channel: float) -> float:
    """Returns the cells' area over the whitespace that is clear of the macros by `channel` µm, up to `NO_WHITESPACE`.

    Args:
        netlist: the flat netlist.
        placement: macros, ports and fixed cells.
        core: as for `spread_cells`.
        channel: as for `spread_cells`.

    Raises:
        DesignError: see `flat_problem`.
    """
    return min(_Whitespace(netlist, placement, core).utilization(channel), NO_WHITESPACE)


class _Whitespace:
    """Whitespace that macros with channels of any width leave to the cells."""

    def __init__(self, netlist: Netlist, placement: Placement, core: Core) -> None:
        problem = flat_problem(netlist, placement, core)
        self._netlist, self._placement, self._core = netlist, placement, core
        self._grid, self._area = grid_for(problem), problem.cell_area
        self._movable = np.zeros(netlist.num_nodes, bool)
        self._movable[problem.cells] = True

    def core(self, channel: float, *, closed: bool = False) -> Core:
        """Returns the core with halos of at least `channel` µm, and `closed` to its slivers."""
        blockages = self._core.blockages + (self._core.slivers if closed else ())
        halo = np.maximum(np.asarray(self._core.halo), channel)
        return dataclasses.replace(self._core, halo=halo, blockages=blockages)

    def utilization(self, channel: float, *, closed: bool = False) -> float:
        """Returns the cells' area over the whitespace of `core(channel, closed=closed)`."""
        within = self.core(channel, closed=closed)
        fixed = fixed_rectangles(self._netlist, self._placement, within, movable=self._movable)
        free = float((1 - blocked_share(fixed, self._grid)).sum()) * self._grid.bin_area
        return self._area / free if free > 0 else np.inf

    def widest(self, channel: float) -> float:
        """Returns the widest channel, up to `channel` µm, with which the cells fit; 0 if they never do."""
        if self.utilization(channel) <= MOST_UTILIZATION:
            return channel
        low, high = 0.0, channel
        while high - low > CHANNEL_PRECISION * channel:
            middle = (low + high) / 2
            low, high = (middle, high) if self.utilization(middle) <= MOST_UTILIZATION else (low, middle)
        return low


def place_mixed_size(
    netlist: Netlist,
    placement: Placement,
    core: Core,
    *,
    settings: PlacerSettings,
    stopped: Callable[[], bool] | None = None,
) -> Placement:
    """Places the cells and hard macros of `netlist` that are not fixed together (Lu et al.: "ePlace-MS", TCAD 2015).

    Args:
        netlist: the flat netlist, with nodes of kind CELL.
        placement: ports, fixed macros and fixed cells, and the orientations of the other macros; other positions are
            not read.
        core: the area for cells and macros, with the macros' halos.
        settings: settings of the placer.
        stopped: called every ten iterations; once it returns True, the result so far is returned.

    Returns:
        `placement` with the cells placed, in orientation N, and the macros, in their orientation. Macros lie in the
            core, but may overlap a little and need legalisation.

    Raises:
        DesignError: the nodes cannot be placed (see `flat_problem`, `electrostatic.place`).
    """
    problem = flat_problem(netlist, placement, core, mixed_size=True)
    cells = netlist.kind[problem.cells] == NodeKind.CELL
    placed = place(problem, settings, cells=cells, stopped=stopped)
    orientation = placement.orientation.copy()
    orientation[problem.cells[cells]] = Orientation.N
    result = dataclasses.replace(placement, orientation=orientation)
    return problem.moved(result, placed.x, placed.y)


def place_before_clustering(flat: FlatDesign, design: Design) -> Placement:
    """Places cells and macros together, so that an import can cluster the cells by their positions.

    Circuit Training's recipe groups cells by an earlier placement: groups that span too far are split, small ones join
    a neighbour. Chips come without positions. Clusters by connectivity alone hold cells that no placement keeps
    together, and the wirelength that a search saves between such clusters is paid within them.

    Args:
        flat: the design before clustering; fixed nodes do not move.
        design: the flat netlist on the canvas, with the macros' constraints.

    Raises:
        DesignError: as for `place_mixed_size`.
    """
    return place_mixed_size(
        flat.netlist, flat.placement, core_of(flat, design), settings=PlacerSettings(density=DENSITY)
    )
