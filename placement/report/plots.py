"""Pictures of one placement: where everything stands, and the maps that its costs come from.

Axis legend: R grid rows, C grid columns. Lengths are in µm, figures in inches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Patch

from placement.engine.costs import DEFAULT_WEIGHTS, CostWeights, cost_maps
from placement.netlist.design import Design, Placement
from placement.report import drawing, style
from placement.report.metrics import Metrics, measure

MAP_COLOURS = "viridis"


def plot_placement(
    design: Design, placement: Placement | None = None, *, weights: CostWeights = DEFAULT_WEIGHTS, title: str = ""
) -> Figure:
    """The canvas with hard macros, soft macros and ports, and the costs in the title.

    Args:
        design: the netlist and the canvas.
        placement: all nodes placed; the design's own when None.
        weights: of the proxy cost in the title.
        title: the first line; the design's name when empty.

    Raises:
        DesignError: a node has no place.
    """
    placement = design.initial if placement is None else placement
    metrics = measure(design, placement, weights=weights)
    figure, axes = canvas_figure(design, placement)
    movable, fixed = drawing.split_hard(design, placement)
    drawing.draw_placement(axes, design, placement)
    style.head(figure, title or design.name, costs_line(metrics))
    _mark_faults(figure, metrics)
    placement_legend(figure, movable=len(movable), fixed=len(fixed), soft=metrics.soft, ports=metrics.ports)
    return figure


def canvas_figure(design: Design, placement: Placement, *, width: float = 7.4) -> tuple[Figure, Axes]:
    """A figure `width` inches wide with one axes that shows the canvas, room for a heading and a legend around it."""
    view = drawing.view_of(design, placement)
    figure, axes = drawing.view_figure(view, width)
    drawing.dress_canvas(axes, design.canvas, view)
    return figure, axes


def costs_line(metrics: Metrics) -> str:
    """The proxy cost and its parts in one line under a title."""
    costs, weights = metrics.costs, metrics.weights
    parts = (
        f"{weights.wirelength:g} · {costs.wirelength_cost:.4f} wirelength",
        f"{weights.density:g} · {costs.density_cost:.4f} density",
        f"{weights.congestion:g} · {costs.congestion_cost:.4f} congestion",
    )
    return f"{weights.name} cost {costs.total:.4f} = {' + '.join(parts)}"


def _mark_faults(figure: Figure, metrics: Metrics) -> None:
    """Says at the top right how many hard macros overlap, stand outside or break constraints, if any do."""
    overlaps, outside = metrics.legality
    faults = [f"{overlaps} overlapping"] * bool(overlaps) + [f"{outside} outside"] * bool(outside)
    broken = sum(metrics.violations)
    faults += [f"{broken} constraints broken"] * bool(broken)
    width, height = figure.get_size_inches()
    figure.text(
        1 - 0.2 / width,
        1 - 0.22 / height,
        ", ".join(faults),
        size=style.TEXT_SIZE,
        weight="bold",
        color=style.VERMILION,
        va="top",
        ha="right",
    )


def placement_legend(figure: Figure, *, movable: int, fixed: int, soft: int, ports: int, marks: bool = True) -> None:
    """The legend at the foot of the figure, with how many there are of each kind; absent kinds are left out."""
    entries: list[Patch | Line2D] = []
    for count, look, name in (
        (movable, drawing.MOVABLE, "hard macros"),
        (fixed, drawing.FIXED, "fixed macros"),
        (soft, drawing.SOFT, "soft macros"),
    ):
        if count:
            label = f"{name} ({count})"
            patch = Patch(facecolor=look.face, edgecolor=look.edge, alpha=look.alpha, label=label, linewidth=0.8)
            entries.append(patch)
    if ports:
        entries.append(_key(f"ports ({ports})", drawing.PORT_FACE, MarkerStyle("s"), 5))
    if marks and (movable or fixed):
        entries.append(_key("orientation mark", drawing.MOVABLE.edge, MarkerStyle((3, 0, 45)), 7))
    columns = len(entries) if len(entries) <= 4 else 3
    style.foot_legend(figure, entries, ncols=columns, handlelength=1.4, columnspacing=1.6)


def _key(label: str, face: str, marker: MarkerStyle, size: float) -> Line2D:
    """A legend entry that shows a marker."""
    return Line2D(
        [], [], linestyle="none", marker=marker, markersize=size, markerfacecolor=face, markeredgewidth=0, label=label
    )


class MapPanel(NamedTuple):
    """One map to draw: its heading, values (float64 [R, C]), the colour scale's end, and what a value means."""

    name: str
    values: np.ndarray
    limit: float
    unit: str


def plot_maps(design: Design, placement: Placement | None = None, *, title: str = "") -> Figure:
    """Density and both congestion maps side by side, each with its colour bar and the hard macros' outlines.

    Args:
        design: the netlist and the canvas.
        placement: all nodes placed; the design's own when None.
        title: the heading; the design's name when empty.

    Raises:
        DesignError: a node has no place.
    """
    placement = design.initial if placement is None else placement
    maps = cost_maps(design, placement)
    busiest = float(max(maps.horizontal.max(), maps.vertical.max()))
    panels = (
        MapPanel("density", maps.density, float(maps.density.max()), "macro area / gcell area"),
        MapPanel("horizontal congestion", maps.horizontal, busiest, "demand / capacity"),
        MapPanel("vertical congestion", maps.vertical, busiest, "demand / capacity"),
    )
    return plot_panels(design, placement, panels, title=title)


def plot_panels(design: Design, placement: Placement, panels: Sequence[MapPanel], *, title: str = "") -> Figure:
    """Maps of the canvas side by side, each with its colour bar and the hard macros' outlines; `title` as plot_maps."""
    plot_width, left, gap = 3.3, style.MARGIN, 0.42
    plot_height = min(max(plot_width * design.canvas.height / design.canvas.width, 1.2), 2 * plot_width)
    width, height = left + len(panels) * (plot_width + gap) - gap + 0.25, plot_height + 2.1
    figure = style.new_figure(width, height)
    for number, panel in enumerate(panels):
        start, share = (left + number * (plot_width + gap)) / width, plot_width / width
        axes = figure.add_axes((start, 1.35 / height, share, plot_height / height))
        image = draw_map(axes, design, panel.values, panel.limit)
        heading = f"{panel.name}, highest {panel.values.max():.2f}"
        axes.set_title(heading, loc="left", size=style.TEXT_SIZE, color=style.INK, pad=6)
        axes.set_xlabel("x (µm)")
        for edges in map_outlines(design, placement):
            axes.add_collection(edges, autolim=False)
        if number == 0:
            axes.set_ylabel("y (µm)")
        else:
            axes.tick_params(labelleft=False)
        colour_bar(figure.add_axes((start, 0.55 / height, share, 0.11 / height)), image, panel.unit)
    style.head(figure, title or design.name, left=left)
    return figure


def draw_map(axes: Axes, design: Design, values: np.ndarray, limit: float) -> AxesImage:
    """Colours the gcells by a map's values (float [R, C]); the colours end at `limit`."""
    canvas = design.canvas
    style.dress(axes)
    return axes.imshow(
        values,
        origin="lower",
        extent=(0, canvas.width, 0, canvas.height),
        cmap=MAP_COLOURS,
        vmin=0,
        vmax=limit or 1.0,
        interpolation="nearest",
    )


def map_outlines(design: Design, placement: Placement) -> list[PolyCollection]:
    """The hard macros' edges to lie over a map: white with a dark rim, seen on light and on dark colours."""
    corners = list(drawing.outlines(design, placement, design.netlist.hard))
    rim = PolyCollection(corners, facecolors="none", edgecolors="black", linewidths=1.5, alpha=0.3)
    line = PolyCollection(corners, facecolors="none", edgecolors="white", linewidths=0.7, alpha=0.9)
    return [rim, line]


def colour_bar(axes: Axes, image: AxesImage, unit: str) -> None:
    """A horizontal colour bar for `image` in `axes`."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    bar = figure.colorbar(image, cax=axes, orientation="horizontal")
    bar.outline.set_visible(False)
    bar.set_label(unit, size=style.SMALL_SIZE, color=style.INK)
    axes.tick_params(labelsize=style.SMALL_SIZE, labelcolor=style.INK, color=style.MUTED)
