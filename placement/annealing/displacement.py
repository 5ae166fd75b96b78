"""Rectangles on the canvas, and the least displacement that takes them off each other while the order of every two is
held (left and right, or below and above): linear programs.

These are the constraint graphs of macro legalisation, as in Tang and Wong (2001). Axis legend: M movable boxes (hard
macros), O obstacles (fixed hard macros, blockages, the surroundings of ports, the outside of regions), B = M + O boxes.
Lengths are in µm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from placement.engine import _native

TOLERANCE: float = _native.LENGTH_TOLERANCE
"""µm: lengths that are equal but for rounding are equal."""
ROUNDS = 30
"""Of holding boxes apart that overlap."""
NEAR = 0.25
"""Of the longest side: boxes that are no nearer than this to what they must keep are not held at first."""
MOST_FLIPS = 4
"""Times that a pair of boxes changes the axis on which it is held apart."""
PRICE = 1e3
"""Of a µm that two boxes overlap, in µm of displacement."""

Centres = tuple[np.ndarray, np.ndarray]
"""x and y of the movable boxes, float64 [M] each."""


class Boxes(NamedTuple):
    """The boxes (centres and sizes float64 [B]), movable ones first, and what they must keep clear of.

    Attributes:
        movable: M.
        low, high: float64 [2, M], limits of the centre of each movable box, across and up.
        halo: float64 [2, B], half the sum of opposite sides, across and up; -inf for obstacles other than macros.
        spacing: float64 [2, B], of each box; two boxes keep the lesser of theirs, or the sum of their halos.
        concerns: bool [M, B], whether a movable box keeps clear of another box.
        has_regions: whether the limits are those of regions, too.
        channel: float64 [2, B], the least gap to each box, across and up, that is no abutment; 0: any gap. Two boxes
            keep the lesser of theirs.
        shift: float64 [2, B], how far the middle of each box with its halo is from the box's own, across and up; None:
            opposite sides of all halos are equal.
        edges: float64 [2, 4, M], on each axis two intervals near the canvas's edges without centres of movable boxes.
    """

    x: np.ndarray
    y: np.ndarray
    width: np.ndarray
    height: np.ndarray
    movable: int
    low: np.ndarray
    high: np.ndarray
    halo: np.ndarray
    spacing: np.ndarray
    concerns: np.ndarray
    has_regions: bool
    shift: np.ndarray | None = None
    channel: np.ndarray | None = None
    edges: np.ndarray | None = None

    @property
    def axes(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """Centres and sizes, across and up."""
        return (self.x, self.width), (self.y, self.height)

    def moved_to(self, x: np.ndarray, y: np.ndarray) -> Boxes:
        """The same boxes, the movable ones at `x`, `y` (float64 [M])."""
        count = self.movable
        return self._replace(x=np.concatenate([x, self.x[count:]]), y=np.concatenate([y, self.y[count:]]))

    def within_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The centres of the movable boxes at the nearest place inside their limits, float64 [M] each."""
        high = np.maximum(self.low, self.high)
        return (
            np.clip(self.x[: self.movable], self.low[0], high[0]),
            np.clip(self.y[: self.movable], self.low[1], high[1]),
        )

    def displacement(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Distance of each movable box at `x`, `y` (float64 [M]) from where it is here, float64 [M]."""
        return np.abs(x - self.x[: self.movable]) + np.abs(y - self.y[: self.movable])

    def pairs(self) -> np.ndarray:
        """All pairs of boxes that keep clear of each other, of which at least one may move, int [2, ·]."""
        later = np.arange(len(self.x)) > np.arange(self.movable)[:, None]
        return np.stack(np.nonzero(self.concerns & later))

    def gaps(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distance of the boxes of each pair across and up; below 0 where they share an interval."""
        first, second = pairs
        return (
            np.abs(self.x[first] - self.x[second]) - (self.width[first] + self.width[second]) / 2,
            np.abs(self.y[first] - self.y[second]) - (self.height[first] + self.height[second]) / 2,
        )

    def overlaps(self, pairs: np.ndarray, needed: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
        """Whether the boxes of each pair are nearer on both axes than they may be, bool.

        `needed`: what they need, where that is known, unless halos make it depend on where they are.
        """
        needed = self.needed(*pairs) if needed is None or self.shift is not None else needed
        gap_x, gap_y = self.gaps(pairs)
        return (gap_x < needed[0] - TOLERANCE) & (gap_y < needed[1] - TOLERANCE)

    def others(self, movers: np.ndarray, centres: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """All boxes but some movable ones (int [K]): those around them, int [·], and those farther away, int [·].

        Around them is what is near to where they are and to their `centres` (float64 [M] each).
        """
        now = self.moved_to(*centres)
        others = np.setdiff1d(np.arange(len(self.x)), movers)
        around = np.ones(len(others), dtype=bool)
        for (start, size), (at, _), spacing, halo in zip(self.axes, now.axes, self.spacing, self.halo, strict=True):
            places = np.stack([start[movers], at[movers]])
            gap = max(spacing[movers].max(), 2 * (halo[movers].max() + halo.max()))
            margin = size[movers].max() / 2 + gap + _near(self)
            reach = size[others] / 2 + margin
            around &= (at[others] + reach > places.min()) & (at[others] - reach < places.max())
        return others[around], others[~around]

    def some(
        self, movers: np.ndarray, centres: tuple[np.ndarray, np.ndarray], others: np.ndarray | None = None
    ) -> Boxes:
        """Some of the movable boxes, int [K]; `others` (int [·], default: all) are obstacles at their `centres`."""
        now = self.moved_to(*centres)
        others = np.setdiff1d(np.arange(len(self.x)), movers) if others is None else others
        every = np.concatenate([movers, others])
        x, y = (np.concatenate([start[movers], at[others]]) for start, at in ((self.x, now.x), (self.y, now.y)))
        kept = {name: getattr(self, name)[:, movers] for name in ("low", "high")}
        kept |= {name: getattr(self, name)[:, every] for name in ("halo", "spacing")}
        kept |= {name: getattr(self, name)[every] for name in ("width", "height")}
        kept["shift"] = None if self.shift is None else self.shift[:, every]
        return self._replace(x=x, y=y, movable=len(movers), concerns=self.concerns[np.ix_(movers, every)], **kept)

    def needed(self, first: np.ndarray | int, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gaps across and up of which boxes, where they are, must keep one; float64 of the indices' shape."""
        if self.shift is None:
            return self.between(first, second)
        ways = zip(self.axes, self.between(first, second), self.between(second, first), strict=True)
        across, up = (np.where(at[first] <= at[second], one, other) for (at, _), one, other in ways)
        return across, up

    def between(self, low: np.ndarray | int, high: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        """The same where `low` are left of `high`, or below them."""
        across, up = (
            np.maximum(np.minimum(spacing[low], spacing[high]), halos)
            for spacing, halos in zip(self.spacing, self.halos_between(low, high), strict=True)
        )
        return across, up

    def halos_between(self, low: np.ndarray | int, high: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        """What halos alone need, where `low` are left of `high`, or below them."""
        across, up = (halo[low] + halo[high] for halo in self.halo)
        if self.shift is None:
            return across, up
        return across + (self.shift[0][low] - self.shift[0][high]), up + (self.shift[1][low] - self.shift[1][high])


def tightened(boxes: Boxes, centres: Centres) -> Centres:
    """The least total displacement while boxes at `centres` stay apart on the axis on which they are apart.

    Only boxes that would meet otherwise are held: first those that are near each other, then those that met.
    """
    now, pairs = boxes.moved_to(*centres), boxes.pairs()
    needed_x, needed_y = now.needed(*pairs)
    gap_x, gap_y = now.gaps(pairs)
    can_x, can_y = gap_x >= needed_x - 2 * TOLERANCE, gap_y >= needed_y - 2 * TOLERANCE
    wish_x, wish_y = boxes.gaps(pairs)  # on the axis on which they were apart at first, if they still are
    on_x = can_x & (~can_y | (wish_x >= wish_y))
    held = np.where(on_x, gap_x - needed_x, gap_y - needed_y) < _near(boxes)
    for _ in range(ROUNDS):
        solved = _both_axes(boxes, now, pairs[:, held], on_x[held], breakable=False)
        if solved is None:
            return centres
        met = boxes.moved_to(*solved).overlaps(pairs, (needed_x, needed_y))
        if not met.any():
            return solved
        held |= met
    return centres


def _near(boxes: Boxes) -> float:
    return NEAR * max(boxes.width[: boxes.movable].max(), boxes.height[: boxes.movable].max())


def in_order(boxes: Boxes, begin: Boxes | None = None) -> Centres | None:
    """The least displacement that keeps the order of the boxes, or that of `begin`, the same boxes elsewhere.

    Holds the boxes that are near each other, lets constraints be broken at a price, and then holds those that still
    overlap on the other axis. None where that does not end.
    """
    pairs = boxes.pairs()
    if begin is None:
        # A macro's order among the others is that of the nearest position in its regions.
        begin = boxes.moved_to(*boxes.within_limits()) if boxes.has_regions else boxes
    needed_x, needed_y = begin.needed(*pairs)
    wish_x, wish_y = begin.gaps(pairs)
    on_x = wish_x >= wish_y
    active = np.maximum(wish_x, wish_y) < np.maximum(needed_x, needed_y) + _near(boxes)
    flips = np.zeros(len(on_x), dtype=np.int32)
    for _ in range(ROUNDS):
        solved = _both_axes(boxes, begin, pairs[:, active], on_x[active], breakable=True)
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


def _both_axes(boxes: Boxes, now: Boxes, pairs: np.ndarray, on_x: np.ndarray, *, breakable: bool) -> Centres | None:
    """Centres that keep the order of `now` on the axis chosen for each pair, and are nearest to `boxes`."""
    found = []
    needed = now.needed(*pairs)
    for axis, chosen in enumerate((on_x, ~on_x)):
        (start, size), (at, _) = boxes.axes[axis], now.axes[axis]
        held = _Axis(at, start, size, boxes.low[axis], boxes.high[axis], boxes.movable)
        found.append(_least_moves(held, pairs[:, chosen], needed[axis][chosen], breakable))
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


def _least_moves(axis: _Axis, pairs: np.ndarray, needed: np.ndarray, breakable: bool) -> np.ndarray | None:
    """Centres [M] that keep the order of `axis.now` for each pair, `needed` apart, and are nearest to `axis.start`.

    `breakable`: pairs may come nearer than they should, at a price. None where there is no solution.
    """
    count = axis.movable
    low, high = np.where(axis.now[pairs[0]] <= axis.now[pairs[1]], pairs, pairs[::-1])
    # Variables: centres [M], distances from the start [M], then, where `breakable`, the pairs' overlaps.
    number = np.arange(len(low))
    rows, columns, values = [], [], []
    bound = -(axis.size[low] + axis.size[high]) / 2 - needed
    for nodes, sign in ((low, 1.0), (high, -1.0)):
        moves = nodes < count
        rows.append(number[moves])
        columns.append(nodes[moves])
        values.append(np.full(int(moves.sum()), sign))
        bound[~moves] -= sign * axis.now[nodes[~moves]]
    overlaps = len(low) if breakable else 0
    if breakable:
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
    shape = (len(bound), 2 * count + overlaps)
    matrix = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape).tocsr()
    if (axis.low > axis.high).any():
        return None
    free = np.full(count + overlaps, np.inf)
    limits = Bounds(np.append(axis.low, np.zeros(len(free))), np.append(axis.high, free))
    price = np.repeat([0.0, 1.0, PRICE], [count, count, overlaps])
    solved = milp(price, constraints=LinearConstraint(matrix, ub=bound), bounds=limits)  # a linear program
    return solved.x[:count] if solved.status == 0 else None
