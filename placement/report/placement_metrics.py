"""The metrics of a placement: a table for people, a JSON object and a CSV file of its macros for programs.

Lengths are in µm.
"""

import dataclasses
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.markup import escape
from rich.table import Table

from placement.engine.costs import (
    DEFAULT_WEIGHTS,
    Costs,
    CostWeights,
    Legality,
    Violations,
    compute_costs,
    costs_object,
    legality,
    violations,
)
from placement.engine.tidiness import Tidiness, tidiness
from placement.flat.legalisation import MOST_ROWS, MOST_SITES
from placement.flat.opensta import OpenStaTiming
from placement.flat.problem import MOST_UTILIZATION
from placement.flat.row_area import RowArea, RowCounts, free_row_area
from placement.flat.timing import TimingEstimate
from placement.netlist.design import Design, NodeKind, Orientation, Placement
from placement.netlist.files import csv_text, write_whole
from placement.netlist.flat_design import FlatDesign
from placement.netlist.macro_gaps import SLIVER
from placement.netlist.pdn_channel import DENSITY
from placement.report.timing_tables import opensta_object, opensta_rows, timing_object, timing_rows

# Field of `Violations` → its JSON key, and its description.
_RULES = {
    "halos": ("halo_violations", "pairs of hard macros closer than their halos"),
    "blockages": ("blockage_violations", "hard macros on blockages"),
    "regions": ("region_violations", "hard macros outside their region, or in another's"),
    "orientations": ("orientation_violations", "hard macros in an orientation that is not allowed"),
    "grid": ("grid_violations", "hard macros off the snapping grid"),
    "port_keepout": ("port_keepout_violations", "hard macros too close to a port"),
    "channels": ("channel_violations", "gaps next to hard macros narrower than a channel"),
}
VIOLATION_KEYS = tuple(key for key, _ in _RULES.values())  # keys in the JSON object of a design with constraints
# Field of `Tidiness` → its denominator.
_TIDINESS = {
    "aligned": "of the macros: an edge is in line with a neighbour's",
    "grouped": "of the macros in banks: a neighbour belongs to the same bank",
    "alike": "of the neighbours of the same size: the same orientation",
    "pins_free": "of the macros with pins on one side: no neighbour or canvas edge in front of it",
    "usable": "of the whitespace: wide enough for a channel, and in one piece",
    "largest": "of the whitespace: the largest empty rectangle",
    "corners_free": "of the canvas's corners",
}
_ALARM = "bold red"
_Row = tuple[str, str, str, bool]  # of a table: name, value, meaning, whether it is printed as a warning
_WHOLE = 0.98  # fraction of the free sites in the largest piece, below which it is printed as a warning


class FullMetrics(NamedTuple):
    """The full evaluation of a placement: all standard cells placed and their routing estimated (`placement.flat`)."""

    # µm, half perimeters of the nets of 2 to 3,000 pins, with the cells placed densely and not legalised
    flat_wirelength: float
    density_overflow: float  # fraction of the cells' area that exceeds the free area of its bins
    routed_wirelength: float  # µm, estimated, including detours, after the spread cells are legalised
    overflow: float  # fraction of the routing demand beyond capacity
    hot_spots: int  # gcells with more demand than capacity in either direction
    flat_seconds: float  # CPU seconds of the evaluation
    # whether the cells spread to the target density; the other figures are less reliable if not
    flat_converged: bool = True
    # the cells' area over the whitespace outside macros, halos and PDN channels. A flow needs `DENSITY` at most; above
    # that, the routing estimate uses the space of PDN channels or buffers. It is 0 in results of earlier versions.
    cell_utilization: float = 0.0
    global_routed_wirelength: float = 0.0  # µm, `routed_wirelength` before legalisation
    legal_wirelength: float = 0.0  # µm, half perimeters of the legalised cells
    spread_wirelength: float = 0.0  # µm, half perimeters of the same cells before legalisation
    cells_without_place: int = 0  # number of cells without free sites in a legaliser's search range (`legalisation`)
    # mean_displacement, most_displacement: µm, mean and maximum distance that legalisation moves cells
    mean_displacement: float = 0.0
    most_displacement: float = 0.0


@dataclasses.dataclass(frozen=True)
class Metrics:
    """A placement's exact costs under `weights`, its overlaps and macros outside the canvas, and violated constraints.

    `rows` is the row area that the macros leave, if the flat design is known and has rows; `full` is the full
    evaluation, `timing` the timing estimate and `opensta` OpenSTA's timing, if they were requested.
    """

    design: Design
    costs: Costs
    weights: CostWeights
    legality: Legality
    violations: Violations
    tidiness: Tidiness
    rows: RowArea | None = None
    full: FullMetrics | None = None
    timing: TimingEstimate | None = None
    opensta: OpenStaTiming | None = None


def measure(
    design: Design,
    placement: Placement | None = None,
    *,
    weights: CostWeights = DEFAULT_WEIGHTS,
    flat: FlatDesign | None = None,
) -> Metrics:
    """The metrics of `placement` (None: the design's own), with the row area if the flat design is given.

    Raises DesignError if a node has no position, or the flat design has other macros.
    """
    costs = compute_costs(design, placement, weights=weights)
    rows = None if flat is None else free_row_area(flat, design, design.initial if placement is None else placement)
    return Metrics(
        design, costs, weights, legality(design, placement), violations(design, placement),
        tidiness(design, placement), rows,
    )  # fmt: skip


def json_object(metrics: Metrics) -> dict[str, Any]:
    """The metrics for programs: the cost (its name, value and components), wirelength (µm), overlaps, outside,
    tidiness.

    The counts of violated constraints follow if the design has any, the row area if it is known, and the full
    evaluation, the timing estimate and OpenSTA's timing if there are any.
    """
    broken = metrics.violations._asdict() if metrics.design.constraints.any else {}
    return {
        **costs_object(metrics.costs, metrics.weights),
        **metrics.legality._asdict(),
        "tidiness": metrics.tidiness._asdict(),
        **{_RULES[field][0]: count for field, count in broken.items()},
        **({} if metrics.rows is None else RowCounts.of(metrics.rows)._asdict()),
        **({} if metrics.full is None else metrics.full._asdict()),
        **({} if metrics.timing is None else timing_object(metrics.timing)),
        **({} if metrics.opensta is None else {"opensta": opensta_object(metrics.opensta)}),
    }


def json_line(metrics: Metrics) -> str:
    """Formats `json_object` on one line; floats read back equal."""
    return json.dumps(json_object(metrics), allow_nan=False)


def metrics_table(metrics: Metrics, title: str) -> Table:
    """The metrics as a table of name, value and explanation, for a rich console."""
    costs, weights, netlist, canvas = metrics.costs, metrics.weights, metrics.design.netlist, metrics.design.canvas
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("", style="dim")
    table.add_row("wirelength", f"{costs.wirelength:,.1f}", "µm, weighted half-perimeters")
    for name in ("wirelength", "density", "congestion"):
        table.add_row(f"{name} cost", f"{getattr(costs, f'{name}_cost'):.6f}", f"weight {getattr(weights, name):g}")
    if weights.tidy:
        table.add_row("tidiness", f"{metrics.tidiness.cost:.6f}", f"weight {weights.tidy:g}")
    table.add_row(f"{weights.name} cost", f"{costs.total:.6f}", "their weighted sum", style="bold", end_section=True)
    counts = [
        ("overlaps", metrics.legality.overlaps, "pairs of hard macros"),
        ("outside", metrics.legality.outside, "hard macros off canvas"),
    ]
    if metrics.design.constraints.any:
        broken = metrics.violations._asdict()
        counts += [(field.replace("_", " "), broken[field], meaning) for field, (_, meaning) in _RULES.items()]
    sections: list[list[_Row]] = [
        [(name, str(count), meaning, count > 0) for name, count, meaning in counts],
        [
            (name.replace("_", " "), f"{getattr(metrics.tidiness, name):.0%}", meaning, False)
            for name, meaning in _TIDINESS.items()
        ],
        [] if metrics.rows is None else _row_area_rows(RowCounts.of(metrics.rows)),
        [] if metrics.full is None else _full_rows(metrics.full),
    ]
    if metrics.timing is not None:
        rows = [*timing_rows(metrics.timing), *(opensta_rows(metrics.opensta) if metrics.opensta else ())]
        sections.append([(*row, row[1].startswith("-") and not row[0].startswith(" ")) for row in rows])
    for section in sections:
        for *row, is_alarming in section:
            table.add_row(*row, style=_ALARM if is_alarming else "")
        table.add_section()
    table.add_row("canvas", f"{canvas.width:g} × {canvas.height:g}", "µm")
    table.add_row("grid", f"{canvas.columns} × {canvas.rows}", "columns × rows")
    hard, soft, ports = len(netlist.hard), len(netlist.soft), len(netlist.ports)
    table.add_row("macros", f"{hard} + {soft}", f"hard + soft; {ports} ports")
    share = netlist.width * netlist.height / (canvas.width * canvas.height)
    table.add_row(
        "utilization",
        f"{share[netlist.kind != NodeKind.PORT].sum():.1%}",
        f"of the canvas, soft macros at their drawn size; hard macros {share[netlist.hard].sum():.1%}",
    )
    return table


def _row_area_rows(rows: RowCounts) -> list[_Row]:
    share = rows.sliver_sites / max(1, rows.free_sites)
    pieces = f"the largest has {rows.largest_piece:.1%} of the sites"
    slivers = f"in runs of fewer than {SLIVER}; {share:.2%} of {rows.free_sites:,} free sites"
    return [
        ("pieces of row area", str(rows.row_pieces), pieces, rows.largest_piece < _WHOLE),
        ("sliver sites", f"{rows.sliver_sites:,}", slivers, False),
    ]


def _full_rows(full: FullMetrics) -> list[_Row]:
    beyond = "of the cells' area beyond its bins' capacity" + ("" if full.flat_converged else "; not converged")
    utilization = f"of the whitespace outside macros and PDN channels; a flow needs {DENSITY:.0%} at most"
    without = f"within {MOST_SITES} sites and {MOST_ROWS} rows"
    moved = f"µm, mean; {full.most_displacement:.1f} at most"
    routed = f"µm, estimated, detours included; {full.global_routed_wirelength:,.0f} before legalisation"
    is_full = full.cell_utilization > MOST_UTILIZATION
    return [
        ("flat wirelength", f"{full.flat_wirelength:,.0f}", "µm, half-perimeters with all cells placed", False),
        ("density overflow", f"{full.density_overflow:.1%}", beyond, not full.flat_converged),
        ("cell utilization", f"{full.cell_utilization:.1%}", utilization, is_full),
        ("cells without a place", str(full.cells_without_place), without, full.cells_without_place > 0),
        ("displacement", f"{full.mean_displacement:.2f}", moved, False),
        ("legal wirelength", f"{full.legal_wirelength:,.0f}", f"µm; {full.spread_wirelength:,.0f} before", False),
        ("routed wirelength", f"{full.routed_wirelength:,.0f}", routed, False),
        ("overflow", f"{full.overflow:.3%}", "of the routing demand, beyond capacity", False),
        ("hot spots", str(full.hot_spots), "gcells with more demand than capacity", False),
        ("full evaluation", f"{full.flat_seconds:.1f}", "CPU seconds", False),
    ]


def facts_table(title: str, rows: Iterable[tuple[str, str]]) -> Table:
    """A table of names and texts, for a rich console."""
    table = Table(title=escape(title), show_header=False, title_justify="left", title_style="bold")
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, escape(text))
    return table


def make_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    caption: str | None = None,
    left: Sequence[str] = (),
    **look: Any,
) -> Table:
    """A table for a rich console with right-aligned numbers.

    The columns named in `left` are left-aligned like the first one, and may be folded; `look` are arguments of
    `rich.table.Table`.
    """
    table = Table(
        title=title, title_justify="left", title_style="bold", caption=caption, caption_justify="left", **look
    )
    for number, name in enumerate(columns):
        text = number == 0 or name in left
        table.add_column(name, justify="left" if text else "right", no_wrap=not left, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def write_macros(path: str | os.PathLike[str], design: Design, placement: Placement) -> Path:
    """Writes the hard macros as a CSV file, one per row, for scripts of other tools; returns the path.

    x and y are the centre, left and bottom the lower left corner, width and height those of the oriented macro, all in
    µm; orientation is LEF/DEF's; fixed is 0 or 1. Macros without a position are omitted.
    """
    netlist = design.netlist
    rows: list[Sequence[object]] = [("name", "x", "y", "left", "bottom", "width", "height", "orientation", "fixed")]
    sides = netlist.sides(placement.orientation)
    for node in netlist.hard[placement.placed[netlist.hard]].tolist():
        x, y, width, height = (float(values[node]) for values in (placement.x, placement.y, *sides))
        place = (x, y, x - width / 2, y - height / 2, width, height)
        orientation = Orientation(placement.orientation[node]).name
        rows.append([netlist.names[node], *place, orientation, int(placement.fixed[node])])
    write_whole(path, csv_text(rows))
    return Path(path)
