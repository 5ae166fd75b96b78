"""Wires of failing paths as weighted nets between the macros, ports and clusters that they join.

The derivative of the total negative slack by the length of a wire is the wire's delay per µm, and what its load adds to
the delay of its driver, times the number of failing endpoints behind it, counted along the latest signals (Guo and Lin:
"Differentiable-Timing-Driven Global Placement", DAC 2022). Added to the clustered netlist as nets of two pins, so
weighted, wires of failing paths cost a search of macros what they cost in slack; wires within a cluster, and the delay
of the logic, which no placement changes, cost nothing.

Axis legend: P timing pins, N nodes of the flat netlist, A attractions. Lengths in µm, times in ps.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from placement.flat.correspondence import clustered_nodes
from placement.flat.timing import TimingEvaluator
from placement.netlist.clustering.soft_macros import SOFT_PREFIX
from placement.netlist.design import TURN, Design, Netlist, NodeKind, Placement
from placement.netlist.flat_design import FlatDesign

MOST_ATTRACTIONS = 20_000
"""The heaviest ones; the others have a negligible share."""


class Attractions(NamedTuple):
    """Nets of two pins between nodes of the clustered netlist, each pair of pins once.

    Attributes:
        node: int64 [2, A], from driver to driven.
        dx, dy: float64 [2, A], of the pins from the nodes' centres in orientation N.
        slack: float64 [A], ps of total negative slack that each µm costs.
    """

    node: np.ndarray
    dx: np.ndarray
    dy: np.ndarray
    slack: np.ndarray

    def lengths(self, placement: Placement) -> np.ndarray:
        """float64 [A]: µm, how far the pins of each are from each other in a placement of the clustered netlist."""
        turn = TURN[placement.orientation[self.node]]
        x = placement.x[self.node] + turn[..., 0] * self.dx + turn[..., 1] * self.dy
        y = placement.y[self.node] + turn[..., 2] * self.dx + turn[..., 3] * self.dy
        lengths: np.ndarray = np.abs(x[0] - x[1]) + np.abs(y[0] - y[1])
        return lengths

    def blended(self, before: Attractions | None, share: float) -> Attractions:
        """These with `share` of earlier ones."""
        if before is None:
            return self
        both = [np.concatenate([one, other], axis=-1) for one, other in zip(self, before, strict=True)]
        both[3][len(self.slack) :] *= share
        return _merged(*both)


def _merged(node: np.ndarray, dx: np.ndarray, dy: np.ndarray, slack: np.ndarray) -> Attractions:
    """The same, equal pairs of pins as one."""
    key = np.concatenate([node, dx, dy])
    found, member = np.unique(key, axis=1, return_inverse=True)
    total = np.bincount(member.reshape(-1), slack, found.shape[1])
    heaviest = np.sort(np.argsort(-total, kind="stable")[:MOST_ATTRACTIONS])
    found = found[:, heaviest]
    return Attractions(found[:2].astype(np.int64), found[2:4], found[4:], total[heaviest])


def attractions(evaluator: TimingEvaluator, cluster: np.ndarray, netlist: Netlist, slope: np.ndarray) -> Attractions:
    """The wires of failing paths between clusters, macros and ports.

    Args:
        evaluator: of the design before clustering.
        cluster: int [N], the cluster of each cell, -1: none.
        netlist: the clustered one.
        slope: float [P], ps per µm of the wire to each pin, as of `TimingEvaluator.slack_per_um`.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one.
    """
    timing, driver = evaluator.timing, evaluator.facts["driver"]
    home = _homes(evaluator.flat, cluster, netlist)
    sink = np.flatnonzero((slope > 0) & (driver >= 0))
    pins = np.stack([driver[sink], sink])
    node = home[timing.node[pins]]
    kept = (node >= 0).all(0) & (node[0] != node[1])
    pins, node = pins[:, kept], node[:, kept]
    on_macro = netlist.kind[node] == NodeKind.HARD
    dx, dy = (np.where(on_macro, offset[pins], 0.0).astype(np.float64) for offset in (timing.dx, timing.dy))
    return _merged(node, dx, dy, slope[sink[kept]].astype(np.float64))


def _homes(flat: FlatDesign, cluster: np.ndarray, netlist: Netlist) -> np.ndarray:
    """int64 [N]: the node of the clustered netlist in which each node of the flat one is; -1: none."""
    home = np.full(flat.netlist.num_nodes, -1, dtype=np.int64)
    home[flat.netlist.hard] = clustered_nodes(flat, netlist)
    index = {netlist.names[node]: int(node) for node in (*netlist.soft.tolist(), *netlist.ports.tolist())}
    soft = [index.get(f"{SOFT_PREFIX}{number}", -1) for number in range(int(cluster.max(initial=-1)) + 1)]
    inside = np.flatnonzero(cluster >= 0)
    home[inside] = np.array(soft, dtype=np.int64)[cluster[inside]]
    ports = flat.netlist.ports
    home[ports] = [index.get(flat.netlist.names[port], -1) for port in ports.tolist()]
    return home


def attracted(design: Design, found: Attractions, weight: np.ndarray) -> Design:
    """`design` with the attractions as nets of two pins of `weight`, float64 [A]."""
    netlist, count = design.netlist, len(weight)
    first = netlist.num_pins
    longer = dataclasses.replace(
        netlist,
        pin_node=np.concatenate([netlist.pin_node, found.node.T.reshape(-1).astype(netlist.pin_node.dtype)]),
        pin_dx=np.concatenate([netlist.pin_dx, found.dx.T.reshape(-1)]),
        pin_dy=np.concatenate([netlist.pin_dy, found.dy.T.reshape(-1)]),
        net_weight=np.concatenate([netlist.net_weight, weight]),
        net_start=np.concatenate([netlist.net_start, netlist.net_start[-1] + 2 * np.arange(1, count + 1)]),
        net_pins=np.concatenate([netlist.net_pins, first + np.arange(2 * count)]),
    )
    return dataclasses.replace(design, netlist=longer)
