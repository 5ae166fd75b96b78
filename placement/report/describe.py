"""Describes a design by its statistics, and an import by tables and a picture.

Axis legend: K rectangles. Lengths are in µm. The picture of a floorplan is in the user's coordinates.
"""

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.patches import Rectangle as Box
from rich.console import Console
from rich.table import Table
from scipy.sparse.csgraph import connected_components

from placement.netlist.constraints import ALL_ORIENTATIONS
from placement.netlist.design import Design, Netlist, NodeKind
from placement.netlist.floorplan import Rectangle
from placement.netlist.graph import graph_arrays
from placement.netlist.importing import ImportedDesign
from placement.report import drawing, style
from placement.report.placement_metrics import facts_table

MOST_CELLS = 60_000  # maximum number of standard cells drawn; of more, every n-th is drawn
_SHOWN = 10  # maximum number of notices and of macro sizes listed; the others are counted
_DEGREE_RANGES = ((2, 2), (3, 3), (4, 4), (5, 8), (9, 16), (17, 64), (65, 500))
_BLOCKAGE, _REGION = "#C9CED4", style.GREEN


def print_description(design: Design, *, console: Console | None = None) -> None:
    """Prints the statistics of a design as a table."""
    (console or Console()).print(facts_table(design.name, _design_rows(design)))


def _design_rows(design: Design) -> list[tuple[str, str]]:
    netlist, canvas, hard = design.netlist, design.canvas, design.netlist.hard
    pins = np.bincount(netlist.kind[netlist.pin_node], minlength=len(NodeKind))
    unused = netlist.num_pins - len(np.unique(netlist.net_pins))
    share = netlist.width * netlist.height / (canvas.width * canvas.height)
    fixed = int(design.initial.fixed[hard].sum())
    rows = [
        ("hard macros", f"{len(hard):,} ({pins[NodeKind.HARD]:,} pins; {fixed:,} fixed)"),
        ("macros by size", _sizes(netlist) or "none"),
        ("soft macros", f"{len(netlist.soft):,} ({pins[NodeKind.SOFT]:,} pins)"),
        ("ports", f"{len(netlist.ports):,}"),
        ("standard cells", f"{int((netlist.kind == NodeKind.CELL).sum()):,}"),
        ("pins in no net", f"{unused:,}"),
        ("nets", f"{netlist.num_nets:,} ({netlist.net_weight.sum():,.0f} by weight)"),
        ("nets by pins", _by_pins(np.diff(netlist.net_start))),
        ("canvas", f"{canvas.width:g} × {canvas.height:g} µm"),
        ("gcells", f"{canvas.columns} × {canvas.rows} of {canvas.cell_width:.4g} × {canvas.cell_height:.4g} µm"),
        ("utilization", f"hard {share[hard].sum():.1%}, soft {share[netlist.soft].sum():.1%}"),
        ("routing tracks", _tracks(canvas.routes_horizontal, canvas.routes_vertical)),
        ("blocked by macros", _tracks(canvas.macro_routes_horizontal, canvas.macro_routes_vertical)),
        *_graph_rows(design),
    ]
    if design.constraints.any:
        rows.append(("constraints", _constraints(design)))
    return rows


def _graph_rows(design: Design) -> list[tuple[str, str]]:
    graph = graph_arrays(design)
    count = len(graph.kind)
    neighbours = np.bincount(graph.edges.ravel(), minlength=count)
    means = [
        f"{neighbours[graph.kind == kind].mean():.1f} per {kind.name.lower()} macro"
        for kind in (NodeKind.HARD, NodeKind.SOFT)
        if kind in graph.kind
    ]
    links = scipy.sparse.coo_array((graph.weight, tuple(graph.edges.T)), shape=(count, count))
    parts, part = connected_components(links, directed=False)
    largest = np.sort(np.bincount(part))[::-1][:4]
    sizes = ", ".join(f"{size:,}" for size in largest) + (" …" if parts > len(largest) else "")
    return [
        ("graph", f"{count:,} nodes, {len(graph.edges):,} edges"),
        ("neighbours", ", ".join(means)),
        ("components", "1: connected" if parts == 1 else f"{parts:,}, of {sizes} nodes"),
    ]


def _tracks(horizontal: float, vertical: float) -> str:
    return f"{horizontal:.5g} horizontal, {vertical:.5g} vertical tracks per µm"


def _constraints(design: Design) -> str:
    kept, hard = design.constraints, design.netlist.hard
    haloed, held = int(kept.halo[hard].any(axis=1).sum()), int((kept.orientations[hard] != ALL_ORIENTATIONS).sum())
    rules = (
        (haloed, f"halos of {haloed:,} macros"),
        (len(kept.blockages), f"placement blockages: {len(kept.blockages):,}"),
        (len(kept.regions), "regions " + ", ".join(region.name for region in kept.regions)),
        (held, f"orientations of {held:,} macros"),
        (kept.grid.is_set, f"corners on a grid of {kept.grid.pitch_x:g} × {kept.grid.pitch_y:g} µm"),
        (kept.macro_grids, f"pins of {sum(len(one.nodes) for one in kept.macro_grids):,} macros on tracks"),
        (kept.port_keepout, f"{kept.port_keepout:g} µm clear of ports"),
        (kept.has_channels, f"channels of {kept.channel[0]:g} × {kept.channel[1]:g} µm"),
    )
    return "; ".join(text for applies, text in rules if applies)


def import_table(imported: ImportedDesign) -> Table:
    """Cells, macros by size, nets by degree, ports, utilization, clusters, nets between them, grid, capacity."""
    rows = (*_netlist_rows(imported), *_floorplan_rows(imported), *_clustered_rows(imported))
    return facts_table(imported.flat.name, rows)


def notice_lines(imported: ImportedDesign) -> list[str]:
    """The first ten notices, one line each, and the number of the others."""
    notices = imported.notices
    lines = [f"note: {' '.join(notice.split())}" for notice in notices[:_SHOWN]]
    if len(notices) > _SHOWN:
        lines.append(f"note: {len(notices) - _SHOWN:,} more; all {len(notices):,} are in source.json")
    return lines


def _netlist_rows(imported: ImportedDesign) -> list[tuple[str, str]]:
    flat, netlist = imported.flat, imported.flat.netlist
    hard, placed, fixed = netlist.hard, flat.placement.placed, flat.placement.fixed
    rows = [
        ("standard cells", f"{len(flat.cells):,} ({int(placed[flat.cells].sum()):,} placed)"),
        ("macros", f"{len(hard):,} ({int(placed[hard].sum()):,} placed, {int(fixed[hard].sum()):,} fixed)"),
        ("macros by size", _sizes(netlist)),
        ("ports", f"{len(netlist.ports):,}"),
        ("nets", f"{netlist.num_nets:,}, {len(netlist.net_pins):,} pins"),
        ("nets by pins", _by_pins(np.diff(netlist.net_start))),
    ]
    joined = [len(array.names) for array in flat.arrays]
    if joined:
        text = f"{len(joined):,} of {min(joined):,} to {max(joined):,} macros, {sum(joined):,} macros in total"
        rows.insert(3, ("arrays", text))
    return rows


def _sizes(netlist: Netlist) -> str:
    hard = netlist.hard
    sizes = Counter(zip(netlist.width[hard].tolist(), netlist.height[hard].tolist(), strict=True)).most_common()
    shown = [f"{count:,} of {width:g} × {height:g} µm" for (width, height), count in sizes[:_SHOWN]]
    return ", ".join([*shown, *([f"{len(sizes) - _SHOWN:,} more sizes"] if len(sizes) > _SHOWN else [])])


def _by_pins(degree: np.ndarray) -> str:
    counts = [(least, most, int(((degree >= least) & (degree <= most)).sum())) for least, most in _DEGREE_RANGES]
    texts = [f"{least if least == most else f'{least}–{most}'}: {count:,}" for least, most, count in counts if count]
    beyond = int((degree > _DEGREE_RANGES[-1][1]).sum())
    if beyond:
        texts.append(f"over {_DEGREE_RANGES[-1][1]}: {beyond:,} (largest {degree.max():,})")
    return ", ".join(texts)


def _floorplan_rows(imported: ImportedDesign) -> list[tuple[str, str]]:
    flat = imported.flat
    die, core, netlist = flat.floorplan.die, flat.floorplan.core, flat.netlist
    area = netlist.width * netlist.height
    macros, cells = float(area[netlist.hard].sum()), float(area[flat.cells].sum())
    free, used = core.area - macros, (macros + cells) / core.area
    beside = f"{cells / free:.1%} of the area outside macros" if free > 0 else "no area outside macros"
    return [
        ("die", f"{die.width:g} × {die.height:g} µm"),
        ("core", f"{core.width:g} × {core.height:g} µm from ({core.x_low:g}, {core.y_low:g})"),
        ("utilization", f"{used:.1%}: macros {macros / core.area:.1%}, cells {cells / core.area:.1%} ({beside})"),
    ]


def _clustered_rows(imported: ImportedDesign) -> list[tuple[str, str]]:
    design, clustering, capacity = imported.design, imported.clustering, imported.capacity
    netlist, canvas = design.netlist, design.canvas
    sizes = np.bincount(clustering.cluster[clustering.cluster >= 0], minlength=max(clustering.count, 1))
    by = "connectivity and positions" if clustering.placed else "connectivity and names"
    layers = ", ".join(
        f"{layer.name} {'↑' if layer.is_vertical else '→'} {layer.tracks:.3g} ({layer.blocked:.0%})"
        for layer in capacity.layers
    )
    rows = [
        ("soft macros", f"{clustering.count:,} by {by}, of {sizes.min():,} to {sizes.max():,} cells"),
        ("nets between them", f"{netlist.num_nets:,} ({netlist.net_weight.sum():,.0f} by weight)"),
        ("grid", f"{canvas.columns} × {canvas.rows} gcells of {canvas.cell_width:.4g} × {canvas.cell_height:.4g} µm"),
        ("routing capacity", _tracks(canvas.routes_horizontal, canvas.routes_vertical)),
        ("taken by macros", _tracks(canvas.macro_routes_horizontal, canvas.macro_routes_vertical)),
    ]
    return [*rows, ("layers", f"{layers} (tracks per µm, share that macros block)")] if layers else rows


def plot_floorplan(imported: ImportedDesign) -> Figure:
    """Draws die and core, placed cells in their clusters' colours, blockages, regions, macros and ports.

    The axes are those of the design's files; the canvas of all other pictures begins at the core's lower left corner.
    Macros without a position are drawn in columns to the right of the die.
    """
    flat = imported.flat
    plan, netlist, placement = flat.floorplan, flat.netlist, flat.placement
    is_placed = placement.placed[netlist.hard]
    unplaced = netlist.hard[~is_placed]
    shelf, right = _shelved(netlist.width[unplaced], netlist.height[unplaced], plan.die)
    view = drawing.View(plan.die.x_low, max(plan.die.x_high, right), plan.die.y_low, plan.die.y_high)
    figure, axes = drawing.view_figure(view, drawing.WIDTH)
    margin = 0.012 * max(view.right - view.left, view.top - view.bottom)
    around = (view.left - margin, view.right + margin, view.bottom - margin, view.top + margin)
    drawing.dress_view(axes, drawing.View(*around))
    axes.set(xlabel="x in the design's files (µm)", ylabel="y in the design's files (µm)")
    _draw_plan(axes, imported)
    cluster = imported.clustering.cluster
    cells = flat.cells[placement.placed[flat.cells] & (cluster[flat.cells] >= 0)]
    shown = cells[:: -(-len(cells) // MOST_CELLS) or 1]
    drawing.draw_cells(axes, placement.x[shown], placement.y[shown], cluster[shown])
    axes.add_collection(_macros(imported, netlist.hard[is_placed]))
    if len(unplaced):
        look: dict[str, Any] = {"facecolors": drawing.MOVABLE.face, "edgecolors": drawing.MOVABLE.edge}
        axes.add_collection(PolyCollection(list(shelf), **look, linewidths=0.5, alpha=0.6))
    drawing.draw_ports(axes, placement.x[netlist.ports], placement.y[netlist.ports])
    canvas = imported.design.canvas
    line = (
        f"{len(flat.cells):,} cells in {imported.clustering.count:,} clusters · {canvas.columns} × {canvas.rows} gcells"
    )
    style.head(
        figure, flat.name, line + (f" · {len(unplaced):,} unplaced macros, on the right" if len(unplaced) else "")
    )
    _legend(figure, imported, cells=len(cells))
    return figure


def _draw_plan(axes: Axes, imported: ImportedDesign) -> None:
    plan = imported.flat.floorplan
    for box, face, width, order in ((plan.die, style.PAPER, 1.0, 0), (plan.core, style.CANVAS, 0.6, 0.5)):
        look: dict[str, Any] = {"facecolor": face, "edgecolor": style.MUTED, "linewidth": width, "zorder": order}
        axes.add_patch(Box((box.x_low, box.y_low), box.width, box.height, **look))
    for blockage in plan.blockages:
        if not blockage.layer:
            axes.add_collection(_rectangles(blockage.rectangles, facecolor=_BLOCKAGE, linewidth=0, zorder=1))
    for region in plan.regions:
        outline = _rectangles(region.rectangles, facecolor="none", edgecolor=_REGION, linewidth=1.2, zorder=4.4)
        axes.add_collection(outline)


def _rectangles(corners: np.ndarray, **look: Any) -> PatchCollection:
    """A collection of rectangles; `corners` is float64 [K, 4]."""
    boxes = [Box((low_x, low_y), high_x - low_x, high_y - low_y) for low_x, low_y, high_x, high_y in corners.tolist()]
    return PatchCollection(boxes, **look)


def _macros(imported: ImportedDesign, nodes: np.ndarray) -> PolyCollection:
    """The outlines of placed macros; fixed ones are grey."""
    placement = imported.flat.placement
    looks = [drawing.FIXED if fixed else drawing.MOVABLE for fixed in placement.fixed[nodes]]
    faces, edges = [look.face for look in looks], [look.edge for look in looks]
    corners = list(drawing.outlines(imported.flat.netlist, placement, nodes))
    return PolyCollection(corners, facecolors=faces, edgecolors=edges, linewidths=0.6, zorder=3)


def _shelved(width: np.ndarray, height: np.ndarray, die: Rectangle) -> tuple[np.ndarray, float]:
    """Corners (float64 [K, 4, 2]) of macros in columns beside the die, and their right edge (µm)."""
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


def _legend(figure: Figure, imported: ImportedDesign, *, cells: int) -> None:
    plan, netlist = imported.flat.floorplan, imported.flat.netlist
    fixed = int(imported.flat.placement.fixed[netlist.hard].sum())
    entries = drawing.macro_keys(
        ((len(netlist.hard) - fixed, drawing.MOVABLE, "macros"), (fixed, drawing.FIXED, "fixed macros"))
    )
    if len(netlist.ports):
        entries.append(drawing.marker_key(f"ports ({len(netlist.ports):,})", drawing.PORT_FACE, "s"))
    if cells:
        entries.append(drawing.cells_key())
    if any(not blockage.layer for blockage in plan.blockages):
        entries.append(Patch(facecolor=_BLOCKAGE, label="blockages"))
    if plan.regions:
        entries.append(Patch(facecolor="none", edgecolor=_REGION, label="regions"))
    style.foot_legend(figure, entries, ncols=min(len(entries), 4), handlelength=1.4, columnspacing=1.6)
