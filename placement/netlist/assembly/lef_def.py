"""A flat design from LEF and DEF files.

Axis legend: N nodes (components, then ports), M components, D design pins, E nets of the netlist, L net pins.
"""

from __future__ import annotations

import dataclasses
import os

import numpy as np

from placement.netlist.assembly.def_components import Components, components_of
from placement.netlist.assembly.def_floorplan import floorplan_of
from placement.netlist.assembly.def_nets import nets_of
from placement.netlist.assembly.odd import odd_sizes_and_places
from placement.netlist.assembly.ports import place_missing
from placement.netlist.design import TURN, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Rectangle
from placement.netlist.formats.def_file import USES, DefFile, PlacementStatus, read_def
from placement.netlist.formats.findings import SHOWN, Finding, refuse
from placement.netlist.formats.lef import read_lefs
from placement.netlist.technology import Master, Technology

_SUPPLY = (USES.index("POWER"), USES.index("GROUND"))


def read_lef_def(
    lefs: list[str | os.PathLike[str]], path: str | os.PathLike[str], *, name: str | None = None
) -> tuple[FlatDesign, bytes]:
    """A flat design from LEF files and a DEF file with nets, and the DEF file's unpacked bytes.

    Args:
        lefs: technology and library files, in any order.
        path: the DEF file, which an export changes.
        name: of the design; default: the one that the DEF file gives.

    Raises:
        DesignError: as `read_lefs` and `read_def`; masters or masters' pins do not exist, the file has no nets, names
            are not unique.
    """
    technology, sources = read_lefs(lefs)
    file = read_def(path)
    design = flat_design_of(file, technology, name=name)
    return dataclasses.replace(design, sources=(*sources, file.source)), file.data


def flat_design_of(file: DefFile, technology: Technology, *, name: str | None = None) -> FlatDesign:
    """The flat design that a DEF file and its masters make; raises DesignError as `read_lef_def`."""
    if not len(file.nets.names):
        raise DesignError(
            f"{file.path}: the file has no nets, as a floorplan alone has none; write it again once the netlist is "
            "loaded (OpenROAD: write_def after link_design; Innovus: defOut -netlist), or give the netlist as a flat "
            "protobuf beside it"
        )
    masters = _masters(file, technology)
    ports = _ports(file)
    floorplan, notices = floorplan_of(file, technology, np.arange(len(file.components.names), dtype=np.int32))
    components = components_of(file, masters, die=floorplan.die, core=floorplan.core)
    names, written_names = _unique_names(file, ports)
    nets = nets_of(file, masters, ports, components.is_point)
    sides = np.zeros(len(ports))
    kinds = np.concatenate((components.kind, np.full(len(ports), NodeKind.PORT, dtype=np.int8)))
    netlist = Netlist(
        names=names,
        kind=kinds,
        width=np.concatenate((components.width, sides)),
        height=np.concatenate((components.height, sides)),
        file_index=file_indices(kinds, nets.pin_node),
        pin_node=nets.pin_node,
        pin_dx=nets.pin_dx,
        pin_dy=nets.pin_dy,
        net_weight=nets.weight,
        net_start=nets.start,
        net_pins=np.arange(len(nets.pin_node)),
    )
    placement, placing_notices = _placement(file, components, ports, floorplan.die)
    design = FlatDesign(
        name=name or file.design or "design",
        netlist=netlist,
        placement=placement,
        floorplan=floorplan,
        technology=technology,
        master=np.concatenate((file.components.master, np.full(len(ports), -1))),
        master_names=tuple(file.components.masters),
        written_names=written_names,
        sources=(file.source,),
        notices=(*file.notices, *notices, *nets.notices, *components.notices, *placing_notices),
    )
    return dataclasses.replace(design, notices=(*design.notices, *odd_sizes_and_places(design)))


def file_indices(kind: np.ndarray, pin_node: np.ndarray) -> np.ndarray:
    """int32 [N]: the nodes' indices in `.plc` files, in which each macro is followed by its pins."""
    pins = np.bincount(pin_node, minlength=len(kind))
    taken = 1 + np.where(kind == NodeKind.HARD, pins, 0)
    return (np.cumsum(taken) - taken).astype(np.int32)


def _masters(file: DefFile, technology: Technology) -> list[Master]:
    """The master of each entry of `components.masters`."""
    components = file.components
    unknown = [index for index, name in enumerate(components.masters) if name not in technology.masters]
    if unknown:
        first = []
        for index in unknown[:10]:
            component = int(np.flatnonzero(components.master == index)[0])
            first.append((file.line(components.begin[component]), components.masters[index]))
        refuse(file.path, [("masters that no LEF file defines", len(unknown), first)])
    return [technology.masters[name] for name in components.masters]


def _ports(file: DefFile) -> np.ndarray:
    """int64 [·]: the design pins that are ports: all but those of supplies."""
    return np.flatnonzero(~np.isin(file.pins.use, _SUPPLY))


def _unique_names(file: DefFile, ports: np.ndarray) -> tuple[tuple[str, ...], dict[int, str]]:
    """The nodes' names, and those that the file writes otherwise.

    Two names that are the same after unescaping keep their backslashes; a port whose name a component has too is
    called `port:NAME`.
    """
    plain = file.components.names + [file.pins.names[port] for port in ports]
    written = file.components.written_names + [file.pins.written_names[port] for port in ports]
    components = len(file.components.names)
    names = list(plain)
    if len(set(names)) != len(names):
        seen: dict[str, int] = {}
        for node, name in enumerate(plain):
            if seen.setdefault(name, node) != node:
                names[node] = written[node] if node < components else f"port:{written[node]}"
                first = seen[name]
                names[first] = names[first] if first >= components else written[first]
    if len(set(names)) != len(names):
        raise DesignError(f"{file.path}: components and pins have names that are not unique")
    return tuple(names), {node: text for node, text in enumerate(written) if text != names[node]}


def _placement(
    file: DefFile, components: Components, ports: np.ndarray, die: Rectangle
) -> tuple[Placement, tuple[str, ...]]:
    """Components, then ports in the middle of their shapes, or on the die's edges; and notices."""
    placed = file.pins.status[ports] >= PlacementStatus.PLACED
    x, y = port_centres(file, ports)
    notice = place_missing(x, y, placed, box=die)
    return (
        Placement(
            x=np.concatenate((components.x, x)),
            y=np.concatenate((components.y, y)),
            orientation=np.concatenate((file.components.orientation, np.zeros(len(ports), dtype=np.int8))),
            placed=np.concatenate((components.placed, placed)),
            fixed=np.concatenate((components.fixed, np.ones(len(ports), dtype=np.bool_))),
        ),
        (notice,) if notice else (),
    )


def component_centres(file: DefFile, netlist: Netlist, node_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """µm, float64 [M] each: the middle of each component, whose node `node_of` (int [M]) says; 0 where it has none."""
    components = file.components
    swapped = components.orientation >= Orientation.E
    sides = netlist.width[node_of], netlist.height[node_of]
    stands = components.status >= PlacementStatus.PLACED
    x = components.x / file.units + np.where(swapped, sides[1], sides[0]) / 2
    y = components.y / file.units + np.where(swapped, sides[0], sides[1]) / 2
    return np.where(stands, x, 0.0), np.where(stands, y, 0.0)


def strange_components(file: DefFile, node_of: np.ndarray, whose: str) -> list[Finding]:
    """What `refuse` takes of the components that have no node (int [M], -1)."""
    begin, names, strange = file.components.begin, file.components.names, np.flatnonzero(node_of < 0)
    first = [(file.line(begin[at]), names[at]) for at in strange[:SHOWN].tolist()]
    return [(f"components that the {whose} does not have", len(strange), first)] if first else []


def lacking_nodes(netlist: Netlist, kind: NodeKind, found: np.ndarray, what: str) -> list[Finding]:
    """What `refuse` takes of the nodes of a kind that are not among those found (int [·])."""
    missing = np.setdiff1d(netlist.indices(kind), found)
    return (
        [(what, len(missing), [(0, netlist.names[node]) for node in missing[:SHOWN].tolist()])] if len(missing) else []
    )


def port_centres(file: DefFile, ports: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """µm, float64 [D] each: the middle of each pin's shapes, turned as the pin is."""
    pins = file.pins
    dx = (pins.box[ports, 0].astype(np.float64) + pins.box[ports, 2]) / 2
    dy = (pins.box[ports, 1].astype(np.float64) + pins.box[ports, 3]) / 2
    turn = TURN[pins.orientation[ports]]
    x = pins.x[ports] + turn[:, 0] * dx + turn[:, 1] * dy
    y = pins.y[ports] + turn[:, 2] * dx + turn[:, 3] * dy
    return x / file.units, y / file.units
