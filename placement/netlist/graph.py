"""A design as a graph of macros and port clusters, as arrays and as a networkx graph.

Graph nodes are the hard macros, the soft macros and the standard cells, each in file order, then one cluster for
each gcell that holds ports, by row and column. A net becomes the star of its driver: one edge from the driver to each
sink, with the net's weight; edges between the same two graph nodes are summed (a net that ends at several pins of a
node counts several times), and those within one node dropped.

Axis legend: N netlist nodes, V graph nodes, M edges.
"""

from __future__ import annotations

from typing import NamedTuple

import networkx
import numpy as np

from placement.netlist.design import Design, Netlist, NodeKind


class GraphArrays(NamedTuple):
    """A design's graph.

    Attributes:
        vertex: int32 [N], the graph node that each netlist node belongs to.
        kind: int8 [V], `NodeKind` values; `PORT` for clusters of ports.
        node: int32 [V], the netlist node of each graph node; -1 for clusters of ports.
        gcell: int32 [V], row · columns + column of each cluster of ports; -1 for the others.
        edges: int32 [M, 2], pairs of graph nodes, the lower one first, in rising order, each pair once.
        weight: float64 [M], summed net weights.
    """

    vertex: np.ndarray
    kind: np.ndarray
    node: np.ndarray
    gcell: np.ndarray
    edges: np.ndarray
    weight: np.ndarray


def graph_arrays(design: Design) -> GraphArrays:
    """The graph of a design as arrays; port clusters by where the ports stand initially."""
    netlist = design.netlist
    single = np.concatenate((netlist.hard, netlist.soft, netlist.indices(NodeKind.CELL)))
    gcells, member = np.unique(port_gcells(design), return_inverse=True)
    vertex = np.zeros(netlist.num_nodes, dtype=np.int32)
    vertex[single] = np.arange(len(single))
    vertex[netlist.ports] = len(single) + member.reshape(-1)
    edges, weight = _star_edges(netlist, vertex, len(single) + len(gcells))
    nowhere = np.full(len(single), -1, dtype=np.int32)
    return GraphArrays(
        vertex=vertex,
        kind=np.concatenate((netlist.kind[single], np.full(len(gcells), NodeKind.PORT, dtype=np.int8))),
        node=np.concatenate((single, np.full(len(gcells), -1))).astype(np.int32),
        gcell=np.concatenate((nowhere, gcells)).astype(np.int32),
        edges=edges,
        weight=weight,
    )


def port_gcells(design: Design) -> np.ndarray:
    """int64 [ports]: row · columns + column of the gcell of each port, ports on the far edges in the last one."""
    canvas, ports = design.canvas, design.netlist.ports
    column = np.clip(np.floor(design.initial.x[ports] / canvas.cell_width), 0, canvas.columns - 1)
    row = np.clip(np.floor(design.initial.y[ports] / canvas.cell_height), 0, canvas.rows - 1)
    return (row * canvas.columns + column).astype(np.int64)


def net_of_pin(netlist: Netlist) -> np.ndarray:
    """int32 [L]: the net of each net pin."""
    return np.repeat(np.arange(netlist.num_nets, dtype=np.int32), np.diff(netlist.net_start))


def _star_edges(netlist: Netlist, vertex: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges int32 [M, 2] and weights float64 [M] of all nets' driver–sink stars."""
    net = net_of_pin(netlist)
    ends = vertex[netlist.pin_node[netlist.net_pins]].astype(np.int64)
    driver = ends[netlist.net_start[:-1]][net]
    low, high = np.minimum(driver, ends), np.maximum(driver, ends)
    apart = low != high
    pairs, member = np.unique(low[apart] * count + high[apart], return_inverse=True)
    weight = np.bincount(member.reshape(-1), netlist.net_weight[net[apart]], len(pairs)).astype(np.float64)
    return np.stack((pairs // max(count, 1), pairs % max(count, 1)), axis=1).astype(np.int32), weight


def vertex_name(design: Design, graph: GraphArrays, vertex: int) -> str:
    """A macro's name, or `ports at gcell (column, row)`."""
    if graph.node[vertex] >= 0:
        return design.netlist.names[graph.node[vertex]]
    row, column = divmod(int(graph.gcell[vertex]), design.canvas.columns)
    return f"ports at gcell ({column}, {row})"


def to_networkx(design: Design) -> networkx.Graph:
    """The same graph for networkx, nodes being their numbers in `graph_arrays`.

    Node attributes: `name`, `kind` (`hard`, `soft`, `cell`, `port`), `width`, `height` (µm). Edge attribute: `weight`.
    """
    arrays, netlist = graph_arrays(design), design.netlist
    graph = networkx.Graph(name=design.name)
    for vertex, node in enumerate(arrays.node.tolist()):
        graph.add_node(
            vertex,
            name=vertex_name(design, arrays, vertex),
            kind=NodeKind(arrays.kind[vertex]).name.lower(),
            width=float(netlist.width[node]) if node >= 0 else 0.0,
            height=float(netlist.height[node]) if node >= 0 else 0.0,
        )
    ends = arrays.edges.tolist()
    graph.add_weighted_edges_from(
        (first, second, weight) for (first, second), weight in zip(ends, arrays.weight.tolist(), strict=True)
    )
    return graph
