"""Builds the clustered design from a clustering of a flat one, in the form of Circuit Training's protobufs.

A cluster becomes a soft macro with its pins at its centre: one that all its drivers are connected to, and one per net
that it drives. Nets from a cluster to the same destination are merged into one net, whose weight is their sum
(google-research/circuit_training, `Grouping.write_as_macro`).

Axis legend: N nodes of the flat netlist, E its nets, G clusters, M pairs of a net and a destination that it drives.
"""

import numpy as np

from placement.netlist.builder import NetlistBuilder
from placement.netlist.clustering.cluster import UTILIZATION, Clustering
from placement.netlist.clustering.groups import MOST_SINKS, centroids
from placement.netlist.design import Canvas, Design, Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign

SOFT_PREFIX = "Grp_"


def check_macro_names(netlist: Netlist) -> None:
    """Raises DesignError if a hard macro of a flat netlist has the name of a cluster."""
    taken = next((name for name in (netlist.names[node] for node in netlist.hard) if name.startswith("Grp")), None)
    if taken is not None:
        raise DesignError(f"macro {taken!r}: names that begin with 'Grp' are kept for clusters")


def clustered_design(flat: FlatDesign, clustering: Clustering, canvas: Canvas) -> tuple[Design, tuple[str, ...]]:
    """The clustered design, with ports and hard macros in their order, then soft macros, and the notices about it.

    Positions count from the lower left corner of the core. Soft macros are located at their cells' centre of area if
    the cells are placed; nodes without a place are not placed. Raises DesignError if the macros do not fit on the
    canvas.
    """
    netlist = flat.netlist
    builder = NetlistBuilder()
    pin_of, kept = _kept_nodes(builder, netlist)
    width, height = _soft_sizes(flat, clustering, canvas)
    soft = [
        builder.macro(f"{SOFT_PREFIX}{cluster}", NodeKind.SOFT, float(width[cluster]), float(height[cluster]))
        for cluster in range(clustering.count)
    ]
    places = _Places(builder, soft, pin_of)
    for weight, driver, sinks in _nets(netlist, clustering):
        own, others = places.pins(driver, sinks)
        if others:
            builder.net(weight, own, others)
    design = Design(flat.name, builder.build(), canvas, initial=_placement(flat, clustering, kept))
    left_out = f"{places.without_driver:,} nets are ignored: all of their pins already drive another net"
    return design, (left_out,) if places.without_driver else ()


class _Places:
    """Maps endpoints of flat nets to pins; an endpoint is a cluster, or their count plus a pin of the flat netlist."""

    def __init__(self, builder: NetlistBuilder, soft: list[int], pin_of: dict[int, int]) -> None:
        self.builder, self.soft, self.pin_of, self.count = builder, soft, pin_of, len(soft)
        self.inputs = [builder.pin(macro, 0.0, 0.0) for macro in soft]
        self.drivers: set[int] = set()
        self.without_driver = 0

    def pins(self, driver: int, sinks: list[int]) -> tuple[int, list[int]]:
        """The driving pin of a net and its other pins.

        The format has one net per driving pin. If a pin already drives another net (a pad of a Bookshelf design may be
        on several), it swaps roles with a cluster on the net, or with a pin that drives nothing yet. If there is none,
        the net connects only pads, whose distance is fixed; its other pins are dropped and it is counted.
        """
        if driver >= self.count and self.pin_of[driver - self.count] in self.drivers:
            free = [place for place in sinks if place < self.count]
            free += [place for place in sinks if place >= self.count and self.sink(place) not in self.drivers]
            if not free:
                self.without_driver += 1
                return self.sink(driver), []
            sinks = [place for place in sinks if place != free[0]] + [driver]
            driver = free[0]
        own = self.builder.pin(self.soft[driver], 0.0, 0.0) if driver < self.count else self.sink(driver)
        self.drivers.add(own)
        others = dict.fromkeys(self.sink(place) for place in sinks)
        # Two pins of a flat port are one pin here.
        return own, [pin for pin in others if pin != own]

    def sink(self, place: int) -> int:
        return self.inputs[place] if place < self.count else self.pin_of[place - self.count]


def _kept_nodes(builder: NetlistBuilder, netlist: Netlist) -> tuple[dict[int, int], np.ndarray]:
    """Adds ports and hard macros with their pins; returns a map from flat to new pins, and the nodes kept (int [·])."""
    kept = np.flatnonzero(netlist.kind != NodeKind.CELL)
    order = np.argsort(netlist.pin_node, kind="stable")
    begin = np.searchsorted(netlist.pin_node[order], np.arange(netlist.num_nodes + 1))
    pin_of: dict[int, int] = {}
    for node in kept.tolist():
        name, pins = netlist.names[node], order[begin[node] : begin[node + 1]].tolist()
        if netlist.kind[node] == NodeKind.PORT:
            pin_of |= dict.fromkeys(pins, builder.port(name))
            continue
        macro = builder.macro(name, NodeKind.HARD, float(netlist.width[node]), float(netlist.height[node]))
        for pin in pins:
            pin_of[pin] = builder.pin(macro, float(netlist.pin_dx[pin]), float(netlist.pin_dy[pin]))
    return pin_of, kept


def _soft_sizes(flat: FlatDesign, clustering: Clustering, canvas: Canvas) -> tuple[np.ndarray, np.ndarray]:
    """Width and height of the soft macros, float64 [G] each, in µm."""
    netlist = flat.netlist
    inside = clustering.cluster >= 0
    area = (netlist.width * netlist.height)[inside]
    areas = np.bincount(clustering.cluster[inside], area, clustering.count) / UTILIZATION
    width = np.minimum(np.maximum(np.sqrt(areas), areas / canvas.height), canvas.width)
    return width, np.divide(areas, width, out=np.zeros_like(areas), where=width > 0)


def _nets(netlist: Netlist, clustering: Clustering) -> list[tuple[float, int, list[int]]]:
    """The nets between endpoints as (weight, driving endpoint, driven endpoints), merged ones first.

    An endpoint is a cluster, or `clustering.count` plus a pin of a macro or port.
    """
    places = clustering.count
    degree = np.diff(netlist.net_start)
    kept = np.flatnonzero((degree >= 2) & (degree <= MOST_SINKS + 1))
    net = np.repeat(np.arange(netlist.num_nets), degree)
    cluster = clustering.cluster[netlist.pin_node[netlist.net_pins]].astype(np.int64)
    is_cell = netlist.kind[netlist.pin_node[netlist.net_pins]] == NodeKind.CELL
    place = np.where(is_cell, cluster, places + netlist.net_pins.astype(np.int64))
    driver = place[netlist.net_start[kept]]
    of_net = np.full(netlist.num_nets, -1, dtype=np.int64)
    of_net[kept] = np.arange(len(kept))
    index = of_net[net]
    sinks = (index >= 0) & (place >= 0)
    sinks[netlist.net_start[:-1]] = False
    sinks[sinks] = place[sinks] != driver[index[sinks]]
    width = places + netlist.num_pins + 1
    number, target = np.divmod(np.unique(index[sinks] * width + place[sinks]), width)
    fanout = np.bincount(number, minlength=len(kept))
    weight = netlist.net_weight[kept]
    # Nets from clusters to a single destination; those between the same two endpoints are merged.
    alone = (fanout[number] == 1) & (driver[number] < places) & (driver[number] >= 0)
    pairs = np.stack((driver[number[alone]], target[alone]), axis=1)
    found, member = np.unique(pairs, axis=0, return_inverse=True)
    totals = np.bincount(member.reshape(-1), weight[number[alone]], len(found)).tolist()
    merged = [(total, source, [sink]) for total, (source, sink) in zip(totals, found.tolist(), strict=True)]
    # The other nets remain separate.
    own = (driver >= 0) & ((fanout >= 2) | ((fanout == 1) & (driver >= places)))
    begin = np.searchsorted(number, np.arange(len(fanout) + 1)).tolist()
    targets = target.tolist()
    return merged + [
        (float(weight[one]), int(driver[one]), targets[begin[one] : begin[one + 1]])
        for one in np.flatnonzero(own).tolist()
    ]


def _placement(flat: FlatDesign, clustering: Clustering, kept: np.ndarray) -> Placement:
    """The placement of the kept nodes and the soft macros, relative to the lower left corner of the core."""
    netlist, placement, core = flat.netlist, flat.placement, flat.floorplan.core
    count, area = clustering.count, netlist.width * netlist.height
    x, y = centroids(clustering.cluster, count, x=placement.x, y=placement.y, area=area)
    soft_placed = np.ones(count, dtype=np.bool_)
    soft_placed[clustering.cluster[(clustering.cluster >= 0) & ~placement.placed]] = False
    placed = np.concatenate((placement.placed[kept], soft_placed))
    return Placement(
        x=np.where(placed, np.concatenate((placement.x[kept], x)) - core.x_low, 0.0),
        y=np.where(placed, np.concatenate((placement.y[kept], y)) - core.y_low, 0.0),
        orientation=np.concatenate((placement.orientation[kept], np.zeros(count, dtype=np.int8))),
        placed=placed,
        fixed=np.concatenate((placement.fixed[kept], np.zeros(count, dtype=np.bool_))),
    )
