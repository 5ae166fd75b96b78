"""Groups of cells and the nets between them: breaking up groups that span too far, merging small ones, moving cells.

The first two are part of Circuit Training's recipe (google-research/circuit_training, `Grouping`). After the
partitioner no cell would gain by moving, but after breaking up and merging thousands would, so cells are moved one by
one at the end.

Axis legend: N nodes, M pairs of a net and a node on it, E nets, G groups, C cells that may move, K moves (pairs of a
cell and a group that its nets reach).
"""

import dataclasses

import numpy as np
import scipy.sparse

from placement.netlist.design import NodeKind
from placement.netlist.flat_design import FlatDesign

MOST_SINKS = 500  # maximum number of sinks of a net; larger nets are cut
ROUNDS = 12  # maximum number of rounds of moves


@dataclasses.dataclass(frozen=True, eq=False)
class Connectivity:
    """The connectivity that clustering uses: the nets that are not cut, each node once, and the nodes' positions."""

    nets: np.ndarray  # int64 [E], the nets that are kept, in their order
    net: np.ndarray  # int64 [M], the index of each pair's net in `nets`, rising; node: int64 [M], rising within a net
    node: np.ndarray
    driver: np.ndarray  # int64 [E], the node that drives each kept net
    is_cell: np.ndarray  # bool [N]
    x: np.ndarray  # x, y: float64 [N], µm
    y: np.ndarray
    area: np.ndarray  # float64 [N], µm²; 0 for nodes that are not cells, which do not count for a group's centre
    # int64 [N], the number of nodes that each counts for; a macro counts as its pins, which the recipe groups in its
    # place
    size: np.ndarray

    def counts(self, group: np.ndarray, count: int) -> scipy.sparse.csr_matrix:
        """Number of nodes of each kept net in each group, int64 [E, G]; `group` is int [N], -1 for none."""
        of_pair = group[self.node]
        inside = of_pair >= 0
        ones = np.ones(int(inside.sum()), dtype=np.int64)
        return scipy.sparse.csr_matrix((ones, (self.net[inside], of_pair[inside])), (len(self.nets), count))


def connectivity(design: FlatDesign) -> Connectivity:
    """The connectivity of a flat design without nets of more than `MOST_SINKS` sinks."""
    netlist = design.netlist
    degree = np.diff(netlist.net_start)
    nets = np.flatnonzero((degree <= MOST_SINKS + 1) & (degree >= 2))
    place = np.full(netlist.num_nets, -1, dtype=np.int64)
    place[nets] = np.arange(len(nets))
    of_pin = np.repeat(place, degree)
    kept = of_pin >= 0
    nodes = netlist.pin_node[netlist.net_pins].astype(np.int64)
    pairs = np.unique(of_pin[kept] * netlist.num_nodes + nodes[kept])
    net, node = np.divmod(pairs, max(netlist.num_nodes, 1))
    is_cell = netlist.kind == NodeKind.CELL
    pins = np.bincount(netlist.pin_node, minlength=netlist.num_nodes)
    return Connectivity(
        nets=nets,
        net=net,
        node=node,
        driver=nodes[netlist.net_start[nets]],
        is_cell=is_cell,
        x=design.placement.x,
        y=design.placement.y,
        area=np.where(is_cell, netlist.width * netlist.height, 0.0),
        size=np.where(netlist.kind == NodeKind.HARD, pins, 1),
    )


def centroids(
    group: np.ndarray, count: int, *, x: np.ndarray, y: np.ndarray, area: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Centres of area of `count` groups, float64 [G] each, in µm; 0 for a group without area.

    `group` is int [N], -1 for none; `x`, `y` (µm) and `area` (µm²; 0 for nodes that do not count) are float64 [N].
    """
    inside = group >= 0
    weight = np.bincount(group[inside], area[inside], count)
    safe = np.where(weight > 0, weight, 1.0)
    centre_x = np.bincount(group[inside], (area * x)[inside], count) / safe
    centre_y = np.bincount(group[inside], (area * y)[inside], count) / safe
    return centre_x, centre_y


def break_up(
    group: np.ndarray, count: int, *, x: np.ndarray, y: np.ndarray, area: np.ndarray, reach: float
) -> tuple[np.ndarray, int]:
    """Cuts groups that are wider or higher than `reach` µm into squares of that side around their centre of area.

    Takes the arguments of `centroids`. Returns the new groups, int32 [N], of which the middle square keeps the group's
    number, and their number.
    """
    inside = np.flatnonzero(group >= 0)
    mine = group[inside]
    indices = []
    for at, centre in zip((x, y), centroids(group, count, x=x, y=y, area=area), strict=True):
        low, high = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(low, mine, at[inside])
        np.maximum.at(high, mine, at[inside])
        distance = at[inside] - centre[mine]
        # The index is 0 within half of `reach` of the centre, then one more per `reach`, negative below.
        bucket = (np.sign(distance) * np.floor(0.5 + np.abs(distance) / reach)).astype(np.int64)
        indices.append(np.where((high - low >= reach)[mine], bucket, 0))
    column, row = indices
    moved = (column != 0) | (row != 0)
    keys = np.stack((mine[moved], column[moved], row[moved]), axis=1)
    found, member = np.unique(keys, axis=0, return_inverse=True)
    result = group.astype(np.int32)
    result[inside[moved]] = count + member.reshape(-1)
    return result, count + len(found)


def merge_small(group: np.ndarray, count: int, joined: Connectivity, *, most_nodes: int, reach: float) -> np.ndarray:
    """Merges groups of at most `most_nodes` nodes into the group with the most common nets, until none is left.

    `group` is int [N], -1 for none; `reach` is the largest distance (across plus up, µm) between the centres of groups
    that are merged. Returns the new groups, int32 [N], in the same numbering.
    """
    result = group.astype(np.int32)
    # Every round but the last merges at least one group, so there are no more rounds than groups.
    for _ in range(count):
        if not _merge(result, count, joined, most_nodes=most_nodes, reach=reach):
            break
    return result


def _merge(group: np.ndarray, count: int, joined: Connectivity, *, most_nodes: int, reach: float) -> bool:
    """Runs one round over the small groups, changing `group`; returns whether another round may merge more."""
    inside = group >= 0
    sizes = np.bincount(group[inside], joined.size[inside], count)
    small = np.flatnonzero((sizes > 0) & (sizes <= most_nodes))
    if not len(small):
        return False
    matrix = joined.counts(group, count)
    matrix.data[:] = 1
    adjacency = (matrix[:, small].T @ matrix).tocsr()
    centre_x, centre_y = centroids(group, count, x=joined.x, y=joined.y, area=joined.area)
    into = np.arange(count)
    again = False
    for index, source in enumerate(small.tolist()):
        begin, end = adjacency.indptr[index], adjacency.indptr[index + 1]
        others, weights = adjacency.indices[begin:end], adjacency.data[begin:end]
        distance = np.abs(centre_x[others] - centre_x[source]) + np.abs(centre_y[others] - centre_y[source])
        # A group that was merged away in this round absorbs no others.
        possible = (others != source) & (sizes[others] > 0) & (distance <= reach)
        if not possible.any():
            continue
        target = int(others[possible][np.lexsort((others[possible], -weights[possible]))[0]])
        into[into == source] = target
        sizes[target] += sizes[source]
        sizes[source] = 0
        again = again or bool(sizes[target] <= most_nodes)
    group[inside] = into[group[inside]]
    return again


def refine(group: np.ndarray, movable: np.ndarray, joined: Connectivity, *, reach: float, seed: int = 0) -> np.ndarray:
    """Moves cells to groups that they share nets with, while that saves nets between groups.

    The gain of a move is the number of nets that it brings entirely into one group, plus the reduction in the number of
    groups that its nets reach. Half of the cells, drawn at random, may move in a round. No group grows beyond the
    largest one; some may lose all cells.

    `group` is int [N], -1 for nodes that are not cells (macros, ports) or on no net; `movable`, int [C], are the cells
    that may move, to groups whose centre is within `reach` µm on each axis. Returns the new groups, int32 [N].
    """
    result = group.astype(np.int32)
    if not len(movable) or result.max(initial=-1) < 1:
        return result
    count = int(result.max()) + 1
    most = int(np.bincount(result[result >= 0], minlength=count).max())
    shape = (len(result), len(joined.nets))
    ones = np.ones(len(joined.net), dtype=np.int32)
    on_nets = scipy.sparse.csr_matrix((ones, (joined.node, joined.net)), shape)[movable]
    if not on_nets.nnz:
        return result
    draw = np.random.default_rng(seed)
    for _ in range(ROUNDS):
        moves = _moves(result, count, movable, joined=joined, on_nets=on_nets)
        sizes = np.bincount(result[result >= 0], minlength=count)
        moves = moves[(moves.gain > 0) & (sizes[moves.group] < most)]
        x, y = centroids(result, count, x=joined.x, y=joined.y, area=joined.area)
        cell = movable[moves.cell]
        across, up = np.abs(x[moves.group] - joined.x[cell]), np.abs(y[moves.group] - joined.y[cell])
        moves = moves[(across <= reach) & (up <= reach)]
        if not len(moves):
            break
        moves = moves[(draw.random(len(movable)) < 0.5)[moves.cell]]
        # Take the best move of each cell, then the best moves to each group, as many as it has space for.
        moves = moves[np.lexsort((moves.group, -moves.gain, moves.cell))]
        moves = moves[np.diff(moves.cell, prepend=-1) != 0]
        moves = moves[np.lexsort((moves.cell, -moves.gain, moves.group))]
        rank = np.arange(len(moves)) - np.searchsorted(moves.group, moves.group)
        moves = moves[sizes[moves.group] + rank < most]
        result[movable[moves.cell]] = moves.group
    return result


def _moves(
    group: np.ndarray, count: int, movable: np.ndarray, *, joined: Connectivity, on_nets: scipy.sparse.csr_matrix
) -> np.recarray:
    """Every move of a cell to another group that one of its nets reaches.

    The result is a record array [K] with int64 fields `cell` (an index in `movable`), `group` and `gain`.
    """
    degree = np.bincount(joined.net, minlength=len(joined.nets))
    nodes_in = joined.counts(group, count).astype(np.int32)
    reached, all_but_one = nodes_in.copy(), nodes_in.copy()
    reached.data = np.ones_like(reached.data)
    all_but_one.data = (nodes_in.data >= np.repeat(degree - 1, np.diff(nodes_in.indptr))).astype(np.int32)
    cell = np.repeat(np.arange(len(movable)), np.diff(on_nets.indptr))
    own = np.asarray(nodes_in[on_nets.indices, group[movable][cell]]).ravel()
    left = np.bincount(cell, own == 1, len(movable)).astype(np.int64)
    broken = np.bincount(cell, own == degree[on_nets.indices], len(movable)).astype(np.int64)
    nets = np.diff(on_nets.indptr)
    joins, closes = (on_nets @ reached).tocsr(), (on_nets @ all_but_one).tocsr()
    source = np.repeat(np.arange(len(movable)), np.diff(joins.indptr))
    target = joins.indices.astype(np.int64)
    gain = left[source] - (nets[source] - joins.data) - broken[source]
    closed = np.repeat(np.arange(len(movable)), np.diff(closes.indptr)) * count + closes.indices
    keys = source * count + target
    order = np.argsort(keys)
    gain[order[np.searchsorted(keys, closed, sorter=order)]] += closes.data
    dtype = [("cell", np.int64), ("group", np.int64), ("gain", np.int64)]
    moves: np.recarray = np.rec.fromarrays((source, target, gain), dtype=dtype)
    return moves[target != group[movable][source]]
