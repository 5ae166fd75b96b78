"""Statistics of a design, including an estimate of its Rent exponent.

Rent's rule (Landman and Russo, 1971) says T = t·Bᵖ for the T wires that leave a block of B nodes in a good partition.
Blocks come from halving the design repeatedly at the median of the Fiedler vector of its graph. The rule holds for
blocks well below the whole design (region I): fewer wires leave blocks above an eighth of it, which are left out.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from placement.netlist.design import Design, NodeKind
from placement.netlist.graph import GraphArrays, graph_arrays, net_members, vertex_name

MOST_NODES = 2500
"""Maximum number of graph nodes for a Rent exponent; more would take minutes, since the eigenvectors are dense."""
_LISTED = 5
"""Number of nets and nodes that are listed."""
_LEAST_NODES = 64
_LEAST_BLOCK = 4
_LEVELS_OF_REGION_II = 2
_SLOPE = 1e-5
_NOTHING = 1e-9
"""Fiedler vector entries below this are rounding errors."""


class RentFit(NamedTuple):
    """T = coefficient · B^exponent, fitted over the sizes of blocks up to an eighth of the design.

    Attributes:
        exponent: p.
        coefficient: t, wires (by net weight) per node.
    """

    exponent: float
    coefficient: float


class Statistics(NamedTuple):
    """The statistics that `macro-placement describe` prints.

    Attributes:
        nodes, pins_of: number of nodes, and of their pins, of each kind (`hard`, `soft`, `port`, `cell`).
        pins, unused_pins: number of all pins, and of those on no net.
        nets, total_weight: number of nets, and the sum of their weights.
        net_degree: pins of a net → number of such nets.
        utilization: covered fraction of the canvas by kind of macro.
        shapes: (width, height) in µm → number of hard macros, most frequent first.
        fixed: number of fixed hard macros.
        graph_nodes, graph_edges: sizes of `graph_arrays`.
        components: sizes of the graph's connected components, largest first.
        mean_neighbours: mean number of graph neighbours of a hard macro and of a soft macro.
        largest_nets: (driver's name, pins, weight), most pins first.
        most_connected: (graph node's name, weight of its edges, neighbours), heaviest first.
        rent: the fit of Rent's rule; None if the design is too small or too large for it.
    """

    nodes: dict[str, int]
    pins: int
    pins_of: dict[str, int]
    unused_pins: int
    nets: int
    total_weight: float
    net_degree: dict[int, int]
    utilization: dict[str, float]
    shapes: dict[tuple[float, float], int]
    fixed: int
    graph_nodes: int
    graph_edges: int
    components: list[int]
    mean_neighbours: dict[str, float]
    largest_nets: list[tuple[str, int, float]]
    most_connected: list[tuple[str, float, int]]
    rent: RentFit | None


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
        rent=rent_fit(design),
    )


def _by_kind(kinds: np.ndarray) -> dict[str, int]:
    return {kind.name.lower(): int((kinds == kind).sum()) for kind in NodeKind}


def rent_fit(design: Design) -> RentFit | None:
    """The fit of Rent's rule; None for designs with fewer than 64 macros or more than `MOST_NODES`."""
    graph = graph_arrays(design)
    nodes = np.flatnonzero(graph.kind != NodeKind.PORT)
    if not _LEAST_NODES <= len(nodes) <= MOST_NODES:
        return None
    blocks, sizes, terminals = [nodes], [], []
    while min(len(block) for block in blocks) >= 2 * _LEAST_BLOCK:
        blocks = [half for block in blocks for half in _halves(graph, block)]
        sizes.append(float(np.mean([len(block) for block in blocks])))
        terminals.append(_mean_terminals(design, graph, blocks))
    if min(terminals) <= 0:
        return None
    region = slice(_LEVELS_OF_REGION_II, None)
    exponent, intercept = np.polyfit(np.log(sizes[region]), np.log(terminals[region]), 1)
    return RentFit(float(exponent), float(np.exp(intercept)))


def _halves(graph: GraphArrays, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Splits a block's graph nodes (int [B]) into two halves with few wires between them."""
    place = np.full(len(graph.kind), -1)
    place[block] = np.arange(len(block))
    ends = place[graph.edges]
    inside = (ends >= 0).all(axis=1)
    first, second = ends[inside].T
    links = scipy.sparse.coo_array((graph.weight[inside], (first, second)), shape=(len(block), len(block))).tocsr()
    count, component = connected_components(links, directed=False)
    # The largest component comes first, so that the cut goes through one component at most.
    by_size = sorted(range(count), key=lambda index: -int((component == index).sum()))
    order = np.concatenate([_in_fiedler_order(links, np.flatnonzero(component == index)) for index in by_size])
    return block[np.sort(order[: len(block) // 2])], block[np.sort(order[len(block) // 2 :])]


def _in_fiedler_order(links: scipy.sparse.csr_array, nodes: np.ndarray) -> np.ndarray:
    """A connected component's nodes (int [B]) in the order of the Fiedler vector of its links."""
    if len(nodes) < 3:
        return nodes
    weights = links[nodes][:, nodes].toarray()
    weights += weights.T
    degree = weights.sum(axis=1)
    # The slope on the diagonal decides between equally good vectors; otherwise it would depend on the processor.
    laplacian = np.diag(degree * (1 + _SLOPE * np.arange(len(nodes)) / len(nodes))) - weights
    fiedler = np.linalg.eigh(laplacian)[1][:, 1]
    return nodes[np.argsort(fiedler * np.sign(fiedler[np.argmax(np.abs(fiedler) > _NOTHING)]), kind="stable")]


def _mean_terminals(design: Design, graph: GraphArrays, blocks: list[np.ndarray]) -> float:
    """Weight of the nets that leave a block, averaged over blocks; ports lie outside every block."""
    netlist = design.netlist
    label = np.full(len(graph.kind), len(blocks))
    for number, block in enumerate(blocks):
        label[block] = number
    member_net, node = net_members(design)
    pairs = np.unique(member_net * (len(blocks) + 1) + label[graph.vertex[node]])
    net, block_of_end = pairs // (len(blocks) + 1), pairs % (len(blocks) + 1)
    leaves = np.bincount(net, minlength=netlist.num_nets)[net] > 1
    return float(netlist.net_weight[net[leaves & (block_of_end < len(blocks))]].sum() / len(blocks))
