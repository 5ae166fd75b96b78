"""Charge on a grid of bins, in JAX: what rectangles leave in each bin, and what a field does to them.

A rectangle smaller than √2 bins is drawn at that size with its charge kept, so that its density has a gradient
everywhere (ePlace, section 4).

Axis legend: M rectangles, X bins across, Y bins up, S bins that one rectangle may meet along an axis.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


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


class Shapes(NamedTuple):
    """Rectangles as the grid sees them.

    Attributes:
        half_width, half_height: float32 [M], in bins, of the drawn rectangle.
        charge: float32 [M], area in bins.
        steps_x, steps_y: float32 [S]: 0, 1, … to the most bins that one rectangle may meet across, and up.
    """

    half_width: jax.Array
    half_height: jax.Array
    charge: jax.Array
    steps_x: jax.Array
    steps_y: jax.Array


def shapes(width: np.ndarray, height: np.ndarray, grid: Grid) -> Shapes:
    """Rectangles of `width` and `height` (float [M], µm) on `grid`."""
    across = np.maximum(width / grid.bin_width, np.sqrt(2.0))
    up = np.maximum(height / grid.bin_height, np.sqrt(2.0))
    steps = [jnp.arange(np.ceil(side.max(initial=1.0)) + 1, dtype=jnp.float32) for side in (across, up)]
    return Shapes(
        jnp.asarray(across / 2, jnp.float32),
        jnp.asarray(up / 2, jnp.float32),
        jnp.asarray(np.asarray(width, np.float64) * height / grid.bin_area, jnp.float32),
        *steps,
    )


def spread(drawn: Shapes, x: jax.Array, y: jax.Array, onto: jax.Array) -> jax.Array:
    """The map `onto` with the rectangles' charge added; what lies outside of the grid is left out.

    Args:
        drawn: the rectangles.
        x: float32 [M], centres, in bins.
        y: float32 [M].
        onto: float32 [X, Y], charge per bin.
    """
    across, up = onto.shape
    i, part_x = _parts(x, drawn.half_width, drawn.steps_x, across)
    j, part_y = _parts(y, drawn.half_height, drawn.steps_y, up)
    amount = (drawn.charge[:, None] * part_x)[:, :, None] * part_y[:, None, :]
    index = i[:, :, None] * up + j[:, None, :]
    return onto.ravel().at[index.ravel()].add(amount.ravel(), mode="drop").reshape(onto.shape)


def gather(
    drawn: Shapes, x: jax.Array, y: jax.Array, map_x: jax.Array, map_y: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The mean of two maps [X, Y] under each rectangle times its charge; float32 [M] each."""
    across, up = map_x.shape
    i, part_x = _parts(x, drawn.half_width, drawn.steps_x, across)
    j, part_y = _parts(y, drawn.half_height, drawn.steps_y, up)
    index = i[:, :, None] * up + j[:, None, :]
    both = jnp.stack([map_x.ravel(), map_y.ravel()], axis=-1)[index]  # [M, S, S, 2]
    amount = (drawn.charge[:, None] * part_x)[:, :, None] * part_y[:, None, :]
    mean = jnp.einsum("mij,mijk->km", amount, both)
    return mean[0], mean[1]


def _parts(centre: jax.Array, half: jax.Array, steps: jax.Array, bins: int) -> tuple[jax.Array, jax.Array]:
    """The bins along one axis [M, S], within the grid, and the share of each rectangle in them [M, S]."""
    low = centre - half
    first = jnp.floor(low)
    bin_low = first[:, None] + steps
    part = jnp.minimum((centre + half)[:, None], bin_low + 1) - jnp.maximum(low[:, None], bin_low)
    inside = (bin_low >= 0) & (bin_low < bins)
    part = jnp.where(inside, jnp.maximum(part, 0.0), 0.0) / (2 * half[:, None])
    return jnp.clip(bin_low, 0, bins - 1).astype(jnp.int32), part


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
