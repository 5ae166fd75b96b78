"""What an import made of a chip: a table, and a picture of the floorplan.

Lengths are in µm, from the lower left corner of the core.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from rich.markup import escape
from rich.table import Table

from placement.netlist.importing import ImportedDesign

SHOWN = 10
"""Notices and sizes of macros that are named; of the rest it is said how many there are."""
_DEGREES = ((2, 2), (3, 3), (4, 4), (5, 8), (9, 16), (17, 64), (65, 500))


def import_table(imported: ImportedDesign) -> Table:
    """Cells, macros by size, nets by degree, ports, utilisation, clusters, nets between them, grid, capacity."""
    table = Table(title=escape(imported.flat.name), show_header=False, title_justify="left", title_style="bold")
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in (*_netlist_rows(imported), *_floorplan_rows(imported), *_clustered_rows(imported)):
        table.add_row(name, escape(text))
    return table


def notice_lines(imported: ImportedDesign) -> list[str]:
    """The first ten notices, a line each, and how many more there are."""
    notices = imported.notices
    lines = [f"note: {' '.join(notice.split())}" for notice in notices[:SHOWN]]
    if len(notices) > SHOWN:
        lines.append(f"note: {len(notices) - SHOWN:,} more; all {len(notices):,} are in source.json")
    return lines


def _netlist_rows(imported: ImportedDesign) -> list[tuple[str, str]]:
    flat, netlist = imported.flat, imported.flat.netlist
    hard, placed, fixed = netlist.hard, flat.placement.placed, flat.placement.fixed
    standing = f"{int(placed[hard].sum()):,} placed, {int(fixed[hard].sum()):,} fixed"
    sizes = Counter(zip(netlist.width[hard].tolist(), netlist.height[hard].tolist(), strict=True)).most_common()
    shown = [f"{count:,} of {width:g} × {height:g} µm" for (width, height), count in sizes[:SHOWN]]
    more = [f"{len(sizes) - SHOWN:,} more sizes"] if len(sizes) > SHOWN else []
    cells = flat.cells
    return [
        ("standard cells", f"{len(cells):,} ({int(placed[cells].sum()):,} placed)"),
        ("macros", f"{len(hard):,} ({standing})"),
        ("macros by size", ", ".join([*shown, *more])),
        *_array_rows(imported),
        ("ports", f"{len(netlist.ports):,}"),
        ("nets", f"{netlist.num_nets:,}, {len(netlist.net_pins):,} pins"),
        ("nets by pins", _degrees(np.diff(netlist.net_start))),
    ]


def _array_rows(imported: ImportedDesign) -> list[tuple[str, str]]:
    """How many of the macros are arrays, of how many of the files'."""
    sizes = [len(array.names) for array in imported.flat.arrays]
    if not sizes:
        return []
    return [("arrays", f"{len(sizes):,} of these macros, of {min(sizes):,} to {max(sizes):,}, {sum(sizes):,} in all")]


def _degrees(degree: np.ndarray) -> str:
    """How many nets have how many pins."""
    parts = []
    for least, most in _DEGREES:
        count = int(((degree >= least) & (degree <= most)).sum())
        if count:
            parts.append(f"{least if least == most else f'{least}–{most}'}: {count:,}")
    beyond = int((degree > _DEGREES[-1][1]).sum())
    return ", ".join([*parts, *([f"over {_DEGREES[-1][1]}: {beyond:,} (largest {degree.max():,})"] if beyond else [])])


def _floorplan_rows(imported: ImportedDesign) -> list[tuple[str, str]]:
    flat = imported.flat
    die, core, netlist = flat.floorplan.die, flat.floorplan.core, flat.netlist
    area = netlist.width * netlist.height
    macros, cells = float(area[netlist.hard].sum()), float(area[flat.cells].sum())
    free = core.area - macros
    beside = f"{cells / free:.1%} of what macros leave" if free > 0 else "macros leave nothing"
    return [
        ("die", f"{die.width:g} × {die.height:g} µm"),
        ("core", f"{core.width:g} × {core.height:g} µm from ({core.x_low:g}, {core.y_low:g})"),
        ("utilization", f"{(macros + cells) / core.area:.1%}: macros {macros / core.area:.1%}, "
                        f"cells {cells / core.area:.1%} ({beside})"),
    ]  # fmt: skip


def _clustered_rows(imported: ImportedDesign) -> list[tuple[str, str]]:
    design, clustering, capacity = imported.design, imported.clustering, imported.capacity
    netlist, canvas = design.netlist, design.canvas
    sizes = np.bincount(clustering.cluster[clustering.cluster >= 0], minlength=max(clustering.count, 1))
    by = "connectivity and positions" if clustering.placed else "connectivity and names"
    layers = ", ".join(
        f"{layer.name} {'↑' if layer.is_vertical else '→'} {layer.tracks:.3g} ({layer.blocked:.0%})"
        for layer in capacity.layers
    )
    return [
        ("soft macros", f"{clustering.count:,} by {by}, of {sizes.min():,} to {sizes.max():,} cells"),
        ("nets between them", f"{netlist.num_nets:,} ({netlist.net_weight.sum():,.0f} by weight)"),
        ("grid", f"{canvas.columns} × {canvas.rows} gcells of {canvas.cell_width:.4g} × {canvas.cell_height:.4g} µm"),
        ("routing capacity", _per_micron(canvas.routes_horizontal, canvas.routes_vertical)),
        ("taken by macros", _per_micron(canvas.macro_routes_horizontal, canvas.macro_routes_vertical)),
        *([("layers", f"{layers} (tracks per µm, part that macros take)")] if layers else []),
    ]


def _per_micron(horizontal: float, vertical: float) -> str:
    return f"{horizontal:.3f} horizontal, {vertical:.3f} vertical tracks per µm"
