"""Builds a flat design from a flat protobuf, with the floorplan of a DEF file or of a placement file's canvas.

Axis legend: N nodes of the netlist, M components of the DEF file.
"""

import dataclasses
import os
import re
from collections.abc import Collection, Sequence

import numpy as np

from placement.netlist.design import Canvas, Netlist, NodeKind, Placement
from placement.netlist.errors import listing, reject
from placement.netlist.files import stem
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Floorplan, Rows, place_missing
from placement.netlist.formats.def_design import (
    component_centres,
    missing_nodes,
    placement_status,
    port_places,
    unmatched_components,
)
from placement.netlist.formats.def_file import DefFile, PlacementStatus, read_def
from placement.netlist.formats.def_floorplan import floorplan_of
from placement.netlist.formats.lef import read_lefs
from placement.netlist.formats.protobuf import read_netlist_file
from placement.netlist.geometry import Rectangle
from placement.netlist.technology import Technology


def read_protobuf_def(
    path: str | os.PathLike[str],
    floorplan: str | os.PathLike[str],
    *,
    lefs: Sequence[str | os.PathLike[str]] = (),
    name: str | None = None,
) -> tuple[FlatDesign, bytes]:
    """Builds a flat design from a flat protobuf and the floorplan of a DEF file; also returns that file's unpacked
    bytes.

    Macros and ports have their positions in the DEF file; macros are not placed if it has none, as in floorplans of
    Innovus (`defOut -floorplan`). Cells keep the protobuf's positions if those lie in the die; positions on another die
    are scaled to this one, as a hint for clustering and placing.

    Args:
        path: the protobuf with nodes, sizes and nets.
        floorplan: the DEF file, which an export changes; its macros and pins must be those of the protobuf.
        lefs: technology and library files, for layers' directions and the areas that macros block.
        name: the design's name; default: the one in the DEF file.

    Raises:
        DesignError: like `read_netlist_file`, `read_def` and `read_lefs`; the two files do not have the same macros and
            pins.
    """
    source, netlist, own, master, masters = read_netlist_file(path, is_flat=True)
    technology, sources = read_lefs(lefs)
    file = read_def(floorplan, units=technology.units)
    blocks = {masters[number] for number in master[netlist.hard].tolist() if number >= 0}
    blocks |= {name for name, one in technology.masters.items() if one.is_block}
    node_of, port_of, passed = _matched(netlist, file, blocks)
    plan, notices = floorplan_of(file, technology, node_of)
    placement, placing_notices = _placement(netlist, own, file, plan, node_of, port_of)
    # Macros that are not in the DEF file are added in its own notation.
    written = {int(node): re.sub(r"([\[\]])", r"\\\1", netlist.names[node].replace("\\", "")) for node in netlist.hard}
    for nodes_of, names in ((node_of, file.components.written_names), (port_of, file.pins.written_names)):
        written |= {int(node): name for node, name in zip(nodes_of, names, strict=True) if node >= 0}
    design = FlatDesign(
        name=name or file.design or stem(path),
        netlist=netlist,
        placement=placement,
        floorplan=plan,
        technology=technology,
        master=master,
        master_names=masters,
        written_names={node: name for node, name in written.items() if name != netlist.names[node]},
        sources=(source, *sources, file.source),
        notices=(*technology.notices, *file.notices, *passed, *notices, *placing_notices),
    )
    return design, file.data


def read_protobuf_canvas(path: str | os.PathLike[str], canvas: Canvas, *, name: str | None = None) -> FlatDesign:
    """Builds a flat design from a flat protobuf alone, on the canvas of a placement file.

    Rows are derived: they fill the canvas, and have the most frequent height of cells.

    Raises:
        DesignError: like `read_netlist_file`.
    """
    source, netlist, placement, master, masters = read_netlist_file(path, is_flat=True)
    box = Rectangle(0.0, 0.0, canvas.width, canvas.height)
    ports, x, y, placed = netlist.ports, placement.x.copy(), placement.y.copy(), placement.placed.copy()
    port_x, port_y, located = x[ports], y[ports], placed[ports]
    notices = place_missing(port_x, port_y, located, box=box)
    x[ports], y[ports], placed[ports] = port_x, port_y, located
    heights = netlist.height[netlist.kind == NodeKind.CELL]
    values, counts = np.unique(heights[heights > 0], return_counts=True)
    height = float(values[np.argmax(counts)]) if len(values) else 0.0
    count = int(canvas.height / height) if height else 0
    rows = Rows.filling(box, height, count, site_width=height / 8 if height else 1.0)
    return FlatDesign(
        name=name or stem(path),
        netlist=netlist,
        placement=dataclasses.replace(placement, x=x, y=y, placed=placed),
        # The format has no database units; a thousand per µm resolve all of its numbers.
        floorplan=Floorplan(units=1000.0, die=box, core=box, rows=rows),
        technology=Technology(),
        master=master,
        master_names=masters,
        written_names={},
        sources=(source,),
        notices=(
            *notices,
            f"{path}: no DEF file gives rows: {count:,} of {height:g} µm are assumed to fill the canvas",
        ),
    )


def _matched(netlist: Netlist, file: DefFile, blocks: Collection[str]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The node of each component (int64 [M]) and design pin (int64 [·]) by unescaped names, -1 for none, and notices.

    Raises DesignError if macros of the DEF file are not in the netlist; the first ten are named.
    """
    index = {name.replace("\\", ""): node for node, name in enumerate(netlist.names)}
    node_of = np.array([index.get(name, -1) for name in file.components.names], dtype=np.int64)
    # Supply pins are in no netlist; other missing pins are skipped with them.
    port_of = np.array([index.get(name, -1) for name in file.pins.names], dtype=np.int64)
    port_of = np.where((port_of >= 0) & (netlist.kind[np.maximum(port_of, 0)] == NodeKind.PORT), port_of, -1)
    findings, notices = unmatched_components(file, node_of, blocks, "protobuf")
    reject(file.path, findings)
    for kind, found, what in (
        (NodeKind.HARD, node_of, "macros of the protobuf are not in the DEF file and are unplaced"),
        (NodeKind.PORT, port_of, "ports of the protobuf are not in the DEF file"),
    ):
        notices += [listing(file.path, *finding) for finding in missing_nodes(netlist, kind, found, what)]
    return node_of, port_of, notices


def _placement(
    netlist: Netlist, own: Placement, file: DefFile, plan: Floorplan, node_of: np.ndarray, port_of: np.ndarray
) -> tuple[Placement, list[str]]:
    """The placement of macros, ports and placed cells of the DEF file, with other cells as in `own`, and notices."""
    x, y, orientation, die = own.x.copy(), own.y.copy(), own.orientation.copy(), plan.die
    is_cell, is_port = netlist.kind == NodeKind.CELL, netlist.kind == NodeKind.PORT
    cells, notices = is_cell & own.placed, list[str]()
    if cells.any():
        # The ports at the edges of the old die show how large it was.
        reach_x, reach_y = float(x[own.placed].max()), float(y[own.placed].max())
        inside = reach_x <= die.x_high + 1 and reach_y <= die.y_high + 1 and min(x[cells].min(), y[cells].min()) >= -1
        if not inside:
            x[cells] = die.x_low + x[cells] * die.width / reach_x
            y[cells] = die.y_low + y[cells] * die.height / reach_y
            notices.append(
                f"the protobuf's positions extend to ({reach_x:g}, {reach_y:g}) µm, beyond the die of {die.width:g} × "
                f"{die.height:g} µm: cell positions are scaled to the die and are only a hint"
            )
    placed, fixed, components = cells.copy(), is_port.copy(), file.components
    known = node_of >= 0
    status, heaps = placement_status(file, known & (netlist.kind[node_of] == NodeKind.HARD))
    fixed[node_of[known]] = status[known] >= PlacementStatus.FIXED
    taken = known & (~is_cell[node_of] | (status >= PlacementStatus.PLACED))
    nodes, (centre_x, centre_y) = node_of[taken], component_centres(file, netlist, node_of)
    x[nodes], y[nodes], orientation[nodes] = centre_x[taken], centre_y[taken], components.orientation[taken]
    placed[nodes] = status[taken] >= PlacementStatus.PLACED
    pins = np.flatnonzero(port_of >= 0)
    ports = port_of[pins]
    x[ports], y[ports], placed[ports], port_notices = port_places(file, pins, plan)
    orientation[is_port] = 0
    missing = np.flatnonzero(is_port & ~placed)
    missing_x, missing_y, located = x[missing], y[missing], placed[missing]
    port_notices += place_missing(missing_x, missing_y, located, box=die)
    x[missing], y[missing], placed[missing] = missing_x, missing_y, True
    x, y = np.where(placed, x, 0.0), np.where(placed, y, 0.0)
    return Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=fixed), [*heaps, *port_notices, *notices]
