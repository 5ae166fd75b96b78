"""From a small seed map to a logit for each cell, by transposed convolutions.

A transposed convolution with stride 2 is one matrix product: what a cell and its neighbours above, to the left and both
say to the four cells that it becomes. (XLA's own, whose gradients are convolutions with gaps, is slow on a CPU.)

Axis legend: B samples, R grid rows, C grid columns, P cells of the map along one axis, H cells of a layer's input along
one axis, I input channels, O output channels.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from placement.policy.precision import product

SEED_CELLS = 8
SEED_CHANNELS = 32
CHANNELS = (16, 8, 4, 2)
MAP_CELLS = SEED_CELLS * 2 ** len(CHANNELS)
"""P."""


# [2, 2, 3]: which of the kernel's three taps leads to the even (odd) one of the two cells that a cell becomes, from the
# cell itself (from the one before it).
_TAPS = np.array([[[0, 0, 1], [1, 0, 0]], [[0, 1, 0], [0, 0, 0]]], np.float32)


class Doubling(nnx.Module):
    """A transposed 3 × 3 convolution with stride 2: `jax.lax.conv_transpose` with padding "SAME"."""

    def __init__(self, inputs: int, outputs: int, *, dtype: jnp.dtype, rngs: nnx.Rngs) -> None:
        self.dtype = dtype
        self.kernel = nnx.Param(nnx.initializers.lecun_normal()(rngs.params(), (3, 3, inputs, outputs)))
        self.bias = nnx.Param(jnp.zeros(outputs))

    def __call__(self, cells: jax.Array) -> jax.Array:
        """float32 [B, H, H, I] → float32 [B, 2·H, 2·H, O]."""
        batch, size = cells.shape[:2]
        matrix = jnp.einsum("ask,btl,klio->stiabo", _TAPS, _TAPS, self.kernel[...])
        padded = jnp.pad(cells, ((0, 0), (1, 0), (1, 0), (0, 0)))
        below, above = padded[:, 1:], padded[:, :-1]
        around = jnp.stack([below[:, :, 1:], below[:, :, :-1], above[:, :, 1:], above[:, :, :-1]], axis=3)
        matrix = matrix.reshape(4 * cells.shape[3], -1)
        four = product("bhwi,io->bhwo", around.reshape(batch, size, size, -1), matrix, dtype=self.dtype)
        doubled = four.reshape(batch, size, size, 2, 2, -1).transpose(0, 1, 3, 2, 4, 5)
        return doubled.reshape(batch, 2 * size, 2 * size, -1) + self.bias[...]


class Upsampling(nnx.Module):
    """Transposed 3 × 3 convolutions with stride 2, each doubling the map, then one with stride 1 to one channel."""

    def __init__(self, *, dtype: jnp.dtype, rngs: nnx.Rngs) -> None:
        sizes = (SEED_CHANNELS, *CHANNELS)
        for index in range(len(CHANNELS)):
            setattr(self, f"double_{index}", Doubling(sizes[index], sizes[index + 1], dtype=dtype, rngs=rngs))
        small = nnx.initializers.variance_scaling(1e-4, "fan_in", "normal")
        self.last = nnx.Conv(CHANNELS[-1], 1, kernel_size=(3, 3), kernel_init=small, rngs=rngs)

    def __call__(self, seed: jax.Array, grid: jax.Array, rows: int, columns: int) -> jax.Array:
        """The logits.

        Args:
            seed: float32 [B, 8, 8, 32].
            grid: int32 [B, 2], rows and columns of each sample's design.
            rows: R, of the largest design.
            columns: C, likewise.

        Returns:
            float32 [B, R, C]; off the design's grid whatever.
        """
        hidden = seed
        for index in range(len(CHANNELS)):
            layer: Doubling = getattr(self, f"double_{index}")
            hidden = nnx.relu(layer(hidden))
        whole = self.last(hidden)[..., 0]
        return jnp.einsum("bpq,brp,bcq->brc", whole, _places(grid[:, 0], rows), _places(grid[:, 1], columns))


def _places(used: jax.Array, length: int) -> jax.Array:
    """float32 [B, length, P]: where on the map each row (column) of a grid reads.

    A grid of up to P rows is cut out of the map's middle, cell by cell; over a larger one the whole map is stretched,
    linear between its cells.
    """
    index = jnp.arange(length, dtype=jnp.float32)[None]
    count = used.astype(jnp.float32)[:, None]
    stretched = (index + 0.5) * MAP_CELLS / count - 0.5
    place = jnp.where(count <= MAP_CELLS, (MAP_CELLS - used[:, None]) // 2 + index, stretched)
    place = jnp.clip(place, 0, MAP_CELLS - 1)
    return jnp.maximum(1 - jnp.abs(place[:, :, None] - jnp.arange(MAP_CELLS, dtype=jnp.float32)), 0)
