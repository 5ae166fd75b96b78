"""Pictures of a comparison of placers: how their costs fell over time, and what they placed, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from placement.netlist.design import Design, Placement
from placement.report import drawing, style

Curve = Sequence[tuple[float, float]]
"""CPU seconds and the best cost so far."""

POINTS = 200
PANEL = 3.6  # inches
HEAD = 0.85  # inches


def plot_cost_over_time(curves: Mapping[str, Sequence[Curve]], *, title: str, unit: str, cost: str = "proxy") -> Figure:
    """The mean of each placer's seeds, with all of them in a band.

    Args:
        curves: of each placer, one per seed.
        title: of the figure.
        unit: what the seconds are of.
        cost: the cost's name, proxy or chip.
    """
    figure = style.new_figure(7.4, 4.8)
    axes = figure.add_axes((0.115, 0.12, 0.865, 0.70))
    for index, (placer, seeds) in enumerate(curves.items()):
        last = max(curve[-1][0] for curve in seeds)
        times = np.linspace(0.0, last, POINTS)
        costs = np.stack([_best_until(curve, times) for curve in seeds])
        known = np.isfinite(costs).all(axis=0)
        colour = style.SERIES[index % len(style.SERIES)]
        axes.plot(times[known], costs[:, known].mean(axis=0), color=colour, linewidth=1.8, label=placer)
        axes.fill_between(
            times[known], costs[:, known].min(axis=0), costs[:, known].max(axis=0), color=colour, alpha=0.18
        )
    axes.set_xlabel(unit)
    axes.set_ylabel(f"best {cost} cost so far")
    style.dress(axes, grid=True)
    axes.legend(frameon=False, fontsize=style.SMALL_SIZE)
    style.head(figure, title, "mean of the seeds; bands from the best to the worst")
    return figure


def _best_until(curve: Curve, times: np.ndarray) -> np.ndarray:
    """The cost that a run had reached at each of `times`; infinite before its first."""
    seconds, costs = np.array(curve, dtype=np.float64).T
    index = np.searchsorted(seconds, times, side="right") - 1
    return np.where(index >= 0, np.minimum.accumulate(costs)[np.maximum(index, 0)], np.inf)


def plot_side_by_side(
    design: Design, placements: Mapping[str, tuple[Placement, float]], *, title: str, cost: str = "proxy"
) -> Figure:
    """The best placement of each placer with its cost, of the name `cost`, in a row."""
    count = len(placements)
    width = PANEL * count + 0.3
    figure = style.new_figure(width, PANEL + HEAD + 0.35)
    height = figure.get_size_inches()[1]
    for index, (placer, (placement, value)) in enumerate(placements.items()):
        place = ((0.25 + PANEL * index) / width, 0.15 / height, (PANEL - 0.25) / width, (PANEL - 0.1) / height)
        axes = figure.add_axes(place)
        drawing.dress_canvas(axes, design.canvas, drawing.view_of(design, placement))
        axes.set_axis_off()
        drawing.draw_placement(axes, design, placement)
        axes.set_title(f"{placer}: {value:.4f}", fontsize=style.TEXT_SIZE, color=style.INK)
    style.head(figure, title, f"the best of each placer's seeds, {cost} cost", left=0.25)
    return figure
