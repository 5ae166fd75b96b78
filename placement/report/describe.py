"""A design's statistics as tables and as a picture."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from placement.netlist.constraints import ALL_ORIENTATIONS
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.graph import graph_arrays
from placement.netlist.statistics import Statistics, statistics
from placement.report.metrics import facts_table, make_table

_HARD, _SOFT, _NEUTRAL = "#3b6ea5", "#d98c3f", "#5f7d58"


def print_description(design: Design, *, console: Console | None = None) -> Statistics:
    """Prints the statistics of a design as tables; returns them."""
    console = console or Console()
    figures = statistics(design)
    for table in (_summary(design, figures), _degrees(figures), _named(figures)):
        console.print(table)
    return figures


def _summary(design: Design, figures: Statistics) -> Table:
    canvas, nodes, pins = design.canvas, figures.nodes, figures.pins_of
    shapes = [f"{count:,} of {width:g} × {height:g} µm" for (width, height), count in figures.shapes.items()]
    components, rent = figures.components, "no estimate for a design of this size"
    sizes = ", ".join(f"{size:,}" for size in components[:4]) + (" …" if len(components) > 4 else "")
    if figures.rent is not None:
        rent = f"about {figures.rent.coefficient:.1f} · B^{figures.rent.exponent:.2f} wires leave a block of B nodes"
    rows = [
        ("hard macros", f"{nodes['hard']:,} ({pins['hard']:,} pins; {figures.fixed:,} fixed)"),
        ("shapes of hard macros", ", ".join([*shapes[:5], *(["…"] if len(shapes) > 5 else [])]) or "none"),
        ("soft macros", f"{nodes['soft']:,} ({pins['soft']:,} pins)"),
        ("ports", f"{nodes['port']:,}"),
        ("standard cells", f"{nodes['cell']:,}"),
        ("pins in no net", f"{figures.unused_pins:,}"),
        ("nets", f"{figures.nets:,} ({figures.total_weight:,.0f} by weight)"),
        ("canvas", f"{canvas.width:g} × {canvas.height:g} µm"),
        ("gcells", f"{canvas.columns} × {canvas.rows} of {canvas.cell_width:.4g} × {canvas.cell_height:.4g} µm"),
        ("utilization", f"hard {figures.utilization['hard']:.1%}, soft {figures.utilization['soft']:.1%}"),
        ("routing tracks", _tracks(canvas.routes_horizontal, canvas.routes_vertical)),
        ("blocked by macros", _tracks(canvas.macro_routes_horizontal, canvas.macro_routes_vertical)),
        ("graph", f"{figures.graph_nodes:,} nodes, {figures.graph_edges:,} edges; as the policy sees it"),
        ("neighbours", ", ".join(f"{mean:.1f} per {kind} macro" for kind, mean in figures.mean_neighbours.items())),
        ("components", "1: connected" if len(components) == 1 else f"{len(components):,}, of {sizes} nodes"),
        ("Rent's rule", rent),
    ]
    if design.constraints.any:
        rows.append(("constraints", _constraints(design)))
    return facts_table(design.name, rows)


def _tracks(horizontal: float, vertical: float) -> str:
    return f"{horizontal:g} horizontal, {vertical:g} vertical per µm"


def _constraints(design: Design) -> str:
    kept, hard = design.constraints, design.netlist.hard
    haloed, held = int(kept.halo[hard].any(axis=1).sum()), int((kept.orientations[hard] != ALL_ORIENTATIONS).sum())
    rules = (
        (haloed, f"halos of {haloed:,} macros"),
        (len(kept.blockages), f"placement blockages: {len(kept.blockages):,}"),
        (len(kept.regions), "regions " + ", ".join(region.name for region in kept.regions)),
        (held, f"orientations of {held:,} macros"),
        (kept.grid.is_set, f"corners on a grid of {kept.grid.pitch_x:g} × {kept.grid.pitch_y:g} µm"),
        (kept.port_keepout, f"{kept.port_keepout:g} µm clear of ports"),
    )
    return "; ".join(text for applies, text in rules if applies)


def _degrees(figures: Statistics) -> Table:
    counts = {str(degree): count for degree, count in figures.net_degree.items() if degree <= 8}
    more = sum(figures.net_degree.values()) - sum(counts.values())
    if more:
        counts[f"9 to {max(figures.net_degree)}"] = more
    rows = [(name, f"{count:,}", f"{count / figures.nets:.1%}") for name, count in counts.items()]
    return make_table(("pins", "nets", "share"), rows, title="Nets by pins")


def _named(figures: Statistics) -> Table:
    table = Table(title="Largest nets, and nodes with most wires", title_justify="left")
    table.add_column("driver or node", overflow="fold")
    for name in ("pins", "weight", "neighbours"):
        table.add_column(name, justify="right")
    for name, pins, weight in figures.largest_nets:
        table.add_row(escape(name), f"{pins:,}", f"{weight:g}", "")
    table.add_section()
    for name, weight, neighbours in figures.most_connected:
        table.add_row(escape(name), "", f"{weight:g}", f"{neighbours:,}")
    return table


def check_plot(path: str | os.PathLike[str]) -> str:
    """The image format that the file's suffix names; raises DesignError if it names none."""
    known, suffix = FigureCanvasAgg.get_supported_filetypes(), Path(path).suffix.removeprefix(".").lower()
    if suffix not in known:
        raise DesignError(f"plot={path}: must end in one of {', '.join('.' + name for name in sorted(known))}")
    return suffix


def plot(design: Design, path: str | os.PathLike[str]) -> None:
    """Draws the distributions of net degrees, graph degrees and macro areas to an image file.

    Raises:
        DesignError: the file's suffix names no image format.
        OSError: the folder does not exist or cannot be written.
    """
    image_format = check_plot(path)
    figure = Figure(figsize=(13, 4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(design.name)
    net_degrees, graph_degrees, areas = figure.subplots(1, 3)
    _draw_net_degrees(net_degrees, design)
    _draw_graph_degrees(graph_degrees, design)
    _draw_areas(areas, design)
    content = io.BytesIO()
    figure.savefig(content, format=image_format, dpi=120)
    write_whole(path, content.getvalue())


def _draw_net_degrees(axes: Axes, design: Design) -> None:
    degrees = np.diff(design.netlist.net_start)
    count = np.bincount(degrees)
    axes.bar(np.arange(len(count)), count, color=_NEUTRAL, width=0.85)
    axes.set(title=f"{len(degrees):,} nets", xlabel="pins of a net", ylabel="nets", yscale="log")
    axes.set(xlim=(1.3, len(count) - 0.3), ylim=(0.7, 2 * max(1, count.max(initial=1))))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_graph_degrees(axes: Axes, design: Design) -> None:
    graph = graph_arrays(design)
    neighbours = np.bincount(graph.edges.ravel(), minlength=len(graph.kind))
    step = -(-(int(neighbours.max(initial=1)) + 1) // 30)
    bins = np.arange(0, neighbours.max(initial=1) + 1 + step, step) - 0.5
    kinds = (("hard macros", 0, _HARD), ("soft macros", 1, _SOFT), ("port clusters", 2, _NEUTRAL))
    shown = [(neighbours[graph.kind == kind], name, colour) for name, kind, colour in kinds if kind in graph.kind]
    _stacked_histogram(axes, shown, bins)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    axes.set(title=f"{len(graph.kind):,} graph nodes, {len(graph.edges):,} edges", xlabel="neighbours", ylabel="nodes")


def _draw_areas(axes: Axes, design: Design) -> None:
    netlist = design.netlist
    area = netlist.width * netlist.height
    kinds = ((netlist.hard, "hard macros", _HARD), (netlist.soft, "soft macros", _SOFT))
    groups = [(area[nodes], name, colour) for nodes, name, colour in kinds if len(nodes)]
    positive = np.concatenate([values[values > 0] for values, _, _ in groups] or [np.ones(1)])
    # Nearly three decades at least, so that macros of one size make one bar.
    low, high = min(positive.min() / 1.1, positive.max() / 30), max(positive.max() * 1.1, positive.min() * 30)
    _stacked_histogram(axes, groups, np.geomspace(low, high, 31))
    axes.set(title="Macro areas", xlabel="area (µm²)", ylabel="macros", xscale="log")


def _stacked_histogram(axes: Axes, groups: list[tuple[np.ndarray, str, str]], bins: np.ndarray) -> None:
    """Stacks the histograms of groups of values, each with its name and colour."""
    names, colours = [name for _, name, _ in groups], [colour for _, _, colour in groups]
    axes.hist([values for values, _, _ in groups], bins=list(bins), stacked=True, label=names, color=colours)
    if groups:
        axes.legend()
