"""Least displacement that separates overlapping rectangles, by linear programs that keep each pair in its order (left
and right, or below and above).

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

TOLERANCE: float = _native.LENGTH_TOLERANCE  # tolerance of length comparisons, in µm
ROUNDS = 30  # maximum number of rounds that add constraints between overlapping boxes
NEAR = 0.25
"""Fraction of the longest side; a pair whose gap exceeds the required one by more is not constrained at first."""
MOST_FLIPS = 4  # maximum number of times that a pair changes the axis on which it is separated
PRICE = 1e3  # price of 1 µm of overlap, in µm of displacement

Centres = tuple[np.ndarray, np.ndarray]  # x and y of the movable boxes' centres, float64 [M] each


class Boxes(NamedTuple):
    """Boxes (centres and sizes float64 [B]), movable ones first, and the clearances that they must keep.

    Attributes:
        movable: M.
        low, high: float64 [2, M], limits of the centre of each movable box, across and up.
        halo: float64 [2, B], half the sum of opposite halo sides, across and up; -inf for obstacles other than macros.
        spacing: float64 [2, B], spacing of each box; a pair keeps the smaller of the two, or the sum of the halos if
            larger.
        concerns: bool [M, B], whether a movable box must keep clear of another box.
        has_regions: whether the limits include those of regions.
        channel: float64 [2, B], minimum width of a gap that is not an abutment, across and up; 0: any width. A pair
            keeps the smaller of the two.
        shift: float64 [2, B], offset of the centre of a box with its halo from the centre of the box, across and up;
            None: opposite sides of all halos are equal.
        edges: float64 [2, 4, M], two intervals per axis near the canvas edges that no centre of a movable box may lie
            in.
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
        """Returns the boxes with the movable ones at `x`, `y` (float64 [M])."""
        count = self.movable
        return self._replace(x=np.concatenate([x, self.x[count:]]), y=np.concatenate([y, self.y[count:]]))

    def within_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the centres of the movable boxes clipped to their limits, float64 [M] each."""
        high = np.maximum(self.low, self.high)
        return (
            np.clip(self.x[: self.movable], self.low[0], high[0]),
            np.clip(self.y[: self.movable], self.low[1], high[1]),
        )

    def displacement(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Returns the Manhattan distance of each movable box from here to `x`, `y` (float64 [M]), float64 [M]."""
        return np.abs(x - self.x[: self.movable]) + np.abs(y - self.y[: self.movable])

    def pairs(self) -> np.ndarray:
        """Returns all pairs of boxes that must keep clear of each other, int [2, ·]; one or both are movable."""
        later = np.arange(len(self.x)) > np.arange(self.movable)[:, None]
        return np.stack(np.nonzero(self.concerns & later))

    def gaps(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the gaps between the boxes of each pair across and up; negative where their intervals overlap."""
        first, second = pairs
        return (
            np.abs(self.x[first] - self.x[second]) - (self.width[first] + self.width[second]) / 2,
            np.abs(self.y[first] - self.y[second]) - (self.height[first] + self.height[second]) / 2,
        )

    def overlaps(self, pairs: np.ndarray, needed: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
        """Returns whether the boxes of each pair are closer on both axes than is allowed, bool.

        `needed`: the required gaps, if known; they are recomputed if halos make them depend on the positions.
        """
        needed = self.needed(*pairs) if needed is None or self.shift is not None else needed
        gap_x, gap_y = self.gaps(pairs)
        return (gap_x < needed[0] - TOLERANCE) & (gap_y < needed[1] - TOLERANCE)

    def others(self, movers: np.ndarray, centres: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Splits the boxes other than `movers` (int [K]) into those near them, int [·], and the rest, int [·].

        A box is near if it is close to the original position or the `centres` (float64 [M] each) of a mover.
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
        """Returns the boxes `movers`, int [K], with `others` (int [·], default: all) as obstacles at `centres`."""
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
        """Returns the gaps across and up of which each pair must keep one; float64 of the indices' shape."""
        if self.shift is None:
            return self.between(first, second)
        ways = zip(self.axes, self.between(first, second), self.between(second, first), strict=True)
        across, up = (np.where(at[first] <= at[second], one, other) for (at, _), one, other in ways)
        return across, up

    def between(self, low: np.ndarray | int, high: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the required gaps if `low` are to the left of `high`, and if they are below them."""
        across, up = (
            np.maximum(np.minimum(spacing[low], spacing[high]), halos)
            for spacing, halos in zip(self.spacing, self.halos_between(low, high), strict=True)
        )
        return across, up

    def halos_between(self, low: np.ndarray | int, high: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the gaps that halos alone require if `low` are to the left of `high`, and if they are below them."""
        across, up = (halo[low] + halo[high] for halo in self.halo)
        if self.shift is None:
            return across, up
        return across + (self.shift[0][low] - self.shift[0][high]), up + (self.shift[1][low] - self.shift[1][high])


def tightened(boxes: Boxes, centres: Centres) -> Centres:
    """Minimises the total displacement; boxes that are separated on an axis at `centres` stay separated on it.

    Constraints are added lazily: first for pairs that are near each other, then for pairs that would overlap.
    """
    now, pairs = boxes.moved_to(*centres), boxes.pairs()
    needed_x, needed_y = now.needed(*pairs)
    gap_x, gap_y = now.gaps(pairs)
    can_x, can_y = gap_x >= needed_x - 2 * TOLERANCE, gap_y >= needed_y - 2 * TOLERANCE
    wish_x, wish_y = boxes.gaps(pairs)  # prefer the axis that separated them originally, if it still does
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
    """Minimises the displacement under the order of the boxes, or under that of `begin`, the same boxes elsewhere.

    Constrains pairs that are near each other, softly at a price; pairs that still overlap are then constrained on the
    other axis. Returns None if some still overlap after `ROUNDS`.
    """
    pairs = boxes.pairs()
    if begin is None:
        # A macro is ordered by the nearest position in its regions.
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
    """Returns the centres nearest to `boxes` that keep the order of `now` on the axis chosen for each pair."""
    found = []
    needed = now.needed(*pairs)
    for axis, chosen in enumerate((on_x, ~on_x)):
        (start, size), (at, _) = boxes.axes[axis], now.axes[axis]
        held = _Axis(at, start, size, boxes.low[axis], boxes.high[axis], boxes.movable)
        found.append(_least_moves(held, pairs[:, chosen], needed[axis][chosen], breakable))
    x, y = found
    return None if x is None or y is None else (x, y)


class _Axis(NamedTuple):
    """One axis: current centres, original centres and sizes, [B]; limits of centres, [M]; number of movable boxes."""

    now: np.ndarray
    start: np.ndarray
    size: np.ndarray
    low: np.ndarray
    high: np.ndarray
    movable: int


def _least_moves(axis: _Axis, pairs: np.ndarray, needed: np.ndarray, breakable: bool) -> np.ndarray | None:
    """Returns the centres [M] nearest to `axis.start` that keep each pair in the order of `axis.now`, `needed` apart.

    `breakable`: a pair may come closer, at a price. Returns None if there is no solution.
    """
    count = axis.movable
    low, high = np.where(axis.now[pairs[0]] <= axis.now[pairs[1]], pairs, pairs[::-1])
    # Variables: centres [M], distances from the start [M], then, if `breakable`, the overlaps of the pairs.
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
