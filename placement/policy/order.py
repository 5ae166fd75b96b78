"""In which order an episode places the macros, and on which grid."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.sparse import coo_matrix

from placement.config import EnvConfig
from placement.netlist.design import Design
from placement.policy.influence import springs

ORDERS = ("area", "connected")
_LARGEST_DENSE = 4_000_000
"""Springs of macros to nodes as a dense matrix: so many numbers at most."""


def as_played(design: Design, env: EnvConfig) -> Design:
    """The design with the placing order and the grid of actions that the settings ask for."""
    return ordered(design, env.order).with_actions(env.action_scale, off_grid=env.off_grid, overlap=env.overlap)


def ordered(design: Design, order: str) -> Design:
    """The design with its macros to be placed in another order.

    Args:
        design: any.
        order: `area`, the largest first, ties by name; `connected`, the most connected macro first, then always the
            macro with the strongest connection to the placed ones, directly or through a soft macro (ties: the larger).

    Raises:
        ValueError: there is no such order.
    """
    if order == "area":
        return dataclasses.replace(design, order=None)
    if order != "connected":
        raise ValueError(f"order={order!r}: must be one of {', '.join(ORDERS)}")
    by_area = dataclasses.replace(design, order=None).placing_order
    strength = _couplings(design, by_area)
    joined = np.zeros(len(by_area))
    left = np.ones(len(by_area), bool)
    result: list[int] = []
    for _ in by_area:
        score = joined if result else strength.sum(axis=1)
        chosen = int(np.argmax(np.where(left, score, -1)))
        left[chosen] = False
        joined += strength[chosen]
        result.append(int(by_area[chosen]))
    return dataclasses.replace(design, order=tuple(result))


def _couplings(design: Design, macros: np.ndarray) -> np.ndarray:
    """float64 [T, T]: springs between macros, and those in series through one other movable node."""
    first, second, strength = springs(design)
    count = design.netlist.num_nodes
    place = np.full(count, -1)
    place[macros] = np.arange(len(macros))
    direct = np.zeros((len(macros), len(macros)))
    ends: list[np.ndarray] = []
    for here, there in ((first, second), (second, first)):
        mine = place[here] >= 0
        both = mine & (place[there] >= 0)
        np.add.at(direct, (place[here[both]], place[there[both]]), strength[both])
        other = mine & (place[there] < 0) & np.isin(there, design.netlist.soft)
        ends.append(np.stack((place[here[other]], there[other], strength[other])))
    result = direct + _in_series(np.concatenate(ends, axis=1), len(macros), count)
    np.fill_diagonal(result, 0)
    return result


def _in_series(ends: np.ndarray, macros: int, nodes: int) -> np.ndarray:
    """float64 [T, T]: springs between macros in series through one other node; never dense in all nodes where many.

    Args:
        ends: float64 [3, springs]: macro, node, strength.
        macros: T.
        nodes: of the netlist.
    """
    macro, node, strength = ends[0].astype(np.int64), ends[1].astype(np.int64), ends[2]
    if macros * nodes > _LARGEST_DENSE:
        to_others = coo_matrix((strength, (macro, node)), shape=(macros, nodes)).tocsr()
        share = to_others.multiply(1 / np.maximum(np.asarray(to_others.sum(axis=0)), 1e-30)).tocsr()
        return (share @ to_others.T).toarray()
    dense = np.zeros((macros, nodes))
    np.add.at(dense, (macro, node), strength)
    return (dense / np.maximum(dense.sum(axis=0), 1e-30)) @ dense.T
