"""Plots costs over time: the training curves of a run, and comparisons of placers.

Axis legend: I iterations (rows of `metrics.csv`).
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from placement.engine.costs import DEFAULT_WEIGHTS
from placement.netlist.design import Design, Placement
from placement.report import drawing, style
from placement.report.run_watch import Columns, best_so_far

Curve = Sequence[tuple[float, float]]  # CPU seconds and the best cost so far

# Column of `metrics.csv` → heading of its panel.
_PANELS = {
    "cost_mean": "{} cost",
    "wirelength_cost_mean": "wirelength cost",
    "density_cost_mean": "density cost",
    "congestion_cost_mean": "congestion cost",
    "learner_entropy": "entropy of the policy (nats)",
    "learner_approx_kl": "approximate KL divergence (nats)",
}
_LEFT = 0.8  # inches
_POINTS = 200  # points of an averaged curve
_PANEL, _HEAD = 3.6, 0.85  # inches, of placements side by side


def plot_training(
    columns: Columns, *, title: str = "", baselines: Mapping[str, float] | None = None, cost: str = DEFAULT_WEIGHTS.name
) -> Figure:
    """Plots over iterations the cost (called `cost`) and its components, the policy's entropy and its KL divergence.

    Components and measures that do not change have no panel; the line below the title names them.

    Args:
        columns: the columns from `read_metrics`.
        title: the title above the panels.
        baselines: costs to draw as named horizontal lines in the first panel.
        cost: the name of the training cost.
    """
    steps, band = columns["iteration"], "± 1 standard deviation"
    constant = {name: columns[name] for name in _PANELS if name in columns and _is_constant(columns[name])}
    shown = [name for name in _PANELS if name == "cost_mean" or (name in columns and name not in constant)]
    figure, panels = _panels([_PANELS[name].format(cost) for name in shown], title, _abscissa(columns))
    for axes, name in zip(panels, shown, strict=True):
        mean, deviation = columns[name], columns.get(name.removesuffix("_mean") + "_std")
        if deviation is not None:
            low, high = mean - deviation, mean + deviation
            axes.fill_between(steps, low, high, color=style.BLUE, alpha=0.16, linewidth=0, label=band)
        _line(axes, steps, mean, style.BLUE, "mean of the iteration")
    first = panels[0]
    _line(first, steps, best_so_far(columns), style.VERMILION, "best so far")
    greedy = columns.get("greedy_cost", np.full(len(steps), np.nan))
    if np.isfinite(greedy).any():
        x, y = steps[np.isfinite(greedy)], greedy[np.isfinite(greedy)]
        first.plot(x, y, "D", color=style.GREEN, markersize=4.5, label="greedy policy", zorder=4)
    still = [f"{_PANELS[name].split(' (')[0]} {values[-1]:g}" for name, values in constant.items()]
    line = _summary(columns, cost) + (f"; constant: {', '.join(still)}" if still and len(steps) > 1 else "")
    style.head_line(figure, line, left=_LEFT)
    _baselines(first, baselines or {})
    handles, labels = first.get_legend_handles_labels()  # one legend for all panels
    style.foot_legend(figure, handles, left=_LEFT, low=0.14, labels=labels, ncols=min(len(labels), 4) or 1)
    return figure


def _is_constant(values: np.ndarray) -> bool:
    """Whether a column has one value throughout, or none; columns of a run of one iteration all count as varying."""
    finite = values[np.isfinite(values)]
    return len(finite) == 0 or (len(finite) > 1 and float(np.ptp(finite)) == 0)


def _abscissa(columns: Columns) -> str:
    """The label of the iteration axis, with the episodes of each iteration if all have the same number."""
    each = np.unique(np.diff(columns["episodes"], prepend=0.0))
    return f"iteration, of {int(each[0]):,} episodes" if len(each) == 1 else "iteration"


def _panels(headings: Sequence[str], title: str, abscissa: str) -> tuple[Figure, list[Axes]]:
    """A figure of panels in two columns, with the label of the abscissa on the last panel of each."""
    panel_width, panel_height, gap = 3.85, 2.2, 0.75
    rows = -(-len(headings) // 2)
    width, height = 9.6, 1.95 + rows * panel_height + (rows - 1) * gap
    figure = style.new_figure(width, height)
    panels = []
    for number, heading in enumerate(headings):
        row, column = divmod(number, 2)
        left, bottom = _LEFT + column * (panel_width + 0.85), height - 1.05 - panel_height - row * (panel_height + gap)
        axes = figure.add_axes((left / width, bottom / height, panel_width / width, panel_height / height))
        style.dress(axes, grid=True)
        axes.set_title(heading, loc="left", size=style.TEXT_SIZE, weight="bold", color=style.INK, pad=6)
        if number + 2 >= len(headings):
            axes.set_xlabel(abscissa)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        panels.append(axes)
    style.head(figure, title, left=_LEFT)
    return figure, panels


def _line(axes: Axes, steps: np.ndarray, values: np.ndarray, colour: str, label: str) -> None:
    """Draws one curve; a single point gets a marker, because a line would be invisible."""
    marker = "o" if np.isfinite(values).sum() == 1 else ""
    axes.plot(steps, values, color=colour, linewidth=1.8, label=label, marker=marker, markersize=4, zorder=3)


def _summary(columns: Columns, cost: str) -> str:
    mean = columns["cost_mean"]
    mean = mean[np.isfinite(mean)]
    change = f"; mean {cost} cost {mean[0]:.4f} → {mean[-1]:.4f}" if len(mean) else ""
    best = best_so_far(columns)[-1]
    found = f", best {best:.4f}" if math.isfinite(best) else ""
    return f"{len(columns['episodes']):,} iterations, {int(columns['episodes'][-1]):,} episodes{change}{found}"


def _baselines(axes: Axes, baselines: Mapping[str, float]) -> None:
    """Draws named horizontal lines, each with its name above the right end."""
    for name, value in baselines.items():
        axes.axhline(value, color=style.MUTED, linewidth=1.1, linestyle=(0, (5, 3)), zorder=2)
        text, place = f"{name} {value:.4f}", axes.get_yaxis_transform()
        look = {"ha": "right", "va": "bottom", "size": style.SMALL_SIZE - 1, "color": style.MUTED}
        axes.text(0.995, value, text, transform=place, **look)  # type: ignore[arg-type]


def plot_cost_over_time(
    curves: Mapping[str, Sequence[Curve]], *, title: str, unit: str, cost: str = DEFAULT_WEIGHTS.name
) -> Figure:
    """Plots each placer's mean over seeds in a band from best to worst; `curves` has one curve per seed of a placer."""
    figure = style.new_figure(7.4, 4.8)
    axes = figure.add_axes((0.115, 0.12, 0.865, 0.70))
    for index, (placer, seeds) in enumerate(curves.items()):
        times = np.linspace(0.0, max(curve[-1][0] for curve in seeds), _POINTS)
        costs = np.stack([best_until(curve, times) for curve in seeds])
        known = np.isfinite(costs).all(axis=0)
        times, costs, colour = times[known], costs[:, known], style.SERIES[index % len(style.SERIES)]
        axes.plot(times, costs.mean(axis=0), color=colour, linewidth=1.8, label=placer)
        axes.fill_between(times, costs.min(axis=0), costs.max(axis=0), color=colour, alpha=0.18)
    axes.set(xlabel=unit, ylabel=f"best {cost} cost so far")
    style.dress(axes, grid=True)
    axes.legend(frameon=False, fontsize=style.SMALL_SIZE)
    style.head(figure, title, "mean of the seeds; bands from the best to the worst")
    return figure


def best_until(curve: Curve, times: np.ndarray) -> np.ndarray:
    """The best cost of a run until each of `times`; infinite before its first."""
    seconds, costs = np.array(curve, dtype=np.float64).T
    index = np.searchsorted(seconds, times, side="right") - 1
    return np.where(index >= 0, np.minimum.accumulate(costs)[np.maximum(index, 0)], np.inf)


def plot_side_by_side(
    design: Design, placements: Mapping[str, tuple[Placement, float]], *, title: str, cost: str = DEFAULT_WEIGHTS.name
) -> Figure:
    """Draws the best placements of placers in a row, with their costs (called `cost`)."""
    width, height = _PANEL * len(placements) + 0.3, _PANEL + _HEAD + 0.35
    figure = style.new_figure(width, height)
    for index, (placer, (placement, value)) in enumerate(placements.items()):
        place = ((0.25 + _PANEL * index) / width, 0.15 / height, (_PANEL - 0.25) / width, (_PANEL - 0.1) / height)
        axes = figure.add_axes(place)
        drawing.dress_canvas(axes, design.canvas, drawing.view_of(design, placement))
        axes.set_axis_off()
        drawing.draw_placement(axes, design, placement)
        axes.set_title(f"{placer}: {value:.4f}", fontsize=style.TEXT_SIZE, color=style.INK)
    style.head(figure, title, f"the best of each placer's seeds, {cost} cost", left=0.25)
    return figure
