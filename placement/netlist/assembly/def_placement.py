"""The placement that another DEF file of the same design holds."""

from __future__ import annotations

import os

import numpy as np

from placement.netlist.design import NodeKind, Orientation, Placement
from placement.netlist.flat_design import FlatDesign
from placement.netlist.formats.def_file import PlacementStatus, read_def
from placement.netlist.formats.findings import SHOWN, refuse


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
    findings = []
    strange = np.flatnonzero(node_of < 0)
    if len(strange):
        first = [(file.line(components.begin[at]), components.names[at]) for at in strange[:SHOWN].tolist()]
        findings.append(("components that the design does not have", len(strange), first))
    lacking = np.setdiff1d(netlist.hard, node_of)
    if len(lacking):
        first = [(0, netlist.names[node]) for node in lacking[:SHOWN].tolist()]
        findings.append(("macros of the design that the file does not have", len(lacking), first))
    refuse(path, findings)
    scale = file.units
    swapped = components.orientation >= Orientation.E
    width = np.where(swapped, netlist.height[node_of], netlist.width[node_of])
    height = np.where(swapped, netlist.width[node_of], netlist.height[node_of])
    stands = components.status >= PlacementStatus.PLACED
    is_port = netlist.kind == NodeKind.PORT
    x, y = np.where(is_port, design.placement.x, 0.0), np.where(is_port, design.placement.y, 0.0)
    placed, orientation = is_port.copy(), np.zeros(netlist.num_nodes, dtype=np.int8)
    x[node_of] = np.where(stands, components.x / scale + width / 2, 0.0)
    y[node_of] = np.where(stands, components.y / scale + height / 2, 0.0)
    placed[node_of], orientation[node_of] = stands, components.orientation
    return Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=design.placement.fixed)
