"""The grid of bins that the density is counted on, and rectangles on it, in NumPy.

Axis legend: M rectangles, X bins across, Y bins up, F fixed rectangles. Lengths in µm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placement.flat.problem import FlatProblem


class Grid(NamedTuple):
    """Bins over a core.

    Attributes:
        across, up: number of bins.
        width, height: of the core, µm.
    """

    across: int
    up: int
    width: float
    height: float

    @property
    def bin_width(self) -> float:
        """µm."""
        return self.width / self.across

    @property
    def bin_height(self) -> float:
        """µm."""
        return self.height / self.up

    @property
    def bin_area(self) -> float:
        """µm²."""
        return self.bin_width * self.bin_height


def grid_for(problem: FlatProblem, bins: tuple[int, int] | None = None) -> Grid:
    """The placer's bins: powers of two of 16 to 1,024, a bin about two mean cells wide, unless `bins` are given."""
    core = problem.core
    if bins is None:
        side = 2 * np.sqrt(problem.cell_area / len(problem.cells))
        across, up = (int(2 ** np.clip(np.rint(np.log2(length / side)), 4, 10)) for length in (core.width, core.height))
        bins = (across, up)
    return Grid(bins[0], bins[1], core.width, core.height)


def blocked_share(boxes: np.ndarray, grid: Grid) -> np.ndarray:
    """float64 [X, Y]: the share of each bin that rectangles (float [F, 4], µm: low and high corners) cover.

    Where rectangles overlap in one bin without filling it, the overlap counts twice, up to the whole bin.
    """
    covered = np.zeros((grid.across, grid.up))
    for low_x, low_y, high_x, high_y in boxes:
        column = _covered(low_x / grid.bin_width, high_x / grid.bin_width, grid.across)
        row = _covered(low_y / grid.bin_height, high_y / grid.bin_height, grid.up)
        i, j = np.flatnonzero(column), np.flatnonzero(row)
        if len(i) and len(j):
            covered[i[0] : i[-1] + 1, j[0] : j[-1] + 1] += np.outer(column[i], row[j])
    return np.minimum(covered, 1.0)


def _covered(low: float, high: float, bins: int) -> np.ndarray:
    edges = np.arange(bins)
    return np.clip(np.minimum(high, edges + 1) - np.maximum(low, edges), 0.0, None)


def density_overflow(
    x: np.ndarray, y: np.ndarray, sizes: tuple[np.ndarray, np.ndarray], free: np.ndarray, *, grid: Grid
) -> float:
    """Share of the cells' area that stands in bins beyond their free area, in double precision.

    Args:
        x: float [M], centres, µm, relative to the core.
        y: float [M].
        sizes: width and height, float [M], µm; cells are drawn at √2 bins at least.
        free: float [X, Y], share of each bin that cells may fill.
        grid: the bins.
    """
    used = used_share(x, y, sizes, grid=grid)
    return float(np.maximum(used - free, 0.0).sum() / used.sum())


def used_share(x: np.ndarray, y: np.ndarray, sizes: tuple[np.ndarray, np.ndarray], *, grid: Grid) -> np.ndarray:
    """float64 [X, Y]: the cells' area in each bin over the bin's; arguments as of `density_overflow`."""
    width, height = (np.asarray(side, np.float64) for side in sizes)
    first_x, parts_x = _shares(x / grid.bin_width, np.maximum(width / grid.bin_width, np.sqrt(2)), grid.across)
    first_y, parts_y = _shares(y / grid.bin_height, np.maximum(height / grid.bin_height, np.sqrt(2)), grid.up)
    charge = width * height / grid.bin_area
    used = np.zeros(grid.across * grid.up)
    for di, part_x in enumerate(parts_x):
        i = np.clip(first_x + di, 0, grid.across - 1)
        for dj, part_y in enumerate(parts_y):
            j = np.clip(first_y + dj, 0, grid.up - 1)
            used += np.bincount(i * grid.up + j, charge * part_x * part_y, len(used))
    return used.reshape(grid.across, grid.up)


def _shares(centre: np.ndarray, side: np.ndarray, bins: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The first bin of each interval, and its share in that bin, the next, and so on. Intervals are moved inside."""
    half = np.minimum(side / 2, bins / 2)
    centre = np.clip(centre, half, bins - half)
    low, high = centre - half, centre + half
    first = np.floor(low).astype(np.int64)
    parts = []
    for step in range(int((np.floor(high) - first).max(initial=0)) + 1):
        part = np.minimum(high, first + step + 1) - np.maximum(low, first + step)
        parts.append(np.clip(part, 0.0, None) / (2 * half))
    return first, parts
