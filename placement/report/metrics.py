"""What is said of a placement in numbers: the table for people and the JSON object for programs.

Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
from rich.table import Table

from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, Legality, legality, proxy_cost
from placement.netlist.design import Canvas, Design, NodeKind, Placement

JSON_KEYS = (*Costs._fields, *Legality._fields)


@dataclasses.dataclass(frozen=True)
class Metrics:
    """A placement's costs, its legality and how full its canvas is.

    Attributes:
        costs: the exact costs under `weights`.
        weights: of the proxy cost's parts.
        legality: overlapping pairs of hard macros, and hard macros beyond the canvas edge.
        canvas: that the placement was measured on.
        hard, soft, ports: how many nodes of each kind.
        hard_utilization: area of the hard macros over the canvas's.
        utilization: area of hard and soft macros and standard cells over the canvas's.
    """

    costs: Costs
    weights: CostWeights
    legality: Legality
    canvas: Canvas
    hard: int
    soft: int
    ports: int
    hard_utilization: float
    utilization: float


def measure(design: Design, placement: Placement | None = None, *, weights: CostWeights = DEFAULT_WEIGHTS) -> Metrics:
    """The metrics of `placement` (the design's own placement when None); raises DesignError if it is not whole."""
    netlist, canvas = design.netlist, design.canvas
    area = netlist.width * netlist.height
    hard_area = float(area[netlist.hard].sum())
    return Metrics(
        costs=proxy_cost(design, placement, weights=weights),
        weights=weights,
        legality=legality(design, placement),
        canvas=canvas,
        hard=len(netlist.hard),
        soft=len(netlist.soft),
        ports=len(netlist.ports),
        hard_utilization=hard_area / (canvas.width * canvas.height),
        utilization=float(np.sum(area[netlist.kind != NodeKind.PORT])) / (canvas.width * canvas.height),
    )


def json_object(metrics: Metrics) -> dict[str, Any]:
    """The seven values that programs read: wirelength (µm), the four costs, overlaps, outside."""
    return {**metrics.costs._asdict(), **metrics.legality._asdict()}


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
    table.add_row("proxy cost", f"{costs.proxy_cost:.6f}", "their weighted sum", style="bold", end_section=True)
    table.add_row("overlaps", str(metrics.legality.overlaps), "pairs of hard macros", style=_alarm(metrics, "overlaps"))
    table.add_row("outside", str(metrics.legality.outside), "hard macros off canvas", style=_alarm(metrics, "outside"))
    table.add_section()
    table.add_row("canvas", f"{canvas.width:g} × {canvas.height:g}", "µm")
    table.add_row("grid", f"{canvas.columns} × {canvas.rows}", "columns × rows")
    table.add_row("macros", f"{metrics.hard} + {metrics.soft}", f"hard + soft; {metrics.ports} ports")
    table.add_row(
        "utilization", f"{metrics.utilization:.1%}", f"of the canvas; hard macros {metrics.hard_utilization:.1%}"
    )
    return table


def _alarm(metrics: Metrics, what: str) -> str:
    """Red for a count that should be 0 and is not."""
    return "bold red" if getattr(metrics.legality, what) else ""
