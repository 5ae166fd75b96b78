"""Packing of hard macros in rows or columns with gaps between them, in the order of another placement; and the
equilibrium of springs along the nets.

Axis legend: N nodes. Lengths are in µm. For columns, swap x and y.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_matrix, csr_matrix, diags
from scipy.sparse.linalg import cg

from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.displacement import TOLERANCE
from placement.annealing.legaliser import NoLegalPlacement, legalise
from placement.netlist.design import Design, NodeKind, Placement

HALVINGS = 20  # number of bisections of the interval that holds the largest pitch for a number of rows
WIDEST = 3.0  # largest ratio of the pitch of a row's macros to their widths
MOST_ASSIGNED = 150  # maximum number of macros of equal size in one assignment to positions
MOST_CLIQUE = 24
"""Pins of the largest net modelled as a clique of springs; a larger net is a star of springs from its driver."""
ANCHOR = 1e-5  # stiffness, relative to the mean, of the spring to the centre that holds macros without other springs
SOLVER_ITERATIONS, SOLVER_TOLERANCE = 300, 1e-6


class RowPacker:
    """Packs the movable hard macros of a design in rows or, if `upright`, in columns."""

    def __init__(self, design: Design, config: AnnealConfig, *, upright: bool = False) -> None:
        self._design, self._config, self._upright = design, config, upright
        sides = design.netlist.sides(design.initial.orientation)
        halo = design.constraints.turned_halo(design.initial.orientation)[design.placing_order]
        widest = halo.max(axis=0, initial=0.0)
        canvas = design.canvas
        axes = (1, 0) if upright else (0, 1)
        self._width, self._height = (sides[axis] for axis in axes)
        gaps = [max(config.spacing_in(design), float(widest[axis] + widest[axis + 2])) for axis in range(2)]
        self._gap, self._row_gap = (gaps[axis] for axis in axes)
        self._across, self._up = ((canvas.width, canvas.height)[axis] for axis in axes)
        self._cell = canvas.cell_width if upright else canvas.cell_height
        order = design.placing_order
        self._tallest_first = order[np.argsort(-self._height[order], kind="stable")]

    def stretches(self) -> list[float]:
        """Returns the largest relative pitch at which the macros fit in each number of rows, narrowest first."""
        found: list[float] = []
        tallest = self._tallest_first
        least = len(list(self._rows(tallest, 1.0)))
        for count in range(least, len(tallest) + 1):
            low, high = 1.0, WIDEST
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                fits = len(list(self._rows(tallest, middle))) <= count
                low, high = (middle, high) if fits else (low, middle)
            rows = list(self._rows(tallest, low))
            if self._row_heights(rows) is None or low >= WIDEST - 1e-3:
                break
            if not found or low > found[-1] + 1e-3:
                found.append(low)
        return found

    def pack(self, stretch: float, like: Placement) -> Placement | None:
        """Packs the movable hard macros in rows, from the lower and the upper edge inwards.

        Rows are filled and stacked in the order of their macros in `like`; macros of equal size are then exchanged to
        minimise the sum of squared distances to their positions in `like`. A row takes macros for 1 / `stretch` of the
        canvas width and spreads them evenly. Returns None if the rows do not fit or cannot be made legal.
        """
        design, order = self._design, self._design.placing_order
        rows = self._rows_like(stretch, like)
        heights = self._row_heights(rows)
        if heights is None:
            return None
        x, y = np.stack([design.initial.x, design.initial.y])
        along, up = (y, x) if self._upright else (x, y)
        low, high, half = 0.0, self._up, (len(rows) + 1) // 2
        for row, height in zip(rows[:half], heights[:half], strict=True):
            self._spread(row, along)
            up[row] = low + height / 2
            low += height
        for row, height in zip(rows[: half - 1 : -1], heights[: half - 1 : -1], strict=True):
            self._spread(row, along)
            up[row] = high - height / 2
            high -= height
        _exchange(design, x, y, like)
        placement = design.initial.moved(order, x[order], y[order])
        try:
            return legalise(design, placement, spacing=self._config.spacing_in(design), thorough=False)
        except NoLegalPlacement:
            return None

    def _rows_like(self, stretch: float, like: Placement) -> list[np.ndarray]:
        """Returns rows of macros of similar height and y, lowest row first; each row is ordered from left to right."""
        along, up = (like.y, like.x) if self._upright else (like.x, like.y)
        order = self._design.placing_order
        rows = list(self._rows(order[np.lexsort((up[order], -self._height[order]))], stretch))
        rows = [row[np.argsort(along[row], kind="stable")] for row in rows]
        return sorted(rows, key=lambda row: float(up[row].mean()))

    def _row_heights(self, rows: list[np.ndarray]) -> list[float] | None:
        """Returns the height of each row, in whole gcells if those fit; None if the rows do not fit at all."""
        heights = [float(self._height[row].max()) + self._row_gap for row in rows]
        whole = [float(np.ceil(tall / self._cell - 1e-9) * self._cell) for tall in heights]
        heights = whole if sum(whole) <= self._up else heights
        return heights if sum(heights) <= self._up + self._row_gap else None

    def _rows(self, order: np.ndarray, stretch: float) -> Iterator[np.ndarray]:
        before = [0.0, *np.cumsum(self._width[order] + self._gap).tolist()]
        most = (self._across + self._gap) / stretch + TOLERANCE
        begin = 0
        while begin < len(order):
            end = max(begin + 1, bisect_right(before, before[begin] + most) - 1)
            yield order[begin:end]
            begin = end

    def _spread(self, row: np.ndarray, along: np.ndarray) -> None:
        """Spreads a row's macros evenly over the canvas width, with half a gap at the edges."""
        width = self._width[row]
        free = self._across - width.sum()
        gap = free / len(row)
        left, right = (gap / 2, gap) if gap >= self._gap else (0.0, free / max(1, len(row) - 1))
        along[row] = left + np.concatenate([[0.0], np.cumsum(width + right)[:-1]]) + width / 2


def _exchange(design: Design, x: np.ndarray, y: np.ndarray, like: Placement) -> None:
    """Assigns the positions `x`, `y` (µm, changed) among macros of equal size to minimise their distances to `like`."""
    macros = design.placing_order
    sides = np.stack(design.netlist.sides(design.initial.orientation), axis=1)[macros]
    for size in np.unique(sides, axis=0):
        equal = macros[(sides == size).all(axis=1)]
        want, spots = np.stack([like.x, like.y])[:, equal], np.stack([x, y])[:, equal]
        for mine, theirs in _halves(want, spots):
            distance = ((want[:, mine, None] - spots[:, None, theirs]) ** 2).sum(axis=0)
            who, spot = linear_sum_assignment(distance)
            x[equal[mine[who]]], y[equal[mine[who]]] = spots[:, theirs[spot]]


def _halves(want: np.ndarray, spots: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields groups of at most `MOST_ASSIGNED` macros and as many spots, by bisection along the longer axis.

    The time of an assignment grows with the cube of its macros. `want` (the desired positions) and `spots` are [2, M]
    µm; a group is an array of macro indices and one of spot indices.
    """
    stack = [(np.arange(want.shape[1]), np.arange(want.shape[1]))]
    while stack:
        mine, theirs = stack.pop()
        if len(mine) <= MOST_ASSIGNED:
            yield mine, theirs
            continue
        axis = int(np.argmax(np.ptp(spots[:, theirs], axis=1)))
        mine, theirs = (some[np.argsort(at[axis, some], kind="stable")] for at, some in ((want, mine), (spots, theirs)))
        half = len(mine) // 2
        stack += [(mine[:half], theirs[:half]), (mine[half:], theirs[half:])]


def spring_equilibrium(
    design: Design, *, like: Placement | None = None, hold: float = 0.0, springs: csr_matrix | None = None
) -> Placement:
    """Returns `design.initial` with all movable macros at the optimum of the quadratic wirelength, with overlaps.

    Pins are treated as located at the centres of their macros. Springs tie each hard macro to its position in `like`,
    with `hold` times the stiffness of all its other springs together. `springs` is the result of `spring_matrix`, if
    available.
    """
    springs = spring_matrix(design) if springs is None else springs
    initial, canvas = design.initial, design.canvas
    kind = design.netlist.kind
    free = np.isin(kind, (NodeKind.HARD, NodeKind.SOFT)) & ~initial.fixed
    stiffness = np.asarray(springs[free].sum(axis=1)).ravel()
    anchor = ANCHOR * max(float(stiffness.mean()) if len(stiffness) else 0.0, 1e-12)
    tie = np.full(len(stiffness), anchor)
    middle = np.array([canvas.width / 2, canvas.height / 2])
    force = anchor * np.tile(middle, (len(stiffness), 1))
    if like is not None and hold > 0:
        held = hold * stiffness * (kind[free] == NodeKind.HARD)
        tie += held
        force += held[:, None] * np.stack([like.x[free], like.y[free]], axis=1)
    places = np.stack([initial.x, initial.y], axis=1)
    force += springs[free][:, ~free] @ places[~free]
    to_fixed = np.asarray(springs[free][:, ~free].sum(axis=1)).ravel()
    between = springs[free][:, free]
    inner = np.asarray(between.sum(axis=1)).ravel()
    diagonal = inner + to_fixed + tie
    matrix = diags(diagonal) - between
    x, y = initial.x.copy(), initial.y.copy()
    for axis, values in enumerate((x, y)):
        start = np.full(len(diagonal), middle[axis]) if like is None else np.stack([like.x, like.y])[axis][free]
        values[free], _ = cg(
            matrix, force[:, axis], x0=start, rtol=SOLVER_TOLERANCE, maxiter=SOLVER_ITERATIONS, M=diags(1 / diagonal)
        )
    return initial.moved(np.flatnonzero(free), x[free], y[free])


def spring_matrix(design: Design) -> csr_matrix:
    """Returns the stiffness of the springs between nodes, float64 [N, N], symmetric: net weight over (pins - 1)."""
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
    first, second, weights = (np.concatenate(columns) for columns in zip(*ends, strict=True))
    apart = first != second
    first, second, weights = first[apart], second[apart], weights[apart]
    half = coo_matrix((weights, (first, second)), shape=(len(netlist.names),) * 2).tocsr()
    return half + half.T
