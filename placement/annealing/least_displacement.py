"""The least displacement of boxes with the order of every two held (who is left of whom, or below): linear programs.

These are the constraint graphs of macro legalisation, as in Tang and Wong (2001). Axis legend: as in `boxes`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from placement.annealing.boxes import TOLERANCE, Boxes

ROUNDS = 30
"""Of holding boxes apart that overlap."""
NEAR = 0.25
"""Of the longest side: boxes that lack no more than this to what they keep are held apart from the start."""
MOST_FLIPS = 4
"""Times that a pair of boxes changes the axis on which it is to be apart."""
PRICE = 1e3
"""Of a µm that two boxes overlap, in µm of displacement."""

Centres = tuple[np.ndarray, np.ndarray]
"""x and y of the movable boxes, float64 [M] each."""


def tightened(boxes: Boxes, centres: Centres) -> Centres:
    """The least total displacement while boxes at `centres` stay apart on the axis on which they are.

    Only boxes that would meet otherwise are held: first those that are near each other, then those that met.
    """
    now, pairs = boxes.moved_to(*centres), boxes.pairs()
    needed_x, needed_y = boxes.needed(*pairs)
    gap_x, gap_y = now.gaps(pairs)
    can_x, can_y = gap_x >= needed_x - 2 * TOLERANCE, gap_y >= needed_y - 2 * TOLERANCE
    wish_x, wish_y = boxes.gaps(pairs)  # apart on the axis on which they were to begin with, if they now are
    on_x = can_x & (~can_y | (wish_x >= wish_y))
    held = np.where(on_x, gap_x - needed_x, gap_y - needed_y) < _near(boxes)
    for _ in range(ROUNDS):
        solved = _both_axes(boxes, now, pairs[:, held], on_x[held], soft=False)
        if solved is None:
            return centres
        met = boxes.moved_to(*solved).overlaps(pairs, (needed_x, needed_y))
        if not met.any():
            return solved
        held |= met
    return centres


def _near(boxes: Boxes) -> float:
    return NEAR * max(boxes.width[: boxes.movable].max(), boxes.height[: boxes.movable].max())


def in_order(boxes: Boxes) -> Centres | None:
    """The least displacement with every two boxes apart as they were to begin with, as nearly as they were.

    Begins with the boxes that are near each other, lets constraints be broken at a price, and has the boxes that then
    still overlap be apart on the other axis. None where that does not end.
    """
    pairs = boxes.pairs()
    needed_x, needed_y = boxes.needed(*pairs)
    # A macro's order among the others is that of the nearest place in its regions.
    begin = boxes.moved_to(*boxes.within_limits()) if boxes.has_regions else boxes
    wish_x, wish_y = begin.gaps(pairs)
    on_x = wish_x >= wish_y
    active = np.maximum(wish_x, wish_y) < np.maximum(needed_x, needed_y) + _near(boxes)
    flips = np.zeros(len(on_x), dtype=np.int32)
    for _ in range(ROUNDS):
        solved = _both_axes(boxes, begin, pairs[:, active], on_x[active], soft=True)
        if solved is None:
            return None
        now = boxes.moved_to(*solved)
        overlap = now.overlaps(pairs, (needed_x, needed_y))
        if not overlap.any():
            return solved
        gap_x, gap_y = now.gaps(pairs)
        broken = overlap & active & (flips < MOST_FLIPS)
        on_x[broken] = ~on_x[broken]
        flips[broken] += 1
        fresh = overlap & ~active
        on_x[fresh] = (gap_x >= gap_y)[fresh]
        active |= overlap
    return None


def _both_axes(boxes: Boxes, now: Boxes, pairs: np.ndarray, on_x: np.ndarray, *, soft: bool) -> Centres | None:
    """Centres that keep the order of `now` on the axis chosen for each pair, and are nearest to `boxes`."""
    found = []
    needed = boxes.needed(*pairs)
    for axis, chosen in enumerate((on_x, ~on_x)):
        (start, size), (at, _) = boxes.axes[axis], now.axes[axis]
        held = _Axis(at, start, size, boxes.low[axis], boxes.high[axis], boxes.movable)
        found.append(_least_moves(held, pairs[:, chosen], needed[axis][chosen], soft))
    x, y = found
    return None if x is None or y is None else (x, y)


class _Axis(NamedTuple):
    """One axis: centres now and to begin with, sizes, all [B]; limits of centres [M]; how many may move."""

    now: np.ndarray
    start: np.ndarray
    size: np.ndarray
    low: np.ndarray
    high: np.ndarray
    movable: int


def _least_moves(axis: _Axis, pairs: np.ndarray, needed: np.ndarray, soft: bool) -> np.ndarray | None:
    """Centres [M] that keep the order of `axis.now` for each pair, `needed` apart, and are nearest to `axis.start`.

    `soft`: pairs may come nearer than they should, at a price. None where there is no solution.
    """
    count = axis.movable
    low, high = np.where(axis.now[pairs[0]] <= axis.now[pairs[1]], pairs, pairs[::-1])
    # Variables: centres [M], distances from the start [M], then, if soft, what each pair lacks.
    number = np.arange(len(low))
    rows, columns, values = [], [], []
    bound = -(axis.size[low] + axis.size[high]) / 2 - needed
    for nodes, sign in ((low, 1.0), (high, -1.0)):
        moves = nodes < count
        rows.append(number[moves])
        columns.append(nodes[moves])
        values.append(np.full(int(moves.sum()), sign))
        bound[~moves] -= sign * axis.now[nodes[~moves]]
    lacking = len(low) if soft else 0
    if soft:
        rows.append(number)
        columns.append(2 * count + number)
        values.append(np.full(len(low), -1.0))
    each = np.arange(count)
    for sign in (1.0, -1.0):  # distance ≥ ±(centre − start)
        at = len(bound) + each
        rows += [at, at]
        columns += [each, count + each]
        values += [np.full(count, sign), np.full(count, -1.0)]
        bound = np.concatenate([bound, sign * axis.start[:count]])
    shape = (len(bound), 2 * count + lacking)
    matrix = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape).tocsr()
    if (axis.low > axis.high).any():
        return None
    limits = [*zip(axis.low, axis.high, strict=True), *[(0, None)] * (count + lacking)]
    price = np.repeat([0.0, 1.0, PRICE], [count, count, lacking])
    solved = linprog(price, A_ub=matrix, b_ub=bound, bounds=limits, method="highs")
    return solved.x[:count] if solved.status == 0 else None
