"""The picture of an imported chip: its floorplan, macros, ports and clusters.

Axis legend: N nodes of the flat netlist, K rectangles. Lengths are in µm, in the user's coordinates.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection, PolyCollection
from matplotlib.colors import hsv_to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patches import Rectangle as Box

from placement.netlist.geometry import Rectangle
from placement.netlist.importing import ImportedDesign
from placement.report import drawing, style

MOST_CELLS = 60_000
"""Standard cells that are drawn; of more, only every n-th."""
_BLOCKAGE, _REGION = "#C9CED4", style.GREEN
_WIDTH = 7.4


def plot_floorplan(imported: ImportedDesign) -> Figure:
    """Die and core, placed cells in their clusters' colours, blockages, regions, macros and ports.

    Macros without a place lie in rows to the right of the die.
    """
    flat = imported.flat
    die, netlist, placement = flat.floorplan.die, flat.netlist, flat.placement
    placed = netlist.hard[placement.placed[netlist.hard]]
    waiting = netlist.hard[~placement.placed[netlist.hard]]
    shelf, right = _shelved(netlist.width[waiting], netlist.height[waiting], die)
    view = drawing.View(die.x_low, max(die.x_high, right), die.y_low, die.y_high)
    figure, axes = _figure(view)
    _draw_plan(axes, imported)
    cells = _draw_cells(axes, imported)
    axes.add_collection(_macros(imported, placed))
    edge, face = drawing.MOVABLE.edge, drawing.MOVABLE.face
    if len(waiting):
        axes.add_collection(PolyCollection(list(shelf), facecolors=face, edgecolors=edge, linewidths=0.5, alpha=0.6))
    axes.plot(placement.x[netlist.ports], placement.y[netlist.ports], linestyle="none", marker="s", markersize=2.4,
              markerfacecolor=drawing.PORT_FACE, markeredgewidth=0, zorder=5, clip_on=False)  # fmt: skip
    style.head(figure, flat.name, _line(imported, len(waiting)))
    _legend(figure, imported, cells=cells)
    return figure


def _figure(view: drawing.View) -> tuple[Figure, Axes]:
    figure, axes = drawing.view_figure(view, _WIDTH)
    margin = 0.012 * max(view.right - view.left, view.top - view.bottom)
    around = (view.left - margin, view.right + margin, view.bottom - margin, view.top + margin)
    drawing.dress_view(axes, drawing.View(*around))
    return figure, axes


def _draw_plan(axes: Axes, imported: ImportedDesign) -> None:
    """Die, core, blockages and regions."""
    plan = imported.flat.floorplan
    axes.add_patch(_box(plan.die, facecolor=style.PAPER, edgecolor=style.MUTED, linewidth=1.0, zorder=0))
    axes.add_patch(_box(plan.core, facecolor=style.CANVAS, edgecolor=style.MUTED, linewidth=0.6, zorder=0.5))
    for blockage in plan.blockages:
        if not blockage.layer:
            axes.add_collection(_rectangles(blockage.rectangles, facecolor=_BLOCKAGE, linewidth=0, zorder=1))
    for region in plan.regions:
        axes.add_collection(
            _rectangles(region.rectangles, facecolor="none", edgecolor=_REGION, linewidth=1.2, zorder=4.4)
        )


def _box(box: Rectangle, **look: object) -> Box:
    return Box((box.x_low, box.y_low), box.width, box.height, **look)  # type: ignore[arg-type]


def _rectangles(corners: np.ndarray, **look: object) -> PatchCollection:
    """`corners` float64 [K, 4]."""
    boxes = [Box((low_x, low_y), high_x - low_x, high_y - low_y) for low_x, low_y, high_x, high_y in corners.tolist()]
    return PatchCollection(boxes, **look)  # type: ignore[arg-type]


def _draw_cells(axes: Axes, imported: ImportedDesign) -> int:
    """Dots at the placed cells in their clusters' colours; returns how many cells have a place."""
    flat = imported.flat
    cells = flat.cells[flat.placement.placed[flat.cells] & (imported.clustering.cluster[flat.cells] >= 0)]
    if not len(cells):
        return 0
    shown = cells[:: -(-len(cells) // MOST_CELLS)]
    axes.scatter(
        flat.placement.x[shown],
        flat.placement.y[shown],
        s=max(0.3, min(12.0, 40_000 / len(shown))),
        c=cluster_colours(imported.clustering.count)[imported.clustering.cluster[shown]],
        linewidths=0,
        zorder=2,
        rasterized=True,
    )
    return len(cells)


def cluster_colours(count: int) -> np.ndarray:
    """float64 [count, 3]: colours in which successive clusters differ (golden angle steps of the hue)."""
    number = np.arange(count)
    hue = number * 0.618033988749895 % 1
    return hsv_to_rgb(np.stack((hue, 0.35 + 0.3 * (number % 3) / 2, 0.95 - 0.3 * (number % 4) / 3), axis=1))


def _macros(imported: ImportedDesign, nodes: np.ndarray) -> PolyCollection:
    """The outlines of placed macros, fixed ones grey."""
    flat = imported.flat
    placement = flat.placement
    width, height = (side[nodes] for side in flat.netlist.sides(placement.orientation))
    x = placement.x[nodes][:, None] + width[:, None] / 2 * np.array([-1.0, 1.0, 1.0, -1.0])
    y = placement.y[nodes][:, None] + height[:, None] / 2 * np.array([-1.0, -1.0, 1.0, 1.0])
    looks = [drawing.FIXED if fixed else drawing.MOVABLE for fixed in placement.fixed[nodes]]
    return PolyCollection(
        list(np.stack((x, y), axis=-1)),
        facecolors=[look.face for look in looks],
        edgecolors=[look.edge for look in looks],
        linewidths=0.6,
        zorder=3,
    )


def _shelved(width: np.ndarray, height: np.ndarray, die: Rectangle) -> tuple[np.ndarray, float]:
    """Corners float64 [K, 4, 2] of macros in columns beside the die, and how far right they reach (µm)."""
    gap = 0.01 * max(die.width, die.height)
    left = die.x_high + 3 * gap
    x, y, right = left, die.y_low, left
    corners = []
    for index in np.argsort(-width, kind="stable").tolist():
        if y > die.y_low and y + height[index] > die.y_high:
            x, y = right + gap, die.y_low
        corners.append([[x, y], [x + width[index], y], [x + width[index], y + height[index]], [x, y + height[index]]])
        right = max(right, x + float(width[index]))
        y += float(height[index]) + gap
    return np.array(corners).reshape(-1, 4, 2), right if len(width) else die.x_high


def _line(imported: ImportedDesign, waiting: int) -> str:
    canvas = imported.design.canvas
    parts = [
        f"{len(imported.flat.cells):,} cells in {imported.clustering.count:,} clusters",
        f"{canvas.columns} × {canvas.rows} gcells",
    ]
    return " · ".join([*parts, *([f"{waiting:,} macros without a place, on the right"] if waiting else [])])


def _legend(figure: Figure, imported: ImportedDesign, *, cells: int) -> None:
    plan = imported.flat.floorplan
    entries: list[Patch | Line2D] = []
    hard = imported.flat.netlist.hard
    fixed = int(imported.flat.placement.fixed[hard].sum())
    for count, look, name in ((len(hard) - fixed, drawing.MOVABLE, "macros"), (fixed, drawing.FIXED, "fixed macros")):
        if count:
            entries.append(Patch(facecolor=look.face, edgecolor=look.edge, label=f"{name} ({count:,})"))
    if len(imported.flat.netlist.ports):
        label = f"ports ({len(imported.flat.netlist.ports):,})"
        entries.append(Line2D([], [], linestyle="none", marker="s", color=drawing.PORT_FACE, label=label))
    if cells:
        colour = tuple(cluster_colours(1)[0])
        entries.append(Line2D([], [], linestyle="none", marker="o", color=colour, label="cells, a colour per cluster"))
    if any(not blockage.layer for blockage in plan.blockages):
        entries.append(Patch(facecolor=_BLOCKAGE, label="blockages"))
    if plan.regions:
        entries.append(Patch(facecolor="none", edgecolor=_REGION, label="regions"))
    style.foot_legend(figure, entries, ncols=min(len(entries), 4), handlelength=1.4, columnspacing=1.6)
