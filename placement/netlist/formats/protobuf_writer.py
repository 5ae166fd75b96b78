"""Writer of netlists in Circuit Training's text format, which `placement.netlist.formats.protobuf` reads back equal."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np

from placement.netlist.design import Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.flat_protobuf import METADATA
from placement.netlist.formats.protobuf import SOFT_MACRO_PREFIX

_TYPE = {NodeKind.HARD: "MACRO", NodeKind.SOFT: "macro", NodeKind.PORT: "PORT", NodeKind.CELL: "STDCELL"}
_PIN_TYPE = {NodeKind.HARD: "MACRO_PIN", NodeKind.SOFT: "macro_pin"}


def write_netlist(path: str | os.PathLike[str], netlist: Netlist, placement: Placement | None = None) -> None:
    """Writes `netlist`, gzipped if `path` ends in `.gz`, whole or not at all.

    Pins are named after their macro (`NAME/p0`, `NAME/p1`, …), since a `Netlist` keeps no pin names.

    Args:
        path: the file.
        netlist: what to write.
        placement: where given, the nodes' positions and orientations are written too.

    Raises:
        DesignError: the netlist has a form that the format cannot hold: nets not in the order of their drivers, a pin
            that drives two nets, a soft macro whose name does not begin with `Grp`, a name used twice.
        OSError: the folder does not exist or cannot be written.
    """
    data = netlist_text(netlist, placement).encode("utf-8")
    write_whole(path, gzip.compress(data, 9, mtime=0) if Path(path).name.endswith(".gz") else data)


def netlist_text(netlist: Netlist, placement: Placement | None = None) -> str:
    """The text that `write_netlist` writes."""
    slots, pin_names = _slots(netlist)
    net_of = _net_of_driver(netlist)
    own_pin = {
        int(node): pin
        for pin, node in enumerate(netlist.pin_node)
        if netlist.kind[node] in (NodeKind.PORT, NodeKind.CELL)
    }
    net_pins, start = netlist.net_pins.tolist(), netlist.net_start.tolist()
    parts = []
    drivers = []
    for node, pin in slots:
        driver = pin if pin is not None else own_pin.get(node, -1)
        net = net_of.get(driver)
        attributes = _pin_attributes(netlist, pin) if pin is not None else _node_attributes(netlist, node, placement)
        sinks: list[str] = []
        if net is not None:
            drivers.append(net)
            sinks = [pin_names[sink] for sink in net_pins[start[net] + 1 : start[net + 1]]]
            if netlist.net_weight[net] != 1:
                attributes.append(("weight", float(netlist.net_weight[net])))
        parts.append(_node_text(pin_names[pin] if pin is not None else netlist.names[node], sinks, attributes))
    if drivers != list(range(netlist.num_nets)):
        raise DesignError("the nets are not in the order of their drivers in the file")
    return "".join(parts)


def _slots(netlist: Netlist) -> tuple[list[tuple[int, int | None]], list[str]]:
    """(node, pin) of each text node in file order, pin being None for nodes; and the pins' names [P]."""
    counts: dict[int, int] = {}
    names = []
    macro_pins = []
    for pin, node in enumerate(netlist.pin_node.tolist()):
        if netlist.kind[node] in (NodeKind.PORT, NodeKind.CELL):
            names.append(netlist.names[node])
            continue
        names.append(f"{netlist.names[node]}/p{counts.setdefault(node, 0)}")
        counts[node] += 1
        macro_pins.append((node, pin))
    nodes = dict(zip(netlist.file_index.tolist(), range(netlist.num_nodes), strict=True))
    remaining = iter(macro_pins)
    slots: list[tuple[int, int | None]] = []
    for position in range(netlist.num_nodes + len(macro_pins)):
        if position in nodes:
            slots.append((nodes[position], None))
        else:
            slots.append(next(remaining, (-1, None)))
    texts = [names[pin] if pin is not None else netlist.names[node] for node, pin in slots]
    if len(nodes) != netlist.num_nodes or (-1, None) in slots or len(set(texts)) != len(texts):
        raise DesignError("the netlist's file indices or names do not make a file")
    for node in netlist.soft:
        if not netlist.names[node].startswith(SOFT_MACRO_PREFIX):
            raise DesignError(f"soft macro {netlist.names[node]!r}: its name must begin with {SOFT_MACRO_PREFIX!r}")
    for node in netlist.hard:
        if netlist.names[node].startswith(SOFT_MACRO_PREFIX):
            raise DesignError(f"hard macro {netlist.names[node]!r}: its name must not begin with {SOFT_MACRO_PREFIX!r}")
    if METADATA in texts:
        raise DesignError(f"no node may be called {METADATA!r}")
    return slots, names


def _net_of_driver(netlist: Netlist) -> dict[int, int]:
    drivers = netlist.net_pins[netlist.net_start[:-1]].tolist()
    if len(set(drivers)) != len(drivers):
        raise DesignError("a pin drives two nets")
    if (np.diff(netlist.net_start) < 2).any():
        raise DesignError("a net has no sink")
    return {driver: net for net, driver in enumerate(drivers)}


def _node_attributes(netlist: Netlist, node: int, placement: Placement | None) -> list[tuple[str, str | float]]:
    kind = NodeKind(netlist.kind[node])
    attributes: list[tuple[str, str | float]] = [("type", _TYPE[kind])]
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
    return [
        ("type", _PIN_TYPE[NodeKind(netlist.kind[node])]),
        ("macro_name", netlist.names[node]),
        ("x_offset", float(netlist.pin_dx[pin])),
        ("y_offset", float(netlist.pin_dy[pin])),
    ]


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
