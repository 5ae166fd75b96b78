"""The network `edge_gnn`: a graph encoder, a context for each design and step, and a grid decoder.

**Encoder and contexts** depend on parameters and designs only (`embed`). The encoder is
`placement.policy.graph_encoder`. A context is the decoder's description of the current macro: a modulation of the maps'
first layer, the weight of each prior, and a preferred position.

**The decoder** runs at every step (`decide`): two layers per cell with a mixing of regions between them. Channels
precede cells, and every product is one of a small matrix with a sample's channels by cells, so XLA on a CPU moves
nothing in memory between products. On accelerators, these products take bfloat16 operands and accumulate in float32;
terms that are added directly to the logits (location head, priors) remain float32.

One network serves designs of different sizes and grids.

Axis legend: G designs, T macros, F features of a macro, W grid width, M cosine frequencies, B samples, K spring
targets, U priors, L map channels, V global values, R grid rows, C grid columns, Q regions along one axis,
H = 2·W + M² + U, the number of values in a context.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from placement.config import PolicyConfig
from placement.engine.observation import Observation
from placement.policy.features import (
    FLOAT32,
    GLOBALS,
    VALID,
    GridFeatures,
    channels,
    grid_features,
    priors,
    product,
    product_dtype,
    rounded,
    situation,
)
from placement.policy.graph_encoder import GraphEncoder, edge_weights
from placement.policy.inputs import GraphInputs
from placement.policy.springs import TARGETS

REGIONS = 6  # Q: the canvas is summarised in Q × Q regions, whatever its number of cells
ILLEGAL = -1e9  # logit of an illegal cell: finite, but its probability is exactly 0
_CONTEXT_HIDDEN = 64
_RANK_WAVES = 6
_MACRO_FEATURES = 2 * _RANK_WAVES + 1 + TARGETS + 4
_FREQUENCIES = 8  # M: the location head's cosines per axis


class EdgeGNN(nnx.Module):
    """The network described in the module's docstring."""

    def __init__(self, config: PolicyConfig, *, rngs: nnx.Rngs) -> None:
        self.config = config
        width, maps = config.grid_width, len(priors(config))
        features = _MACRO_FEATURES
        if config.graph:
            self.encoder = GraphEncoder(features + 2 * TARGETS, config.node_width, config.rounds, rngs=rngs)
            features += config.node_width
        self.context_hidden = nnx.Linear(features, _CONTEXT_HIDDEN, rngs=rngs)
        small = nnx.initializers.variance_scaling(1e-2, "fan_in", "normal")
        self.modulation = nnx.Linear(_CONTEXT_HIDDEN, 2 * width, kernel_init=small, rngs=rngs)
        tiny = nnx.initializers.variance_scaling(1e-4, "fan_in", "normal")
        self.location = nnx.Linear(_CONTEXT_HIDDEN, _FREQUENCIES**2, kernel_init=tiny, use_bias=False, rngs=rngs)
        self.prior = nnx.Linear(_CONTEXT_HIDDEN, maps, kernel_init=tiny, bias_init=prior_weights(config), rngs=rngs)
        self.decoder = GridDecoder(channels(config), width, dtype=product_dtype(config), rngs=rngs)

    def embed(self, inputs: GraphInputs) -> jax.Array:
        """Returns the context of each macro's step, float32 [G, T, H]."""
        features = macro_features(inputs)
        if self.config.graph:
            pull = inputs.target_fixed.transpose(0, 2, 1, 3).reshape(*features.shape[:2], 2 * TARGETS)
            embeddings = self.encoder(jnp.concatenate([features, pull], axis=2), edge_weights(inputs))
            features = jnp.concatenate([embeddings, features], axis=2)
        hidden = nnx.relu(self.context_hidden(features))
        return jnp.concatenate([self.modulation(hidden), self.location(hidden), self.prior(hidden)], axis=2)

    def decide(
        self, embeddings: jax.Array, inputs: GraphInputs, observation: Observation, energy: jax.Array | None = None
    ) -> jax.Array:
        """Returns logits, float32 [B, R, C], for a batch that may mix designs; `energy` is passed to `situation`."""
        design = jnp.asarray(observation.design)
        step = jnp.minimum(jnp.asarray(observation.step), inputs.macros[design] - 1)
        features = grid_features(observation, situation(inputs, observation, energy), self.config)
        return self.decoder(features, self._context(embeddings[design, step]))

    def _context(self, numbers: jax.Array) -> Context:
        """Splits the numbers of a context, float32 [B, H], into its parts."""
        width = self.config.grid_width
        ends = [width, 2 * width, 2 * width + _FREQUENCIES**2]
        scale, shift, location, prior = jnp.split(numbers, ends, axis=1)
        if not self.config.location:
            location = jnp.zeros_like(location)
        return Context(scale, shift, location.reshape(-1, _FREQUENCIES, _FREQUENCIES), prior)


def prior_weights(config: PolicyConfig) -> nnx.Initializer:
    """Returns the initial weight of each prior: its bias in the settings, or 0 for the springs' priors."""
    weights = [getattr(config, f"{name}_bias", 0.0) for name in priors(config)]
    return nnx.initializers.constant(jnp.asarray(weights, jnp.float32))


def macro_features(inputs: GraphInputs) -> jax.Array:
    """Each macro's rank in the order (also as waves), stiffness, size, and the canvas's aspect: float32 [G, T, F]."""
    rank = jnp.arange(inputs.size.shape[1], dtype=jnp.float32)[None] / inputs.macros[:, None].astype(jnp.float32)
    angle = rank[:, :, None] * (math.pi * 2.0 ** jnp.arange(_RANK_WAVES, dtype=jnp.float32))
    features = [
        rank[:, :, None],
        jnp.sin(angle),
        jnp.cos(angle),
        jnp.log1p(inputs.stiffness).transpose(0, 2, 1),
        4 * inputs.size,
        jnp.broadcast_to(inputs.aspect[:, None] - 1, inputs.size.shape),
    ]
    return jnp.concatenate(features, axis=2)


class Context(NamedTuple):
    """The decoder's input for the current macro, computed once per parameters as only design and step determine it."""

    scale: jax.Array  # scale, shift: float32 [B, W], feature-wise modulation of the first layer
    shift: jax.Array
    location: jax.Array  # float32 [B, M, M], coefficients of cos(π·m·y)·cos(π·n·x): this macro's preferred position
    prior: jax.Array  # float32 [B, U], the weight of each prior


class GridDecoder(nnx.Module):
    """Two layers per cell with a mixing of regions between them; see the module's docstring.

    `maps` and `width` are L and W; `dtype` is the operands' type in the products computed for every cell.
    """

    def __init__(self, maps: int, width: int, *, dtype: jnp.dtype = FLOAT32, rngs: nnx.Rngs) -> None:
        self.dtype = dtype
        self.first = nnx.Linear(maps, width, use_bias=False, rngs=rngs)
        self.dynamic = nnx.Linear(GLOBALS, width, rngs=rngs)
        self.mix_regions = nnx.Linear(REGIONS**2, REGIONS**2, rngs=rngs)
        self.mix_channels = nnx.Linear(width, width, use_bias=False, rngs=rngs)
        self.mix_bias = nnx.Param(jnp.zeros(width))
        self.second = nnx.Linear(width, width, use_bias=False, rngs=rngs)
        self.second_bias = nnx.Param(jnp.zeros(width))
        small = nnx.initializers.variance_scaling(1e-4, "fan_in", "normal")
        self.logit = nnx.Linear(width, 1, use_bias=False, kernel_init=small, rngs=rngs)

    def __call__(self, features: GridFeatures, context: Context) -> jax.Array:
        """Returns logits, float32 [B, R, C], which are `ILLEGAL` for illegal cells."""
        shift = context.shift + self.dynamic(features.globals)
        first = self.first.kernel[...].T * (1 + context.scale)[:, :, None]
        first = first.at[:, :, VALID].add(shift)  # the channel is 1, and this is faster than a sum for each cell
        hidden = rounded(nnx.relu(self._product(first, _flat(features.channels))), self.dtype)
        weights = region_weights(features)
        mixed = self._spread(self._mix(self._regions(hidden, weights)), weights)
        second = self._product(_each(self.second.kernel, hidden), hidden) + mixed + self.second_bias[...][:, None]
        logits = self._product(_each(self.logit.kernel, hidden), rounded(nnx.relu(second), self.dtype))
        logits = logits - context.prior[:, None] @ _flat(features.priors)
        return jnp.where(features.legal, logits.reshape(features.legal.shape) + _location(context, features), ILLEGAL)

    def _product(self, one: jax.Array, other: jax.Array) -> jax.Array:
        return product(one, other, dtype=self.dtype)

    def _regions(self, hidden: jax.Array, weights: RegionWeights) -> jax.Array:
        """Returns the means over regions, float32 [B, W, Q²], of values at cells, [B, W, R · C]."""
        samples, width = hidden.shape[:2]
        cells = hidden.reshape(samples, -1, weights.across.shape[2])
        across = self._combined(cells, weights.across.swapaxes(1, 2)).reshape(samples, width, -1)
        return self._combined(across, weights.up.swapaxes(1, 2)) / weights.total[:, None]

    def _spread(self, regions: jax.Array, weights: RegionWeights) -> jax.Array:
        """Interpolates values of regions, [B, W, Q²], at cells, float32 [B, W, R · C]."""
        samples, width = regions.shape[:2]
        up = self._combined(regions, weights.up).reshape(samples, -1, REGIONS)
        return self._combined(up, weights.across).reshape(samples, width, -1)

    def _combined(self, values: jax.Array, weights: jax.Array) -> jax.Array:
        """Product of [B, X, Y] with [B or 1, Y, Z]; for one design a single matrix product, the fastest on a CPU."""
        if len(weights) > 1:
            return self._product(values, weights)
        return self._product(values.reshape(-1, values.shape[2]), weights[0]).reshape(*values.shape[:2], -1)

    def _mix(self, regions: jax.Array) -> jax.Array:
        """Mixes the means between regions, then between channels; float32 [B, W, Q²] before and after."""
        mixed = regions + nnx.relu(self.mix_regions(regions))
        return nnx.relu(_each(self.mix_channels.kernel, mixed) @ mixed + self.mix_bias[...][:, None])


def _flat(maps: jax.Array) -> jax.Array:
    """Joins the grid's axes: [B, …, R, C] → [B, …, R · C]."""
    return maps.reshape(*maps.shape[:-2], -1)


def _each(kernel: nnx.Param[jax.Array], samples: jax.Array) -> jax.Array:
    """Repeats a kernel [X, Y] as [B, Y, X], so that its product with channels by cells transposes nothing in memory."""
    return jnp.broadcast_to(kernel[...].T, (len(samples), *kernel.shape[::-1]))


class RegionWeights(NamedTuple):
    """Each cell's weights in the four nearest regions (bilinear), as a product over the axes; 0 off the grid."""

    up: jax.Array  # float32 [B or 1, Q², R · Q], from regions to pairs of a grid row and a column of regions
    across: jax.Array  # float32 [B or 1, Q, C], from columns of regions to grid columns
    total: jax.Array  # float32 [B or 1, Q²], the sum of each region's weights


def region_weights(features: GridFeatures) -> RegionWeights:
    """Returns the weights for each sample, or once for all of them if there is one design."""
    up = _nearest_regions(features.row, features.valid[:, :, 0])
    across = _nearest_regions(features.column, features.valid[:, 0, :])
    total = (up.sum(axis=2)[:, :, None] * across.sum(axis=2)[:, None]).reshape(-1, REGIONS**2)
    pairs = jnp.einsum("bjr,ik->bjirk", up, jnp.eye(REGIONS)).reshape(len(up), REGIONS**2, -1)
    return RegionWeights(pairs, across, jnp.maximum(total, 1e-6))


def _nearest_regions(positions: jax.Array, valid: jax.Array) -> jax.Array:
    """Each cell's weights in the two nearest regions along an axis (linear), float32 [B or 1, Q, X]; 0 off the grid."""
    place = jnp.clip(positions * REGIONS - 0.5, 0, REGIONS - 1)
    distance = jnp.abs(place[:, None] - jnp.arange(REGIONS, dtype=jnp.float32)[:, None])
    return jnp.maximum(1 - distance, 0) * valid[:, None]


def cosines(positions: jax.Array, frequencies: int) -> jax.Array:
    """Returns cos(π·m·position) / √(1 + m) for m < M, float32 [B, X, M], of positions in [0, 1], float32 [B, X]."""
    m = jnp.arange(frequencies, dtype=jnp.float32)
    return jnp.cos(jnp.pi * m * positions[:, :, None]) / jnp.sqrt(1 + m)


def _location(context: Context, features: GridFeatures) -> jax.Array:
    """Returns the logits of the low-rank location head, float32 [B, R, C]."""
    rows, columns = cosines(features.row, _FREQUENCIES), cosines(features.column, _FREQUENCIES)
    return rows @ context.location @ columns.swapaxes(1, 2)
