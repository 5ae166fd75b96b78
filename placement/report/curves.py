"""Training curves of one run from its `metrics.csv`.

Axis legend: I iterations (rows of the file).
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from placement.report import style

PARTS = {
    "cost_mean": "{} cost",
    "wirelength_cost_mean": "wirelength cost",
    "density_cost_mean": "density cost",
    "congestion_cost_mean": "congestion cost",
}
LEFT = 0.8  # inches
REQUIRED = ("episodes", "cost_mean", "cost_best")

Columns = dict[str, np.ndarray]


class CurvesError(ValueError):
    """A metrics file cannot be drawn; the message names the file and what is wrong."""


def read_metrics(path: str | os.PathLike[str]) -> Columns:
    """The columns of a `metrics.csv`, each float64 [I]; empty fields are NaN.

    Raises:
        CurvesError: no such file, no rows, a missing column, or a field that is no number, with its line.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CurvesError(f"{path}: cannot be read: {error.strerror or error}") from None
    reader = csv.DictReader(text.splitlines())
    names = reader.fieldnames or []
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise CurvesError(f"{path}:1: the columns {', '.join(missing)} are missing")
    rows = [[_number(row[name], path, reader.line_num, name) for name in names] for row in reader]
    if not rows:
        raise CurvesError(f"{path}: holds no iteration yet")
    return {name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


def _number(text: str | None, path: object, line: int, name: str) -> float:
    if not text:
        return math.nan
    try:
        return float(text)
    except ValueError:
        raise CurvesError(f"{path}:{line}: {name} is {text!r}; must be a number") from None


def best_so_far(columns: Columns) -> np.ndarray:
    """float64 [I]: the lowest proxy cost found up to each iteration; NaN before the first."""
    return np.fmin.accumulate(columns["cost_best"])


def plot_training(
    columns: Columns, *, title: str = "", baselines: Mapping[str, float] | None = None, cost: str = "proxy"
) -> Figure:
    """Mean, spread and best of the cost, and each cost's part in a panel of its own.

    Args:
        columns: as `read_metrics` gives them.
        title: the heading.
        baselines: costs to draw as named horizontal lines in the first panel.
        cost: name of the cost that was trained on.
    """
    figure, panels = _four_panels(title, cost)
    steps = columns["episodes"]
    for axes, name in zip(panels, PARTS, strict=True):
        if name not in columns:
            continue
        _spread(axes, steps, columns, name)
        _line(axes, steps, columns[name], style.BLUE, "mean of the iteration's episodes")
    first = panels[0]
    _line(first, steps, best_so_far(columns), style.VERMILION, "best so far")
    _greedy(first, steps, columns)
    style.head_line(figure, _summary(columns, cost), left=LEFT)
    _baselines(first, baselines or {})
    handles, labels = first.get_legend_handles_labels()  # one legend for all panels
    style.foot_legend(figure, handles, left=LEFT, low=0.14, labels=labels, ncols=min(len(labels), 4) or 1)
    return figure


def _greedy(axes: Axes, steps: np.ndarray, columns: Columns) -> None:
    """The greedy policy's cost at the iterations that it was evaluated after."""
    values = columns.get("greedy_cost")
    if values is not None and np.isfinite(values).any():
        shown = np.isfinite(values)
        look = {"color": style.GREEN, "marker": "D", "markersize": 4.5, "linestyle": "none"}
        axes.plot(steps[shown], values[shown], label="greedy policy", zorder=4, **look)  # type: ignore[arg-type]


def _summary(columns: Columns, cost: str) -> str:
    """How long the run was and what came of it, in a line."""
    mean = columns["cost_mean"]
    mean = mean[np.isfinite(mean)]
    change = f"; mean {cost} cost {mean[0]:.4f} → {mean[-1]:.4f}" if len(mean) else ""
    best = best_so_far(columns)[-1]
    found = f", best {best:.4f}" if math.isfinite(best) else ""
    return f"{len(columns['episodes']):,} iterations, {int(columns['episodes'][-1]):,} episodes{change}{found}"


def _four_panels(title: str, cost: str) -> tuple[Figure, list[Axes]]:
    """A figure of two by two panels, one for each of `PARTS`."""
    width, height = 9.6, 7.1
    figure = style.new_figure(width, height)
    panel_width, panel_height = 3.85, 2.2
    panels = []
    for number, name in enumerate(PARTS.values()):
        column, row = number % 2, number // 2
        left, bottom = LEFT + column * (panel_width + 0.85), 3.85 - row * (panel_height + 0.75)
        axes = figure.add_axes((left / width, bottom / height, panel_width / width, panel_height / height))
        style.dress(axes, grid=True)
        axes.set_title(name.format(cost), loc="left", size=style.TEXT_SIZE, weight="bold", color=style.INK, pad=6)
        if row == 1:
            axes.set_xlabel("episodes")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        panels.append(axes)
    style.head(figure, title, left=LEFT)
    return figure, panels


def _spread(axes: Axes, steps: np.ndarray, columns: Columns, name: str) -> None:
    """A band of one standard deviation around the mean, where the file gives it."""
    deviation = columns.get(name.removesuffix("_mean") + "_std")
    if deviation is not None:
        mean = columns[name]
        label = "± 1 standard deviation"
        axes.fill_between(
            steps, mean - deviation, mean + deviation, color=style.BLUE, alpha=0.16, linewidth=0, label=label
        )


def _line(axes: Axes, steps: np.ndarray, values: np.ndarray, colour: str, label: str) -> None:
    """One curve; a single point is marked, for it would not show as a line."""
    shown = np.isfinite(values)
    marker = "o" if shown.sum() == 1 else ""
    axes.plot(steps, values, color=colour, linewidth=1.8, label=label, marker=marker, markersize=4, zorder=3)


def _baselines(axes: Axes, baselines: Mapping[str, float]) -> None:
    """Named horizontal lines, the name above the line's right end."""
    for name, value in baselines.items():
        axes.axhline(value, color=style.MUTED, linewidth=1.1, linestyle=(0, (5, 3)), zorder=2)
        axes.annotate(
            f"{name} {value:.4f}",
            (1, value),
            xytext=(-2, 3),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            size=style.SMALL_SIZE - 1,
            color=style.MUTED,
        )
