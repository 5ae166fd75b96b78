"""The placement that another DEF file of the same design holds.

Axis legend: N nodes of the design, A nodes of the user's files, in which macros of arrays are nodes of their own.
"""

from __future__ import annotations

import os

import numpy as np

from placement.netlist.assembly.lef_def import component_centres, lacking_nodes, strange_components
from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.flat_design import FlatDesign
from placement.netlist.formats.def_file import PlacementStatus, read_def
from placement.netlist.formats.findings import SHOWN, refuse
from placement.netlist.macro_array import STRAYED


def read_def_placement(path: str | os.PathLike[str], design: FlatDesign) -> Placement:
    """Where a DEF file's components stand, as a placement of a flat design's nodes.

    Nodes that the file lacks, or leaves unplaced, are not placed; ports stand where the design has them. An array
    stands where its macros do.

    Args:
        path: the DEF file; its components are found by their unescaped names.
        design: whose nodes are meant.

    Raises:
        DesignError: as `read_def`; the file has components that the design does not have, a hard macro of the design is
            no component of it, or macros of an array do not stand as the array.
    """
    file = read_def(path)
    components = file.components
    netlist, own = _macros_apart(design)
    index = {name.replace("\\", ""): node for node, name in enumerate(netlist.names)}
    node_of = np.array([index.get(name, -1) for name in components.names], dtype=np.int64)
    what = "macros of the design that the file does not have"
    lacking = lacking_nodes(netlist, NodeKind.HARD, node_of, what)
    refuse(path, [*strange_components(file, node_of, "design"), *lacking])
    is_port = netlist.kind == NodeKind.PORT
    x, y = np.zeros((2, netlist.num_nodes))
    x[: len(own)] = np.where(is_port[: len(own)], design.placement.x[own], 0.0)
    y[: len(own)] = np.where(is_port[: len(own)], design.placement.y[own], 0.0)
    placed, orientation = is_port.copy(), np.zeros(netlist.num_nodes, dtype=np.int8)
    own_x, own_y = component_centres(file, netlist, node_of)
    # Bumps, and pads without a place, are ports of the design.
    moved = ~is_port[node_of]
    to = node_of[moved]
    x[to], y[to], orientation[to] = own_x[moved], own_y[moved], components.orientation[moved]
    placed[to] = components.status[moved] >= PlacementStatus.PLACED
    apart = Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=np.zeros_like(placed))
    return _joined(path, design, own, apart)


def _macros_apart(design: FlatDesign) -> tuple[Netlist, np.ndarray]:
    """The nodes of the user's files, without pins, and int [·] the design's own nodes of the first ones.

    Behind these come the macros of the arrays, one array after the other.
    """
    netlist, arrays = design.netlist, design.arrays
    if not arrays:
        return netlist, np.arange(netlist.num_nodes)
    own = np.setdiff1d(np.arange(netlist.num_nodes), [array.node for array in arrays])
    members = [len(array.names) for array in arrays]
    count = len(own) + sum(members)
    none = np.zeros(0)
    return Netlist(
        names=(*(netlist.names[node] for node in own.tolist()), *(name for array in arrays for name in array.names)),
        kind=np.concatenate((netlist.kind[own], np.full(sum(members), NodeKind.HARD))),
        width=np.concatenate((netlist.width[own], np.repeat([array.width for array in arrays], members))),
        height=np.concatenate((netlist.height[own], np.repeat([array.height for array in arrays], members))),
        file_index=np.arange(count),
        pin_node=none,
        pin_dx=none,
        pin_dy=none,
        net_weight=none,
        net_start=np.zeros(1),
        net_pins=none,
    ), own


def _joined(path: str | os.PathLike[str], design: FlatDesign, own: np.ndarray, apart: Placement) -> Placement:
    """The placement (of [A]) as one of the design's nodes ([N])."""
    count = design.netlist.num_nodes
    x, y = np.zeros((2, count))
    orientation, placed = np.zeros(count, dtype=np.int8), np.zeros(count, dtype=np.bool_)
    first = len(own)
    x[own], y[own] = apart.x[:first], apart.y[:first]
    orientation[own], placed[own] = apart.orientation[:first], apart.placed[:first]
    strewn: list[tuple[int, str]] = []
    for array in design.arrays:
        of = slice(first, first + len(array.names))
        first = of.stop
        if not apart.placed[of].all():
            continue
        tolerance = STRAYED / design.floorplan.units
        found = array.place_of(apart.x[of], apart.y[of], apart.orientation[of], tolerance=tolerance)
        if found is None:
            strewn.append((0, design.netlist.names[array.node]))
        else:
            x[array.node], y[array.node], orientation[array.node] = found
            placed[array.node] = True
    what = "arrays whose macros do not stand as the import joined them"
    refuse(path, [(what, len(strewn), strewn[:SHOWN])] if strewn else [])
    return Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=design.placement.fixed)
