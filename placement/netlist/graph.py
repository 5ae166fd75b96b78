"""The graph of a design as arrays.

Graph nodes are the hard macros and the soft macros, each in file order, then one cluster for each gcell that contains
ports, by row and column; standard cells are omitted. A net becomes the star of its driver: one edge from the driver to
each other node of the net, with the net's weight; edges between the same two graph nodes are summed, and loops are
dropped.

Axis legend: N netlist nodes, V graph nodes, M edges, I incidences of nets and nodes.
"""

from typing import NamedTuple

import networkx
import numpy as np

from placement.netlist.design import Design, NodeKind


class GraphArrays(NamedTuple):
    """A design's graph."""

    vertex: np.ndarray  # int32 [N], the graph node that each netlist node belongs to; -1 for standard cells
    kind: np.ndarray  # int8 [V], `NodeKind` values; `PORT` for clusters of ports
    node: np.ndarray  # int32 [V], the netlist node of each graph node; -1 for clusters of ports
    gcell: np.ndarray  # int32 [V], row · columns + column of each cluster of ports; -1 for the others
    edges: np.ndarray  # int32 [M, 2], pairs of graph nodes, the lower one first, in rising order, each pair once
    weight: np.ndarray  # float64 [M], summed net weights


def graph_arrays(design: Design) -> GraphArrays:
    """The graph of a design as arrays; ports are clustered by their initial positions."""
    netlist = design.netlist
    macros = np.concatenate((netlist.hard, netlist.soft))
    gcells, member = np.unique(_port_gcells(design), return_inverse=True)
    vertex = np.full(netlist.num_nodes, -1, dtype=np.int32)
    vertex[macros] = np.arange(len(macros))
    vertex[netlist.ports] = len(macros) + member.reshape(-1)
    edges, weight = _star_edges(design, vertex, len(macros) + len(gcells))
    return GraphArrays(
        vertex=vertex,
        kind=np.concatenate((netlist.kind[macros], np.full(len(gcells), NodeKind.PORT, dtype=np.int8))),
        node=np.concatenate((macros, np.full(len(gcells), -1))).astype(np.int32),
        gcell=np.concatenate((np.full(len(macros), -1), gcells)).astype(np.int32),
        edges=edges,
        weight=weight,
    )


def net_members(design: Design) -> tuple[np.ndarray, np.ndarray]:
    """(net, node), int64 [I] each: every distinct macro or port of every net, by net, the driver's node first."""
    netlist = design.netlist
    net = np.repeat(np.arange(netlist.num_nets), np.diff(netlist.net_start))
    node = netlist.pin_node[netlist.net_pins].astype(np.int64)
    keep = netlist.kind[node] != NodeKind.CELL
    net, node = net[keep], node[keep]
    _, first = np.unique(net * netlist.num_nodes + node, return_index=True)
    first.sort()
    return net[first], node[first]


def _port_gcells(design: Design) -> np.ndarray:
    """Row · columns + column of each port's gcell, int64 [ports]; ports on the far edges belong to the last one."""
    canvas, ports = design.canvas, design.netlist.ports
    column = np.floor(design.initial.x[ports] / canvas.width * canvas.columns).clip(0, canvas.columns - 1)
    row = np.floor(design.initial.y[ports] / canvas.height * canvas.rows).clip(0, canvas.rows - 1)
    return (row * canvas.columns + column).astype(np.int64)


def _star_edges(design: Design, vertex: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges (int32 [M, 2]) and weights (float64 [M]) of all nets' stars among `count` graph nodes."""
    net, node = net_members(design)
    ends = vertex[node].astype(np.int64)
    first = np.flatnonzero(np.diff(net, prepend=-1))
    driver = np.repeat(ends[first], np.diff(np.append(first, len(net))))
    low, high = np.minimum(driver, ends), np.maximum(driver, ends)
    apart = low != high
    pairs, member = np.unique(low[apart] * count + high[apart], return_inverse=True)
    weight = np.bincount(member.reshape(-1), design.netlist.net_weight[net[apart]], len(pairs)).astype(np.float64)
    return np.stack((pairs // max(count, 1), pairs % max(count, 1)), axis=1).astype(np.int32), weight


def to_networkx(design: Design) -> networkx.Graph:
    """The same graph as a networkx graph, whose nodes are the numbers of the graph nodes in `graph_arrays`.

    Node attributes: `name`, `kind` (`hard`, `soft`, `port`), `width`, `height` (µm). Edge attribute: `weight`.

    Example:
        >>> graph = placement.to_networkx(placement.load("toy6"))
        >>> graph.number_of_nodes() >= 6
        True
    """
    arrays, netlist = graph_arrays(design), design.netlist
    graph = networkx.Graph(name=design.name)
    for vertex, node in enumerate(arrays.node.tolist()):
        row, column = divmod(int(arrays.gcell[vertex]), design.canvas.columns)
        graph.add_node(
            vertex,
            name=netlist.names[node] if node >= 0 else f"ports at gcell ({column}, {row})",
            kind=NodeKind(arrays.kind[vertex]).name.lower(),
            width=float(netlist.width[node]) if node >= 0 else 0.0,
            height=float(netlist.height[node]) if node >= 0 else 0.0,
        )
    edges = zip(*arrays.edges.T.tolist(), arrays.weight.tolist(), strict=True)
    graph.add_weighted_edges_from(edges)
    return graph
