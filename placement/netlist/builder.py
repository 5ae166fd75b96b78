"""Building a netlist step by step, in the order in which a file holds it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from placement.netlist.design import Netlist, NodeKind, Placement


@dataclasses.dataclass(frozen=True)
class _NodeEntry:
    name: str
    kind: NodeKind
    width: float
    height: float


@dataclasses.dataclass
class NetlistBuilder:
    """Collects nodes, pins and nets; `build` orders them as a netlist file would.

    Nodes come in the order they were added, each macro followed by its pins; nets in the order of their drivers.
    """

    nodes: list[_NodeEntry] = dataclasses.field(default_factory=list)
    pins: list[tuple[int, float, float]] = dataclasses.field(default_factory=list)
    nets: list[tuple[float, tuple[int, ...]]] = dataclasses.field(default_factory=list)

    def port(self, name: str) -> int:
        """Adds a port; returns its pin."""
        self.nodes.append(_NodeEntry(name, NodeKind.PORT, 0.0, 0.0))
        return self.pin(len(self.nodes) - 1, 0.0, 0.0)

    def macro(self, name: str, kind: NodeKind, width: float, height: float) -> int:
        """Adds a hard or soft macro of µm size; returns its node."""
        self.nodes.append(_NodeEntry(name, kind, width, height))
        return len(self.nodes) - 1

    def pin(self, node: int, dx: float, dy: float) -> int:
        """Adds a pin at µm (dx, dy) from the centre of `node`; returns it."""
        self.pins.append((node, dx, dy))
        return len(self.pins) - 1

    def net(self, weight: float, driver: int, sinks: Sequence[int]) -> None:
        """Adds a net of pins."""
        self.nets.append((weight, (driver, *sinks)))

    def build(self) -> Netlist:
        """The netlist; raises DesignError where names repeat or values make no sense."""
        pins_of: list[list[int]] = [[] for _ in self.nodes]
        for pin, (owner, _, _) in enumerate(self.pins):
            pins_of[owner].append(pin)
        file_index, order = [], []
        position = 0
        for node, its_pins in zip(self.nodes, pins_of, strict=True):
            file_index.append(position)
            order += its_pins
            position += 1 + (0 if node.kind in (NodeKind.PORT, NodeKind.CELL) else len(its_pins))
        number = {pin: rank for rank, pin in enumerate(order)}
        nets = sorted((number[pins[0]], weight, [number[pin] for pin in pins]) for weight, pins in self.nets)
        columns = [self.pins[pin] for pin in order]
        return Netlist(
            names=tuple(node.name for node in self.nodes),
            kind=np.array([node.kind for node in self.nodes], dtype=np.int8),
            width=np.array([node.width for node in self.nodes]),
            height=np.array([node.height for node in self.nodes]),
            file_index=np.array(file_index, dtype=np.int32),
            pin_node=np.array([owner for owner, _, _ in columns], dtype=np.int32),
            pin_dx=np.array([dx for _, dx, _ in columns]),
            pin_dy=np.array([dy for _, _, dy in columns]),
            net_weight=np.array([weight for _, weight, _ in nets]),
            net_start=np.cumsum([0, *(len(pins) for _, _, pins in nets)], dtype=np.int32),
            net_pins=np.array([pin for _, _, pins in nets for pin in pins], dtype=np.int32),
        )


def all_placed(netlist: Netlist, x: np.ndarray, y: np.ndarray) -> Placement:
    """A placement of all nodes at `x`, `y` (float64 [N], µm) in orientation N, of which only ports are fixed."""
    whole = np.ones(netlist.num_nodes, dtype=np.bool_)
    return Placement(x, y, orientation=np.zeros(netlist.num_nodes), placed=whole, fixed=netlist.kind == NodeKind.PORT)
