"""Draws a placement: its macros, the maps of its costs, and its full evaluation.

Axis legend: R grid rows, C grid columns (of maps: [R, C], the lowest row first), M standard cells, K macros in arrays.
Lengths are in µm from the canvas's lower left corner, figure sizes in inches. All maps have one colour scale, which
does not depend on their values and changes its hue at 1, where overflow begins.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from placement.engine.costs import DEFAULT_WEIGHTS, CostWeights, cost_maps
from placement.flat.row_area import RowArea, RowCounts
from placement.flat.timing import TimingEstimate
from placement.netlist.design import Design, Placement
from placement.netlist.macro_gaps import SLIVER
from placement.report import drawing, style
from placement.report.placement_metrics import FullMetrics, Metrics, measure

MAP_LIMIT = 1.5  # the value at the end of every map's colour scale; higher values have the darkest red

MapPanel = tuple[str, np.ndarray, str]  # a map to draw: its heading, values (float64 [R, C]), and their unit

_LARGEST_PIECE, _MOST_PIECES = "#CFE3D4", 8  # the largest piece of row area; number of pieces with own colours
_PATH_COLOURS = ListedColormap(colormaps["YlOrRd"](np.linspace(1.0, 0.4, 256)), name="slack")  # worst: dark red
_OVERFLOW = "overflow above 1"
_COST_MAPS = {  # the units of density and congestion, by the cost's name
    "proxy": ("macros / gcell's area", "demand / capacity"),
    "chip": ("cells and macros / area", "demand / usable tracks"),
}
_MOST_BESIDE = 6  # placements in one row
_LONGEST_NAME = 36  # characters
_PANEL, _GAP, _LABEL, _HEAD, _FOOT = 3.4, 0.25, 0.75, 0.8, 0.6  # inches, side by side
_SINGLE = 6.35  # width of the canvas in a picture of one placement, in inches
_SIDE_BY_SIDE = "above: all standard cells; below: routing demand over capacity in each gcell's busier direction"


class DrawnCells(NamedTuple):
    """The standard cells in a picture: centres x, y (float64 [M], µm) and clusters (int [M], -1 for none).

    `members` (float64 [K, 4, 2], µm) are the corners of the macros that arrays consist of.
    """

    x: np.ndarray
    y: np.ndarray
    cluster: np.ndarray
    members: np.ndarray = np.zeros((0, 4, 2))


class FullPanel(NamedTuple):
    """A named placement of the clustered design with its full evaluation.

    `horizontal` and `vertical` are routing demand over capacity, float [C, R].
    """

    name: str
    placement: Placement
    full: FullMetrics
    cells: DrawnCells
    horizontal: np.ndarray
    vertical: np.ndarray


def plot_placement(
    design: Design, placement: Placement | None = None, *, weights: CostWeights = DEFAULT_WEIGHTS, title: str = ""
) -> Figure:
    """Draws the canvas with hard macros, soft macros and ports below a title (by default the design's name) and the
    costs.

    All nodes of the placement (None: the design's own) must be placed; raises DesignError otherwise.
    """
    placement = design.initial if placement is None else placement
    metrics = measure(design, placement, weights=weights)
    figure, axes = canvas_figure(design, placement)
    drawing.draw_placement(axes, design, placement)
    style.head(figure, title or design.name, _costs_line(metrics))
    _report_violations(figure, metrics)
    placement_legend(figure, design, placement)
    return figure


def canvas_figure(design: Design, placement: Placement, *, width: float = drawing.WIDTH) -> tuple[Figure, Axes]:
    """A figure `width` inches wide with one axes that shows the canvas, and space for a heading and a legend."""
    view = drawing.view_of(design, placement)
    figure, axes = drawing.view_figure(view, width)
    drawing.dress_canvas(axes, design.canvas, view)
    return figure, axes


def _costs_line(metrics: Metrics) -> str:
    costs, weights = metrics.costs, metrics.weights
    return (
        f"{weights.name} cost {costs.total:.4f} = {weights.wirelength:g} · {costs.wirelength_cost:.4f} wirelength + "
        f"{weights.density:g} · {costs.density_cost:.4f} density + "
        f"{weights.congestion:g} · {costs.congestion_cost:.4f} congestion"
    )


def _report_violations(figure: Figure, metrics: Metrics) -> None:
    """Writes the numbers of hard macros that overlap, are outside or break constraints at the top right."""
    overlaps, outside = metrics.legality
    counts = ((overlaps, "overlapping"), (outside, "outside"), (sum(metrics.violations), "constraints broken"))
    text = ", ".join(f"{count} {what}" for count, what in counts if count)
    width, height = figure.get_size_inches()
    look: dict[str, Any] = {"size": style.TEXT_SIZE, "weight": "bold", "color": style.VERMILION}
    figure.text(1 - 0.2 / width, 1 - 0.22 / height, text, ha="right", va="top", **look)


def placement_legend(figure: Figure, design: Design, placement: Placement, *, marks: bool = True) -> None:
    """Adds the legend at the foot of the figure, with the number of nodes of each kind that is present."""
    movable, fixed = drawing.split_hard(design, placement)
    soft, ports = design.netlist.soft, design.netlist.ports
    counts, names = (len(movable), len(fixed), len(soft)), ("hard macros", "fixed macros", "soft macros")
    looks = (drawing.MOVABLE, drawing.FIXED, drawing.SOFT)
    entries = drawing.macro_keys(zip(counts, looks, names, strict=True))
    if len(ports):
        entries.append(drawing.marker_key(f"ports ({len(ports):,})", drawing.PORT_FACE, "s"))
    if marks and len(design.netlist.hard):
        entries.append(drawing.marker_key("orientation mark", drawing.MOVABLE.edge, MarkerStyle((3, 0, 45)), 7))
    columns = len(entries) if len(entries) <= 4 else 3
    style.foot_legend(figure, entries, ncols=columns, handlelength=1.4, columnspacing=1.6)


def plot_rows(design: Design, placement: Placement, area: RowArea, *, title: str = "") -> Figure:
    """Draws the row area beside the hard macros, with slivers in a separate colour; `title` as in `plot_placement`.

    The largest pieces have individual colours.
    """
    figure, axes = canvas_figure(design, placement)
    boxes = np.stack([area.x_low, area.y_low, area.x_high, area.y_high], axis=1)
    corners = boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
    slivers, counts = area.sites < SLIVER, RowCounts.of(area)
    entries = []
    for piece in range(min(counts.row_pieces, _MOST_PIECES)):
        last = piece == _MOST_PIECES - 1
        chosen = ~slivers & ((area.piece >= piece) if last else (area.piece == piece))
        name = f"{counts.row_pieces - piece} smaller ones" if last and counts.row_pieces > _MOST_PIECES else "a piece"
        label = f"the largest piece ({counts.largest_piece:.1%})" if piece == 0 else name
        entries.append(
            _draw_runs(
                axes, corners[chosen], _LARGEST_PIECE if piece == 0 else drawing.CLUSTER_COLOURS[2 * piece], label
            )
        )
    entries.append(_draw_runs(axes, corners[slivers], style.INK, f"slivers ({counts.sliver_sites:,} sites)"))
    drawing.draw_hard(axes, design, placement)
    pieces = "one piece" if counts.row_pieces == 1 else f"{counts.row_pieces:,} pieces"
    style.head(figure, title or design.name, f"row area in {pieces}, {counts.free_sites:,} sites")
    style.foot_legend(figure, entries, ncols=min(4, len(entries)), handlelength=1.4, columnspacing=1.6)
    return figure


def plot_paths(design: Design, placement: Placement, timing: TimingEstimate, *, title: str = "") -> Figure:
    """Draws the worst paths from pin to pin over the macros, coloured by slack; `title` as in `plot_placement`.

    The positions of the paths' pins count from the canvas's lower left corner.
    """
    figure, axes = canvas_figure(design, placement)
    drawing.draw_hard(axes, design, placement, alpha=0.5)
    ports = design.netlist.ports
    drawing.draw_ports(axes, placement.x[ports], placement.y[ports])
    worst_last = timing.paths[::-1]
    points = [np.stack([path.x, path.y], axis=1) for path in worst_last]
    slack = np.array([path.slack for path in worst_last])
    lines = LineCollection(points, cmap=_PATH_COLOURS, linewidths=0.9, zorder=6)
    lines.set_array(slack)
    axes.add_collection(lines, autolim=False)
    common: dict[str, Any] = {"linestyle": "none", "markeredgecolor": style.INK, "zorder": 7}
    keys = [
        axes.plot(*ends.T, **common, marker=marker, markersize=size, markerfacecolor=face, label=label)[0]
        for ends, marker, size, face, label in (
            (np.array([one[0] for one in points]).reshape(-1, 2), "o", 7, style.PAPER, "a path's start"),
            (np.array([one[-1] for one in points]).reshape(-1, 2), "s", 3.5, style.INK, "its end"),
        )
    ]
    many = f"the {len(points):,} worst paths" if len(points) > 1 else "the worst path"
    line = f"{many}, one per endpoint; wns {timing.wns:,.0f} ps, tns {timing.tns / 1000:,.1f} ns"
    style.head(figure, title or design.name, line)
    style.foot_legend(figure, keys, ncols=2, columnspacing=1.6)
    if len(points):
        height = figure.get_size_inches()[1]
        axes = figure.add_axes((0.55, 0.5 / height, 0.42, 0.11 / height))
        _colour_bar(axes, lines, "slack, ps").locator = MaxNLocator(5)
    return figure


def _draw_runs(axes: Axes, corners: np.ndarray, colour: Any, label: str) -> Patch:
    """Draws boxes (float64 [·, 4, 2]) without gaps between rows; returns their legend entry."""
    axes.add_collection(PolyCollection(list(corners), facecolors=[colour], edgecolors="face", linewidths=0.2, zorder=2))
    return Patch(facecolor=colour, label=label)


def plot_maps(
    design: Design, placement: Placement | None = None, *, weights: CostWeights = DEFAULT_WEIGHTS, title: str = ""
) -> Figure:
    """Draws the density and both congestion maps of the cost of `weights`; takes the arguments of `plot_placement`."""
    placement = design.initial if placement is None else placement
    maps = cost_maps(design, placement, weights=weights)
    area, tracks = _COST_MAPS[weights.name]
    panels = (
        ("density", maps.density, area),
        ("horizontal congestion", maps.horizontal, tracks),
        ("vertical congestion", maps.vertical, tracks),
    )
    return _plot_panels(design, placement, panels, title, _costs_line(measure(design, placement, weights=weights)))


def plot_routing(
    design: Design, placement: Placement, horizontal: np.ndarray, vertical: np.ndarray, *, title: str = ""
) -> Figure:
    """Draws routing demand over capacity (float64 [C, R] each) with the hard macros' outlines."""
    panels = [
        (f"{name} routing", values.T, "demand / capacity")
        for name, values in (("horizontal", horizontal), ("vertical", vertical))
    ]
    return _plot_panels(design, placement, panels, title, "all standard cells placed, their routing estimated")


def _plot_panels(design: Design, placement: Placement, panels: Sequence[MapPanel], title: str, line: str) -> Figure:
    """Draws maps side by side below a title and a line, each with a colour bar and the hard macros' outlines."""
    plot_width, left, gap = 3.3, style.MARGIN, 0.42
    plot_height = min(max(plot_width * design.canvas.height / design.canvas.width, 1.2), 2 * plot_width)
    width, height = left + len(panels) * (plot_width + gap) - gap + 0.25, plot_height + 2.35
    figure = style.new_figure(width, height)
    for number, (name, values, unit) in enumerate(panels):
        start, share = (left + number * (plot_width + gap)) / width, plot_width / width
        axes = figure.add_axes((start, 1.35 / height, share, plot_height / height))
        image = _draw_map(axes, design, placement, values)
        heading = f"{name}, at most {values.max():.2f}"
        axes.set_title(heading, loc="left", size=style.TEXT_SIZE, color=style.INK, pad=6)
        axes.set_xlabel(drawing.X_LABEL)
        if number == 0:
            axes.set_ylabel(drawing.Y_LABEL)
        else:
            axes.tick_params(labelleft=False)
        _map_bar(figure.add_axes((start, 0.55 / height, share, 0.11 / height)), image, unit)
    style.head(figure, title or design.name, line, left=left)
    return figure


def map_colours() -> Colormap:
    """Colours from 0 to `MAP_LIMIT`: light to dark blue up to 1, orange to dark red beyond."""
    below, above = colormaps["Blues"](np.linspace(0.02, 0.85, 201)), colormaps["YlOrRd"](np.linspace(0.4, 0.95, 99))
    return ListedColormap(np.concatenate((below, above)), name="overflow").with_extremes(over=colormaps["YlOrRd"](1.0))


def _draw_map(axes: Axes, design: Design, placement: Placement, values: np.ndarray) -> AxesImage:
    """Colours the cells of a grid by a map's values, and draws the hard macros' edges over them."""
    style.dress(axes)
    extent = (0, design.canvas.width, 0, design.canvas.height)
    scale: dict[str, Any] = {"cmap": map_colours(), "vmin": 0, "vmax": MAP_LIMIT}
    image = axes.imshow(values, origin="lower", extent=extent, interpolation="nearest", **scale)
    corners = list(drawing.outlines(design.netlist, placement, design.netlist.hard))
    # Black with a light rim is visible on light and on dark colours.
    for colour, width, alpha in (("white", 1.5, 0.5), ("black", 0.6, 0.9)):
        edges = PolyCollection(corners, facecolors="none", edgecolors=colour, linewidths=width, alpha=alpha)
        axes.add_collection(edges, autolim=False)
    return image


def _colour_bar(axes: Axes, coloured: ScalarMappable, label: str, **look: Any) -> Colorbar:
    figure = axes.figure
    assert isinstance(figure, Figure)
    bar = figure.colorbar(coloured, cax=axes, orientation="horizontal", **look)
    bar.outline.set_visible(False)
    bar.set_label(label, size=style.SMALL_SIZE, color=style.INK)
    axes.tick_params(labelsize=style.SMALL_SIZE, labelcolor=style.INK, color=style.MUTED)
    return bar


def _map_bar(axes: Axes, image: AxesImage, unit: str) -> None:
    _colour_bar(axes, image, f"{unit}; {_OVERFLOW}", extend="max", ticks=[0, 0.5, 1, MAP_LIMIT])
    axes.axvline(1, color=style.INK, linewidth=1.5)


def plot_cells(design: Design, placement: Placement, cells: DrawnCells, *, title: str = "") -> Figure:
    """Draws the hard macros of a placement of the clustered design, and all cells in their clusters' colours."""
    figure, axes = canvas_figure(design, placement)
    _draw_cells(axes, design, placement, cells)
    style.head(figure, title or design.name, f"{len(cells.x):,} standard cells placed around the macros")
    style.foot_legend(figure, _cells_legend(design, placement, cells), ncols=2)
    return figure


def _cells_legend(design: Design, placement: Placement, cells: DrawnCells) -> list[Artist]:
    """Legend entries for the elements that `_draw_cells` draws."""
    movable, fixed = drawing.split_hard(design, placement)
    kinds = ((len(movable), drawing.MOVABLE, "hard macros"), (len(fixed), drawing.FIXED, "fixed macros"))
    entries = drawing.macro_keys(kinds)
    if (cells.cluster >= 0).any():
        entries.append(drawing.cells_key())
    if (cells.cluster < 0).any():
        entries.append(drawing.marker_key("cells without a cluster", drawing.NO_CLUSTER, "o"))
    return entries


def _draw_cells(axes: Axes, design: Design, placement: Placement, cells: DrawnCells, *, scale: float = 1.0) -> None:
    """Draws the cells as dots, `scale` times as large as in a single picture, and the hard macros above them."""
    drawing.draw_cells(axes, cells.x, cells.y, cells.cluster, scale=scale)
    drawing.draw_hard(axes, design, placement)
    edges: dict[str, Any] = {"facecolors": "none", "edgecolors": drawing.MOVABLE.edge, "linewidths": 0.3}
    axes.add_collection(PolyCollection(list(cells.members), **edges, zorder=4), autolim=False)


def plot_full_side_by_side(design: Design, panels: Sequence[FullPanel], *, title: str = "") -> Figure:
    """Draws for each placement (at least one) its cells in their clusters' colours, and below them its routing.

    All pictures show the same part of the plane on the same colour scale. A gcell's colour is that of its busier
    direction. Each row has at most `_MOST_BESIDE` placements.
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
        above, below = (
            figure.add_axes((left / width, bottom / height, _PANEL / width, tall / height))
            for bottom in (top - tall, top - 2 * tall - _GAP)
        )
        image = _draw_full(above, below, design, panel, view)
    bar = figure.add_axes((_GAP / width, 0.5 / height, _PANEL / width, 0.11 / height))
    _map_bar(bar, image, "demand / capacity")
    keys = _cells_legend(design, panels[0].placement, panels[0].cells)
    style.foot_legend(figure, keys, left=_PANEL + 3 * _GAP)
    style.head(figure, title or f"{design.name}: placements compared", _SIDE_BY_SIDE, left=_GAP)
    return figure


def _draw_full(above: Axes, below: Axes, design: Design, panel: FullPanel, view: drawing.View) -> AxesImage:
    """Draws the cells above and the routing map below; returns the map."""
    drawing.dress_canvas(above, design.canvas, view)
    _draw_cells(above, design, panel.placement, panel.cells, scale=(_PANEL / _SINGLE) ** 2)
    above.set_title(_heading(panel), size=style.TEXT_SIZE, color=style.INK, loc="left", linespacing=1.4)
    busier = np.maximum(panel.horizontal, panel.vertical).T
    image = _draw_map(below, design, panel.placement, busier)
    below.set(xlim=(view.left, view.right), ylim=(view.bottom, view.top))
    for axes in (above, below):
        axes.set_axis_off()
    return image


def _heading(panel: FullPanel) -> str:
    full = panel.full
    name = panel.name if len(panel.name) <= _LONGEST_NAME else f"…{panel.name[-_LONGEST_NAME:]}"
    flat = f"flat wirelength {_length(full.flat_wirelength)}" + ("" if full.flat_converged else "; not converged")
    return f"{name}\nrouted {_length(full.routed_wirelength)}, overflow {full.overflow:.2%}\n{flat}"


def _length(value: float) -> str:
    """Formats a length in µm: in m if it is long, in mm otherwise."""
    return f"{value / 1e6:.3f} m" if value >= 1e5 else f"{value / 1e3:.2f} mm"
