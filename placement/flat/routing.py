"""Routing estimate: the wirelength of placed cells including the detours of their wires, and the overflow.

A global router in C++ on a grid of gcells: trees over the pins, L and Z shapes, then rip-up and reroute with prices
that grow where demand exceeds capacity (McMurchie, Ebeling: "PathFinder", FPGA 1995; the patterns as in FastRoute,
ICCAD 2006).

Axis legend: N nodes, E nets, L net-pin incidences, X gcells across, Y gcells up, F rectangles. Lengths in µm.
"""

from __future__ import annotations

import dataclasses
import time
from typing import NamedTuple

import numpy as np

from placement.flat import _native
from placement.flat.problem import MOST_PINS, Core, counted_nets, fixed_rectangles, pin_offsets
from placement.netlist.design import Canvas, Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError

_SAMPLES = 4  # cross-sections per gcell and axis; the narrowest counts


@dataclasses.dataclass(frozen=True)
class RoutingResources:
    """The tracks of a technology, and the router's grid. Raises DesignError if a value is out of range."""

    horizontal: float  # horizontal, vertical: routing tracks per µm
    vertical: float
    macro_horizontal: float  # macro_horizontal, macro_vertical: tracks per µm that a hard macro blocks
    macro_vertical: float
    gcell: float = 10.0  # maximum side of a gcell in µm; ten microns are about seven rows of NanGate45 cells
    rounds: int = 8  # maximum number of rounds of rip-up and reroute

    def __post_init__(self) -> None:
        for field in ("horizontal", "vertical", "gcell"):
            if not (np.isfinite(getattr(self, field)) and getattr(self, field) > 0):
                raise DesignError(f"{field}: {getattr(self, field)} must be a finite number above 0")
        for field, most in (("macro_horizontal", self.horizontal), ("macro_vertical", self.vertical)):
            if not 0 <= getattr(self, field) <= most:
                raise DesignError(f"{field}: {getattr(self, field)} must be at least 0 and at most {most}")
        if self.rounds < 0:
            raise DesignError(f"rounds: {self.rounds} must be at least 0")

    @classmethod
    def of(cls, canvas: Canvas) -> RoutingResources:
        """Returns the resources of a canvas."""
        return cls(
            horizontal=canvas.routes_horizontal,
            vertical=canvas.routes_vertical,
            macro_horizontal=canvas.macro_routes_horizontal,
            macro_vertical=canvas.macro_routes_vertical,
        )


class RoutingEstimate(NamedTuple):
    """The result of the router."""

    routed_wirelength: float  # length of the trees including detours, in µm
    tree_wirelength: float  # length of the trees without detours, in µm
    overflow: float  # share of the demand (µm of wire) above capacity, in both directions together
    # horizontal, vertical: float64 [X, Y], demand over capacity of the fuller edge of each gcell
    horizontal: np.ndarray
    vertical: np.ndarray
    seconds: float  # processor time


def route_estimate(netlist: Netlist, placement: Placement, core: Core, resources: RoutingResources) -> RoutingEstimate:
    """Routes the counted nets on gcells.

    Args:
        netlist: a netlist with standard cells.
        placement: positions of all nodes.
        core: the area; its blockages and halos apply to cells and do not block wires.
        resources: tracks and gcells.

    Raises:
        DesignError: a node has no position, or there is no net to route.
    """
    begun = time.process_time()
    missing = np.flatnonzero(~placement.placed)
    if len(missing):
        raise DesignError(f"node {netlist.names[missing[0]]!r} has no position ({len(missing)} such nodes)")
    across, up = (max(int(np.ceil(side / resources.gcell)), 2) for side in (core.width, core.height))
    capacity = edge_capacities(netlist, placement, core, resources, (across, up))
    x, y, start = _pins(netlist, placement, core)
    if len(start) < 2:
        raise DesignError(f"the netlist of {netlist.num_nets} nets has none of 2 to {MOST_PINS} pins to route")
    found = _native.route(
        x,
        y,
        start,
        across=across,
        up=up,
        gcell_width=core.width / across,
        gcell_height=core.height / up,
        capacity=np.concatenate([one.ravel() for one in capacity]).astype(np.float32),
        rounds=resources.rounds,
    )
    horizontal, vertical = _fill(found["demand"], capacity)
    return RoutingEstimate(
        routed_wirelength=found["routed_length"],
        tree_wirelength=found["tree_length"],
        overflow=sum(found["excess"]) / max(sum(found["demand_length"]), 1e-9),
        horizontal=horizontal,
        vertical=vertical,
        seconds=time.process_time() - begun,
    )


def edge_capacities(
    netlist: Netlist, placement: Placement, core: Core, resources: RoutingResources, gcells: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the tracks from gcell to gcell: float64 [X-1, Y] horizontally, [X, Y-1] vertically.

    The narrowest cross-section that macros leave between the centres of two gcells counts; a gap that is a dead end
    provides no tracks.
    """
    across, up = gcells
    macros = fixed_rectangles(
        netlist,
        placement,
        dataclasses.replace(core, halo=0.0, blockages=()),
        movable=netlist.kind != NodeKind.HARD,
    )
    width, height = core.width / across, core.height / up
    blocked = _blocked_sections(macros, (across * _SAMPLES, core.width), (up, core.height))
    horizontal = height * (resources.horizontal - resources.macro_horizontal * _narrowest(blocked, across))
    blocked = _blocked_sections(macros[:, [1, 0, 3, 2]], (up * _SAMPLES, core.height), (across, core.width))
    vertical = width * (resources.vertical - resources.macro_vertical * _narrowest(blocked, up))
    return horizontal, vertical.T


def _blocked_sections(boxes: np.ndarray, along: tuple[int, float], side: tuple[int, float]) -> np.ndarray:
    """Returns the covered share of each gcell's side at sections across the wires, float64 [sections, gcells].

    Args:
        boxes: float [F, 4], low and high corners in µm, the direction of the wires first.
        along: number of sections along the wires, and the core's length in µm.
        side: number of gcells side by side, and the core's length in µm.
    """
    at = (np.arange(along[0]) + 0.5) * along[1] / along[0]
    step = side[1] / side[0]
    edges = np.arange(side[0]) * step
    result = np.zeros((along[0], side[0]))
    for low_a, low_b, high_a, high_b in boxes:
        covered = np.clip(np.minimum(edges + step, high_b) - np.maximum(edges, low_b), 0.0, None) / step
        result[(at > low_a) & (at < high_a)] += covered
    return np.minimum(result, 1.0)


def _narrowest(sections: np.ndarray, gcells: int) -> np.ndarray:
    """Returns the largest blocked share between the centres of adjacent gcells, float64 [gcells-1, ·]."""
    half = _SAMPLES // 2
    return sections[half:-half].reshape(gcells - 1, _SAMPLES, -1).max(axis=1)


def _pins(netlist: Netlist, placement: Placement, core: Core) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the pin positions of the counted nets, float32 [L] each, and the start of each net, int32 [E+1]."""
    keep = counted_nets(netlist)
    degree = np.diff(netlist.net_start)
    pins = netlist.net_pins[np.repeat(keep, degree)]
    dx, dy = pin_offsets(netlist, placement.orientation)
    node = netlist.pin_node[pins]
    start = np.concatenate([[0], np.cumsum(degree[keep])]).astype(np.int32)
    x = (placement.x[node] + dx[pins] - core.x).astype(np.float32)
    y = (placement.y[node] + dy[pins] - core.y).astype(np.float32)
    return x, y, start


def _fill(demand: np.ndarray, capacity: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Returns demand over capacity of the fuller of each gcell's two edges, float64 [X, Y] each."""
    horizontal = demand[: capacity[0].size].reshape(capacity[0].shape) / np.maximum(capacity[0], 0.1)
    vertical = demand[capacity[0].size :].reshape(capacity[1].shape) / np.maximum(capacity[1], 0.1)
    sideways = np.pad(horizontal, ((1, 1), (0, 0)))
    upward = np.pad(vertical, ((0, 0), (1, 1)))
    return np.maximum(sideways[:-1], sideways[1:]), np.maximum(upward[:, :-1], upward[:, 1:])
