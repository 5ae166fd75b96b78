"""Plots of benchmarks: performance profiles, time to quality, and for one design the best placement of each placer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from placement.benchmark.aggregates import METRICS, interquartile_mean, profile
from placement.benchmark.leaderboard import Results, baseline_text, baselines, board, headline, normalised
from placement.benchmark.scoring import OF_CELLS
from placement.netlist.design import Design, Placement
from placement.netlist.formats.plc import read_placement
from placement.report.placement_metrics import FullMetrics

TIME_NAME, PLACEMENTS_NAME, FULL_NAME = "cost_over_time.png", "placements.png", "full.png"
_THRESHOLDS = np.linspace(0.8, 2.0, 241)
_POINTS = 60
_PLACE = (0.1, 0.12, 0.65, 0.70)
_LEGEND: dict[str, Any] = {"frameon": False, "loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
"""Legend beside the axes, best placer first."""


def _ranked(results: Results) -> list[str]:
    """Returns the placers with runs on at least half of the designs, best first."""
    rows = board(results, headline(results), repetitions=1)
    return [row.placer for row in rows if 2 * row.designs >= rows[0].designs]


def _label(placer: str) -> str:
    """Returns the name of a callable without its module."""
    return placer.rpartition(":")[2]


def _look(index: int) -> dict[str, Any]:
    """Returns the colour and dashes of a placer's line."""
    from placement.report import style

    return {
        "color": style.SERIES[index % len(style.SERIES)],
        "linestyle": ("-", "--", ":")[index // len(style.SERIES) % 3],
    }


def draw_board(profiles: Path, over_time: Path | None, results: Results) -> None:
    """Draws the performance profiles of the headline metric and, if `over_time` is given, the time to chip cost."""
    metric = headline(results)
    from placement.report import style  # Matplotlib takes a second to import

    scores = normalised(results, metric)
    figure = style.new_figure(7.4, 4.8)
    axes = figure.add_axes(_PLACE)
    for index, placer in enumerate(_ranked(results)):
        own = scores[placer]
        share = profile(list(own.values()), _THRESHOLDS)
        axes.step(_THRESHOLDS, share, where="post", linewidth=1.8, label=_label(placer), **_look(index))
    axes.set(
        xlabel=f"{metric.replace('_', ' ')} over that of {baseline_text(results)}",
        ylabel="share of runs",
        ylim=(0, 1.02),
    )
    style.dress(axes, grid=True)
    axes.legend(**_LEGEND, fontsize=style.SMALL_SIZE)
    style.head(
        figure, "Performance profiles", "share of runs with at most this score; higher and further left is better"
    )
    style.save_figure(figure, profiles)
    if over_time is not None:
        _draw_time(over_time, results)


def quality_over_time(results: Results, placer: str, times: np.ndarray) -> np.ndarray:
    """Returns the interquartile mean of the normalised chip cost reached by each time, float64 [times].

    A run without a placement yet, or a failed one, counts as infinity.
    """
    from placement.report.curves import best_until  # Matplotlib takes a second to import

    base = baselines(results, METRICS[0])
    reached = []
    for one in results:
        if one["placer"] != placer or one["design"] not in base:
            continue
        if one["status"] != "ok":
            reached.append(np.full(len(times), np.inf))
            continue
        curve = [*one.get("curve", []), [one["cpu_seconds"], one["scores"][METRICS[0]]]]
        reached.append(best_until(sorted(curve), times) / base[one["design"]])
    if not reached:
        return np.full(len(times), np.inf)
    return interquartile_mean([np.stack(reached, axis=-1)])


def _draw_time(path: Path, results: Results) -> None:
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    from placement.report import style

    spent = [one["cpu_seconds"] for one in results if one.get("cpu_seconds")]
    if not spent:
        return
    times = np.geomspace(0.5, max(*spent, 1.0), _POINTS)
    figure = style.new_figure(7.4, 4.8)
    axes = figure.add_axes(_PLACE)
    for index, placer in enumerate(_ranked(results)):
        values = quality_over_time(results, placer, times)
        known = np.isfinite(values)
        marker = "o" if known.sum() == 1 else ""
        axes.plot(times[known], values[known], linewidth=1.8, label=_label(placer), marker=marker, **_look(index))
    axes.set(
        xscale="log",
        xlabel="CPU seconds since the start of the process",
        ylabel="chip cost, interquartile mean, normalised",
    )
    ticks = [digit * 10**power for power in range(-1, 7) for digit in (1, 2, 5)]
    axes.set_xticks([tick for tick in ticks if times[0] <= tick <= times[-1]])
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    style.dress(axes, grid=True)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(**_LEGEND, fontsize=style.SMALL_SIZE)
    style.head(figure, "Time to quality", "a curve starts when three quarters of a placer's runs have a placement")
    style.save_figure(figure, path)


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
