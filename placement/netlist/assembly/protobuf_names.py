"""Matching a protobuf's nodes with a DEF file's components and pins, by unescaped names.

Axis legend: N nodes of the netlist, M components.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.assembly.lef_def import component_centres, lacking_nodes, port_centres, strange_components
from placement.netlist.assembly.ports import place_missing
from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.floorplan import Rectangle
from placement.netlist.formats.def_file import DefFile, PlacementStatus
from placement.netlist.formats.findings import refuse


@dataclasses.dataclass(frozen=True, eq=False)
class Matched:
    """What a DEF file says of a protobuf's nodes.

    Attributes:
        node_of: int32 [M], the node of each component.
        placement: of the nodes that the DEF file has; the others are not placed.
        written_names: node → its name as the DEF file writes it, where that is another one.
        notices: what was assumed.
    """

    node_of: np.ndarray
    placement: Placement
    written_names: dict[int, str]
    notices: tuple[str, ...]


def match_def(netlist: Netlist, file: DefFile) -> Matched:
    """Finds every macro and port of a netlist in a DEF file.

    Raises:
        DesignError: macros or ports are in one of the two only, or a macro has another size there; the first ten are
            named.
    """
    index = {_plain(name): node for node, name in enumerate(netlist.names)}
    components, pins = file.components, file.pins
    node_of = np.array([index.get(name, -1) for name in components.names], dtype=np.int64)
    # Supply pins are in no netlist; other pins that it does not have are passed over with them.
    port_of = np.array([index.get(name, -1) for name in pins.names], dtype=np.int64)
    port_of = np.where((port_of >= 0) & (netlist.kind[np.maximum(port_of, 0)] == NodeKind.PORT), port_of, -1)
    _refuse_unmatched(netlist, file, node_of, port_of)
    written = {int(node): name for node, name in zip(node_of, components.written_names, strict=True)}
    written |= {int(node): name for node, name in zip(port_of, pins.written_names, strict=True) if node >= 0}
    placement, notice = _placement(netlist, file, node_of, port_of)
    return Matched(
        node_of=node_of.astype(np.int32),
        placement=placement,
        written_names={node: name for node, name in written.items() if name != netlist.names[node]},
        notices=(notice,) if notice else (),
    )


def _plain(name: str) -> str:
    return name.replace("\\", "") if "\\" in name else name


def _refuse_unmatched(netlist: Netlist, file: DefFile, node_of: np.ndarray, port_of: np.ndarray) -> None:
    findings = strange_components(file, node_of, "protobuf")
    for kind, found, what in ((NodeKind.HARD, node_of, "macros"), (NodeKind.PORT, port_of, "ports")):
        findings += lacking_nodes(netlist, kind, found, f"{what} of the protobuf that the DEF file does not have")
    refuse(file.path, findings)


def _placement(
    netlist: Netlist, file: DefFile, node_of: np.ndarray, port_of: np.ndarray
) -> tuple[Placement, str | None]:
    components, count = file.components, netlist.num_nodes
    x, y, placed, fixed = np.zeros(count), np.zeros(count), np.zeros(count, np.bool_), netlist.kind == NodeKind.PORT
    orientation = np.zeros(count, dtype=np.int8)
    x[node_of], y[node_of] = component_centres(file, netlist, node_of)
    placed[node_of], orientation[node_of] = components.status >= PlacementStatus.PLACED, components.orientation
    fixed[node_of] = components.status >= PlacementStatus.FIXED
    pins = np.flatnonzero(port_of >= 0)
    port_x, port_y = port_centres(file, pins)
    port_placed = file.pins.status[pins] >= PlacementStatus.PLACED
    low, high = file.die.min(axis=0) / file.units, file.die.max(axis=0) / file.units
    box = Rectangle(float(low[0]), float(low[1]), float(high[0]), float(high[1]))
    notice = place_missing(port_x, port_y, port_placed, box=box)
    ports = port_of[pins]
    x[ports], y[ports], placed[ports] = port_x, port_y, port_placed
    return Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=fixed), notice
