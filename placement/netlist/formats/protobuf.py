"""Reader of netlists in Circuit Training's format, a text-format graph proto (`netlist.pb.txt`, also gzip).

A node is a `macro` (soft if its name begins with `Grp`, else hard), a `macro_pin`, a `port` or a `stdcell`. Every
node with at least one `input` drives one net whose sinks are its inputs and whose weight is its `weight` attribute
(1 if absent). Node indices in `.plc` files count all nodes but `__metadata__`, from 0, in file order.
"""

from __future__ import annotations

import os

import numpy as np

from placement.netlist.design import LARGEST, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import read_text
from placement.netlist.formats.text_format import TextFile, TextNode, parse_nodes

METADATA = "__metadata__"
SOFT_MACRO_PREFIX = "Grp"
_TYPES = ("macro", "macro_pin", "port", "stdcell")


def read_netlist(path: str | os.PathLike[str]) -> Netlist:
    """The netlist in a file; raises DesignError with file and line of whatever is wrong."""
    return read_located_netlist(path)[0]


def read_located_netlist(path: str | os.PathLike[str]) -> tuple[Netlist, Placement]:
    """The netlist in a file, and the positions and orientations that its nodes' attributes give.

    Nodes without `x` and `y` are not placed; ports are fixed. Raises DesignError as `read_netlist`.
    """
    file = TextFile(path, read_text(path))
    nodes = [node for node in parse_nodes(file) if node.name != METADATA]
    if not nodes:
        raise DesignError(f"{path}: holds no nodes; expected a netlist as a text-format graph proto")
    return _Builder(file, nodes).build()


class _Builder:
    """Turns text nodes into arrays, checking every reference and value."""

    def __init__(self, file: TextFile, nodes: list[TextNode]) -> None:
        self.file = file
        self.nodes = nodes
        self.by_name: dict[str, int] = {}
        for index, node in enumerate(nodes):
            assert node.name is not None
            if self.by_name.setdefault(node.name, index) != index:
                first = file.text.count("\n", 0, nodes[self.by_name[node.name]].at) + 1
                raise file.error(node.at, f"duplicate node name {node.name!r}, first used on line {first}")
        self.types = [self.type_of(node) for node in nodes]

    def build(self) -> tuple[Netlist, Placement]:
        """The netlist and the placement that the attributes give."""
        located = [index for index, kind in enumerate(self.types) if kind != "macro_pin"]
        node_of = {index: number for number, index in enumerate(located)}
        pin_of, pin_columns = self.pins(node_of)
        weight, start, net_pins = self.nets(node_of, pin_of, pin_columns)
        width, height = self.sizes(located)
        netlist = Netlist(
            names=tuple(self.nodes[index].name or "" for index in located),
            kind=np.array([self.kind_of(index) for index in located], dtype=np.int8),
            width=width,
            height=height,
            file_index=np.array(located, dtype=np.int32),
            pin_node=np.array(pin_columns[0], dtype=np.int32),
            pin_dx=np.array(pin_columns[1], dtype=np.float64),
            pin_dy=np.array(pin_columns[2], dtype=np.float64),
            net_weight=weight,
            net_start=start,
            net_pins=net_pins,
        )
        return netlist, self.positions(located, netlist)

    def type_of(self, node: TextNode) -> str:
        value, at = node.attributes.get("type", (None, node.at))
        if not isinstance(value, str) or value.lower() not in _TYPES:
            what = "has no type" if "type" not in node.attributes else f"has the unknown type {value!r}"
            raise self.file.error(at, f"node {node.name!r} {what}; must be one of {', '.join(_TYPES)}")
        return value.lower()

    def kind_of(self, index: int) -> NodeKind:
        if self.types[index] == "macro":
            is_soft = (self.nodes[index].name or "").startswith(SOFT_MACRO_PREFIX)
            return NodeKind.SOFT if is_soft else NodeKind.HARD
        return NodeKind.PORT if self.types[index] == "port" else NodeKind.CELL

    def number(self, node: TextNode, key: str, default: float | None) -> float:
        """A finite number among the attributes; without a `default` it must be there."""
        entry = node.attributes.get(key)
        if entry is None:
            if default is None:
                raise self.file.error(node.at, f"node {node.name!r} has no {key}")
            return default
        value, at = entry
        if isinstance(value, bool) or not isinstance(value, float) or not abs(value) <= LARGEST:
            message = f"{key} of node {node.name!r} is {value!r}; must be a finite number up to ±{LARGEST:g}"
            raise self.file.error(at, message)
        return value

    def sizes(self, located: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Width and height of the located nodes, µm; 0 for ports."""
        columns = {key: np.zeros(len(located)) for key in ("width", "height")}
        for number, index in enumerate(located):
            if self.types[index] == "port":
                continue
            node = self.nodes[index]
            for key, column in columns.items():
                column[number] = value = self.number(node, key, None)
                if value < 0 or (value == 0 and self.kind_of(index) == NodeKind.HARD):
                    least = "above 0" if self.kind_of(index) == NodeKind.HARD else "at least 0"
                    raise self.file.error(
                        node.attributes[key][1], f"{key} of node {node.name!r} is {value}; must be {least} µm"
                    )
        return columns["width"], columns["height"]

    def pins(self, node_of: dict[int, int]) -> tuple[dict[int, int], tuple[list[int], list[float], list[float]]]:
        """The pin of each text node that has one, and the pins' node, dx and dy."""
        pin_of: dict[int, int] = {}
        pin_node: list[int] = []
        pin_dx: list[float] = []
        pin_dy: list[float] = []
        for index, node in enumerate(self.nodes):
            if self.types[index] == "macro":
                continue
            pin_of[index] = len(pin_node)
            is_macro_pin = self.types[index] == "macro_pin"
            pin_node.append(node_of[self.macro_of(node)] if is_macro_pin else node_of[index])
            pin_dx.append(self.number(node, "x_offset", 0.0) if is_macro_pin else 0.0)
            pin_dy.append(self.number(node, "y_offset", 0.0) if is_macro_pin else 0.0)
        return pin_of, (pin_node, pin_dx, pin_dy)

    def macro_of(self, pin: TextNode) -> int:
        value, at = pin.attributes.get("macro_name", (None, pin.at))
        if not isinstance(value, str):
            raise self.file.error(at, f"pin {pin.name!r} has no macro_name")
        macro = self.by_name.get(value)
        if macro is None or self.types[macro] != "macro":
            what = "does not exist" if macro is None else f"is a {self.types[macro]}"
            raise self.file.error(at, f"pin {pin.name!r} sits on macro {value!r}, which {what}")
        return macro

    def nets(
        self, node_of: dict[int, int], pin_of: dict[int, int], pin_columns: tuple[list[int], list[float], list[float]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """net_weight [E], net_start [E+1] and net_pins [L]; a macro named in a net gets a pin at its centre."""
        weights: list[float] = []
        starts = [0]
        net_pins: list[int] = []

        def pin(index: int) -> int:
            if index not in pin_of:
                pin_of[index] = len(pin_columns[0])
                pin_columns[0].append(node_of[index])
                pin_columns[1].append(0.0)
                pin_columns[2].append(0.0)
            return pin_of[index]

        for index, node in enumerate(self.nodes):
            if not node.inputs:
                continue
            net_pins.append(pin(index))
            for sink, at in zip(node.inputs, node.inputs_at, strict=True):
                sink_index = self.by_name.get(sink)
                if sink_index is None:
                    raise self.file.error(at, f"node {node.name!r} drives {sink!r}, which does not exist")
                net_pins.append(pin(sink_index))
            starts.append(len(net_pins))
            weights.append(self.number(node, "weight", 1.0))
            if weights[-1] < 0:
                at = node.attributes["weight"][1]
                raise self.file.error(at, f"weight of node {node.name!r} is {weights[-1]}; must be at least 0")
        return np.array(weights), np.array(starts, dtype=np.int32), np.array(net_pins, dtype=np.int32)

    def positions(self, located: list[int], netlist: Netlist) -> Placement:
        """What the nodes' x, y and orientation attributes say."""
        x, y = np.zeros(len(located)), np.zeros(len(located))
        placed = np.zeros(len(located), dtype=np.bool_)
        orientation = np.zeros(len(located), dtype=np.int8)
        for number, index in enumerate(located):
            node = self.nodes[index]
            placed[number] = "x" in node.attributes and "y" in node.attributes
            if placed[number]:
                x[number], y[number] = self.number(node, "x", None), self.number(node, "y", None)
            value, at = node.attributes.get("orientation", ("N", node.at))
            if value not in Orientation.__members__:
                known = ", ".join(Orientation.__members__)
                raise self.file.error(at, f"orientation of node {node.name!r} is {value!r}; must be one of {known}")
            orientation[number] = Orientation[str(value)]
        return Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=netlist.kind == NodeKind.PORT)
