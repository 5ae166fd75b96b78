"""Statistics of a design."""

from collections import Counter
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from placement.netlist.design import Design, NodeKind
from placement.netlist.graph import graph_arrays, vertex_name

_LISTED = 5  # number of nets and nodes that are listed


class Statistics(NamedTuple):
    """The statistics that `macro-placement describe` prints."""

    # nodes, pins_of: number of nodes, and of their pins, of each kind (`hard`, `soft`, `port`, `cell`)
    nodes: dict[str, int]
    pins: int  # pins, unused_pins: number of all pins, and of those on no net
    pins_of: dict[str, int]
    unused_pins: int
    nets: int  # nets, total_weight: number of nets, and the sum of their weights
    total_weight: float
    net_degree: dict[int, int]  # pins of a net → number of such nets
    utilization: dict[str, float]  # covered fraction of the canvas by kind of macro
    shapes: dict[tuple[float, float], int]  # (width, height) in µm → number of hard macros, most frequent first
    fixed: int  # number of fixed hard macros
    graph_nodes: int  # graph_nodes, graph_edges: sizes of `graph_arrays`
    graph_edges: int
    components: list[int]  # sizes of the graph's connected components, largest first
    mean_neighbours: dict[str, float]  # mean number of graph neighbours of a hard macro and of a soft macro
    largest_nets: list[tuple[str, int, float]]  # (driver's name, pins, weight), most pins first
    most_connected: list[tuple[str, float, int]]  # (graph node's name, weight of its edges, neighbours), heaviest first


def statistics(design: Design) -> Statistics:
    """The statistics of a design."""
    netlist = design.netlist
    graph = graph_arrays(design)
    degrees = np.diff(netlist.net_start)
    neighbours = np.bincount(graph.edges.ravel(), minlength=len(graph.kind))
    strength = np.bincount(graph.edges.ravel(), np.repeat(graph.weight, 2), len(graph.kind))
    links = scipy.sparse.coo_array((graph.weight, tuple(graph.edges.T)), shape=(len(graph.kind), len(graph.kind)))
    macros = (NodeKind.HARD, NodeKind.SOFT)
    largest = np.argsort(-degrees, kind="stable")[:_LISTED]
    drivers = netlist.pin_node[netlist.net_pins[netlist.net_start[:-1]]]
    heaviest = np.argsort(-strength, kind="stable")[:_LISTED]
    area = netlist.width * netlist.height / (design.canvas.width * design.canvas.height)
    shapes = Counter(zip(netlist.width[netlist.hard].tolist(), netlist.height[netlist.hard].tolist(), strict=True))
    return Statistics(
        nodes=_by_kind(netlist.kind),
        pins=netlist.num_pins,
        pins_of=_by_kind(netlist.kind[netlist.pin_node]),
        unused_pins=netlist.num_pins - len(np.unique(netlist.net_pins)),
        nets=netlist.num_nets,
        total_weight=float(netlist.net_weight.sum()),
        net_degree={degree: int(count) for degree, count in enumerate(np.bincount(degrees)) if count},
        utilization={kind.name.lower(): float(area[netlist.kind == kind].sum()) for kind in macros},
        shapes=dict(shapes.most_common()),
        fixed=int(design.initial.fixed[netlist.hard].sum()),
        graph_nodes=len(graph.kind),
        graph_edges=len(graph.edges),
        components=sorted(np.bincount(connected_components(links, directed=False)[1]).tolist(), reverse=True),
        mean_neighbours={
            kind.name.lower(): float(neighbours[graph.kind == kind].mean()) for kind in macros if kind in graph.kind
        },
        largest_nets=[
            (netlist.names[drivers[net]], int(degrees[net]), float(netlist.net_weight[net])) for net in largest
        ],
        most_connected=[
            (vertex_name(design, graph, node), float(strength[node]), int(neighbours[node])) for node in heaviest
        ],
    )


def _by_kind(kinds: np.ndarray) -> dict[str, int]:
    return {kind.name.lower(): int((kinds == kind).sum()) for kind in NodeKind}
