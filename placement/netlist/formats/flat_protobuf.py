"""The nodes of a netlist in Circuit Training's text-format protobuf as columns, and as a flat netlist.

The nodes are read natively where the file is written as the published tools write it; anything else (escapes, lists,
other quotes) goes through the full grammar of the clustered reader, which also says what is wrong with a bad file.

Axis legend: T text nodes (macros, their pins, ports, cells, in file order), S sinks.
"""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any

import numpy as np

from placement.netlist import _native
from placement.netlist.bytes_file import SourceFile, read_bytes
from placement.netlist.design import LARGEST, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import decoded
from placement.netlist.formats.findings import SHOWN, refuse
from placement.netlist.formats.text_format import TextFile, TextNode, parse_nodes

TYPES = ("macro", "macro_pin", "port", "stdcell")
MACRO, MACRO_PIN, PORT, CELL = range(4)
METADATA = "__metadata__"
OUT_OF_RANGE = f"{{key}} of node {{name!r}} is {{value!r}}; must be a finite number up to ±{LARGEST:g}"
NUMBERS = ("width", "height", "x", "y", "x_offset", "y_offset", "weight")


@dataclasses.dataclass(frozen=True, eq=False)
class FlatNodes:
    """The nodes of a flat protobuf as columns; numbers that are not given are NaN.

    Attributes:
        path: for messages; source: the file's name and checksum.
        names: T names.
        type: int8 [T], places in `TYPES`.
        width, height, x, y, x_offset, y_offset, weight: float64 [T], µm (weight: none).
        orientation: int8 [T], `Orientation` values, -1: none.
        macro: int32 [T], the node that a macro's pin sits on, -1: none.
        master: int32 [T], places in `masters` (attribute `ref_name`), -1: none.
        start: int32 [T+1]; node t drives `sinks[start[t]:start[t+1]]`.
        sinks: int32 [S], nodes.
        line: T line numbers, for messages; None: not known.
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

    def refuse(self, what: str, nodes: np.ndarray) -> None:
        """Raises DesignError if there are such nodes (int [·]), naming the first ten and how many."""
        if len(nodes):
            first = [(int(self.line[node]), self.names[node]) for node in nodes[:SHOWN].tolist()]
            refuse(self.path, [(what, len(nodes), first)])


def read_flat_nodes(path: str | os.PathLike[str]) -> FlatNodes:
    """The nodes of a flat protobuf, plain or gzipped.

    Raises:
        DesignError: with file and line; the text is no graph or is cut, names repeat, nets or pins name what does
            not exist, a macro or a cell has no size, a size or weight makes no sense.
    """
    data, source = read_bytes(path)
    columns = _native.read_plain_protobuf(data)
    if columns is None:
        columns = columns_of_text(path, data)
    refuse(path, columns["findings"])
    nodes = flat_nodes(path, data, source, columns)
    _check(nodes)
    return nodes


def flat_nodes(path: str | os.PathLike[str], data: bytes, source: SourceFile, columns: dict[str, Any]) -> FlatNodes:
    """The nodes from the columns that either reader gives; raises DesignError where there are none."""
    if not columns["names"]:
        raise DesignError(f"{path}: holds no nodes; expected a netlist as a text-format graph proto")
    kept = {name: column for name, column in columns.items() if name not in ("begin", "findings")}
    for column in kept.values():
        if isinstance(column, np.ndarray):
            column.setflags(write=False)
    return FlatNodes(path=str(path), source=source, line=_lines(data, columns["begin"]), **kept)


def _lines(data: bytes, begin: np.ndarray) -> np.ndarray:
    """int64 [T]: the line of each byte of `begin`, which rises."""
    breaks = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    return np.searchsorted(breaks, begin) + 1


def _check(nodes: FlatNodes) -> None:
    """Raises DesignError for values that make no sense."""
    sized = (nodes.type == MACRO) | (nodes.type == CELL)
    for field in ("width", "height"):
        values = getattr(nodes, field)
        nodes.refuse(f"nodes without a {field}", np.flatnonzero(sized & np.isnan(values)))
        nodes.refuse(f"macros whose {field} is not above 0", np.flatnonzero((nodes.type == MACRO) & ~(values > 0)))
        nodes.refuse(f"cells whose {field} is below 0", np.flatnonzero((nodes.type == CELL) & (values < 0)))
    nodes.refuse("nodes whose weight is below 0", np.flatnonzero(nodes.weight < 0))
    is_pin = nodes.type == MACRO_PIN
    nodes.refuse("pins without a macro_name", np.flatnonzero(is_pin & (nodes.macro < 0)))
    on_macro = nodes.type[np.maximum(nodes.macro, 0)] == MACRO
    nodes.refuse("pins on nodes that are no macros", np.flatnonzero(is_pin & ~on_macro))


def text_nodes(path: str | os.PathLike[str], data: bytes) -> tuple[TextFile, list[TextNode]]:
    """The text nodes, as the full grammar reads them; raises DesignError where it cannot."""
    file = TextFile(path, decoded(data, path))
    return file, [node for node in parse_nodes(file) if node.name != METADATA]


def columns_of_text(path: str | os.PathLike[str], data: bytes) -> dict[str, Any]:
    """The same columns as the native reader's, through the full grammar; raises DesignError for the first fault."""
    file, nodes = text_nodes(path, data)
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
        key: np.array([_number(file, node, key) for node in nodes], dtype=np.float64) for key in NUMBERS
    }
    refs = [_text(file, node, "ref_name") for node in nodes]
    return columns | {
        "names": [str(node.name) for node in nodes],
        "type": np.array([_type(file, node) for node in nodes], dtype=np.int8),
        "orientation": np.array([_turn(file, node) for node in nodes], dtype=np.int8),
        "macro": np.array([_macro(file, node, index) for node in nodes], dtype=np.int32),
        "master": np.array([-1 if ref is None else masters.setdefault(ref, len(masters)) for ref in refs], np.int32),
        "masters": list(masters),
        "start": np.array(start, dtype=np.int32),
        "sinks": np.array(sinks, dtype=np.int32),
        "begin": _byte_offsets(file.text, [node.at for node in nodes]),
        "findings": [],
    }


def _byte_offsets(text: str, at: list[int]) -> np.ndarray:
    """int64 [T]: bytes at which characters begin, in UTF-8."""
    if text.isascii():
        return np.array(at, dtype=np.int64)
    lengths = np.fromiter((len(letter.encode()) for letter in text), dtype=np.int64, count=len(text))
    return np.concatenate(([0], np.cumsum(lengths)))[at]


def _number(file: TextFile, node: TextNode, key: str) -> float:
    value, at = node.attributes.get(key, (math.nan, node.at))
    if key not in node.attributes:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, float) or not abs(value) <= LARGEST:
        raise file.error(at, OUT_OF_RANGE.format(key=key, name=node.name, value=value))
    return value


def _text(file: TextFile, node: TextNode, key: str) -> str | None:
    value, at = node.attributes.get(key, (None, node.at))
    if key in node.attributes and not isinstance(value, str):
        raise file.error(at, f"{key} of node {node.name!r} is {value!r}; must be a string")
    return value if isinstance(value, str) else None


def _type(file: TextFile, node: TextNode) -> int:
    value, at = node.attributes.get("type", (None, node.at))
    if not isinstance(value, str) or value.lower() not in TYPES:
        what = "has no type" if "type" not in node.attributes else f"has the unknown type {value!r}"
        raise file.error(at, f"node {node.name!r} {what}; must be one of {', '.join(TYPES)}")
    return TYPES.index(value.lower())


def _turn(file: TextFile, node: TextNode) -> int:
    value = _text(file, node, "orientation")
    if value is None:
        return -1
    if value not in Orientation.__members__:
        known = ", ".join(Orientation.__members__)
        at = node.attributes["orientation"][1]
        raise file.error(at, f"orientation of node {node.name!r} is {value!r}; must be one of {known}")
    return int(Orientation[value])


def _macro(file: TextFile, node: TextNode, index: dict[str, int]) -> int:
    name = _text(file, node, "macro_name")
    if name is None:
        return -1
    if name not in index:
        at = node.attributes["macro_name"][1]
        raise file.error(at, f"pin {node.name!r} sits on macro {name!r}, which does not exist")
    return index[name]


def netlist_of(nodes: FlatNodes, soft: np.ndarray | None = None) -> tuple[Netlist, np.ndarray, np.ndarray]:
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


def positions(nodes: FlatNodes, netlist: Netlist, located: np.ndarray) -> Placement:
    """Where the file says that the nodes stand; ports are fixed."""
    placed = ~(np.isnan(nodes.x[located]) | np.isnan(nodes.y[located]))
    return Placement(
        x=np.where(placed, nodes.x[located], 0.0),
        y=np.where(placed, nodes.y[located], 0.0),
        orientation=np.maximum(nodes.orientation[located], 0),
        placed=placed,
        fixed=netlist.kind == NodeKind.PORT,
    )
