"""Grid of the bins on which density is computed, and rectangles on it.

Axis legend: M rectangles, X bins across, Y bins up, F fixed rectangles; the leading axis 2 is x, y. Lengths in µm.
"""

from typing import NamedTuple

import numpy as np

from placement.flat import _native
from placement.flat.problem import FlatProblem


class Grid(NamedTuple):
    """Bins over a core."""

    across: int  # across, up: number of bins
    up: int
    width: float  # width, height: sides of the core in µm
    height: float

    @property
    def bin_width(self) -> float:
        """Width of a bin in µm."""
        return self.width / self.across

    @property
    def bin_height(self) -> float:
        """Height of a bin in µm."""
        return self.height / self.up

    @property
    def bin_area(self) -> float:
        """Area of a bin in µm²."""
        return self.bin_width * self.bin_height


def grid_for(problem: FlatProblem) -> Grid:
    """Returns the placer's bins: a power of two from 16 to 1,024 per axis, a bin about two mean cells wide."""
    core = problem.core
    side = 2 * np.sqrt(problem.cell_area / len(problem.cells))
    across, up = (int(2 ** np.clip(np.rint(np.log2(length / side)), 4, 10)) for length in (core.width, core.height))
    return Grid(across, up, core.width, core.height)


def blocked_share(boxes: np.ndarray, grid: Grid) -> np.ndarray:
    """Returns the share of each bin, float64 [X, Y], that rectangles cover (float [F, 4], µm: low and high corners).

    Where rectangles overlap in a bin without filling it, the overlap counts twice, up to the whole bin.
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


class Charges:
    """Rectangles as charges on a grid; the charge of a rectangle is its area in bins.

    A rectangle smaller than √2 bins is drawn at that size with its charge kept, so that its density has a gradient
    everywhere (Lu et al.: "ePlace", ACM TODAES 2015, section 4).

    Args:
        width: float [M], µm.
        height: float [M], µm.
        grid: the bins.

    Attributes:
        area: float32 [M], µm².
        charge: float32 [M], bins.
        low, high: float32 [2, M], µm, the centres at which the drawn rectangles touch the edges of the core.
    """

    def __init__(self, width: np.ndarray, height: np.ndarray, grid: Grid) -> None:
        self._grid = grid
        across = np.maximum(width / grid.bin_width, np.sqrt(2.0)) / 2
        up = np.maximum(height / grid.bin_height, np.sqrt(2.0)) / 2
        self._drawn = np.stack([across, up]).astype(np.float32)  # bins
        self._bin = np.array([[grid.bin_width], [grid.bin_height]], np.float32)
        half = np.minimum(self._drawn * self._bin, [[grid.width / 2], [grid.height / 2]]).astype(np.float32)
        self.low, self.high = half, np.array([[grid.width], [grid.height]], np.float32) - half
        self.area = (width * height).astype(np.float32)
        self.charge = self.area / np.float32(grid.bin_area)

    def within(self, at: np.ndarray) -> np.ndarray:
        """Clips centres (float [2, M], µm) so that every drawn rectangle lies in the core."""
        found = np.maximum(at, self.low)
        return np.minimum(found, self.high, out=found)  # np.clip is several times slower

    def in_bins(self, at: np.ndarray) -> np.ndarray:
        """Converts centres (float [2, M], µm) to bins; float32."""
        return (at / self._bin).astype(np.float32, copy=False)

    def add(self, at: np.ndarray, onto: np.ndarray, which: slice = slice(None)) -> None:
        """Adds the charge of some rectangles at centres `at` (float32 [2, M], bins) to a map, float32 [X, Y]."""
        (x, y), (half_x, half_y) = at[:, which], self._drawn[:, which]
        _native.spread(x, y, half_x, half_y, self.charge[which], onto)

    def force(self, at: np.ndarray, across: np.ndarray, up: np.ndarray) -> np.ndarray:
        """Returns the mean of a field (float32 [X, Y] each) under each rectangle times its charge, float32 [2, M]."""
        found = np.empty((2, len(self.charge)), np.float32)
        (x, y), (half_x, half_y) = at, self._drawn
        _native.gather(x, y, half_x, half_y, self.charge, across, up, found[0], found[1])
        return found


def density_overflow(problem: FlatProblem, at: np.ndarray, free: np.ndarray, grid: Grid) -> float:
    """Returns the share of the cells' area that exceeds the free area of the bins.

    Args:
        problem: the cells.
        at: float [2, M], centres in µm, relative to the core.
        free: float [X, Y], share of each bin that cells may fill.
        grid: the bins.
    """
    used = used_share(problem, at, grid)
    return float(np.maximum(used - free, 0.0).sum() / used.sum())


def used_share(problem: FlatProblem, at: np.ndarray, grid: Grid) -> np.ndarray:
    """Returns the area of the cells at centres `at` (float [2, M], µm) over the bin's area, float32 [X, Y]."""
    cells, used = Charges(problem.width, problem.height, grid), np.zeros((grid.across, grid.up), np.float32)
    cells.add(cells.in_bins(cells.within(at)), used)
    return used
