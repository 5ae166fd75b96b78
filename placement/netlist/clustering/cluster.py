"""Clusters the standard cells of a flat netlist by Circuit Training's published recipe.

Nets of many sinks are cut. Cells that belong to a macro or to adjacent ports are kept together, and the rest is
partitioned with Mt-KaHyPar. Groups that span too far are broken up and small ones are merged; without positions both
steps follow connectivity alone. Finally, cells that have more nets with another group move to it.

Axis legend: N nodes, V vertices of the hypergraph, M its pins.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from placement.netlist.clustering.groups import Connectivity, break_up, connectivity, merge_small, refine
from placement.netlist.clustering.partition import partition
from placement.netlist.design import Canvas
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign

UTILIZATION = 0.5  # fraction of a soft macro's area that its cells cover
_IMBALANCE = 0.3
"""Fraction by which a block of the partition may exceed the mean (Circuit Training: 0.05). Blocks are broken up and
merged afterwards, so they differ in size anyway; with 0.3 some 2% fewer nets run between as many clusters as with 0.05.
"""
_NET_WEIGHT = 4  # weight of a net relative to the hyperedge of a module of the hierarchy


@dataclasses.dataclass(frozen=True)
class ClusteringSettings:
    """Settings of the clustering. Raises DesignError if a value is out of range."""

    # target number of clusters beside the fixed groups; fewer if there are not eight cells for each
    clusters: int = 500
    seed: int = 0  # seed of the partitioner
    use_positions: bool = True  # whether cells' positions are used if there are any

    def __post_init__(self) -> None:
        for field, least in (("clusters", 1), ("seed", 0)):
            value = getattr(self, field)
            if int(value) != value or value < least:
                raise DesignError(f"{field}={value}: must be a whole number of at least {least}")


@dataclasses.dataclass(frozen=True, eq=False)
class Clustering:
    """Standard cells and their clusters."""

    cluster: np.ndarray  # int32 [N], the cluster of each cell; -1 for macros, ports and cells on no net
    count: int  # number of clusters, which are numbered from 0 without gaps
    settings: ClusteringSettings  # the settings of the clustering
    placed: bool  # whether positions were used
    notices: tuple[str, ...]  # the nets and cells that were omitted


def cluster_cells(design: FlatDesign, canvas: Canvas, *, settings: ClusteringSettings | None = None) -> Clustering:
    """Clusters the standard cells of a flat design.

    Args:
        design: the flat netlist, its positions and floorplan.
        canvas: the size of the gcells and the area of the canvas.
        settings: defaults to `ClusteringSettings()`.

    Raises:
        DesignError: Mt-KaHyPar is not installed or fails.
    """
    chosen = settings or ClusteringSettings()
    netlist = design.netlist
    joined = connectivity(design)
    on_nets = np.zeros(netlist.num_nodes, dtype=np.bool_)
    on_nets[netlist.pin_node[netlist.net_pins]] = True
    cells = np.flatnonzero(joined.is_cell & on_nets)
    placed = chosen.use_positions and bool(len(cells)) and bool(design.placement.placed[cells].all())
    fixed, groups = fixed_groups(design, canvas, joined)
    parts = groups + max(1, min(chosen.clusters, len(cells) // 8))
    group = _partitioned(joined, cells, fixed, None if placed else netlist.names, parts=parts, seed=chosen.seed)
    # Distance in µm beyond which groups are broken up; it is unlimited without positions.
    reach = math.sqrt(canvas.width * canvas.height / 16) if placed else math.inf
    # A macro without a place breaks up no group.
    has_place = design.placement.placed
    inside = np.where(has_place, group, -1)
    broken, count = break_up(inside, parts, x=joined.x, y=joined.y, area=joined.area, reach=reach)
    group = np.where(has_place, broken, group)
    most_nodes = (netlist.num_nodes + int(joined.size[netlist.hard].sum())) // parts // 4
    if most_nodes > 0:
        group = merge_small(group, count, joined, most_nodes=most_nodes, reach=reach / 2)
    cluster = np.where(joined.is_cell & on_nets, group, -1)
    free = cells[fixed[cells] < 0]
    cluster = refine(cluster, free, joined, reach=reach / 2, seed=chosen.seed)
    numbers, member = np.unique(cluster[cells], return_inverse=True)
    cluster[cells] = member.reshape(-1)
    loose = int(joined.is_cell.sum()) - len(cells)
    notices = [f"{loose:,} cells without a net (fillers, taps, spares) are not clustered"] if loose else []
    return Clustering(cluster.astype(np.int32), len(numbers), chosen, placed, tuple(notices))


def fixed_groups(design: FlatDesign, canvas: Canvas, joined: Connectivity) -> tuple[np.ndarray, int]:
    """A group for each hard macro and each run of ports no longer than a gcell, with the adjacent cells.

    Circuit Training's rule (google-research/circuit_training, `Grouping.setup_fixed_groups`). A cell that several
    groups reach belongs to the first of them.

    Returns:
        Each node's group, int32 [N], -1 for none, and the number of groups.
    """
    group = np.full(design.netlist.num_nodes, -1, dtype=np.int32)
    hard = design.netlist.hard
    group[hard] = np.arange(len(hard))
    count = len(hard)
    # The diagonals of the die divide its sides: top, right, bottom and left.
    die, ports = design.floorplan.die, design.netlist.ports
    x, y = design.placement.x[ports] - die.x_low, design.placement.y[ports] - die.y_low
    rising, falling = y > x * die.height / die.width, y > die.height - x * die.height / die.width
    for above_rising, above_falling in ((True, True), (False, True), (False, False), (True, False)):
        mine = (rising == above_rising) & (falling == above_falling)
        along, length = (x, canvas.cell_width) if above_rising == above_falling else (y, canvas.cell_height)
        begin = -math.inf
        for index in np.flatnonzero(mine)[np.argsort(along[mine], kind="stable")].tolist():
            if along[index] - begin > length:
                begin, count = along[index], count + 1
            group[ports[index]] = count - 1
    # Cells that share a driver–sink connection with a grouped node, in either direction.
    driver = joined.driver[joined.net]
    ends, others = np.concatenate((driver, joined.node)), np.concatenate((joined.node, driver))
    reaches = (group[ends] >= 0) & (group[others] < 0) & joined.is_cell[others]
    best = np.full(len(group), count, dtype=np.int32)
    np.minimum.at(best, others[reaches], group[ends[reaches]])
    return np.where(best < count, best, group), count


def _partitioned(
    joined: Connectivity, cells: np.ndarray, fixed: np.ndarray, names: Sequence[str] | None, *, parts: int, seed: int
) -> np.ndarray:
    """The block of every cell, macro and port, int32 [N]; a fixed group is one vertex of the hypergraph.

    The hierarchy of `names` guides the partition; None if the nodes have positions, which guide it better.
    """
    groups = int(fixed.max(initial=-1)) + 1
    vertex_of = fixed.astype(np.int64)
    free = cells[fixed[cells] < 0]
    vertex_of[free] = groups + np.arange(len(free))
    weight = np.ones(groups + len(free), dtype=np.int64)
    # A fixed group may contain more than a block should; it then fills its block alone.
    total = int((vertex_of >= 0).sum())
    weight[:groups] = np.clip(np.bincount(fixed[fixed >= 0], minlength=groups), 1, max(1, total // parts))
    edge, vertex = _hyperedges(joined.net, vertex_of[joined.node], len(weight))
    edge_weight = np.full(int(edge.max(initial=-1)) + 1, _NET_WEIGHT, dtype=np.int64)
    if names is not None:
        module, member = module_edges(names, free, parts)
        edge = np.concatenate((edge, len(edge_weight) + module))
        vertex = np.concatenate((vertex, vertex_of[member]))
        edge_weight = np.concatenate((edge_weight, np.ones(int(module.max(initial=-1)) + 1, np.int64)))
    pinned = np.full(len(weight), -1, dtype=np.int32)
    pinned[:groups] = np.arange(groups)
    part = partition(
        edge, vertex, edge_weight=edge_weight, vertex_weight=weight, fixed=pinned, parts=parts, imbalance=_IMBALANCE,
        seed=seed,
    )  # fmt: skip
    return np.where(vertex_of >= 0, part[np.maximum(vertex_of, 0)], -1).astype(np.int32)


def _hyperedges(net: np.ndarray, vertex: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Hyperedges of at least two vertices, numbered from 0, and their vertices, each once; int64 [M] each."""
    inside = vertex >= 0
    pairs = np.unique(net[inside] * count + vertex[inside])
    edge, pin = np.divmod(pairs, max(count, 1))
    degree = np.bincount(edge)
    kept = degree[edge] >= 2 if len(edge) else np.zeros(0, dtype=np.bool_)
    _, edge = np.unique(edge[kept], return_inverse=True)
    return edge.reshape(-1), pin[kept]


def module_edges(names: Sequence[str], cells: np.ndarray, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """The modules of the hierarchy that are no larger than two blocks, each as a hyperedge of its cells.

    Takes the names of all nodes (`/` between levels) and the cells to include (int64 [·]). Returns modules, numbered
    from 0, and the nodes in them, int64 [M] each.
    """
    most = max(2, 2 * len(cells) // max(parts, 1))
    members: dict[str, list[int]] = {}
    for cell in cells.tolist():
        path = names[cell]
        while (at := path.rfind("/")) > 0:
            path = path[:at]
            inside = members.setdefault(path, [])
            # One name more than allowed suffices to detect a module that is too large.
            if len(inside) <= most:
                inside.append(cell)
    kept = [inside for inside in members.values() if 2 <= len(inside) <= most]
    module = np.repeat(np.arange(len(kept)), np.array([len(inside) for inside in kept], dtype=np.int64))
    return module, np.array([cell for inside in kept for cell in inside], dtype=np.int64)
