"""Reader of flat netlists in Circuit Training's text-format protobuf, standard cells inside.

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
from placement.netlist.design import Orientation
from placement.netlist.errors import DesignError
from placement.netlist.formats.findings import SHOWN, refuse
from placement.netlist.formats.text_format import TextFile, TextNode, parse_nodes

TYPES = ("macro", "macro_pin", "port", "stdcell")
MACRO, MACRO_PIN, PORT, CELL = range(4)
_METADATA = "__metadata__"
_NUMBERS = ("width", "height", "x", "y", "x_offset", "y_offset", "weight")


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
        columns = _columns_of_text(path, data)
    refuse(path, columns.pop("findings"))
    if not columns["names"]:
        raise DesignError(f"{path}: holds no nodes; expected a netlist as a text-format graph proto")
    begin = columns.pop("begin")
    for column in columns.values():
        if isinstance(column, np.ndarray):
            column.setflags(write=False)
    nodes = FlatNodes(path=str(path), source=source, line=_lines(data, begin), **columns)
    _check(nodes)
    return nodes


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


def _columns_of_text(path: str | os.PathLike[str], data: bytes) -> dict[str, Any]:
    """The same columns as the native reader's, through the full grammar."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DesignError.at(path, line, f"byte {data[error.start]:#04x} is not UTF-8 text") from None
    file = TextFile(path, text)
    nodes = [node for node in parse_nodes(file) if node.name != _METADATA]
    index: dict[str, int] = {}
    for number, node in enumerate(nodes):
        if index.setdefault(str(node.name), number) != number:
            raise file.error(node.at, f"duplicate node name {node.name!r}")
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
    return columns | {
        "names": [str(node.name) for node in nodes],
        "type": np.array([_choice(file, node, "type", TYPES) for node in nodes], dtype=np.int8),
        "orientation": np.array([_turn(file, node) for node in nodes], dtype=np.int8),
        "macro": np.array([_macro(file, node, index) for node in nodes], dtype=np.int32),
        "master": np.array([-1 if ref is None else masters.setdefault(ref, len(masters)) for ref in refs], np.int32),
        "masters": list(masters),
        "start": np.array(start, dtype=np.int32),
        "sinks": np.array(sinks, dtype=np.int32),
        "begin": _byte_offsets(text, [node.at for node in nodes]),
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
    if isinstance(value, bool) or not isinstance(value, float) or not math.isfinite(value):
        raise file.error(at, f"{key} of node {node.name!r} is {value!r}; must be a finite number")
    return value


def _text(file: TextFile, node: TextNode, key: str) -> str | None:
    value, at = node.attributes.get(key, (None, node.at))
    if key in node.attributes and not isinstance(value, str):
        raise file.error(at, f"{key} of node {node.name!r} is {value!r}; must be a string")
    return value if isinstance(value, str) else None


def _choice(file: TextFile, node: TextNode, key: str, choices: tuple[str, ...]) -> int:
    value = (_text(file, node, key) or "").lower()
    if value not in choices:
        at = node.attributes.get(key, (None, node.at))[1]
        raise file.error(at, f"{key} of node {node.name!r} is {value!r}; must be one of {', '.join(choices)}")
    return choices.index(value)


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
