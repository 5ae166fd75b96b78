"""Placements in the coordinates of an imported design's own files, read from a DEF file.

Axis legend: N nodes of the design, A nodes of the user's files, in which the macros of arrays are separate nodes.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placement.netlist.design import Canvas, Design, Netlist, NodeKind, Placement
from placement.netlist.errors import SHOWN, DesignError, reject
from placement.netlist.flat_design import STRAYED, FlatDesign, read_flat
from placement.netlist.load import read_clusters


class UserPlacement(NamedTuple):
    """The nodes of an imported design as a DEF file places them."""

    placement: Placement  # µm from the core's lower left corner
    # whether the file places the standard cells; soft macros are then located at their cells' centres of area,
    # otherwise where the design has them
    has_cells: bool
    notices: tuple[str, ...]  # the components that were skipped


def is_def(path: str | os.PathLike[str]) -> bool:
    """Whether a file's name is that of a DEF file."""
    return Path(path).name.lower().endswith((".def", ".def.gz"))


def canvas_note(path: str | os.PathLike[str], canvas: Canvas, used: Canvas, *, done: str) -> str | None:
    """Returns a note if a file's placement, now `done` ("evaluated") on `used`, was made for another canvas."""
    if canvas == used:
        return None
    return f"note: {path} was made for {_described(canvas)}; {done} on {_described(used)}"


def _described(canvas: Canvas) -> str:
    return (
        f"a canvas of {canvas.width:g} × {canvas.height:g} µm, {canvas.columns} × {canvas.rows} gcells, "
        f"{canvas.routes_horizontal:g} and {canvas.routes_vertical:g} routes per µm, smoothing {canvas.smoothing}"
    )


def read_clustered_def(path: str | os.PathLike[str], folder: str | os.PathLike[str], design: Design) -> UserPlacement:
    """Reads the macros and soft macros of an imported design, loaded from `folder`, as a DEF file places them.

    Raises:
        DesignError: like `read_def_placement` and `read_flat`; a macro is not placed.
    """
    flat = read_flat(Path(folder))
    given, notices = read_def_placement(path, flat)
    core, hard = flat.floorplan.core, flat.netlist.hard
    unplaced = hard[~given.placed[hard]]
    if len(unplaced):
        raise DesignError(
            f"{path}: {len(unplaced)} macros are not placed, the first being {flat.netlist.names[unplaced[0]]!r}"
        )
    own = {name: node for node, name in enumerate(design.netlist.names)}
    nodes = np.array([own[flat.netlist.names[node]] for node in hard.tolist()], dtype=np.int64)
    initial = design.initial
    x, y, orientation = initial.x.copy(), initial.y.copy(), initial.orientation.copy()
    x[nodes], y[nodes] = given.x[hard] - core.x_low, given.y[hard] - core.y_low
    orientation[nodes] = given.orientation[hard]
    cluster = read_clusters(folder)
    # A flow resizes, adds and removes some cells.
    soft = design.netlist.soft
    found = np.bincount(cluster[(cluster >= 0) & given.placed], minlength=len(soft))
    has_cells = len(soft) > 0 and bool(found.all())
    if has_cells:
        from placement.netlist.clustering.groups import centroids  # imported late, since SciPy takes a while

        area = np.where(given.placed, flat.netlist.width * flat.netlist.height, 0.0)
        soft_x, soft_y = centroids(cluster, len(soft), x=given.x, y=given.y, area=area)
        x[soft], y[soft] = soft_x - core.x_low, soft_y - core.y_low
    placement = Placement(x, y, orientation, placed=np.ones_like(initial.placed), fixed=initial.fixed)
    return UserPlacement(placement, has_cells, notices)


def read_def_placement(path: str | os.PathLike[str], design: FlatDesign) -> tuple[Placement, tuple[str, ...]]:
    """Reads a DEF file's components, by their unescaped names, as a placement of a flat design's nodes; returns
    notices, too.

    Nodes that are not in the file, or not placed in it, are not placed; ports keep the design's positions. An array is
    located where its macros are. Cells that the design does not have are skipped, since a flow adds taps and buffers.

    Raises:
        DesignError: like `read_def`; the file has macros that the design does not have, a hard macro of the design is
            no component of it, or the macros of an array do not form the array.
    """
    # Imported late, since the readers of LEF and DEF take a while.
    from placement.netlist.formats.def_design import (
        component_centres,
        missing_nodes,
        placement_status,
        unmatched_components,
    )
    from placement.netlist.formats.def_file import PlacementStatus, read_def

    file = read_def(path, units=design.floorplan.units)
    components = file.components
    netlist, own = _macros_apart(design)
    index = {name.replace("\\", ""): node for node, name in enumerate(netlist.names)}
    # Names that differ only in their escapes keep them.
    exact = {name: node for node, name in enumerate(netlist.names)}
    names = zip(components.written_names, components.names, strict=True)
    node_of = np.array([exact.get(written, index.get(name, -1)) for written, name in names], dtype=np.int64)
    blocks = {design.master_names[master] for master in design.master[design.netlist.hard].tolist() if master >= 0}
    unknown, notices = unmatched_components(file, node_of, blocks, "design")
    missing = missing_nodes(netlist, NodeKind.HARD, node_of, "macros of the design that are not in the file")
    reject(path, [*unknown, *missing])
    is_macro = (node_of >= 0) & (netlist.kind[node_of] == NodeKind.HARD)
    status, heaps = placement_status(file, is_macro)
    is_port = netlist.kind == NodeKind.PORT
    x, y = np.zeros((2, netlist.num_nodes))
    x[: len(own)] = np.where(is_port[: len(own)], design.placement.x[own], 0.0)
    y[: len(own)] = np.where(is_port[: len(own)], design.placement.y[own], 0.0)
    placed, orientation = is_port.copy(), np.zeros(netlist.num_nodes, dtype=np.int8)
    own_x, own_y = component_centres(file, netlist, node_of)
    # Bumps, and pads without a position, are ports of the design.
    moved = (node_of >= 0) & ~is_port[node_of]
    to = node_of[moved]
    x[to], y[to], orientation[to] = own_x[moved], own_y[moved], components.orientation[moved]
    placed[to] = status[moved] >= PlacementStatus.PLACED
    apart = Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=np.zeros_like(placed))
    return _joined(path, design, own, apart), (*file.notices, *notices, *heaps)


def _macros_apart(design: FlatDesign) -> tuple[Netlist, np.ndarray]:
    """The nodes of the user's files, without pins: first the design's own (int [·]), then the macros of its arrays."""
    netlist, arrays = design.netlist, design.arrays
    if not arrays:
        return netlist, np.arange(netlist.num_nodes)
    own = np.setdiff1d(np.arange(netlist.num_nodes), [array.node for array in arrays])
    members = [len(array.names) for array in arrays]
    none = np.zeros(0)
    return Netlist(
        names=(*(netlist.names[node] for node in own.tolist()), *(name for array in arrays for name in array.names)),
        kind=np.concatenate((netlist.kind[own], np.full(sum(members), NodeKind.HARD))),
        width=np.concatenate((netlist.width[own], np.repeat([array.width for array in arrays], members))),
        height=np.concatenate((netlist.height[own], np.repeat([array.height for array in arrays], members))),
        file_index=np.arange(len(own) + sum(members)),
        pin_node=none,
        pin_dx=none,
        pin_dy=none,
        net_weight=none,
        net_start=np.zeros(1),
        net_pins=none,
    ), own


def _joined(path: str | os.PathLike[str], design: FlatDesign, own: np.ndarray, apart: Placement) -> Placement:
    """Converts the placement of the A separate nodes to one of the design's N nodes."""
    count, first = design.netlist.num_nodes, len(own)
    x, y = np.zeros((2, count))
    orientation, placed = np.zeros(count, dtype=np.int8), np.zeros(count, dtype=np.bool_)
    x[own], y[own] = apart.x[:first], apart.y[:first]
    orientation[own], placed[own] = apart.orientation[:first], apart.placed[:first]
    scattered: list[tuple[int, str]] = []
    for array in design.arrays:
        of = slice(first, first + len(array.names))
        first = of.stop
        if not apart.placed[of].all():
            continue
        tolerance = STRAYED / design.floorplan.units
        found = array.place_of(apart.x[of], apart.y[of], apart.orientation[of], tolerance=tolerance)
        if found is None:
            scattered.append((0, design.netlist.names[array.node]))
        else:
            x[array.node], y[array.node], orientation[array.node] = found
            placed[array.node] = True
    what = "arrays whose macros are not arranged as at the import"
    reject(path, [(what, len(scattered), scattered[:SHOWN])] if scattered else [])
    return Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=design.placement.fixed)
