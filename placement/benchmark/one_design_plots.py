"""Plots of a benchmark of one design: the cost over time, and the best placement of each placer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from placement.benchmark.aggregates import METRICS
from placement.benchmark.scoring import OF_CELLS
from placement.netlist.design import Design, Placement
from placement.netlist.formats.plc import read_placement
from placement.report.placement_metrics import FullMetrics

TIME_NAME, PLACEMENTS_NAME, FULL_NAME = "cost_over_time.png", "placements.png", "full.png"


def draw_one(folder: Path, design: Design, results: Sequence[Mapping[str, Any]]) -> None:
    """Draws the best placement of each placer side by side, with cells and routes if available.

    The best has the shortest routes, or else the lowest chip cost. Runs with a recorded cost curve are drawn over time.
    """
    from placement.report import curves, style  # Matplotlib takes a second to import

    runs: dict[str, list[Mapping[str, Any]]] = {}
    for one in results:
        if one["status"] == "ok" and one["scores"]:
            runs.setdefault(str(one["placer"]), []).append(one)
    histories = {
        placer: [[*map(tuple, one["curve"]), (one["cpu_seconds"], one["scores"][METRICS[0]])] for one in own]
        for placer, own in runs.items()
        if all(one["curve"] for one in own)
    }
    if histories:
        title, unit = f"{design.name}: cost over time", "CPU seconds since the start of the process"
        style.save_figure(curves.plot_cost_over_time(histories, title=title, unit=unit), folder / TIME_NAME)
    if not runs:
        return
    best = {placer: min(own, key=_order) for placer, own in runs.items()}
    placements = {placer: _placement(one, design) for placer, one in best.items()}
    shown = {placer: (placements[placer], one["scores"][METRICS[0]]) for placer, one in best.items()}
    figure = curves.plot_side_by_side(design, shown, title=f"{design.name}: placers compared")
    style.save_figure(figure, folder / PLACEMENTS_NAME)
    _draw_full(folder / FULL_NAME, design, best, placements)


def _order(result: Mapping[str, Any]) -> float:
    """Returns the sort key of a result; lower is better."""
    return float(result["scores"].get(OF_CELLS[1], result["scores"][METRICS[0]]))


def _placement(result: Mapping[str, Any], design: Design) -> Placement:
    return read_placement(result["file"].with_suffix(".plc.gz"), design.netlist, located=design.initial)[1]


def _draw_full(
    path: Path, design: Design, best: Mapping[str, Mapping[str, Any]], placements: Mapping[str, Placement]
) -> None:
    """Draws the full evaluations side by side, if there are any."""
    from placement.report import plots, style

    panels = []
    for placer, one in best.items():
        file = one["file"].with_suffix(".npz")
        if not file.is_file() or OF_CELLS[0] not in one["scores"]:
            continue
        from placement.evaluation.full_evaluation import read_drawn  # JAX takes seconds to import

        drawn, scores = read_drawn(file), {name: one["scores"][name] for name in OF_CELLS}
        full = FullMetrics(flat_seconds=0.0, **scores)
        cells = plots.DrawnCells(drawn.x, drawn.y, drawn.cluster)
        panels.append(plots.FullPanel(placer, placements[placer], full, cells, drawn.horizontal, drawn.vertical))
    if panels:
        style.save_figure(plots.plot_full_side_by_side(design, panels), path)
