"""Reader of netlists in Circuit Training's format, a text-format graph proto (`netlist.pb.txt`, also gzip).

A node is a `macro` (soft if its name begins with `Grp`, else hard), a `macro_pin`, a `port` or a `stdcell`. Every
node with at least one `input` drives one net whose sinks are its inputs and whose weight is its `weight` attribute
(1 if absent). Node indices in `.plc` files count all nodes but `__metadata__`, from 0, in file order.
"""

from __future__ import annotations

import os

import numpy as np

from placement.netlist import _native
from placement.netlist.bytes_file import read_bytes
from placement.netlist.design import LARGEST, Netlist, Placement
from placement.netlist.formats import flat_protobuf
from placement.netlist.formats.flat_protobuf import CELL, MACRO, MACRO_PIN, FlatNodes

SOFT_MACRO_PREFIX = "Grp"


def read_netlist(path: str | os.PathLike[str]) -> Netlist:
    """The netlist in a file; raises DesignError with file and line of whatever is wrong."""
    return read_located_netlist(path)[0]


def read_located_netlist(path: str | os.PathLike[str]) -> tuple[Netlist, Placement]:
    """The netlist in a file, and the positions and orientations that its nodes' attributes give.

    Nodes without `x` and `y` are not placed; ports are fixed. Raises DesignError as `read_netlist`.
    """
    data, source = read_bytes(path)
    columns = _native.read_plain_protobuf(data)
    if columns is None or columns["findings"]:
        columns = flat_protobuf.columns_of_text(path, data)  # which refuses the first fault, with the line of the value
    nodes = flat_protobuf.flat_nodes(path, data, source, columns)
    soft = (nodes.type == MACRO) & np.array([name.startswith(SOFT_MACRO_PREFIX) for name in nodes.names])
    _check(nodes, soft, data)
    netlist, located, _ = flat_protobuf.netlist_of(nodes, soft)
    return netlist, flat_protobuf.positions(nodes, netlist, located)


def _check(nodes: FlatNodes, soft: np.ndarray, data: bytes) -> None:
    """Raises DesignError for the first node whose values make no sense, with the line of the value."""

    def refuse(bad: np.ndarray, key: str, message: str) -> None:
        if bad.any():
            index = int(np.argmax(bad))
            file, parsed = flat_protobuf.text_nodes(nodes.path, data)
            value, at = parsed[index].attributes.get(key, (None, parsed[index].at))
            raise file.error(at, message.format(name=parsed[index].name, value=value, key=key))

    for key in flat_protobuf.NUMBERS:
        refuse(np.abs(getattr(nodes, key)) > LARGEST, key, flat_protobuf.OUT_OF_RANGE)
    hard, cells = (nodes.type == MACRO) & ~soft, nodes.type == CELL
    for key in ("width", "height"):
        values = getattr(nodes, key)
        refuse((hard | soft | cells) & np.isnan(values), key, "node {name!r} has no {key}")
        refuse(hard & (values <= 0), key, "{key} of node {name!r} is {value}; must be above 0 µm")
        refuse((soft | cells) & (values < 0), key, "{key} of node {name!r} is {value}; must be at least 0 µm")
    pins, on = nodes.type == MACRO_PIN, np.maximum(nodes.macro, 0)
    refuse(pins & (nodes.macro < 0), "macro_name", "pin {name!r} has no macro_name")
    for number, kind in enumerate(flat_protobuf.TYPES):
        if number != MACRO:
            message = f"pin {{name!r}} sits on macro {{value!r}}, which is a {kind}"
            refuse(pins & (nodes.type[on] == number), "macro_name", message)
    drives = np.diff(nodes.start) > 0
    refuse(drives & (nodes.weight < 0), "weight", "weight of node {name!r} is {value}; must be at least 0")
