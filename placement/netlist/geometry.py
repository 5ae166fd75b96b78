"""Axis-aligned rectangles, one or a set of them, and the areas that a set covers and leaves free.

Axis legend: K rectangles, each (x_low, y_low, x_high, y_high), float64 [K, 4], µm; P points; X, Y intervals between the
coordinates at which any rectangle begins or ends.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from placement.netlist.errors import DesignError

LEAST = 1e-6  # maximum rounding error in µm; a narrower rectangle is a sliver between equal lengths


def frozen(array: np.ndarray, dtype: type) -> np.ndarray:
    """A read-only contiguous copy."""
    result: np.ndarray = np.array(array, dtype=dtype, order="C", copy=True)
    result.setflags(write=False)
    return result


@dataclasses.dataclass(frozen=True)
class Rectangle:
    """An axis-aligned rectangle, µm. Raises DesignError if it is empty or a corner is not finite."""

    x_low: float
    y_low: float
    x_high: float
    y_high: float

    def __post_init__(self) -> None:
        corners = (self.x_low, self.y_low, self.x_high, self.y_high)
        if not (np.isfinite(corners).all() and self.x_low < self.x_high and self.y_low < self.y_high):
            raise DesignError(f"the rectangle {corners} µm must be finite and have a width and a height above 0")

    @property
    def width(self) -> float:
        """Width in µm."""
        return self.x_high - self.x_low

    @property
    def height(self) -> float:
        """Height in µm."""
        return self.y_high - self.y_low

    @property
    def area(self) -> float:
        """Area in µm²."""
        return self.width * self.height

    def contains(self, other: Rectangle) -> bool:
        """Whether `other` lies within this rectangle."""
        inside_x = self.x_low <= other.x_low and other.x_high <= self.x_high
        return inside_x and self.y_low <= other.y_low and other.y_high <= self.y_high


def complement(rectangles: np.ndarray, width: float, height: float) -> np.ndarray:
    """The part of the box from (0, 0) to (`width`, `height`) that rectangles leave free, as disjoint rectangles."""
    inside = clipped(rectangles, width, height)
    xs = np.unique(np.concatenate(([0.0, width], inside[:, 0], inside[:, 2])))
    ys = np.unique(np.concatenate(([0.0, height], inside[:, 1], inside[:, 3])))
    left, right = np.searchsorted(xs, inside[:, 0]), np.searchsorted(xs, inside[:, 2])
    low, high = np.searchsorted(ys, inside[:, 1]), np.searchsorted(ys, inside[:, 3])
    taken = covered(left, right, low, high, (len(xs), len(ys)))
    free: list[tuple[float, float, float, float]] = []
    begun: dict[tuple[int, int], float] = {}  # runs of free intervals, with the y at which they begin
    for row in range(len(ys)):
        runs = _free_runs(taken[:, row]) if row < len(ys) - 1 else []
        for first, last in [run for run in begun if run not in runs]:
            free.append((xs[first], begun.pop((first, last)), xs[last], ys[row]))
        for run in runs:
            begun.setdefault(run, ys[row])
    return clipped(np.array(free, dtype=np.float64).reshape(-1, 4), width, height)


def covered(
    left: np.ndarray, right: np.ndarray, low: np.ndarray, high: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Whether any of K rectangles, given by the indices of their bounds (int [K] each), covers each tile, bool [X, Y].

    `shape` is the number of bounds on each axis, X + 1 and Y + 1.
    """
    steps = np.zeros(shape, dtype=np.int32)
    for x, y, sign in ((left, low, 1), (right, high, 1), (left, high, -1), (right, low, -1)):
        np.add.at(steps, (x, y), sign)
    result: np.ndarray = steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1] > 0
    return result


def _free_runs(covered: np.ndarray) -> list[tuple[int, int]]:
    """First and last bound of each run of uncovered intervals."""
    edges = np.flatnonzero(np.diff(np.concatenate(([True], covered, [True])).astype(np.int8)))
    return [(int(first), int(last)) for first, last in zip(edges[::2], edges[1::2], strict=True)]


def union_area(rectangles: np.ndarray) -> float:
    """Area in µm² of the union of rectangles, added slab by slab, since a table of all tiles would grow with K²."""
    area = 0.0
    for bottom, top in itertools.pairwise(np.unique(rectangles[:, [1, 3]])):
        inside = rectangles[(rectangles[:, 1] <= bottom) & (rectangles[:, 3] >= top)]
        inside = inside[np.argsort(inside[:, 0], kind="stable")]
        reach = np.maximum.accumulate(inside[:, 2])
        begin = np.maximum(inside[:, 0], np.concatenate(([-np.inf], reach))[: len(inside)])
        area += float(np.maximum(inside[:, 2] - begin, 0.0).sum() * (top - bottom))
    return area


def clipped(rectangles: np.ndarray, width: float, height: float) -> np.ndarray:
    """Rectangles clipped to the box from (0, 0) to (`width`, `height`), without slivers."""
    cut = np.concatenate((np.maximum(rectangles[:, :2], 0.0), np.minimum(rectangles[:, 2:], (width, height))), axis=1)
    return cut[(cut[:, 2] - cut[:, 0] > LEAST) & (cut[:, 3] - cut[:, 1] > LEAST)]


def grown(rectangles: np.ndarray, by: tuple[float, float]) -> np.ndarray:
    """Rectangles expanded by `by` (x, y) on each side, or shrunk if it is negative, without those that vanish."""
    result = rectangles + np.array([-by[0], -by[1], by[0], by[1]])
    return result[(result[:, 0] < result[:, 2]) & (result[:, 1] < result[:, 3])]


def merged_in_line(rectangles: np.ndarray) -> np.ndarray:
    """The same area in fewer rectangles: equal ones that touch in a row or in a column become one."""
    across = _merged(rectangles, (0, 1, 2, 3))
    return _merged(across, (1, 0, 3, 2))


def _merged(rectangles: np.ndarray, order: tuple[int, int, int, int]) -> np.ndarray:
    """Merges along the axis whose bounds are columns 0 and 2 of `order`, where the other bounds are equal."""
    low, side_low, high, side_high = order
    kept: list[np.ndarray] = []
    for index in np.lexsort((rectangles[:, low], rectangles[:, side_high], rectangles[:, side_low])):
        here = rectangles[index]
        sides = [side_low, side_high]
        if kept and (kept[-1][sides] == here[sides]).all() and here[low] <= kept[-1][high]:
            kept[-1][high] = max(kept[-1][high], here[high])
        else:
            kept.append(here.copy())
    return np.array(kept).reshape(-1, 4)


def is_slanted(points: np.ndarray) -> bool:
    """Whether a closed polygon ([P, 2], corners in order) has an edge that is not axis-aligned."""
    return bool((points != np.roll(points, -1, axis=0)).all(axis=1).any())


def without_slants(points: np.ndarray) -> np.ndarray:
    """A closed polygon ([P, 2], corners in order) with a corner inside it in place of each slanted edge."""
    points = points.astype(np.float64)
    following, corners = np.roll(points, -1, axis=0), list[np.ndarray | tuple[float, float]]()
    is_counterclockwise = (points[:, 0] * following[:, 1] - following[:, 0] * points[:, 1]).sum() > 0
    for here, there in zip(points, following, strict=True):
        corners.append(here)
        if (here != there).all():
            rises = (there[0] > here[0]) == (there[1] > here[1])
            corners.append((here[0], there[1]) if rises == is_counterclockwise else (there[0], here[1]))
    return np.array(corners)


def polygon_rectangles(points: np.ndarray) -> np.ndarray:
    """Disjoint rectangles that make up a rectilinear polygon, or the bounding box of a slanted one; float64 [K, 4].

    The polygon (float64 [P, 2], corners in order) is cut into horizontal slabs at its corners' heights; a slab is
    filled between every second crossing (even-odd rule).
    """
    following = np.roll(points, -1, axis=0)
    if len(points) < 4 or is_slanted(points):
        return np.concatenate((points.min(axis=0), points.max(axis=0)))[None, :]
    upright = points[:, 0] == following[:, 0]
    x = points[upright, 0]
    low = np.minimum(points[upright, 1], following[upright, 1])
    high = np.maximum(points[upright, 1], following[upright, 1])
    found = []
    for bottom, top in itertools.pairwise(np.unique(points[:, 1])):
        crossing = np.sort(x[(low <= bottom) & (high >= top)])
        found += [(left, bottom, right, top) for left, right in zip(crossing[::2], crossing[1::2], strict=False)]
    return np.array(found, dtype=np.float64).reshape(-1, 4)


def path_rectangles(points: np.ndarray, width: float) -> np.ndarray:
    """Rectangles (float64 [K, 4]) of a wire along points float64 [P, 2], extended by half its width at both ends."""
    following = points[1:] if len(points) > 1 else points
    preceding = points[:-1] if len(points) > 1 else points
    low, high = np.minimum(preceding, following), np.maximum(preceding, following)
    return np.concatenate((low - width / 2, high + width / 2), axis=1)
