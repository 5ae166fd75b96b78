"""Nets as springs, which attract each macro to a position determined by the placed macros.

Most nets of a clustered design connect a hard macro to soft macros, so nets between placed macros give little
information. Minimising the springs' energy over the soft macros (a Schur complement of the graph Laplacian) leaves an
*effective* coupling of the hard macros to each other and to fixed nodes. Minimising it over the unplaced macros as well
(a Cholesky factor in reverse placing order) gives the position of minimum energy for the current macro, its sequential
target.

Up to `_LARGEST_DENSE` soft macros are eliminated exactly, by a dense inverse. A larger inverse would take gigabytes,
and so would sparse factors, because clusters are connected to many others. Instead, conjugate gradients (Hestenes and
Stiefel 1952) solve for the few columns that are needed, `_COLUMNS` at a time.

Axis legend: M movable nodes (hard macros in placing order, then soft macros), T hard macros in placing order, K targets
(direct, sequential), U soft macros, Q right-hand sides. Coordinates are fractions of the canvas.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix, diags

from placement.netlist.design import Design
from placement.netlist.graph import net_members

TARGETS = 2  # K, the number of targets
_LARGEST_CLIQUE = 24
"""Maximum number of nodes of a net that becomes a clique; larger nets become a star around their driver."""
_LARGEST_DENSE = 2000
"""Maximum number of soft macros for a dense factorisation; more are solved for by conjugate gradients."""
_COLUMNS = 64  # maximum of Q
_RESIDUAL = 1e-9  # residual, relative to the right-hand side, at which conjugate gradients stop
_MOST_ROUNDS = 500
"""Maximum number of conjugate-gradient iterations. The anchor bounds the need: 1,000 × 20,000 macros take about 40."""
_ANCHOR = 1e-3
"""Strength of the spring from every movable node to the canvas centre, as a fraction of the mean stiffness."""


class SpringTargets(NamedTuple):
    """Positions to which the springs attract each macro, and the strength of the attraction."""

    # float64 [K, T, T], strictly lower triangular; the target of macro t is `weights[k, t] @ x + fixed[k, t, 0]` (x [T]
    # with 0 for unplaced macros), and likewise for y with `[k, t, 1]`. k = 0 takes the springs to placed and fixed
    # nodes (soft macros eliminated); k = 1 eliminates the unplaced macros, too.
    weights: np.ndarray
    fixed: np.ndarray  # float64 [K, T, 2], the fixed nodes' contribution to the target
    stiffness: np.ndarray  # float64 [K, T], strength of macro t's attraction to its target, over the mean of all macros


def springs(design: Design) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the nets as springs: each pair of a net with k nodes and weight w gets w / (k - 1); large nets are stars.

    (i, j, strength) are int64, int64 and float64 [springs]; i and j are nodes, and pairs may repeat.
    """
    net, node = net_members(design)
    size = np.bincount(net, minlength=design.netlist.num_nets)
    start = np.concatenate(([0], np.cumsum(size)))
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for k in np.unique(size[size >= 2]):
        nets = np.flatnonzero(size == k)
        members = node[start[nets][:, None] + np.arange(k)]
        weight = design.netlist.net_weight[nets]
        if k <= _LARGEST_CLIQUE:
            first, second = np.triu_indices(k, 1)
            weight = weight / (k - 1)
        else:
            first, second = np.zeros(k - 1, np.int64), np.arange(1, k)
        pair_weight = np.repeat(weight[:, None], len(first), axis=1)
        found.append((members[:, first].ravel(), members[:, second].ravel(), pair_weight.ravel()))
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))  # type: ignore[return-value]


def spring_targets(design: Design) -> SpringTargets:
    """Solves the springs of `design`."""
    netlist, macros = design.netlist, len(design.placing_order)
    soft = netlist.soft[~design.initial.fixed[netlist.soft]]
    movable = np.concatenate((design.placing_order, soft)).astype(np.int64)
    count = len(movable)
    i, j, strength, fixed = _system(design, movable)
    degree = np.bincount(i, strength, count) + np.bincount(j, strength, count) + fixed[:, 2]
    anchor = _ANCHOR * (degree.mean() if count and degree.mean() > 0 else 1.0)
    right = fixed[:, :2] + anchor * 0.5
    reduced, right_hard = _eliminate_soft(i, j, strength, degree + anchor, right, macros)
    weights, shares, stiffness = (
        np.stack(both) for both in zip(_direct(reduced, right_hard), _sequential(reduced, right_hard), strict=True)
    )
    if macros:
        stiffness = stiffness / np.maximum(stiffness.mean(axis=1, keepdims=True), 1e-30)
    return SpringTargets(weights, shares, stiffness)


def _system(design: Design, movable: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns the springs among movable nodes (i, j, strength), and Σw·x, Σw·y, Σw of fixed ones, float64 [M, 3]."""
    first, second, strength = springs(design)
    canvas, initial, count = design.canvas, design.initial, len(movable)
    index = np.full(design.netlist.num_nodes, -1, np.int64)
    index[movable] = np.arange(count)
    fixed = np.zeros((count, 3))
    for here, there in ((first, second), (second, first)):
        held = (index[here] >= 0) & (index[there] < 0)
        weight, node = strength[held], there[held]
        for axis, value in enumerate((initial.x[node] / canvas.width, initial.y[node] / canvas.height, 1.0)):
            fixed[:, axis] += np.bincount(index[here[held]], weight * value, count)
    free = (index[first] >= 0) & (index[second] >= 0)
    return index[first[free]], index[second[free]], strength[free], fixed


def _eliminate_soft(
    i: np.ndarray, j: np.ndarray, strength: np.ndarray, diagonal: np.ndarray, right: np.ndarray, macros: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the system of the hard macros alone, matrix [T, T] and right-hand sides [T, 2]."""
    count = len(diagonal)
    solve: Callable[[np.ndarray], np.ndarray]
    if count - macros <= _LARGEST_DENSE:
        matrix = np.diag(diagonal)
        np.subtract.at(matrix, (i, j), strength)
        np.subtract.at(matrix, (j, i), strength)
        hard, cross = matrix[:macros, :macros], matrix[:macros, macros:]
        solve = functools.partial(np.matmul, np.linalg.inv(matrix[macros:, macros:]))
    else:
        both = coo_matrix((-strength, (i, j)), shape=(count, count)).tocsr()
        sparse = (both + both.T + diags(diagonal)).tocsr()
        hard, cross = sparse[:macros, :macros].toarray(), sparse[:macros, macros:]
        solve = functools.partial(conjugate_gradients, sparse[macros:, macros:].tocsr())
    reduced = hard - _coupled(cross, solve)
    return (reduced + reduced.T) / 2, right[:macros] - cross @ solve(right[macros:])


def _coupled(cross: Any, solve: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Returns cross · solve(crossᵀ), float64 [T, T]; a sparse `cross` [T, M - T] is never dense as a whole."""
    if isinstance(cross, np.ndarray):
        return cross @ solve(np.ascontiguousarray(cross.T))
    columns = [
        cross @ solve(np.ascontiguousarray(cross[first : first + _COLUMNS].toarray().T))
        for first in range(0, cross.shape[0], _COLUMNS)
    ]
    return np.concatenate([np.zeros((cross.shape[0], 0)), *columns], axis=1)


def conjugate_gradients(matrix: csr_matrix, right: np.ndarray) -> np.ndarray:
    """Solves matrix [U, U] (diagonally dominant) · x = right [U, Q], preconditioned by the diagonal: float64 [U, Q].

    The residuals are at most `_RESIDUAL` of the right-hand sides, unless `_MOST_ROUNDS` iterations do not suffice.
    """
    diagonal = matrix.diagonal()[:, None]
    enough = (_RESIDUAL * np.linalg.norm(right, axis=0)) ** 2
    found, residual = np.zeros_like(right), right.copy()
    conditioned = residual / diagonal
    direction, energy = conditioned.copy(), (residual * conditioned).sum(axis=0)
    for _ in range(_MOST_ROUNDS):
        if ((residual**2).sum(axis=0) <= enough).all():
            break
        ahead = matrix @ direction
        length = energy / np.maximum((direction * ahead).sum(axis=0), 1e-300)
        found += length * direction
        residual -= length * ahead
        conditioned = residual / diagonal
        before, energy = energy, (residual * conditioned).sum(axis=0)
        direction = conditioned + energy / np.maximum(before, 1e-300) * direction
    return found


def _direct(matrix: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the weights of placed macros [T, T] and fixed nodes [T, 2] in each target, and the stiffness [T]."""
    coupling = np.maximum(-np.tril(matrix, -1), 0)
    stiffness = coupling.sum(axis=1) + np.maximum(matrix.sum(axis=1), 0)
    divisor = np.maximum(stiffness, 1e-30)[:, None]
    return coupling / divisor, right / divisor, stiffness


def _sequential(matrix: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the results of `_direct` with later macros eliminated: matrix = Lᵀ·D·L in placing order, L unit lower."""
    if not len(matrix):
        return np.zeros((0, 0)), np.zeros((0, 2)), np.zeros(0)
    factor = np.linalg.cholesky(matrix[::-1, ::-1])
    root = np.diagonal(factor)
    forward = np.linalg.solve(factor, right[::-1])
    unit = (factor / root).T[::-1, ::-1]
    return -np.tril(unit, -1), (forward / root[:, None])[::-1], (root**2)[::-1]
