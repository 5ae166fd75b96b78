"""Where springs along the nets pull all macros if nothing pushes: the optimum of the quadratic wirelength.

Axis legend: N nodes. Lengths are in µm.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix, diags
from scipy.sparse.linalg import cg

from placement.netlist.design import Design, NodeKind, Placement

MOST_CLIQUE = 24
"""Pins of the largest net that is a spring between every two of them; a larger one is springs from its driver."""
ANCHOR = 1e-5
"""Of the mean stiffness: what ties each macro to the middle, for those that hang on nothing that stands."""
ITERATIONS = 300
"""Of the solver, at most."""
TOLERANCE = 1e-6


def springs_at_rest(
    design: Design, *, like: Placement | None = None, hold: float = 0.0, springs: csr_matrix | None = None
) -> Placement:
    """`design.initial` with all movable macros, hard and soft, where springs along the nets pull them; they overlap.

    Pins count as in the middle of their macros.

    Args:
        design: whose macros.
        like: where springs of `hold` times the weight of all its others tie each hard macro to; None: nowhere.
        hold: their stiffness.
        springs: of `spring_matrix`, where it is at hand.
    """
    springs = spring_matrix(design) if springs is None else springs
    initial, canvas = design.initial, design.canvas
    kind = design.netlist.kind
    free = np.isin(kind, (NodeKind.HARD, NodeKind.SOFT)) & ~initial.fixed
    stiffness = np.asarray(springs[free].sum(axis=1)).ravel()
    anchor = ANCHOR * max(float(stiffness.mean()) if len(stiffness) else 0.0, 1e-12)
    tie = np.full(len(stiffness), anchor)
    middle = np.array([canvas.width / 2, canvas.height / 2])
    pull = anchor * np.tile(middle, (len(stiffness), 1))
    if like is not None and hold > 0:
        held = hold * stiffness * (kind[free] == NodeKind.HARD)
        tie += held
        pull += held[:, None] * np.stack([like.x[free], like.y[free]], axis=1)
    places = np.stack([initial.x, initial.y], axis=1)
    pull += springs[free][:, ~free] @ places[~free]
    to_standing = np.asarray(springs[free][:, ~free].sum(axis=1)).ravel()
    between = springs[free][:, free]
    inner = np.asarray(between.sum(axis=1)).ravel()
    diagonal = inner + to_standing + tie
    matrix = diags(diagonal) - between
    preconditioner = diags(1 / diagonal)
    x, y = initial.x.copy(), initial.y.copy()
    for axis, values in enumerate((x, y)):
        start = np.full(len(diagonal), middle[axis]) if like is None else np.stack([like.x, like.y])[axis][free]
        solution, _ = cg(matrix, pull[:, axis], x0=start, rtol=TOLERANCE, maxiter=ITERATIONS, M=preconditioner)
        values[free] = solution
    return initial.moved(np.flatnonzero(free), x[free], y[free])


def spring_matrix(design: Design) -> csr_matrix:
    """Weights of the springs between nodes, float64 [N, N], symmetric: of a net, its weight over its pins less one."""
    netlist = design.netlist
    sizes = np.diff(netlist.net_start)
    node = netlist.pin_node[netlist.net_pins]
    ends: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for size in np.unique(sizes[(sizes > 1) & (sizes <= MOST_CLIQUE)]):
        nets = np.flatnonzero(sizes == size)
        pins = node[netlist.net_start[nets][:, None] + np.arange(size)]
        first, second = np.triu_indices(size, 1)
        weight = np.repeat(netlist.net_weight[nets] / (size - 1), len(first))
        ends.append((pins[:, first].ravel(), pins[:, second].ravel(), weight))
    for net in np.flatnonzero(sizes > MOST_CLIQUE):
        pins = node[netlist.net_start[net] : netlist.net_start[net + 1]]
        weight = np.full(len(pins) - 1, netlist.net_weight[net])
        ends.append((np.full(len(pins) - 1, pins[0]), pins[1:], weight))
    if not ends:
        return csr_matrix((len(netlist.names), len(netlist.names)))
    first, second, weights = (np.concatenate(parts) for parts in zip(*ends, strict=True))
    apart = first != second
    first, second, weights = first[apart], second[apart], weights[apart]
    half = coo_matrix((weights, (first, second)), shape=(len(netlist.names),) * 2).tocsr()
    return half + half.T
