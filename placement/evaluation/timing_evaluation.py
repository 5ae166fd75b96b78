"""The timing estimate of a placement of a clustered design: its cells where they were placed, or in their clusters."""

from __future__ import annotations

from rich.console import Console

from placement.flat.correspondence import cells_in_clusters
from placement.flat.timing import TimingEstimate, TimingEvaluator
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import read_flat
from placement.netlist.load import clusters_or_none, find
from placement.netlist.timing_netlist import read_timing


def evaluate_timing(
    name: str, design: Design, placement: Placement, console: Console, *, cells: Placement | None = None
) -> TimingEstimate:
    """The timing of a placement; prints what is unusual.

    Args:
        name: of the design.
        design: the clustered one.
        placement: of `design`; its hard macros are read, and its soft ones without `cells`.
        console: for notes.
        cells: a placement of the flat netlist with all cells; None: each cell is in its cluster.

    Raises:
        DesignError: the design was imported without Liberty files, or has no clock.
    """
    folder = find(name).parent
    timing, flat = read_timing(folder), read_flat(folder)
    evaluator = TimingEvaluator(timing, flat)
    if cells is None:
        cluster = clusters_or_none(folder, flat)
        if not (cluster >= 0).any():
            raise DesignError(f"{name}: the cells are in no clusters: give full=true, which places them")
        cells = cells_in_clusters(flat, cluster, design.netlist, placement)
        console.print("note: cells are timed in their clusters; full=true places them first", soft_wrap=True)
    found = evaluator.evaluate(cells)
    for notice in found.notices:
        console.print(f"note: {notice}", soft_wrap=True, markup=False, highlight=False)
    wires = timing.wires
    console.print(
        f"note: wires are priced as if repeated by {wires.repeater}: {wires.delay_per_um:.3g} ps/µm (resistance and "
        f"capacitance: {wires.source})",
        soft_wrap=True, markup=False, highlight=False,
    )  # fmt: skip
    return found
