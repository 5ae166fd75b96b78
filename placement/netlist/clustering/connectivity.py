"""Which nodes a flat netlist's nets join, as arrays that clustering works on.

Axis legend: N nodes, E nets, M pairs of a net and a node on it, G groups.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse

from placement.netlist.design import Netlist, NodeKind


@dataclasses.dataclass(frozen=True, eq=False)
class Connectivity:
    """The nets that are not cut, each node once.

    Attributes:
        netlist: the flat netlist.
        nets: int64 [E], the nets that are kept, in their order.
        net: int64 [M], the place of each pair's net in `nets`, rising; node: int64 [M], rising within a net.
        driver: int64 [E], the node that drives each kept net.
        is_cell: bool [N].
    """

    netlist: Netlist
    nets: np.ndarray
    net: np.ndarray
    node: np.ndarray
    driver: np.ndarray
    is_cell: np.ndarray

    def matrix(self, group: np.ndarray, count: int) -> scipy.sparse.csr_matrix:
        """Kept nets × groups, 1 where a net has a node in a group; `group` is int [N], -1: in none."""
        of_pair = group[self.node]
        inside = of_pair >= 0
        ones = np.ones(int(inside.sum()), dtype=np.int64)
        joined = scipy.sparse.csr_matrix((ones, (self.net[inside], of_pair[inside])), (len(self.nets), count))
        joined.data[:] = 1
        return joined


def connectivity(netlist: Netlist, *, most_sinks: int) -> Connectivity:
    """The connectivity of a flat netlist without nets of more than `most_sinks` sinks."""
    degree = np.diff(netlist.net_start)
    nets = np.flatnonzero((degree <= most_sinks + 1) & (degree >= 2))
    place = np.full(netlist.num_nets, -1, dtype=np.int64)
    place[nets] = np.arange(len(nets))
    of_pin = np.repeat(place, degree)
    kept = of_pin >= 0
    nodes = netlist.pin_node[netlist.net_pins].astype(np.int64)
    pairs = np.unique(of_pin[kept] * netlist.num_nodes + nodes[kept])
    net, node = np.divmod(pairs, max(netlist.num_nodes, 1))
    return Connectivity(
        netlist=netlist,
        nets=nets,
        net=net,
        node=node,
        driver=nodes[netlist.net_start[nets]],
        is_cell=netlist.kind == NodeKind.CELL,
    )
