"""Pictures of the flat check: every standard cell around the macros, and where routes are crowded.

Axis legend: M cells, X gcells across, Y gcells up. Lengths are in µm from the canvas's lower left corner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from placement.netlist.design import Design, Placement
from placement.report import drawing, style
from placement.report.metrics import FlatMetrics
from placement.report.plots import MapPanel, canvas_figure, colour_bar, draw_map, map_outlines, plot_panels

_COLOURS = 20  # of Matplotlib's tab20
_NO_CLUSTER = "#777777"
_HOTTEST = 1.5  # demand over capacity: the colour scale's end, so that pictures compare
_MOST_BESIDE = 6  # placements in one row
_LONGEST = 36  # characters of a name that have room
_PANEL, _GAP, _LABEL, _HEAD, _FOOT = 3.4, 0.25, 0.75, 0.8, 0.6  # inches
_SINGLE = 6.35  # inches: the width of a picture of one placement
_SIDE_BY_SIDE = "above: standard cells in their clusters' colours; below: routing, with the macros' outlines"


class Cells(NamedTuple):
    """What there is to draw of the flat netlist. Lengths in µm.

    Attributes:
        x, y: float64 [M], the standard cells' centres.
        cluster: int [M], -1: none.
        members: float64 [K, 4, 2], corners of the macros that arrays are made of.
    """

    x: np.ndarray
    y: np.ndarray
    cluster: np.ndarray
    members: np.ndarray = np.zeros((0, 4, 2))


class FlatPanel(NamedTuple):
    """A placement beside others.

    Attributes:
        name: in its heading.
        placement: of the clustered design.
        flat: what the flat check found.
        cells: where it put them.
        horizontal, vertical: float [X, Y], routing demand over capacity.
    """

    name: str
    placement: Placement
    flat: FlatMetrics
    cells: Cells
    horizontal: np.ndarray
    vertical: np.ndarray


def plot_cells(design: Design, placement: Placement, cells: Cells, *, title: str = "") -> Figure:
    """The hard macros of a placement, and all cells in their clusters' colours.

    Args:
        design: the clustered design.
        placement: of its nodes.
        cells: of the flat netlist.
        title: the heading; the design's name when empty.
    """
    figure, axes = canvas_figure(design, placement)
    _draw_cells(axes, design, placement, cells)
    style.head(figure, title or design.name, f"{len(cells.x):,} standard cells in their clusters' colours")
    return figure


def _draw_cells(axes: Axes, design: Design, placement: Placement, cells: Cells, *, scale: float = 1.0) -> None:
    """The cells, their dots' areas `scale` times those of a single picture, and above them the hard macros."""
    palette = np.array([colormaps["tab20"](number) for number in range(_COLOURS)])
    order = np.random.default_rng(0).permutation(max(1, int(cells.cluster.max(initial=0)) + 1))
    colours = palette[order[np.maximum(cells.cluster, 0)] % _COLOURS]
    grey = np.array([int(_NO_CLUSTER[at : at + 2], 16) / 255 for at in (1, 3, 5)] + [1.0])
    colours = np.where((cells.cluster >= 0)[:, None], colours, grey)
    size = scale * float(np.clip(3e4 / max(1, len(cells.x)), 0.2, 6.0))
    axes.scatter(cells.x, cells.y, s=size, c=colours, linewidths=0, rasterized=True)
    movable, fixed = drawing.split_hard(design, placement)
    for nodes, look in ((movable, drawing.MOVABLE), (fixed, drawing.FIXED)):
        for corners in drawing.outlines(design, placement, nodes):
            axes.fill(*corners.T, facecolor=look.face, edgecolor=look.edge, linewidth=0.6)
    for corners in cells.members:
        axes.fill(*corners.T, fill=False, edgecolor=drawing.MOVABLE.edge, linewidth=0.3)


def plot_routing(
    design: Design, placement: Placement, horizontal: np.ndarray, vertical: np.ndarray, *, title: str = ""
) -> Figure:
    """Routing demand over capacity (float64 [X, Y] each) with the hard macros' outlines; `title` as above."""
    panels = [
        MapPanel(f"{name} routing", values.T, _HOTTEST, "demand / capacity")
        for name, values in (("horizontal", horizontal), ("vertical", vertical))
    ]
    return plot_panels(design, placement, panels, title=title or design.name)


def plot_flat_side_by_side(design: Design, panels: Sequence[FlatPanel], *, title: str = "") -> Figure:
    """Of each placement the cells in their clusters' colours, and below them how full the routes are.

    All show the same part of the plane in the same colours. A gcell's colour is the fuller of its two directions. More
    than `_MOST_BESIDE` placements go on in further rows.

    Args:
        design: the clustered design.
        panels: the placements, at least one.
        title: the heading; the design's name when empty.
    """
    view = drawing.union_view([drawing.view_of(design, panel.placement) for panel in panels])
    beside = min(len(panels), _MOST_BESIDE)
    bands = -(-len(panels) // beside)
    tall = min(max(_PANEL * view.aspect, 0.4 * _PANEL), 2.0 * _PANEL)
    band = 2 * (tall + _GAP) + _LABEL
    width, height = max(beside * (_PANEL + _GAP) + _GAP, 6.6), _HEAD + bands * band + _FOOT
    figure = style.new_figure(width, height)
    for number, panel in enumerate(panels):
        row, column = divmod(number, beside)
        left, top = _GAP + column * (_PANEL + _GAP), height - _HEAD - row * band - _LABEL
        both = [
            figure.add_axes((left / width, bottom / height, _PANEL / width, tall / height))
            for bottom in (top - tall, top - 2 * tall - _GAP)
        ]
        image = _draw_panel(both, design, panel, view)
    bar = figure.add_axes((_GAP / width, 0.5 / height, _PANEL / width, 0.11 / height))
    colour_bar(bar, image, "routing demand / capacity")
    style.head(figure, title or design.name, _SIDE_BY_SIDE, left=_GAP)
    return figure


def _draw_panel(both: Sequence[Axes], design: Design, panel: FlatPanel, view: drawing.View) -> AxesImage:
    """Cells above, routes below; gives the map."""
    above, below = both
    drawing.dress_canvas(above, design.canvas, view)
    _draw_cells(above, design, panel.placement, panel.cells, scale=(_PANEL / _SINGLE) ** 2)
    above.set_title(_heading(panel), size=style.TEXT_SIZE, color=style.INK, loc="left", linespacing=1.4)
    image = draw_map(below, design, np.maximum(panel.horizontal, panel.vertical).T, _HOTTEST)
    for edges in map_outlines(design, panel.placement):
        below.add_collection(edges, autolim=False)
    below.set_xlim(view.left, view.right)
    below.set_ylim(view.bottom, view.top)
    for axes in both:
        axes.set_axis_off()
    return image


def _heading(panel: FlatPanel) -> str:
    flat = panel.flat
    name = panel.name if len(panel.name) <= _LONGEST else f"…{panel.name[-_LONGEST:]}"
    lines = [name, f"flat {_length(flat.flat_wirelength)}, overflow {flat.overflow:.2%}"]
    lines.append(f"routed {_length(flat.routed_wirelength)}" + ("" if flat.flat_converged else "; not converged"))
    return "\n".join(lines)


def _length(value: float) -> str:
    """A length in µm as text: m where it is long, mm otherwise."""
    return f"{value / 1e6:.3f} m" if value >= 1e5 else f"{value / 1e3:.2f} mm"
