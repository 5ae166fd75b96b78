"""The cells as a flow has to leave them: room in every bin for buffers and clock trees, and clear of the power straps.

A placement may be short because its cells stand in slivers between the macros. A flow cannot use these: power straps
take some ten microns around a macro, and cells are spread to about 70% of what is left. Then an array of macros that
divides the core pushes a part of the cells to its far side. The routing estimate is made with the cells there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from placement.flat import density
from placement.flat.check import FlatResult, flat_check
from placement.flat.core import Core
from placement.flat.global_placement import PlacerSettings, Progress, grid_for
from placement.flat.problem import fixed_rectangles, flat_problem
from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError

DENSITY = 0.7
"""Share of the free room that cells may fill: what OpenROAD's placer takes where it is told nothing."""

STRAPS = 10.0
"""µm around a macro that power straps take, as a public contest's flow has it; about seven rows of NanGate45 cells."""

FULLEST = 0.9
"""Cells need at most this share of the room that they get; in less the density rises, then the straps get less."""

ROOMY = 0.7
"""The straps leave cells that need at most this share of the room at `DENSITY`: in a design fuller than that they would
decide the wirelength, and no flow would take so much."""

SCATTERED = 2.0
"""Times the dense cells' wirelength, beyond which the density's weight grew faster than the cells found their way."""


def spread_cells(
    netlist: Netlist,
    placement: Placement,
    core: Core,
    *,
    dense: float = np.inf,
    settings: PlacerSettings | None = None,
    report: Callable[[Progress], None] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> FlatResult:
    """Places all standard cells as `flat_check` does, at `DENSITY` and clear of the macros by `straps_of` the design.

    Where the cells do not fit so, the density rises; where they still do not, or fly apart, the straps get less.
    Where they end scattered, they are placed once more, with half the growth of the weight; the shorter counts.

    Args:
        netlist: the flat one.
        placement: macros, ports and fixed cells.
        core: where cells may stand, with halos of its own; the larger one counts.
        dense: µm, the wirelength of `flat_check`.
        settings: of the placer; its density is not read.
        report: is called with the progress after every ten iterations.
        stopped: is asked as often.

    Raises:
        DesignError: as `flat_check`, of the last of these rooms.
        KeyboardInterrupt: on Ctrl-C.
    """
    settings = settings or PlacerSettings()
    failed: DesignError | None = None
    for room, share in _rooms(netlist, placement, core):
        roomy = dataclasses.replace(settings, density=share)
        try:
            found = flat_check(netlist, placement, room, settings=roomy, report=report, stopped=stopped)
            if found.wirelength <= SCATTERED * dense or not found.converged:
                return found
            slower = dataclasses.replace(roomy, growth=1 + (roomy.growth - 1) / 2)
            again = flat_check(netlist, placement, room, settings=slower, report=report, stopped=stopped)
        except DesignError as error:
            failed = error
            continue
        shorter = again if again.converged and again.wirelength < found.wirelength else found
        return shorter._replace(seconds=found.seconds + again.seconds)
    assert failed is not None
    raise failed


def straps_of(netlist: Netlist, core: Core) -> float:
    """µm around each macro that are for power straps: `STRAPS`, or half, or none of it where the design is too full.

    The same for all placements of a design, so that they compare: what would be left if macros stood side by side, as
    far apart as the straps are wide, has to hold the cells at `DENSITY`.

    Args:
        netlist: the flat one.
        core: where cells may stand.
    """
    cells = netlist.kind == NodeKind.CELL
    need = float((netlist.width[cells] * netlist.height[cells]).sum()) / (ROOMY * DENSITY)
    width, height = netlist.width[netlist.hard], netlist.height[netlist.hard]
    for straps in (STRAPS, STRAPS / 2):
        if core.width * core.height - float(((width + straps) * (height + straps)).sum()) >= need:
            return straps
    return 0.0


def _rooms(netlist: Netlist, placement: Placement, core: Core) -> Iterator[tuple[Core, float]]:
    """Cores with the straps' halos, and densities, the first choice first; all but the last hold the cells."""
    problem = flat_problem(netlist, placement, core)
    grid = grid_for(problem)
    movable = np.zeros(netlist.num_nodes, bool)
    movable[problem.cells] = True
    widest = straps_of(netlist, core)
    for straps in (widest, widest / 2):
        room = dataclasses.replace(core, halo=np.maximum(np.asarray(core.halo), straps))
        fixed = fixed_rectangles(netlist, placement, room, movable=movable)
        free = float((1 - density.blocked_share(fixed, grid)).sum()) * grid.bin_area
        if problem.cell_area <= FULLEST * free:
            yield room, max(DENSITY, problem.cell_area / (FULLEST * free))
    yield core, 1.0
