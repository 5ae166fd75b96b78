"""A routing estimate: where the wires of placed cells would run, and what they cost with the detours they need.

A global router on a grid of gcells (in the C++ engine): trees over the pins, L and Z shapes, then rip-up and reroute
with prices that grow where demand stays above capacity (McMurchie, Ebeling: "PathFinder", FPGA 1995; the patterns as in
FastRoute, ICCAD 2006).

Axis legend: N nodes, E nets, L net-pin incidences, X gcells across, Y gcells up, F rectangles. Lengths in µm.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.flat import _route
from placement.flat.core import Core
from placement.flat.problem import MOST_PINS, counted_nets, fixed_rectangles, pin_offsets
from placement.netlist.design import Canvas, Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError

_SAMPLES = 4  # cross-sections of a gcell, across and up, of which the narrowest counts


class Layer(NamedTuple):
    """A routing layer.

    Attributes:
        horizontal: whether its wires run across.
        pitch: µm between tracks.
        usable: share of the tracks that signals get; power, vias and pins take the others.
        blocked: whether macros block it.
    """

    horizontal: bool
    pitch: float
    usable: float
    blocked: bool


@dataclasses.dataclass(frozen=True)
class RoutingResources:
    """What the technology offers.

    Attributes:
        horizontal, vertical: routing tracks per µm.
        macro_horizontal, macro_vertical: of these blocked by a hard macro.
        macro_extension: µm around a macro that it blocks, too, for its pins' own wires.
        gcell: side of a gcell, µm, at most; ten microns are about seven rows of NanGate45 cells.
        rounds: of rip-up and reroute, at most.

    Raises:
        DesignError: a value is out of range.
    """

    horizontal: float
    vertical: float
    macro_horizontal: float
    macro_vertical: float
    macro_extension: float = 0.0
    gcell: float = 10.0
    rounds: int = 8

    def __post_init__(self) -> None:
        for field in ("horizontal", "vertical", "gcell"):
            if not (np.isfinite(getattr(self, field)) and getattr(self, field) > 0):
                raise DesignError(f"{field}: {getattr(self, field)} must be a finite number above 0")
        for field, most in (("macro_horizontal", self.horizontal), ("macro_vertical", self.vertical)):
            if not 0 <= getattr(self, field) <= most:
                raise DesignError(f"{field}: {getattr(self, field)} must be at least 0 and at most {most}")
        if not (np.isfinite(self.macro_extension) and self.macro_extension >= 0):
            raise DesignError(f"macro_extension: {self.macro_extension} must be a finite number of at least 0")
        if self.rounds < 0:
            raise DesignError(f"rounds: {self.rounds} must be at least 0")

    @classmethod
    def of_layers(cls, layers: Sequence[Layer], *, macro_extension: float = 0.0) -> RoutingResources:
        """Those of a technology's layers (pitch from its LEF, `blocked` from the macros' OBS)."""
        tracks = [layer.usable / layer.pitch for layer in layers]
        both = list(zip(layers, tracks, strict=True))
        return cls(
            horizontal=sum(count for layer, count in both if layer.horizontal),
            vertical=sum(count for layer, count in both if not layer.horizontal),
            macro_horizontal=sum(count for layer, count in both if layer.horizontal and layer.blocked),
            macro_vertical=sum(count for layer, count in both if not layer.horizontal and layer.blocked),
            macro_extension=macro_extension,
        )

    @classmethod
    def of(cls, canvas: Canvas) -> RoutingResources:
        """Those of a canvas."""
        return cls(
            horizontal=canvas.routes_horizontal,
            vertical=canvas.routes_vertical,
            macro_horizontal=canvas.macro_routes_horizontal,
            macro_vertical=canvas.macro_routes_vertical,
        )


# Pitches: the technology's LEF. Usable shares and the extension around macros (two gcells of 15 tracks of metal3): the
# adjustments that OpenROAD's platform for NanGate45 gives its global router (flow/platforms/nangate45/fastroute.tcl).
# Blocked: OBS of the fakeram45 memories, metal1 to metal4. Signals do not use metal1.
NANGATE45 = RoutingResources.of_layers(
    [
        Layer(horizontal=False, pitch=0.19, usable=0.2, blocked=True),  # metal2
        Layer(horizontal=True, pitch=0.14, usable=0.3, blocked=True),
        Layer(horizontal=False, pitch=0.28, usable=0.75, blocked=True),
        Layer(horizontal=True, pitch=0.28, usable=0.75, blocked=False),
        Layer(horizontal=False, pitch=0.28, usable=0.75, blocked=False),
        Layer(horizontal=True, pitch=0.8, usable=0.75, blocked=False),
        Layer(horizontal=False, pitch=0.8, usable=0.75, blocked=False),
        Layer(horizontal=True, pitch=1.6, usable=0.75, blocked=False),
        Layer(horizontal=False, pitch=1.6, usable=0.75, blocked=False),  # metal10
    ],
    macro_extension=4.2,
)


class RoutingEstimate(NamedTuple):
    """What routing would need.

    Attributes:
        routed_wirelength: µm, the trees' lengths and the detours.
        tree_wirelength: µm, without the detours.
        overflow: share of the demand (µm of wire) above capacity, both directions.
        horizontal_overflow, vertical_overflow: of each direction.
        horizontal, vertical: float64 [X, Y], demand over capacity, the fuller edge of each gcell.
        rounds: of rip-up and reroute.
        seconds: processor time.
    """

    routed_wirelength: float
    tree_wirelength: float
    overflow: float
    horizontal_overflow: float
    vertical_overflow: float
    horizontal: np.ndarray
    vertical: np.ndarray
    rounds: int
    seconds: float


def route_estimate(
    netlist: Netlist,
    placement: Placement,
    core: Core,
    resources: RoutingResources,
    *,
    most_pins: int = MOST_PINS,
) -> RoutingEstimate:
    """Routes the nets of 2 to `most_pins` pins on gcells.

    Args:
        netlist: with standard cells.
        placement: where every node stands.
        core: the area; its blockages and halos are for cells and do not block wires.
        resources: tracks and gcells.
        most_pins: nets of more pins are left out.

    Raises:
        DesignError: a node has no position, or there is no net to route.
    """
    begun = time.process_time()
    missing = np.flatnonzero(~placement.placed)
    if len(missing):
        raise DesignError(f"node {netlist.names[missing[0]]!r} has no position ({len(missing)} such nodes)")
    across, up = (max(int(np.ceil(side / resources.gcell)), 2) for side in (core.width, core.height))
    capacity = edge_capacities(netlist, placement, core, resources, (across, up))
    x, y, start = _pins(netlist, placement, core, most_pins)
    if len(start) < 2:
        raise DesignError(f"the netlist of {netlist.num_nets} nets has none of 2 to {most_pins} pins to route")
    found = _route.route(
        x,
        y,
        start,
        across=across,
        up=up,
        gcell_width=core.width / across,
        gcell_height=core.height / up,
        capacity=np.concatenate([part.ravel() for part in capacity]).astype(np.float32),
        rounds=resources.rounds,
    )
    horizontal, vertical = _fill(found["demand"], capacity)
    over, demand = found["excess"], found["demand_length"]
    return RoutingEstimate(
        routed_wirelength=found["routed_length"],
        tree_wirelength=found["tree_length"],
        overflow=sum(over) / max(sum(demand), 1e-9),
        horizontal_overflow=over[0] / max(demand[0], 1e-9),
        vertical_overflow=over[1] / max(demand[1], 1e-9),
        horizontal=horizontal,
        vertical=vertical,
        rounds=found["rounds"],
        seconds=time.process_time() - begun,
    )


def edge_capacities(
    netlist: Netlist, placement: Placement, core: Core, resources: RoutingResources, gcells: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Tracks that cross from gcell to gcell: float64 [X-1, Y] horizontally, [X, Y-1] vertically.

    Between two gcells' centres the cross-section that macros leave narrowest counts: a gap that does not lead
    through does not help.
    """
    across, up = gcells
    macros = fixed_rectangles(
        netlist,
        placement,
        dataclasses.replace(core, halo=resources.macro_extension, blockages=()),
        movable=netlist.kind != NodeKind.HARD,
    )
    width, height = core.width / across, core.height / up
    blocked = _blocked_sections(macros, (across * _SAMPLES, core.width), (up, core.height))
    horizontal = height * (resources.horizontal - resources.macro_horizontal * _narrowest(blocked, across))
    blocked = _blocked_sections(macros[:, [1, 0, 3, 2]], (up * _SAMPLES, core.height), (across, core.width))
    vertical = width * (resources.vertical - resources.macro_vertical * _narrowest(blocked, up))
    return horizontal, vertical.T


def _blocked_sections(boxes: np.ndarray, along: tuple[int, float], side: tuple[int, float]) -> np.ndarray:
    """float64 [sections, gcells]: the share of each gcell's side that boxes cover, at sections across their way.

    Args:
        boxes: float [F, 4], low and high corners, µm, the way of the wires first.
        along: sections along the wires, and the core's length, µm.
        side: gcells beside each other, and the core's length, µm.
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
    """float64 [gcells-1, ·]: the most that is blocked between each gcell's centre and the next one's."""
    half = _SAMPLES // 2
    return sections[half:-half].reshape(gcells - 1, _SAMPLES, -1).max(axis=1)


def _pins(
    netlist: Netlist, placement: Placement, core: Core, most_pins: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pins' places of the nets to route, float32 [L] each, and int32 [E+1], where each net begins."""
    keep = counted_nets(netlist, most_pins)
    degree = np.diff(netlist.net_start)
    pins = netlist.net_pins[np.repeat(keep, degree)]
    dx, dy = pin_offsets(netlist, placement.orientation)
    node = netlist.pin_node[pins]
    start = np.concatenate([[0], np.cumsum(degree[keep])]).astype(np.int32)
    x = (placement.x[node] + dx[pins] - core.x).astype(np.float32)
    y = (placement.y[node] + dy[pins] - core.y).astype(np.float32)
    return x, y, start


def _fill(demand: np.ndarray, capacity: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Demand over capacity of the fuller of each gcell's two edges, float64 [X, Y] each."""
    horizontal = demand[: capacity[0].size].reshape(capacity[0].shape) / np.maximum(capacity[0], 0.1)
    vertical = demand[capacity[0].size :].reshape(capacity[1].shape) / np.maximum(capacity[1], 0.1)
    sideways = np.pad(horizontal, ((1, 1), (0, 0)))
    upward = np.pad(vertical, ((0, 0), (1, 1)))
    return np.maximum(sideways[:-1], sideways[1:]), np.maximum(upward[:, :-1], upward[:, 1:])
