"""Grouping a flat netlist's standard cells into clusters by Circuit Training's published recipe.

Nets of many sinks are cut; what belongs to a macro or to ports side by side is kept together; the rest is partitioned
(here with Mt-KaHyPar); groups that span too far are broken up and small ones merged. Without positions the last two
go by connectivity alone. Cells that then have more nets with another group change over to it.

Axis legend: N nodes, V vertices of the hypergraph, M its pins.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from placement.netlist.clustering.connectivity import Connectivity, connectivity
from placement.netlist.clustering.fixed_groups import fixed_groups
from placement.netlist.clustering.hierarchy import module_edges
from placement.netlist.clustering.partition import partition
from placement.netlist.clustering.refine import refine
from placement.netlist.clustering.regroup import Nodes, break_up, merge_small
from placement.netlist.clustering.settings import ClusteringSettings
from placement.netlist.design import Canvas, NodeKind
from placement.netlist.flat_design import FlatDesign

# Nets count this much more than the hint that a module of the hierarchy gives.
_NET_WEIGHT = 4


@dataclasses.dataclass(frozen=True, eq=False)
class Clustering:
    """Standard cells and their clusters.

    Attributes:
        cluster: int32 [N], the cluster of each cell; -1 for macros, ports and cells on no net.
        count: clusters, numbered from 0 without gaps.
        settings: how they were made.
        parts: of the partition, fixed groups included.
        placed: whether positions were used.
        notices: what was left out.
    """

    cluster: np.ndarray
    count: int
    settings: ClusteringSettings
    parts: int
    placed: bool
    notices: tuple[str, ...]


def cluster_cells(design: FlatDesign, canvas: Canvas, *, settings: ClusteringSettings | None = None) -> Clustering:
    """Clusters the standard cells of a flat design.

    Args:
        design: the flat netlist, its positions and floorplan.
        canvas: gives the gcells' size and the canvas's area.
        settings: default: `ClusteringSettings()`.

    Raises:
        DesignError: Mt-KaHyPar is not installed or fails.
    """
    chosen = settings or ClusteringSettings()
    netlist = design.netlist
    joined = connectivity(netlist, most_sinks=chosen.most_sinks)
    on_nets = np.zeros(netlist.num_nodes, dtype=np.bool_)
    on_nets[netlist.pin_node[netlist.net_pins]] = True
    cells = np.flatnonzero(joined.is_cell & on_nets)
    placed = chosen.use_positions and bool(len(cells)) and bool(design.placement.placed[cells].all())
    fixed, groups = fixed_groups(design, canvas, joined, levels=chosen.fixed_levels)
    parts = groups + max(1, min(chosen.parts, len(cells) // 8))
    group = _partitioned(design, joined, cells, fixed, parts=parts, placed=placed, settings=chosen)
    group = _regrouped(design, canvas, joined, group, parts, placed=placed)
    cluster = np.where(joined.is_cell & on_nets, group, -1)
    if chosen.refine:
        cluster = refine(
            cluster, cells[fixed[cells] < 0], joined=joined, nodes=_nodes(design, placed=placed),
            reach=_reach(canvas) / 2, seed=chosen.seed,
        )  # fmt: skip
    numbers, member = np.unique(cluster[cells], return_inverse=True)
    cluster[cells] = member.reshape(-1)
    loose = int(joined.is_cell.sum()) - len(cells)
    notices = [f"{loose:,} cells on no net (fillers, taps, spares) are in no cluster"] if loose else []
    return Clustering(
        cluster=cluster.astype(np.int32),
        count=len(numbers),
        settings=chosen,
        parts=parts,
        placed=placed,
        notices=tuple(notices),
    )


def _partitioned(
    design: FlatDesign,
    joined: Connectivity,
    cells: np.ndarray,
    fixed: np.ndarray,
    *,
    parts: int,
    placed: bool,
    settings: ClusteringSettings,
) -> np.ndarray:
    """int32 [N]: the part of every cell, macro and port; a fixed group is one vertex of the hypergraph."""
    groups = int(fixed.max(initial=-1)) + 1
    vertex_of = np.full(design.netlist.num_nodes, -1, dtype=np.int64)
    vertex_of[fixed >= 0] = fixed[fixed >= 0]
    free = cells[fixed[cells] < 0]
    vertex_of[free] = groups + np.arange(len(free))
    weight = np.ones(groups + len(free), dtype=np.int64)
    # A fixed group may hold more than a part should: it then fills its part alone.
    total = int((vertex_of >= 0).sum())
    weight[:groups] = np.clip(np.bincount(fixed[fixed >= 0], minlength=groups), 1, max(1, total // parts))
    nets = _pins_of_vertices(joined.net, vertex_of[joined.node], len(weight))
    hints = module_edges(design.netlist.names, free, parts) if settings.use_hierarchy and not placed else None
    edge, vertex, edge_weight = _edges(nets, hints, vertex_of)
    pinned = np.full(len(weight), -1, dtype=np.int32)
    pinned[:groups] = np.arange(groups)
    best: tuple[int, np.ndarray] | None = None
    for run in range(settings.runs):
        found, cost = partition(
            edge, vertex, edge_weight=edge_weight, vertex_weight=weight, fixed=pinned, parts=parts,
            imbalance=settings.imbalance, seed=settings.seed + run,
        )  # fmt: skip
        if best is None or cost < best[0]:
            best = cost, found
    assert best is not None
    return np.where(vertex_of >= 0, best[1][np.maximum(vertex_of, 0)], -1).astype(np.int32)


def _pins_of_vertices(net: np.ndarray, vertex: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """int64 [M] each: hyperedges, numbered from 0, of two vertices or more, and their vertices, each once."""
    inside = vertex >= 0
    pairs = np.unique(net[inside] * count + vertex[inside])
    edge, pin = np.divmod(pairs, max(count, 1))
    degree = np.bincount(edge)
    kept = degree[edge] >= 2 if len(edge) else np.zeros(0, dtype=np.bool_)
    _, edge = np.unique(edge[kept], return_inverse=True)
    return edge.reshape(-1), pin[kept]


def _edges(
    nets: tuple[np.ndarray, np.ndarray], hints: tuple[np.ndarray, np.ndarray] | None, vertex_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nets and hints as one hypergraph: edge [M], vertex [M], and a weight per edge."""
    edge, vertex = nets
    count = int(edge.max(initial=-1)) + 1
    if hints is None or not len(hints[0]):
        return edge, vertex, np.full(count, _NET_WEIGHT, dtype=np.int64)
    modules = int(hints[0].max()) + 1
    weight = np.concatenate((np.full(count, _NET_WEIGHT, np.int64), np.ones(modules, np.int64)))
    return np.concatenate((edge, count + hints[0])), np.concatenate((vertex, vertex_of[hints[1]])), weight


def _regrouped(
    design: FlatDesign, canvas: Canvas, joined: Connectivity, group: np.ndarray, parts: int, *, placed: bool
) -> np.ndarray:
    """The parts broken up where they span too far, and the small ones merged."""
    netlist, placed_nodes = design.netlist, design.placement.placed
    nodes, reach = _nodes(design, placed=placed), _reach(canvas)
    pins = int((nodes.size[netlist.hard]).sum())
    most_nodes = (netlist.num_nodes + pins) // max(parts, 1) // 4
    count = parts
    if nodes.x is not None and nodes.y is not None:
        # A macro without a place breaks nothing up.
        inside = np.where(placed_nodes, group, -1)
        broken, count = break_up(inside, count, x=nodes.x, y=nodes.y, area=nodes.area, reach=reach)
        group = np.where(placed_nodes, broken, group)
    if most_nodes > 0:
        group = merge_small(group, count, joined=joined, nodes=nodes, most_nodes=most_nodes, reach=reach / 2)
    return group


def _nodes(design: FlatDesign, *, placed: bool) -> Nodes:
    """Positions, areas and sizes for regrouping; a macro counts as its pins, which the recipe groups in its place."""
    netlist, placement = design.netlist, design.placement
    pins = np.bincount(netlist.pin_node, minlength=netlist.num_nodes)
    return Nodes(
        x=placement.x if placed else None,
        y=placement.y if placed else None,
        area=np.where(netlist.kind == NodeKind.CELL, netlist.width * netlist.height, 0.0),
        size=np.where(netlist.kind == NodeKind.HARD, pins, 1),
    )


def _reach(canvas: Canvas) -> float:
    """µm, the width and height beyond which groups are broken up."""
    return math.sqrt(canvas.width * canvas.height / 16)
