"""Sets of upright rectangles: what they cover, what they leave free, as few rectangles as is easy.

Axis legend: K rectangles, each (x_low, y_low, x_high, y_high), float64 [K, 4], µm; X, Y intervals between the
coordinates at which anything begins or ends.
"""

from __future__ import annotations

import itertools

import numpy as np

LEAST = 1e-6
"""µm: what is no wider is a sliver between lengths that are equal but for rounding."""


def complement(rectangles: np.ndarray, width: float, height: float) -> np.ndarray:
    """What rectangles leave free of the box from (0, 0) to (`width`, `height`), as rectangles apart from each other."""
    inside = clipped(rectangles, width, height)
    xs = np.unique(np.concatenate(([0.0, width], inside[:, 0], inside[:, 2])))
    ys = np.unique(np.concatenate(([0.0, height], inside[:, 1], inside[:, 3])))
    covered = _covered(inside, xs, ys)
    free: list[tuple[float, float, float, float]] = []
    begun: dict[tuple[int, int], float] = {}  # runs of free intervals, with where they begin
    for row in range(len(ys)):
        runs = _runs(covered[:, row]) if row < len(ys) - 1 else []
        for first, last in [run for run in begun if run not in runs]:
            free.append((xs[first], begun.pop((first, last)), xs[last], ys[row]))
        for run in runs:
            begun.setdefault(run, ys[row])
    return clipped(np.array(free, dtype=np.float64).reshape(-1, 4), width, height)


def union_area(rectangles: np.ndarray) -> float:
    """µm² that rectangles cover together. Goes slab by slab: a table of all coordinates grows with K²."""
    area = 0.0
    for bottom, top in itertools.pairwise(np.unique(rectangles[:, [1, 3]])):
        inside = rectangles[(rectangles[:, 1] <= bottom) & (rectangles[:, 3] >= top)]
        inside = inside[np.argsort(inside[:, 0], kind="stable")]
        reach = np.maximum.accumulate(inside[:, 2])
        begin = np.maximum(inside[:, 0], np.concatenate(([-np.inf], reach))[: len(inside)])
        area += float(np.maximum(inside[:, 2] - begin, 0.0).sum() * (top - bottom))
    return area


def clipped(rectangles: np.ndarray, width: float, height: float) -> np.ndarray:
    """Rectangles cut at the edges of the box from (0, 0) to (`width`, `height`), without those outside and slivers."""
    cut = np.concatenate((np.maximum(rectangles[:, :2], 0.0), np.minimum(rectangles[:, 2:], (width, height))), axis=1)
    return cut[(cut[:, 2] - cut[:, 0] > LEAST) & (cut[:, 3] - cut[:, 1] > LEAST)]


def grown(rectangles: np.ndarray, by: tuple[float, float]) -> np.ndarray:
    """Rectangles larger by `by` on each side (x, y); smaller where that is below 0, without those that vanish."""
    result = rectangles + np.array([-by[0], -by[1], by[0], by[1]])
    return result[(result[:, 0] < result[:, 2]) & (result[:, 1] < result[:, 3])]


def merged_in_line(rectangles: np.ndarray) -> np.ndarray:
    """The same area in fewer rectangles: those that touch in a row, or in a column, and are alike become one."""
    across = _merged(rectangles, (0, 1, 2, 3))
    return _merged(across, (1, 0, 3, 2))


def _merged(rectangles: np.ndarray, order: tuple[int, int, int, int]) -> np.ndarray:
    """Merges along the axis whose bounds are columns 0 and 2 of `order`, where the other bounds are equal."""
    low, side_low, high, side_high = order
    kept: list[np.ndarray] = []
    for index in np.lexsort((rectangles[:, low], rectangles[:, side_high], rectangles[:, side_low])):
        here = rectangles[index]
        last = kept[-1] if kept else None
        if (
            last is not None
            and last[side_low] == here[side_low]
            and last[side_high] == here[side_high]
            and here[low] <= last[high]
        ):
            last[high] = max(last[high], here[high])
        else:
            kept.append(here.copy())
    return np.array(kept).reshape(-1, 4)


def _covered(rectangles: np.ndarray, xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    """Bool [X, Y]: whether each piece between the coordinates is covered; every bound is one of them."""
    steps = np.zeros((len(xs), len(ys)), dtype=np.int32)
    left, right = np.searchsorted(xs, rectangles[:, 0]), np.searchsorted(xs, rectangles[:, 2])
    low, high = np.searchsorted(ys, rectangles[:, 1]), np.searchsorted(ys, rectangles[:, 3])
    np.add.at(steps, (left, low), 1)
    np.add.at(steps, (right, high), 1)
    np.add.at(steps, (left, high), -1)
    np.add.at(steps, (right, low), -1)
    covered: np.ndarray = steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1] > 0
    return covered


def _runs(covered: np.ndarray) -> list[tuple[int, int]]:
    """First and last bound of each run of intervals that are not covered."""
    edges = np.flatnonzero(np.diff(np.concatenate(([True], covered, [True])).astype(np.int8)))
    return [(int(first), int(last)) for first, last in zip(edges[::2], edges[1::2], strict=True)]
