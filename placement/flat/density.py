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

from placement.flat.grid import Grid


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
