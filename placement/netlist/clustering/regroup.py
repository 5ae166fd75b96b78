"""Breaking up groups that span too far, and merging small ones (google-research/circuit_training, `Grouping`).

Axis legend: N nodes, G groups.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.clustering.connectivity import Connectivity


def centroids(
    group: np.ndarray, count: int, *, x: np.ndarray, y: np.ndarray, area: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """µm, float64 [G] each: the groups' centres of area; 0 where a group has none.

    Args:
        group: int [N], -1: none.
        count: G.
        x: float64 [N], µm.
        y: float64 [N], µm.
        area: float64 [N], µm²; 0 for what does not count.
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

    Arguments as of `centroids`. The square in the middle keeps the group's number; the others get new ones.

    Returns:
        int32 [N], the new groups, and how many there are.
    """
    inside = np.flatnonzero(group >= 0)
    low_x, high_x = _extent(group[inside], x[inside], count)
    low_y, high_y = _extent(group[inside], y[inside], count)
    centre_x, centre_y = centroids(group, count, x=x, y=y, area=area)
    wide, high = high_x - low_x >= reach, high_y - low_y >= reach
    mine = group[inside]
    column = np.where(wide[mine], _bucket(x[inside] - centre_x[mine], reach), 0)
    row = np.where(high[mine], _bucket(y[inside] - centre_y[mine], reach), 0)
    moved = (column != 0) | (row != 0)
    keys = np.stack((mine[moved], column[moved], row[moved]), axis=1)
    found, member = np.unique(keys, axis=0, return_inverse=True)
    result = group.astype(np.int32)
    result[inside[moved]] = count + member.reshape(-1)
    return result, count + len(found)


def _extent(group: np.ndarray, at: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, group, at)
    np.maximum.at(high, group, at)
    return low, high


def _bucket(distance: np.ndarray, reach: float) -> np.ndarray:
    """int64: 0 within half of `reach` of the centre, then one more per `reach`, negative below."""
    return (np.sign(distance) * np.floor(0.5 + np.abs(distance) / reach)).astype(np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class Nodes:
    """What merging knows of the nodes.

    Attributes:
        x, y: float64 [N], µm; None: distance does not matter.
        area: float64 [N], µm²; 0 for what does not count for a group's centre.
        size: int64 [N], as how many nodes each counts.
    """

    x: np.ndarray | None
    y: np.ndarray | None
    area: np.ndarray
    size: np.ndarray


def merge_small(
    group: np.ndarray, count: int, *, joined: Connectivity, nodes: Nodes, most_nodes: int, reach: float
) -> np.ndarray:
    """Merges groups of at most `most_nodes` nodes into the one that most nets join them with, until none is left.

    Args:
        group: int [N], -1: none.
        count: G.
        joined: the nets.
        nodes: where they stand and how large they are.
        most_nodes: a group of no more nodes is small.
        reach: µm, the largest distance (across plus up) between the centres of groups that are merged.

    Returns:
        int32 [N], the new groups, numbered as before.
    """
    result = group.astype(np.int32)
    # Every pass but the last merges one group at least; more passes than groups cannot be.
    for _ in range(count):
        if not _merge_pass(result, count, joined=joined, nodes=nodes, most_nodes=most_nodes, reach=reach):
            break
    return result


def _merge_pass(
    group: np.ndarray, count: int, *, joined: Connectivity, nodes: Nodes, most_nodes: int, reach: float
) -> bool:
    """One pass over the small groups, changing `group`; whether another one may find more."""
    inside = group >= 0
    sizes = np.bincount(group[inside], nodes.size[inside], count)
    small = np.flatnonzero((sizes > 0) & (sizes <= most_nodes))
    if not len(small):
        return False
    matrix = joined.matrix(group, count)
    adjacency = (matrix[:, small].T @ matrix).tocsr()
    centre_x = centre_y = np.zeros(count)
    if nodes.x is not None and nodes.y is not None:
        centre_x, centre_y = centroids(group, count, x=nodes.x, y=nodes.y, area=nodes.area)
    into = np.arange(count)
    again = False
    for index, source in enumerate(small.tolist()):
        begin, end = adjacency.indptr[index], adjacency.indptr[index + 1]
        others, weights = adjacency.indices[begin:end], adjacency.data[begin:end]
        distance = np.abs(centre_x[others] - centre_x[source]) + np.abs(centre_y[others] - centre_y[source])
        # A group that was merged away in this pass takes no others.
        possible = (others != source) & (sizes[others] > 0) & ((nodes.x is None) | (distance <= reach))
        if not possible.any():
            continue
        target = int(others[possible][np.lexsort((others[possible], -weights[possible]))[0]])
        into[into == source] = target
        sizes[target] += sizes[source]
        sizes[source] = 0
        again = again or bool(sizes[target] <= most_nodes)
    group[inside] = into[group[inside]]
    return again
