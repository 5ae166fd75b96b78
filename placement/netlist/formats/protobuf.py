"""Reads and writes netlists in Circuit Training's format, a text-format graph proto (`netlist.pb.txt`, also gzipped).

A node is a `macro` (soft if its name begins with `Grp`, else hard), a `macro_pin`, a `port` or a `stdcell`. Every node
with at least one `input` drives one net whose sinks are its inputs and whose weight is its `weight` attribute (1 if
absent). Node indices in `.plc` files count all nodes but `__metadata__`, from 0, in file order.

The nodes are read natively if the file is written as the published tools write it; anything else (escapes, lists, other
quotes) is read with the full grammar. Both give the same columns, which `native/protobuf_reader.hpp` describes.

Axis legend: T text nodes (macros, their pins, ports, cells, in file order), N nodes of the netlist, P pins.
"""

import itertools
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from placement.netlist import _native
from placement.netlist.design import LARGEST, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import SHOWN, DesignError, reject
from placement.netlist.files import SourceFile, decoded, packed, read_bytes, write_whole

SOFT_MACRO_PREFIX = "Grp"
METADATA = "__metadata__"
_TYPES = ("macro", "macro_pin", "port", "stdcell")
_MACRO, _MACRO_PIN, _PORT, _CELL = range(4)
_KINDS = np.array([NodeKind.HARD, NodeKind.HARD, NodeKind.PORT, NodeKind.CELL], np.int8)
_NUMBERS = ("width", "height", "x", "y", "x_offset", "y_offset", "weight")
_WRITTEN_TYPES = {NodeKind.HARD: "MACRO", NodeKind.SOFT: "macro", NodeKind.PORT: "PORT", NodeKind.CELL: "STDCELL"}
_WRITTEN_PIN_TYPES = {NodeKind.HARD: "MACRO_PIN", NodeKind.SOFT: "macro_pin"}


class NetlistFile(NamedTuple):
    """The content of a netlist file."""

    source: SourceFile  # the file's name and checksum
    # its nodes, pins and nets. Macros that nets name have a pin at their centre, after all other pins.
    netlist: Netlist
    # positions and orientations from the nodes' attributes. Nodes without `x` and `y` are not placed; ports are fixed.
    placement: Placement
    master: np.ndarray  # int32 [N], indices in `masters`, -1 for none; from the attribute `ref_name`
    masters: tuple[str, ...]  # the masters' names


def read_netlist(path: str | os.PathLike[str]) -> Netlist:
    """Reads the netlist in a file; raises DesignError like `read_netlist_file`."""
    return read_netlist_file(path).netlist


def read_netlist_file(path: str | os.PathLike[str], *, is_flat: bool = False) -> NetlistFile:
    """Reads a file; in a flat netlist (`is_flat`) no macro is soft.

    Raises:
        DesignError: with file and line; the text is not a graph or is truncated, names repeat, nets or pins refer to
            unknown nodes, a macro or a cell has no size, or a size, offset or weight is out of range.
    """
    data, source = read_bytes(path)
    columns = _native.read_plain_protobuf(data) or columns_of_text(path, data)
    reject(path, columns["findings"])
    nodes = SimpleNamespace(**columns)
    if not nodes.names:
        raise DesignError(f"{path}: contains no nodes; expected a netlist as a text-format graph proto")
    is_soft = np.array([not is_flat and name.startswith(SOFT_MACRO_PREFIX) for name in nodes.names])
    is_soft &= nodes.type == _MACRO
    _check(path, data, nodes, is_soft)
    netlist, located = _netlist_of(nodes, is_soft)
    placed = ~(np.isnan(nodes.x) | np.isnan(nodes.y))[located]
    placement = Placement(
        x=np.where(placed, nodes.x[located], 0.0),
        y=np.where(placed, nodes.y[located], 0.0),
        orientation=np.maximum(nodes.orientation[located], 0),
        placed=placed,
        fixed=netlist.kind == NodeKind.PORT,
    )
    return NetlistFile(source, netlist, placement, nodes.master[located], tuple(nodes.masters))


def _check(path: str | os.PathLike[str], data: bytes, nodes: SimpleNamespace, is_soft: np.ndarray) -> None:
    """Raises DesignError for values that are out of range; the message lists the first ten nodes."""

    def check(what: str, is_wrong: np.ndarray, value: np.ndarray | None = None) -> None:
        wrong = np.flatnonzero(is_wrong)
        first = list[tuple[int, str]]()
        for node in wrong[:SHOWN].tolist():
            line = data.count(b"\n", 0, int(nodes.begin[node])) + 1
            first.append((line, nodes.names[node] if value is None else f"{nodes.names[node]} ({value[node]:g})"))
        reject(path, [(what, len(wrong), first)] if first else [])

    macros, pins, cells = (nodes.type == kind for kind in (_MACRO, _MACRO_PIN, _CELL))
    check(f"nodes without a type ({', '.join(_TYPES)})", nodes.type < 0)
    for key in _NUMBERS:
        value = getattr(nodes, key)
        check(f"nodes whose {key} is not a finite number up to ±{LARGEST:g}", np.abs(value) > LARGEST, value)
    for key in ("width", "height"):
        side = getattr(nodes, key)
        check(f"nodes without a {key}", (macros | cells) & np.isnan(side))
        check(f"macros whose {key} is not above 0", macros & ~is_soft & (side <= 0), side)
        check(f"cells or soft macros whose {key} is below 0", (cells | is_soft) & (side < 0), side)
    check("pins without a macro_name", pins & (nodes.macro < 0))
    check("pins on nodes that are not macros", pins & (nodes.type[np.maximum(nodes.macro, 0)] != _MACRO))
    check("nodes whose weight is below 0", (np.diff(nodes.start) > 0) & (nodes.weight < 0), nodes.weight)


def columns_of_text(path: str | os.PathLike[str], data: bytes) -> dict[str, Any]:
    """The columns, read by the full grammar; raises DesignError for the first fault."""
    from placement.netlist.formats.protobuf_text import read_nodes  # Google's parser takes time to import

    text = decoded(data, path)
    nodes = [node for node in read_nodes(path, text) if node.name != METADATA]
    index: dict[str, int] = {}
    for number, node in enumerate(nodes):
        first = index.setdefault(node.name, number)
        if first != number:
            raise node.error(f"duplicate node name {node.name!r}, first used on line {nodes[first].line()}")
    for node in nodes:
        for name in node.inputs:
            if name not in index:
                raise node.error(f"node {node.name!r} drives {name!r}, which does not exist", name)
    texts = {key: dict.fromkeys(node.text(key) for node in nodes) for key in ("type", "ref_name")}
    types = {text: _TYPES.index(text.lower()) for text in texts["type"] if text and text.lower() in _TYPES}
    masters = {text: number for number, text in enumerate(text for text in texts["ref_name"] if text is not None)}
    turns, begins = Orientation.__members__, [0, *(node.at for node in nodes)]

    def column(key: str, dtype: type, known: Mapping[str, int], right: str) -> np.ndarray:
        return np.array([node.choice(key, known, right) for node in nodes], dtype)

    return {
        "names": [node.name for node in nodes],
        **{key: np.array([node.number(key, LARGEST) for node in nodes], np.float64) for key in _NUMBERS},
        "type": column("type", np.int8, types, f"one of {', '.join(_TYPES)}"),
        "orientation": column("orientation", np.int8, turns, f"one of {', '.join(turns)}"),
        "macro": column("macro_name", np.int32, index, "a node of the file"),
        "master": column("ref_name", np.int32, masters, "a name"),
        "masters": list(masters),
        "start": np.cumsum([0, *(len(node.inputs) for node in nodes)]).astype(np.int32),
        "sinks": np.array([index[name] for node in nodes for name in node.inputs], dtype=np.int32),
        "begin": np.cumsum([len(text[first:end].encode()) for first, end in itertools.pairwise(begins)]),
        "findings": [],
    }


def _netlist_of(nodes: SimpleNamespace, is_soft: np.ndarray) -> tuple[Netlist, np.ndarray]:
    """The netlist, and the text node of each of its nodes (int64 [N]); `is_soft` is bool [T]."""
    located = np.flatnonzero(nodes.type != _MACRO_PIN)
    node_of = np.full(len(nodes.names), -1, dtype=np.int64)
    node_of[located] = np.arange(len(located))
    own = np.where(nodes.type == _MACRO_PIN, nodes.macro, np.arange(len(nodes.names)))
    # A net is its driver and then its sinks.
    drives = np.flatnonzero(np.diff(nodes.start) > 0)
    start = np.concatenate(([0], np.cumsum(np.diff(nodes.start)[drives] + 1)))
    ends = np.insert(nodes.sinks.astype(np.int64), nodes.start[drives], drives)
    named = ends[nodes.type[ends] == _MACRO]
    first = np.sort(np.unique(named, return_index=True)[1])
    pins = np.concatenate((np.flatnonzero(nodes.type != _MACRO), named[first]))
    pin_of = np.empty(len(nodes.names), dtype=np.int64)
    pin_of[pins] = np.arange(len(pins))
    weight = nodes.weight[drives]
    is_pin = nodes.type[pins] == _MACRO_PIN
    kind = np.where(is_soft[located], NodeKind.SOFT, _KINDS[nodes.type[located]])
    is_port = kind == NodeKind.PORT
    netlist = Netlist(
        names=tuple(nodes.names[index] for index in located.tolist()),
        kind=kind,
        width=np.where(is_port, 0.0, nodes.width[located]),
        height=np.where(is_port, 0.0, nodes.height[located]),
        file_index=located,
        pin_node=node_of[own[pins]],
        pin_dx=np.where(is_pin, np.nan_to_num(nodes.x_offset[pins]), 0.0),
        pin_dy=np.where(is_pin, np.nan_to_num(nodes.y_offset[pins]), 0.0),
        net_weight=np.where(np.isnan(weight), 1.0, weight),
        net_start=start,
        net_pins=pin_of[ends],
    )
    return netlist, located


def write_netlist(path: str | os.PathLike[str], netlist: Netlist, placement: Placement | None = None) -> None:
    """Writes a netlist that `read_netlist` reads back equal; gzipped if `path` ends in `.gz`, whole or not at all.

    Pins are named after their macro (`NAME/p0`, `NAME/p1`, …), since a `Netlist` has no pin names.

    Args:
        path: the file.
        netlist: the netlist.
        placement: if given, the nodes' positions and orientations are written too.

    Raises:
        DesignError: the netlist has a form that the format cannot express: nets not in the order of their drivers, a
            pin that drives two nets, a soft macro whose name does not begin with `Grp`, a name used twice.
        OSError: the folder does not exist or cannot be written.
    """
    write_whole(path, packed(Path(path).name, netlist_text(netlist, placement), level=9))


def netlist_text(netlist: Netlist, placement: Placement | None = None) -> str:
    """The text that `write_netlist` writes."""
    _check_writable(netlist)
    number, pin_names, macro_pins, own_pin = Counter[int](), list[str](), list[int](), dict[int, int]()
    for pin, node in enumerate(netlist.pin_node.tolist()):
        if netlist.kind[node] >= NodeKind.PORT:
            pin_names.append(netlist.names[node])
            own_pin[node] = pin
        else:
            pin_names.append(f"{netlist.names[node]}/p{number[node]}")
            number[node] += 1
            macro_pins.append(pin)
    nodes = {index: node for node, index in enumerate(netlist.file_index.tolist())}
    count, remaining = netlist.num_nodes + len(macro_pins), iter(macro_pins)
    names = {*netlist.names, *(pin_names[pin] for pin in macro_pins)}
    if len(nodes) != netlist.num_nodes or not nodes.keys() <= set(range(count)) or len(names) != count:
        raise DesignError("the netlist's file indices or names do not make a file")
    net_of = {driver: net for net, driver in enumerate(netlist.net_pins[netlist.net_start[:-1]].tolist())}
    net_pins, start = netlist.net_pins.tolist(), netlist.net_start.tolist()
    texts: list[str] = []
    drivers: list[int] = []
    for position in range(count):
        node = nodes.get(position)
        if node is None:
            pin = next(remaining)
            name, attributes = pin_names[pin], _pin_attributes(netlist, pin)
        else:
            pin = own_pin.get(node, -1)
            name, attributes = netlist.names[node], _node_attributes(netlist, node, placement)
        sinks: list[str] = []
        if pin in net_of:
            net = net_of[pin]
            drivers.append(net)
            sinks = [pin_names[sink] for sink in net_pins[start[net] + 1 : start[net + 1]]]
            if netlist.net_weight[net] != 1:
                attributes.append(("weight", float(netlist.net_weight[net])))
        texts.append(_node_text(name, sinks, attributes))
    if drivers != list(range(netlist.num_nets)):
        raise DesignError("the nets are not in the order of their drivers in the file")
    return "".join(texts)


def _check_writable(netlist: Netlist) -> None:
    for kind, nodes, word in (("soft", netlist.soft, "must"), ("hard", netlist.hard, "must not")):
        for node in nodes:
            if netlist.names[node].startswith(SOFT_MACRO_PREFIX) != (kind == "soft"):
                name = netlist.names[node]
                raise DesignError(f"{kind} macro {name!r}: its name {word} begin with {SOFT_MACRO_PREFIX!r}")
    if METADATA in netlist.names:
        raise DesignError(f"no node may be called {METADATA!r}")
    drivers = netlist.net_pins[netlist.net_start[:-1]]
    if len(np.unique(drivers)) != len(drivers):
        raise DesignError("a pin drives two nets")
    if (np.diff(netlist.net_start) < 2).any():
        raise DesignError("a net has no sink")


def _node_attributes(netlist: Netlist, node: int, placement: Placement | None) -> list[tuple[str, str | float]]:
    kind = NodeKind(netlist.kind[node])
    attributes: list[tuple[str, str | float]] = [("type", _WRITTEN_TYPES[kind])]
    if kind != NodeKind.PORT:
        attributes += [("width", float(netlist.width[node])), ("height", float(netlist.height[node]))]
    if placement is not None:
        if kind == NodeKind.HARD:
            attributes.append(("orientation", Orientation(placement.orientation[node]).name))
        if placement.placed[node]:
            attributes += [("x", float(placement.x[node])), ("y", float(placement.y[node]))]
    return attributes


def _pin_attributes(netlist: Netlist, pin: int) -> list[tuple[str, str | float]]:
    node = int(netlist.pin_node[pin])
    offsets = [("x_offset", float(netlist.pin_dx[pin])), ("y_offset", float(netlist.pin_dy[pin]))]
    return [("type", _WRITTEN_PIN_TYPES[NodeKind(netlist.kind[node])]), ("macro_name", netlist.names[node]), *offsets]


def _node_text(name: str, sinks: list[str], attributes: list[tuple[str, str | float]]) -> str:
    lines = ["node {", f"  name: {_quoted(name)}"]
    lines += [f"  input: {_quoted(sink)}" for sink in sinks]
    for key, value in attributes:
        text = f"placeholder: {_quoted(value)}" if isinstance(value, str) else f"f: {value!r}"
        lines += ["  attr {", f'    key: "{key}"', "    value {", f"      {text}", "    }", "  }"]
    return "\n".join([*lines, "}\n"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
