"""Moving cells between groups, one by one, where fewer nets then run between them.

The partitioner leaves no such move; breaking groups up and merging them, as the recipe does, makes thousands.

Axis legend: N nodes, M cells that may move, E nets, G groups, K pairs of a cell and a group that its nets reach,
I pairs of a cell and a net.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse

from placement.netlist.clustering.connectivity import Connectivity
from placement.netlist.clustering.regroup import Nodes, centroids

PASSES = 12


@dataclasses.dataclass(frozen=True, eq=False)
class _Moves:
    """Moves of cells to groups: `cell` int64 [K] (places in `movable`), `group` int64 [K], `gain` int64 [K]."""

    cell: np.ndarray
    group: np.ndarray
    gain: np.ndarray

    def only(self, kept: np.ndarray) -> _Moves:
        return _Moves(self.cell[kept], self.group[kept], self.gain[kept])


def refine(
    group: np.ndarray, movable: np.ndarray, *, joined: Connectivity, nodes: Nodes, reach: float, seed: int = 0
) -> np.ndarray:
    """Moves cells to groups that they have nets with, while that saves nets or groups that nets join.

    A move gains the nets that it brings wholly into one group, and one for each net that joins a group fewer. Half of
    the cells, drawn at random, may move in a pass. No group grows beyond the largest one; some may lose all cells.

    Args:
        group: int [N], -1 for what is a place of its own (macros, ports) or on no net.
        movable: int [M], the cells that may move.
        joined: the nets.
        nodes: where the nodes stand; without positions distance does not matter.
        reach: µm, on each axis, from a cell to the centre of a group that it may move to.
        seed: of the draws.

    Returns:
        int32 [N], the new groups.
    """
    result = group.astype(np.int32)
    if not len(movable) or result.max(initial=-1) < 1:
        return result
    count = int(result.max()) + 1
    most = int(np.bincount(result[result >= 0], minlength=count).max())
    shape = (len(result), len(joined.nets))
    ones = np.ones(len(joined.net), dtype=np.int32)
    on_nets = scipy.sparse.csr_matrix((ones, (joined.node, joined.net)), shape)[movable]
    draw = np.random.default_rng(seed)
    for _ in range(PASSES):
        moves = _moves(result, count, movable, joined=joined, on_nets=on_nets)
        sizes = np.bincount(result[result >= 0], minlength=count)
        moves = moves.only((moves.gain > 0) & (sizes[moves.group] < most))
        moves = _near(moves, movable, result, count, nodes=nodes, reach=reach)
        if not len(moves.cell):
            break
        moves = _best(moves.only((draw.random(len(movable)) < 0.5)[moves.cell]))
        moves = _with_room(moves, sizes, most)
        result[movable[moves.cell]] = moves.group
    return result


def _moves(
    group: np.ndarray, count: int, movable: np.ndarray, *, joined: Connectivity, on_nets: scipy.sparse.csr_matrix
) -> _Moves:
    """Every move of a cell to another group that one of its nets reaches."""
    degree = np.bincount(joined.net, minlength=len(joined.nets))
    of_pair = group[joined.node]
    inside = of_pair >= 0
    ones = np.ones(int(inside.sum()), dtype=np.int32)
    # Nets × groups: how many nodes.
    nodes_in = scipy.sparse.csr_matrix((ones, (joined.net[inside], of_pair[inside])), (len(joined.nets), count))
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
    return _Moves(source, target, gain).only(target != group[movable][source])


def _near(moves: _Moves, movable: np.ndarray, group: np.ndarray, count: int, *, nodes: Nodes, reach: float) -> _Moves:
    """The moves to groups whose centre is near."""
    if nodes.x is None or nodes.y is None:
        return moves
    x, y = centroids(group, count, x=nodes.x, y=nodes.y, area=nodes.area)
    cell = movable[moves.cell]
    near = np.abs(x[moves.group] - nodes.x[cell]) <= reach
    return moves.only(near & (np.abs(y[moves.group] - nodes.y[cell]) <= reach))


def _best(moves: _Moves) -> _Moves:
    """The best move of each cell."""
    order = np.lexsort((moves.group, -moves.gain, moves.cell))
    sorted_moves = moves.only(order)
    return sorted_moves.only(np.diff(sorted_moves.cell, prepend=-1) != 0)


def _with_room(moves: _Moves, sizes: np.ndarray, most: int) -> _Moves:
    """The best moves to each group, of which no more are taken than there is room in it."""
    ordered = moves.only(np.lexsort((moves.cell, -moves.gain, moves.group)))
    rank = np.arange(len(ordered.group)) - np.searchsorted(ordered.group, ordered.group)
    return ordered.only(sizes[ordered.group] + rank < most)
