"""The grid decoder: logits over the cells and the value, from maps and the current macro's context.

Channels come before rows and columns: the matrix products then run along the cells, which XLA does fastest on a CPU
(measured: depthwise 3 × 3 convolutions cost 5 times the whole of this). On accelerators these products take bfloat16
operands and add up in float32; what goes straight to the logits (location head, guides) stays float32.

Axis legend: B samples, L map channels, U guides, W grid width, R grid rows, C grid columns, Q regions along one axis,
M cosine frequencies, V global values, S width of the context's summary.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from placement.policy.grid_features import GLOBALS, GridFeatures
from placement.policy.precision import FLOAT32, product, rounded

ILLEGAL = -1e9
"""Logit of an illegal cell: finite, and its probability is exactly 0."""
REGIONS = 6
"""Q: the canvas is summarised in Q × Q regions, however many cells it has."""


class Context(NamedTuple):
    """The decoder's input for the current macro. It depends on design and step only, so it is made once per parameters.

    Attributes:
        scale, shift: float32 [B, W], feature-wise modulation of the first layer.
        location: float32 [B, M, M], coefficients of cos(π·m·y)·cos(π·n·x): this macro's preferred position.
        guide: float32 [B, U], the weight of each guide.
        summary: float32 [B, S], for the value head.
    """

    scale: jax.Array
    shift: jax.Array
    location: jax.Array
    guide: jax.Array
    summary: jax.Array


def cosines(positions: jax.Array, frequencies: int) -> jax.Array:
    """float32 [B, X] positions in [0, 1] → float32 [B, X, M], cos(π·m·position) for m < M, falling with m."""
    m = jnp.arange(frequencies, dtype=jnp.float32)
    return jnp.cos(jnp.pi * m * positions[:, :, None]) / jnp.sqrt(1 + m)


def region_weights(positions: jax.Array, valid: jax.Array) -> jax.Array:
    """float32 [B, X, Q]: each cell's share in the two nearest regions along an axis (linear), 0 off the grid."""
    place = positions * REGIONS - 0.5
    distance = jnp.abs(jnp.clip(place, 0, REGIONS - 1)[:, :, None] - jnp.arange(REGIONS, dtype=jnp.float32))
    return jnp.maximum(1 - distance, 0) * valid[:, :, None]


class GridDecoder(nnx.Module):
    """Two layers per cell with a mixing of regions between them; see the module's text.

    Args:
        channels: L.
        width: W.
        summary: S.
        dtype: of the operands of the products made for every cell.
        rngs: of the parameters.
    """

    def __init__(self, channels: int, width: int, summary: int, *, dtype: jnp.dtype = FLOAT32, rngs: nnx.Rngs) -> None:
        self.dtype = dtype
        self.first = nnx.Linear(channels, width, use_bias=False, rngs=rngs)
        self.dynamic = nnx.Linear(GLOBALS, width, rngs=rngs)
        self.mix_regions = nnx.Linear(REGIONS**2, REGIONS**2, rngs=rngs)
        self.mix_channels = nnx.Linear(width, width, use_bias=False, rngs=rngs)
        self.mix_bias = nnx.Param(jnp.zeros(width))
        self.second = nnx.Linear(width, width, use_bias=False, rngs=rngs)
        self.second_bias = nnx.Param(jnp.zeros(width))
        small = nnx.initializers.variance_scaling(1e-4, "fan_in", "normal")
        self.logit = nnx.Linear(width, 1, use_bias=False, kernel_init=small, rngs=rngs)
        self.value_hidden = nnx.Linear(3 * width + GLOBALS + summary, 64, rngs=rngs)
        self.value = nnx.Linear(64, 1, kernel_init=small, rngs=rngs)

    def __call__(self, features: GridFeatures, context: Context) -> tuple[jax.Array, jax.Array]:
        """Logits and values.

        Returns:
            (logits float32 [B, R, C], `ILLEGAL` where the cell is illegal; values float32 [B]).
        """
        modulation = context.scale, context.shift + self.dynamic(features.globals)
        hidden = self._product("lw,blrc->bwrc", self.first.kernel[...], features.channels)
        hidden = nnx.relu(hidden * (1 + modulation[0])[:, :, None, None] + modulation[1][:, :, None, None])
        hidden = rounded(hidden, self.dtype)
        up = region_weights(features.row, features.valid[:, :, 0])
        across = region_weights(features.column, features.valid[:, 0, :])
        regions = self._regions(hidden, up, across)
        mixed = self._mix(regions)
        bias = self.second_bias[...][None, :, None, None]
        second = self._product("vw,bvrc->bwrc", self.second.kernel[...], hidden) + bias
        second = rounded(nnx.relu(second + self._spread(mixed, up, across)), self.dtype)
        logits = self._product("w,bwrc->brc", self.logit.kernel[...][:, 0], second)
        logits = logits + _location(context.location, features)
        logits = logits - jnp.einsum("bg,bgrc->brc", context.guide, features.guides)
        cells = features.valid.sum(axis=(1, 2))[:, None]
        pooled = self._product("bwrc,brc->bw", second, features.valid) / cells
        summary = [pooled, regions.mean(axis=2), mixed.mean(axis=2), features.globals, context.summary]
        value = self.value(nnx.relu(self.value_hidden(jnp.concatenate(summary, axis=1))))[:, 0]
        return jnp.where(features.legal, logits, ILLEGAL), value

    def _product(self, subscripts: str, *operands: jax.Array) -> jax.Array:
        return product(subscripts, *operands, dtype=self.dtype)

    def _regions(self, hidden: jax.Array, up: jax.Array, across: jax.Array) -> jax.Array:
        """Means over regions: float32 [B, W, Q²]."""
        total = self._product("bwrc,bcq->bwrq", hidden, across)
        total = self._product("bwrq,brp->bwpq", total, up)
        share = up.sum(axis=1)[:, :, None] * across.sum(axis=1)[:, None, :]
        means = total / jnp.maximum(share, 1e-6)[:, None]
        return means.reshape(*means.shape[:2], REGIONS**2)

    def _mix(self, regions: jax.Array) -> jax.Array:
        """Between regions, then between channels: float32 [B, W, Q²] → the same."""
        mixed = regions + nnx.relu(self.mix_regions(regions))
        bias = self.mix_bias[...][None, :, None]
        return nnx.relu(jnp.einsum("vw,bvq->bwq", self.mix_channels.kernel[...], mixed) + bias)

    def _spread(self, regions: jax.Array, up: jax.Array, across: jax.Array) -> jax.Array:
        """Interpolates float32 [B, W, Q²] back to the cells: float32 [B, W, R, C]."""
        grid = regions.reshape(*regions.shape[:2], REGIONS, REGIONS)
        rows = self._product("bwpq,brp->bwrq", grid, up)
        return self._product("bwrq,bcq->bwrc", rows, across)


def _location(coefficients: jax.Array, features: GridFeatures) -> jax.Array:
    """float32 [B, R, C]: the low-rank location head."""
    frequencies = coefficients.shape[-1]
    rows, columns = cosines(features.row, frequencies), cosines(features.column, frequencies)
    return jnp.einsum("brm,bmn,bcn->brc", rows, coefficients, columns)
