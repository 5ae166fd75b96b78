"""Builds a netlist step by step, in the order of a file."""

from collections.abc import Sequence

import numpy as np

from placement.netlist.design import Netlist, NodeKind, Placement


class NetlistBuilder:
    """Collects nodes, pins and nets; `build` orders them as a netlist file would.

    Nodes come in the order they were added, each macro followed by its pins; nets in the order of their drivers.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[str, NodeKind, float, float]] = []
        self.pins: list[tuple[int, float, float]] = []
        self.nets: list[tuple[float, tuple[int, ...]]] = []

    def port(self, name: str) -> int:
        """Adds a port; returns its pin."""
        return self.pin(self.macro(name, NodeKind.PORT, 0.0, 0.0), 0.0, 0.0)

    def macro(self, name: str, kind: NodeKind, width: float, height: float) -> int:
        """Adds a hard or soft macro of µm size; returns its node."""
        self.nodes.append((name, kind, width, height))
        return len(self.nodes) - 1

    def pin(self, node: int, dx: float, dy: float) -> int:
        """Adds a pin at µm (dx, dy) from the centre of `node`; returns it."""
        self.pins.append((node, dx, dy))
        return len(self.pins) - 1

    def net(self, weight: float, driver: int, sinks: Sequence[int]) -> None:
        """Adds a net of pins."""
        self.nets.append((weight, (driver, *sinks)))

    def build(self) -> Netlist:
        """The netlist; raises DesignError for repeated names or invalid values."""
        order = sorted(range(len(self.pins)), key=lambda pin: self.pins[pin][0])
        number = {pin: rank for rank, pin in enumerate(order)}
        nets = sorted((number[pins[0]], weight, [number[pin] for pin in pins]) for weight, pins in self.nets)
        kind = np.array([kind for _, kind, _, _ in self.nodes], dtype=np.int8)
        pin_node = np.array([self.pins[pin][0] for pin in order], dtype=np.int32)
        return Netlist(
            names=tuple(name for name, _, _, _ in self.nodes),
            kind=kind,
            width=np.array([width for _, _, width, _ in self.nodes]),
            height=np.array([height for _, _, _, height in self.nodes]),
            file_index=file_indices(kind, pin_node),
            pin_node=pin_node,
            pin_dx=np.array([self.pins[pin][1] for pin in order]),
            pin_dy=np.array([self.pins[pin][2] for pin in order]),
            net_weight=np.array([weight for _, weight, _ in nets]),
            net_start=np.cumsum([0, *(len(pins) for _, _, pins in nets)], dtype=np.int32),
            net_pins=np.array([pin for _, _, pins in nets for pin in pins], dtype=np.int32),
        )


def file_indices(kind: np.ndarray, pin_node: np.ndarray) -> np.ndarray:
    """The nodes' indices in `.plc` files, int32 [N]; each macro is followed by its pins there."""
    pins = np.bincount(pin_node, minlength=len(kind))
    taken = 1 + np.where((kind == NodeKind.HARD) | (kind == NodeKind.SOFT), pins, 0)
    return (np.cumsum(taken) - taken).astype(np.int32)


def all_placed(netlist: Netlist, x: np.ndarray, y: np.ndarray) -> Placement:
    """A placement of all nodes at `x`, `y` (float64 [N], µm) in orientation N, of which only ports are fixed."""
    whole = np.ones(netlist.num_nodes, dtype=np.bool_)
    return Placement(x, y, orientation=np.zeros(netlist.num_nodes), placed=whole, fixed=netlist.kind == NodeKind.PORT)
