"""Netlists in Circuit Training's format, a text-format graph proto (`netlist.pb.txt`, also gzipped): read and written.

A node is a `macro` (soft if its name begins with `Grp`, else hard), a `macro_pin`, a `port` or a `stdcell`. Every
node with at least one `input` drives one net whose sinks are its inputs and whose weight is its `weight` attribute
(1 if absent). Node indices in `.plc` files count all nodes but `__metadata__`, from 0, in file order.

The nodes are read natively if the file is written as the published tools write it; anything else (escapes, lists,
other quotes) is read with the full grammar, which also reports what is wrong with a file, and where.

Axis legend: T text nodes (macros, their pins, ports, cells, in file order), S sinks, N nodes of the netlist, P pins.
"""

from __future__ import annotations

import dataclasses
import gzip
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from placement.netlist import _native
from placement.netlist.design import LARGEST, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import SHOWN, DesignError, reject
from placement.netlist.files import SourceFile, decoded, read_bytes, write_whole
from placement.netlist.formats.protobuf_text import TextFile, TextNode, parse_nodes

SOFT_MACRO_PREFIX = "Grp"
METADATA = "__metadata__"
TYPES = ("macro", "macro_pin", "port", "stdcell")
MACRO, MACRO_PIN, PORT, CELL = range(4)
_NUMBERS = ("width", "height", "x", "y", "x_offset", "y_offset", "weight")
_OUT_OF_RANGE = f"{{key}} of node {{name!r}} is {{value!r}}; must be a finite number up to ±{LARGEST:g}"
_WRITTEN_TYPES = {NodeKind.HARD: "MACRO", NodeKind.SOFT: "macro", NodeKind.PORT: "PORT", NodeKind.CELL: "STDCELL"}
_WRITTEN_PIN_TYPES = {NodeKind.HARD: "MACRO_PIN", NodeKind.SOFT: "macro_pin"}


@dataclasses.dataclass(frozen=True, eq=False)
class TextNodes:
    """The nodes of a file as columns; numbers that are not given are NaN.

    Attributes:
        path: for messages; source: the file's name and checksum.
        names: T names.
        type: int8 [T], indices in `TYPES`.
        width, height, x, y, x_offset, y_offset, weight: float64 [T], µm (weight: no unit).
        orientation: int8 [T], `Orientation` values, -1: none.
        macro: int32 [T], the macro of a pin, -1: none.
        master: int32 [T], indices in `masters` (attribute `ref_name`), -1: none.
        start: int32 [T+1]; node t drives `sinks[start[t]:start[t+1]]`.
        sinks: int32 [S], nodes.
        line: int64 [T], line numbers, for messages.
    """

    path: str
    source: SourceFile
    names: list[str]
    type: np.ndarray
    width: np.ndarray
    height: np.ndarray
    x: np.ndarray
    y: np.ndarray
    x_offset: np.ndarray
    y_offset: np.ndarray
    weight: np.ndarray
    orientation: np.ndarray
    macro: np.ndarray
    master: np.ndarray
    masters: list[str]
    start: np.ndarray
    sinks: np.ndarray
    line: np.ndarray


def read_netlist(path: str | os.PathLike[str]) -> Netlist:
    """The netlist in a file; raises DesignError with file and line of whatever is wrong."""
    return read_located_netlist(path)[0]


def read_located_netlist(path: str | os.PathLike[str]) -> tuple[Netlist, Placement]:
    """The netlist in a file, and the positions and orientations in its nodes' attributes.

    Nodes without `x` and `y` are not placed; ports are fixed. Raises DesignError as `read_netlist`.
    """
    data, source = read_bytes(path)
    columns = _native.read_plain_protobuf(data)
    if columns is None or columns["findings"]:
        columns = columns_of_text(path, data)  # rejects the first fault, with the line of the value
    nodes = _text_nodes(path, data, source, columns)
    soft = (nodes.type == MACRO) & np.array([name.startswith(SOFT_MACRO_PREFIX) for name in nodes.names])
    _check_clustered(nodes, soft, data)
    netlist, located, _ = netlist_of(nodes, soft)
    return netlist, positions(nodes, netlist, located)


def read_flat_nodes(path: str | os.PathLike[str]) -> TextNodes:
    """The nodes of a flat netlist.

    Raises:
        DesignError: with file and line; the text is no graph or is cut, names repeat, nets or pins name what does
            not exist, a macro or a cell has no size, a size or weight is out of range.
    """
    data, source = read_bytes(path)
    columns = _native.read_plain_protobuf(data)
    if columns is None:
        columns = columns_of_text(path, data)
    reject(path, columns["findings"])
    nodes = _text_nodes(path, data, source, columns)
    _check_flat(nodes)
    return nodes


def _text_nodes(path: str | os.PathLike[str], data: bytes, source: SourceFile, columns: dict[str, Any]) -> TextNodes:
    """The nodes from the columns of either reader; raises DesignError if there are none."""
    if not columns["names"]:
        raise DesignError(f"{path}: holds no nodes; expected a netlist as a text-format graph proto")
    breaks = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    line = np.searchsorted(breaks, columns["begin"]) + 1
    kept = {name: column for name, column in columns.items() if name not in ("begin", "findings")}
    for column in kept.values():
        if isinstance(column, np.ndarray):
            column.setflags(write=False)
    return TextNodes(path=str(path), source=source, line=line, **kept)


def _check_flat(nodes: TextNodes) -> None:
    """Raises DesignError for values that are out of range; names the first ten nodes."""

    def check(what: str, is_wrong: np.ndarray) -> None:
        wrong = np.flatnonzero(is_wrong)
        if len(wrong):
            first = [(int(nodes.line[node]), nodes.names[node]) for node in wrong[:SHOWN].tolist()]
            reject(nodes.path, [(what, len(wrong), first)])

    macros, cells, pins = (nodes.type == kind for kind in (MACRO, CELL, MACRO_PIN))
    for field in ("width", "height"):
        values = getattr(nodes, field)
        check(f"nodes without a {field}", (macros | cells) & np.isnan(values))
        check(f"macros whose {field} is not above 0", macros & ~(values > 0))
        check(f"cells whose {field} is below 0", cells & (values < 0))
    check("nodes whose weight is below 0", nodes.weight < 0)
    check("pins without a macro_name", pins & (nodes.macro < 0))
    check("pins on nodes that are no macros", pins & (nodes.type[np.maximum(nodes.macro, 0)] != MACRO))


def _check_clustered(nodes: TextNodes, soft: np.ndarray, data: bytes) -> None:
    """Raises DesignError for the first node with a value out of range, with the line of the value."""

    def check(bad: np.ndarray, key: str, message: str) -> None:
        if bad.any():
            file, parsed = _parsed(nodes.path, data)
            node = parsed[int(np.argmax(bad))]
            value, at = node.attributes.get(key, (None, node.at))
            raise file.error(at, message.format(name=node.name, value=value, key=key))

    for key in _NUMBERS:
        check(np.abs(getattr(nodes, key)) > LARGEST, key, _OUT_OF_RANGE)
    hard, cells = (nodes.type == MACRO) & ~soft, nodes.type == CELL
    for key in ("width", "height"):
        values = getattr(nodes, key)
        check((hard | soft | cells) & np.isnan(values), key, "node {name!r} has no {key}")
        check(hard & (values <= 0), key, "{key} of node {name!r} is {value}; must be above 0 µm")
        check((soft | cells) & (values < 0), key, "{key} of node {name!r} is {value}; must be at least 0 µm")
    pins, on = nodes.type == MACRO_PIN, np.maximum(nodes.macro, 0)
    check(pins & (nodes.macro < 0), "macro_name", "pin {name!r} has no macro_name")
    for number, kind in enumerate(TYPES):
        if number != MACRO:
            message = f"pin {{name!r}} sits on macro {{value!r}}, which is a {kind}"
            check(pins & (nodes.type[on] == number), "macro_name", message)
    drives = np.diff(nodes.start) > 0
    check(drives & (nodes.weight < 0), "weight", "weight of node {name!r} is {value}; must be at least 0")


def _parsed(path: str | os.PathLike[str], data: bytes) -> tuple[TextFile, list[TextNode]]:
    """The text nodes by the full grammar; raises DesignError if it does not accept the file."""
    file = TextFile(path, decoded(data, path))
    return file, [node for node in parse_nodes(file) if node.name != METADATA]


def columns_of_text(path: str | os.PathLike[str], data: bytes) -> dict[str, Any]:
    """The same columns as the native reader's, by the full grammar; raises DesignError for the first fault."""
    file, nodes = _parsed(path, data)
    index: dict[str, int] = {}
    for number, node in enumerate(nodes):
        first = index.setdefault(str(node.name), number)
        if first != number:
            line = file.text.count("\n", 0, nodes[first].at) + 1
            raise file.error(node.at, f"duplicate node name {node.name!r}, first used on line {line}")
    masters: dict[str, int] = {}
    sinks: list[int] = []
    start = [0]
    for node in nodes:
        for name, at in zip(node.inputs, node.inputs_at, strict=True):
            if name not in index:
                raise file.error(at, f"node {node.name!r} drives {name!r}, which does not exist")
            sinks.append(index[name])
        start.append(len(sinks))
    columns: dict[str, Any] = {
        key: np.array([_number(file, node, key) for node in nodes], dtype=np.float64) for key in _NUMBERS
    }
    refs = [_text(file, node, "ref_name") for node in nodes]
    begin = np.array([node.at for node in nodes], dtype=np.int64)
    if not file.text.isascii():
        lengths = np.fromiter((len(letter.encode()) for letter in file.text), dtype=np.int64, count=len(file.text))
        begin = np.concatenate(([0], np.cumsum(lengths)))[begin]
    return columns | {
        "names": [str(node.name) for node in nodes],
        "type": np.array([_type(file, node) for node in nodes], dtype=np.int8),
        "orientation": np.array([_orientation(file, node) for node in nodes], dtype=np.int8),
        "macro": np.array([_macro(file, node, index) for node in nodes], dtype=np.int32),
        "master": np.array([-1 if ref is None else masters.setdefault(ref, len(masters)) for ref in refs], np.int32),
        "masters": list(masters),
        "start": np.array(start, dtype=np.int32),
        "sinks": np.array(sinks, dtype=np.int32),
        "begin": begin,
        "findings": [],
    }


def _number(file: TextFile, node: TextNode, key: str) -> float:
    if key not in node.attributes:
        return math.nan
    value, at = node.attributes[key]
    if isinstance(value, bool) or not isinstance(value, float) or not abs(value) <= LARGEST:
        raise file.error(at, _OUT_OF_RANGE.format(key=key, name=node.name, value=value))
    return value


def _text(file: TextFile, node: TextNode, key: str) -> str | None:
    if key not in node.attributes:
        return None
    value, at = node.attributes[key]
    if not isinstance(value, str):
        raise file.error(at, f"{key} of node {node.name!r} is {value!r}; must be a string")
    return value


def _type(file: TextFile, node: TextNode) -> int:
    value, at = node.attributes.get("type", (None, node.at))
    if not isinstance(value, str) or value.lower() not in TYPES:
        what = "has no type" if "type" not in node.attributes else f"has the unknown type {value!r}"
        raise file.error(at, f"node {node.name!r} {what}; must be one of {', '.join(TYPES)}")
    return TYPES.index(value.lower())


def _orientation(file: TextFile, node: TextNode) -> int:
    value = _text(file, node, "orientation")
    if value is None:
        return -1
    if value not in Orientation.__members__:
        known, at = ", ".join(Orientation.__members__), node.attributes["orientation"][1]
        raise file.error(at, f"orientation of node {node.name!r} is {value!r}; must be one of {known}")
    return int(Orientation[value])


def _macro(file: TextFile, node: TextNode, index: dict[str, int]) -> int:
    name = _text(file, node, "macro_name")
    if name is not None and name not in index:
        at = node.attributes["macro_name"][1]
        raise file.error(at, f"pin {node.name!r} sits on macro {name!r}, which does not exist")
    return -1 if name is None else index[name]


def netlist_of(nodes: TextNodes, soft: np.ndarray | None = None) -> tuple[Netlist, np.ndarray, np.ndarray]:
    """The netlist, the text node of each of its nodes (int64 [N]) and the nodes' masters (int32 [N]).

    A pin is a text node that is no macro; macros that nets name have a pin at their centre, behind those.

    Args:
        nodes: of the file.
        soft: bool [T], the macros that are soft; None: none is.
    """
    located = np.flatnonzero(nodes.type != MACRO_PIN)
    node_of = np.full(len(nodes.names), -1, dtype=np.int64)
    node_of[located] = np.arange(len(located))
    own = np.where(nodes.type == MACRO_PIN, nodes.macro, np.arange(len(nodes.names)))
    # A net is its driver and then its sinks.
    drives = np.flatnonzero(np.diff(nodes.start) > 0)
    start = np.concatenate(([0], np.cumsum(np.diff(nodes.start)[drives] + 1)))
    ends = np.insert(nodes.sinks.astype(np.int64), nodes.start[drives], drives)
    named = ends[nodes.type[ends] == MACRO]
    first = np.sort(np.unique(named, return_index=True)[1])
    pins = np.concatenate((np.flatnonzero(nodes.type != MACRO), named[first]))
    pin_of = np.empty(len(nodes.names), dtype=np.int64)
    pin_of[pins] = np.arange(len(pins))
    weight = nodes.weight[drives]
    is_pin = nodes.type[pins] == MACRO_PIN
    kind = np.array([NodeKind.HARD, NodeKind.HARD, NodeKind.PORT, NodeKind.CELL], np.int8)[nodes.type[located]]
    if soft is not None:
        kind[soft[located]] = NodeKind.SOFT
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
    return netlist, located, nodes.master[located]


def positions(nodes: TextNodes, netlist: Netlist, located: np.ndarray) -> Placement:
    """The positions in the file; ports are fixed."""
    placed = ~(np.isnan(nodes.x[located]) | np.isnan(nodes.y[located]))
    return Placement(
        x=np.where(placed, nodes.x[located], 0.0),
        y=np.where(placed, nodes.y[located], 0.0),
        orientation=np.maximum(nodes.orientation[located], 0),
        placed=placed,
        fixed=netlist.kind == NodeKind.PORT,
    )


def write_netlist(path: str | os.PathLike[str], netlist: Netlist, placement: Placement | None = None) -> None:
    """Writes a netlist that `read_netlist` reads back equal; gzipped if `path` ends in `.gz`, whole or not at all.

    Pins are named after their macro (`NAME/p0`, `NAME/p1`, …), since a `Netlist` has no pin names.

    Args:
        path: the file.
        netlist: what to write.
        placement: if given, the nodes' positions and orientations are written too.

    Raises:
        DesignError: the netlist has a form that the format cannot express: nets not in the order of their drivers, a
            pin that drives two nets, a soft macro whose name does not begin with `Grp`, a name used twice.
        OSError: the folder does not exist or cannot be written.
    """
    data = netlist_text(netlist, placement).encode("utf-8")
    write_whole(path, gzip.compress(data, 9, mtime=0) if Path(path).name.endswith(".gz") else data)


def netlist_text(netlist: Netlist, placement: Placement | None = None) -> str:
    """The text that `write_netlist` writes."""
    _check_names(netlist)
    slots, pin_names = _slots(netlist)
    net_of = _net_of_driver(netlist)
    own_pin = {int(node): pin for pin, node in enumerate(netlist.pin_node) if netlist.kind[node] >= NodeKind.PORT}
    net_pins, start = netlist.net_pins.tolist(), netlist.net_start.tolist()
    texts: list[str] = []
    drivers: list[int] = []
    for node, pin in slots:
        net = net_of.get(own_pin.get(node, -1) if pin is None else pin)
        if pin is None:
            name, attributes = netlist.names[node], _node_attributes(netlist, node, placement)
        else:
            name, attributes = pin_names[pin], _pin_attributes(netlist, pin)
        sinks: list[str] = []
        if net is not None:
            drivers.append(net)
            sinks = [pin_names[sink] for sink in net_pins[start[net] + 1 : start[net + 1]]]
            if netlist.net_weight[net] != 1:
                attributes.append(("weight", float(netlist.net_weight[net])))
        texts.append(_node_text(name, sinks, attributes))
    if drivers != list(range(netlist.num_nets)):
        raise DesignError("the nets are not in the order of their drivers in the file")
    return "".join(texts)


def _check_names(netlist: Netlist) -> None:
    for node in netlist.soft:
        if not netlist.names[node].startswith(SOFT_MACRO_PREFIX):
            raise DesignError(f"soft macro {netlist.names[node]!r}: its name must begin with {SOFT_MACRO_PREFIX!r}")
    for node in netlist.hard:
        if netlist.names[node].startswith(SOFT_MACRO_PREFIX):
            raise DesignError(f"hard macro {netlist.names[node]!r}: its name must not begin with {SOFT_MACRO_PREFIX!r}")
    if METADATA in netlist.names:
        raise DesignError(f"no node may be called {METADATA!r}")


def _slots(netlist: Netlist) -> tuple[list[tuple[int, int | None]], list[str]]:
    """(node, pin) of each text node in file order, pin being None for nodes; and the pins' names [P]."""
    counts: dict[int, int] = {}
    pin_names, macro_pins = [], []
    for pin, node in enumerate(netlist.pin_node.tolist()):
        if netlist.kind[node] >= NodeKind.PORT:
            pin_names.append(netlist.names[node])
            continue
        number = counts.setdefault(node, 0)
        pin_names.append(f"{netlist.names[node]}/p{number}")
        counts[node] = number + 1
        macro_pins.append((node, pin))
    nodes = dict(zip(netlist.file_index.tolist(), range(netlist.num_nodes), strict=True))
    remaining = iter(macro_pins)
    slots: list[tuple[int, int | None]] = [
        (nodes[position], None) if position in nodes else next(remaining, (-1, None))
        for position in range(netlist.num_nodes + len(macro_pins))
    ]
    texts = {pin_names[pin] if pin is not None else netlist.names[node] for node, pin in slots}
    if len(nodes) != netlist.num_nodes or (-1, None) in slots or len(texts) != len(slots):
        raise DesignError("the netlist's file indices or names do not make a file")
    return slots, pin_names


def _net_of_driver(netlist: Netlist) -> dict[int, int]:
    drivers = netlist.net_pins[netlist.net_start[:-1]].tolist()
    if len(set(drivers)) != len(drivers):
        raise DesignError("a pin drives two nets")
    if (np.diff(netlist.net_start) < 2).any():
        raise DesignError("a net has no sink")
    return {driver: net for net, driver in enumerate(drivers)}


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
