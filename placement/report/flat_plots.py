"""Pictures of the flat check: every standard cell around the macros, and where routes are crowded.

Axis legend: M cells, X gcells across, Y gcells up. Lengths are in µm from the canvas's lower left corner.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from placement.netlist.design import Design, Placement
from placement.report import drawing, style
from placement.report.plots import MapPanel, canvas_figure, plot_panels

_COLOURS = 20  # of Matplotlib's tab20
_NO_CLUSTER = "#777777"
_HOTTEST = 1.5  # demand over capacity: the colour scale's end, so that pictures compare


class Cells(NamedTuple):
    """Standard cells to draw: centres (float64 [M], µm) and clusters (int [M], -1: none)."""

    x: np.ndarray
    y: np.ndarray
    cluster: np.ndarray


def plot_cells(design: Design, placement: Placement, cells: Cells, *, title: str = "") -> Figure:
    """The hard macros of a placement, and all cells in their clusters' colours.

    Args:
        design: the clustered design.
        placement: of its nodes.
        cells: of the flat netlist.
        title: the heading; the design's name when empty.
    """
    figure, axes = canvas_figure(design, placement)
    palette = np.array([colormaps["tab20"](number) for number in range(_COLOURS)])
    order = np.random.default_rng(0).permutation(max(1, int(cells.cluster.max(initial=0)) + 1))
    colours = palette[order[np.maximum(cells.cluster, 0)] % _COLOURS]
    grey = np.array([int(_NO_CLUSTER[at : at + 2], 16) / 255 for at in (1, 3, 5)] + [1.0])
    colours = np.where((cells.cluster >= 0)[:, None], colours, grey)
    size = float(np.clip(3e4 / max(1, len(cells.x)), 0.2, 6.0))
    axes.scatter(cells.x, cells.y, s=size, c=colours, linewidths=0, rasterized=True)
    movable, fixed = drawing.split_hard(design, placement)
    for nodes, look in ((movable, drawing.MOVABLE), (fixed, drawing.FIXED)):
        for corners in drawing.outlines(design, placement, nodes):
            axes.fill(*corners.T, facecolor=look.face, edgecolor=look.edge, linewidth=0.6)
    style.head(figure, title or design.name, f"{len(cells.x):,} standard cells in their clusters' colours")
    return figure


def plot_routing(
    design: Design, placement: Placement, horizontal: np.ndarray, vertical: np.ndarray, *, title: str = ""
) -> Figure:
    """Routing demand over capacity (float64 [X, Y] each) with the hard macros' outlines; `title` as above."""
    panels = [
        MapPanel(f"{name} routing", values.T, _HOTTEST, "demand / capacity")
        for name, values in (("horizontal", horizontal), ("vertical", vertical))
    ]
    return plot_panels(design, placement, panels, title=title or design.name)
