"""What is said of a placement in numbers: the table for people and the JSON object for programs.

Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from placement.engine.costs import (
    DEFAULT_WEIGHTS,
    Costs,
    CostWeights,
    Legality,
    Violations,
    legality,
    proxy_cost,
    violations,
)
from placement.flat.problem import MOST_UTILIZATION
from placement.netlist.design import Canvas, Design, NodeKind, Placement
from placement.netlist.straps import DENSITY

VIOLATION_KEYS = {
    "halo_violations": "halos",
    "blockage_violations": "blockages",
    "region_violations": "regions",
    "orientation_violations": "orientations",
    "grid_violations": "grid",
    "port_keepout_violations": "port_keepout",
}
"""What programs read where a design has constraints → the field of `placement.engine.costs.Violations`."""
_RULES = {
    "halos": "pairs of hard macros closer than their halos",
    "blockages": "hard macros on blockages",
    "regions": "hard macros off their region, or in another's",
    "orientations": "hard macros turned as they may not be",
    "grid": "hard macros off the snapping grid",
    "port_keepout": "hard macros too near to a port",
}


class FlatMetrics(NamedTuple):
    """What a placement is worth with all standard cells placed (`placement.flat`).

    Attributes:
        flat_wirelength: µm, half perimeters of the nets of 2 to 3,000 pins.
        density_overflow: share of the cells' area in bins beyond their free area.
        routed_wirelength: µm, estimated, detours included.
        overflow: share of the routing demand beyond capacity.
        hot_spots: gcells with more demand than capacity in either direction.
        flat_seconds: CPU seconds of the check.
        flat_converged: whether the cells spread as far as they should; the other figures count for less where not.
        cell_utilization: cells' area over the room that macros, halos and straps leave (`cell_utilization`); a flow
            wants `DENSITY` at most, more takes straps or room for buffers from the routing estimate. 0 in results of
            earlier versions.
    """

    flat_wirelength: float
    density_overflow: float
    routed_wirelength: float
    overflow: float
    hot_spots: int
    flat_seconds: float
    flat_converged: bool = True
    cell_utilization: float = 0.0


@dataclasses.dataclass(frozen=True)
class Metrics:
    """A placement's costs, its legality and how full its canvas is.

    Attributes:
        costs: the exact costs under `weights`.
        weights: of the proxy cost's parts.
        legality: overlapping pairs of hard macros, and hard macros beyond the canvas edge.
        violations: how often the design's constraints are broken.
        is_constrained: whether the design has any constraints.
        canvas: that the placement was measured on.
        hard, soft, ports: how many nodes of each kind.
        hard_utilization: area of the hard macros over the canvas's.
        utilization: area of hard and soft macros and standard cells over the canvas's.
        flat: what the flat check found, where it was asked for.
    """

    costs: Costs
    weights: CostWeights
    legality: Legality
    violations: Violations
    is_constrained: bool
    canvas: Canvas
    hard: int
    soft: int
    ports: int
    hard_utilization: float
    utilization: float
    flat: FlatMetrics | None = None


def measure(design: Design, placement: Placement | None = None, *, weights: CostWeights = DEFAULT_WEIGHTS) -> Metrics:
    """The metrics of `placement` (the design's own placement when None); raises DesignError if it is not whole."""
    netlist, canvas = design.netlist, design.canvas
    area = netlist.width * netlist.height
    hard_area = float(area[netlist.hard].sum())
    return Metrics(
        costs=proxy_cost(design, placement, weights=weights),
        weights=weights,
        legality=legality(design, placement),
        violations=violations(design, placement),
        is_constrained=design.constraints.any,
        canvas=canvas,
        hard=len(netlist.hard),
        soft=len(netlist.soft),
        ports=len(netlist.ports),
        hard_utilization=hard_area / (canvas.width * canvas.height),
        utilization=float(np.sum(area[netlist.kind != NodeKind.PORT])) / (canvas.width * canvas.height),
    )


def json_object(metrics: Metrics) -> dict[str, Any]:
    """What programs read: the name of the cost, wirelength (µm), the four costs, overlaps, outside.

    `proxy_cost` is the weighted sum of the three parts, whichever cost it is. Where the design has constraints, how
    often each kind is broken, too; what the flat check found, where it was run.
    """
    broken = metrics.violations._asdict()
    keys = VIOLATION_KEYS if metrics.is_constrained else {}
    flat = {} if metrics.flat is None else metrics.flat._asdict()
    return {
        "cost": metrics.weights.name,
        **metrics.costs._asdict(),
        **metrics.legality._asdict(),
        **{key: broken[field] for key, field in keys.items()},
        **flat,
    }


def json_line(metrics: Metrics) -> str:
    """`json_object` on one line; floats are written so that they read back equal."""
    return json.dumps(json_object(metrics), allow_nan=False)


def metrics_table(metrics: Metrics, title: str) -> Table:
    """The metrics as a table of name, value and explanation, for a rich console."""
    costs, canvas = metrics.costs, metrics.canvas
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("", style="dim")
    table.add_row("wirelength", f"{costs.wirelength:,.1f}", "µm, weighted half-perimeters")
    table.add_row("wirelength cost", f"{costs.wirelength_cost:.6f}", f"weight {metrics.weights.wirelength:g}")
    table.add_row("density cost", f"{costs.density_cost:.6f}", f"weight {metrics.weights.density:g}")
    table.add_row("congestion cost", f"{costs.congestion_cost:.6f}", f"weight {metrics.weights.congestion:g}")
    table.add_row(
        f"{metrics.weights.name} cost", f"{costs.proxy_cost:.6f}", "their weighted sum", style="bold", end_section=True
    )
    table.add_row("overlaps", str(metrics.legality.overlaps), "pairs of hard macros", style=_alarm(metrics, "overlaps"))
    table.add_row("outside", str(metrics.legality.outside), "hard macros off canvas", style=_alarm(metrics, "outside"))
    if metrics.is_constrained:
        for field, meaning in _RULES.items():
            count = getattr(metrics.violations, field)
            table.add_row(field.replace("_", " "), str(count), meaning, style="bold red" if count else "")
    table.add_section()
    if metrics.flat is not None:
        _add_flat(table, metrics.flat)
    table.add_row("canvas", f"{canvas.width:g} × {canvas.height:g}", "µm")
    table.add_row("grid", f"{canvas.columns} × {canvas.rows}", "columns × rows")
    table.add_row("macros", f"{metrics.hard} + {metrics.soft}", f"hard + soft; {metrics.ports} ports")
    table.add_row(
        "utilization",
        f"{metrics.utilization:.1%}",
        f"of the canvas, soft macros as large as drawn; hard macros {metrics.hard_utilization:.1%}",
    )
    return table


def _add_flat(table: Table, flat: FlatMetrics) -> None:
    table.add_row("flat wirelength", f"{flat.flat_wirelength:,.0f}", "µm, half-perimeters with all cells placed")
    spread = "of the cells' area beyond its bins' room"
    if flat.flat_converged:
        table.add_row("density overflow", f"{flat.density_overflow:.1%}", spread)
    else:
        table.add_row("density overflow", f"{flat.density_overflow:.1%}", f"{spread}; not converged", style="bold red")
    table.add_row(
        "cell utilization",
        f"{flat.cell_utilization:.1%}",
        f"of the room clear of macros and straps; a flow wants {DENSITY:.0%} at most",
        style="bold red" if flat.cell_utilization > MOST_UTILIZATION else "",
    )
    table.add_row("routed wirelength", f"{flat.routed_wirelength:,.0f}", "µm, estimated, detours included")
    table.add_row("overflow", f"{flat.overflow:.3%}", "of the routing demand, beyond capacity")
    table.add_row("hot spots", str(flat.hot_spots), "gcells with more demand than capacity")
    table.add_row("flat check", f"{flat.flat_seconds:.1f}", "CPU seconds", end_section=True)


def _alarm(metrics: Metrics, what: str) -> str:
    """Red for a count that should be 0 and is not."""
    return "bold red" if getattr(metrics.legality, what) else ""
