"""The placement that another DEF file of the same design holds."""

from __future__ import annotations

import os

import numpy as np

from placement.netlist.assembly.lef_def import component_centres, lacking_nodes, strange_components
from placement.netlist.design import NodeKind, Placement
from placement.netlist.flat_design import FlatDesign
from placement.netlist.formats.def_file import PlacementStatus, read_def
from placement.netlist.formats.findings import refuse


def read_def_placement(path: str | os.PathLike[str], design: FlatDesign) -> Placement:
    """Where a DEF file's components stand, as a placement of a flat design's nodes.

    Nodes that the file lacks, or leaves unplaced, are not placed; ports stand where the design has them.

    Args:
        path: the DEF file; its components are found by their unescaped names.
        design: whose nodes are meant.

    Raises:
        DesignError: as `read_def`; the file has components that the design does not have, or a hard macro of the
            design is no component of it.
    """
    file = read_def(path)
    components, netlist = file.components, design.netlist
    index = {name.replace("\\", ""): node for node, name in enumerate(netlist.names)}
    node_of = np.array([index.get(name, -1) for name in components.names], dtype=np.int64)
    what = "macros of the design that the file does not have"
    lacking = lacking_nodes(netlist, NodeKind.HARD, node_of, what)
    refuse(path, [*strange_components(file, node_of, "design"), *lacking])
    is_port = netlist.kind == NodeKind.PORT
    x, y = np.where(is_port, design.placement.x, 0.0), np.where(is_port, design.placement.y, 0.0)
    placed, orientation = is_port.copy(), np.zeros(netlist.num_nodes, dtype=np.int8)
    own_x, own_y = component_centres(file, netlist, node_of)
    # Bumps, and pads without a place, are ports of the design.
    moved = ~is_port[node_of]
    to = node_of[moved]
    x[to], y[to], orientation[to] = own_x[moved], own_y[moved], components.orientation[moved]
    placed[to] = components.status[moved] >= PlacementStatus.PLACED
    return Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=design.placement.fixed)
