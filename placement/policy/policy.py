"""The policy network: graph encoder, a context per design and step, grid decoder.

The encoder and the contexts depend on parameters and designs only (`embed`); the decoder runs at every step
(`decide`). One network serves designs of different sizes and grids.

Axis legend: G designs, N graph nodes, T macros, D node width, W grid width, M frequencies, S summary width,
B samples, K pulls, U guides, R grid rows, C grid columns, H = 2·W + M² + U + S, the context's numbers side by side.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import jax
import jax.numpy as jnp
from flax import nnx

from placement.config import PolicyConfig
from placement.engine.observation import Observation
from placement.policy.decoder import Context, GridDecoder
from placement.policy.encoder import GraphEncoder
from placement.policy.graph_inputs import NODE_FEATURES, PULLS, GraphInputs
from placement.policy.grid_features import Situation, channels, grid_features, guides
from placement.policy.precision import product_dtype
from placement.policy.spring_energy import spring_energy

SUMMARY = 32
"""S."""
_CONTEXT_HIDDEN = 64
_RANK_WAVES = 6


Embeddings: TypeAlias = jax.Array
"""What the network made of each design for one set of parameters: float32 [G, T, H], the context of the step that
places each macro."""


class Policy(nnx.Module):
    """See the module's text."""

    def __init__(self, config: PolicyConfig, *, rngs: nnx.Rngs) -> None:
        self.config = config
        width, frequencies, led = config.grid_width, config.location_frequencies, len(guides(config))
        self.encoder = GraphEncoder(NODE_FEATURES, config.node_width, config.rounds, rngs=rngs)
        features = 3 * config.node_width + 2 * _RANK_WAVES + 1 + PULLS + 4
        self.context_hidden = nnx.Linear(features, _CONTEXT_HIDDEN, rngs=rngs)
        small = nnx.initializers.variance_scaling(1e-2, "fan_in", "normal")
        self.modulation = nnx.Linear(_CONTEXT_HIDDEN, 2 * width, kernel_init=small, rngs=rngs)
        tiny = nnx.initializers.variance_scaling(1e-4, "fan_in", "normal")
        self.location = nnx.Linear(_CONTEXT_HIDDEN, frequencies**2, kernel_init=tiny, use_bias=False, rngs=rngs)
        self.guide = nnx.Linear(_CONTEXT_HIDDEN, led, kernel_init=tiny, bias_init=guide_bias(config), rngs=rngs)
        self.summary = nnx.Linear(_CONTEXT_HIDDEN, SUMMARY, rngs=rngs)
        self.decoder = GridDecoder(channels(config), width, SUMMARY, dtype=product_dtype(config), rngs=rngs)

    def embed(self, inputs: GraphInputs) -> Embeddings:
        """Contexts of all designs (arrays of `inputs` as JAX arrays with the leading G axis)."""
        nodes = jax.vmap(self.encoder)(inputs.nodes, inputs.edges, inputs.edge_weight, inputs.edge_mask)
        if not self.config.graph:
            nodes = jnp.zeros_like(nodes)
        share = inputs.node_mask / inputs.node_mask.sum(axis=1, keepdims=True)
        graph = jnp.einsum("gn,gnd->gd", share, nodes)
        macros = jnp.take_along_axis(nodes, inputs.order[:, :, None], axis=1)
        neighbours = jnp.einsum("gst,gtd->gsd", inputs.pull[:, 0], macros)
        features = jnp.concatenate(
            [
                macros,
                neighbours,
                jnp.broadcast_to(graph[:, None], macros.shape),
                _rank_features(inputs),
                jnp.log1p(inputs.stiffness).transpose(0, 2, 1),
                4 * inputs.size,
                jnp.broadcast_to(inputs.aspect[:, None] - 1, inputs.size.shape),
            ],
            axis=2,
        )
        hidden = nnx.relu(self.context_hidden(features))
        heads = [self.modulation(hidden), self.location(hidden), self.guide(hidden), self.summary(hidden)]
        return jnp.concatenate(heads, axis=2)

    def decide(
        self, embeddings: Embeddings, inputs: GraphInputs, observation: Observation, energy: jax.Array | None = None
    ) -> tuple[jax.Array, jax.Array]:
        """Logits float32 [B, R, C] and values float32 [B] for a batch that may mix designs; `energy` as `situation`."""
        design = jnp.asarray(observation.design)
        step = jnp.minimum(jnp.asarray(observation.step), inputs.macros[design] - 1)
        features = grid_features(observation, situation(inputs, observation, energy), self.config)
        return self.decoder(features, self._context(embeddings[design, step]))

    def _context(self, numbers: jax.Array) -> Context:
        """float32 [B, H] → its parts."""
        width, frequencies = self.config.grid_width, self.config.location_frequencies
        ends = [width, 2 * width, 2 * width + frequencies**2, 2 * width + frequencies**2 + len(guides(self.config))]
        scale, shift, location, guide, summary = jnp.split(numbers, ends, axis=1)
        if not self.config.location:
            location = jnp.zeros_like(location)
        return Context(scale, shift, location.reshape(-1, frequencies, frequencies), guide, summary)


def situation(inputs: GraphInputs, observation: Observation, energy: jax.Array | None = None) -> Situation:
    """The constants of each sample's design and current macro, and where it is pulled given what is placed.

    Args:
        inputs: the designs' constants.
        observation: B samples.
        energy: float32 [B, 2], of `spring_energy` or `next_energy`; None: the former. All else takes O(T) per sample.
    """
    design, x, y = (jnp.asarray(value) for value in (observation.design, observation.x, observation.y))
    macros = inputs.macros[design]
    placed = jnp.minimum(jnp.asarray(observation.step), macros)
    step = jnp.minimum(placed, macros - 1)
    pull, held = inputs.pull[design, :, step], inputs.pull_fixed[design, :, step]
    position = jnp.stack([x, y], axis=2)
    return Situation(
        grid=inputs.grid[design],
        aspect=inputs.aspect[design],
        target=jnp.einsum("bkt,bta->bka", pull, position) + held,
        stiffness=inputs.stiffness[design, :, step],
        energy=spring_energy(inputs, observation) if energy is None else energy,
        size=inputs.size[design, step],
        electrostatic=inputs.electrostatic[design, step],
        progress=placed.astype(jnp.float32) / macros,
    )


def _rank_features(inputs: GraphInputs) -> jax.Array:
    """float32 [G, T, 2·waves + 1]: the place in the order as waves, which tells apart macros that look the same."""
    macros = inputs.order.shape[1]
    rank = jnp.arange(macros, dtype=jnp.float32)[None] / inputs.macros[:, None].astype(jnp.float32)
    angle = rank[:, :, None] * (math.pi * 2.0 ** jnp.arange(_RANK_WAVES, dtype=jnp.float32))
    return jnp.concatenate([rank[:, :, None], jnp.sin(angle), jnp.cos(angle)], axis=2)


def guide_bias(config: PolicyConfig) -> nnx.Initializer:
    """The prior: the untrained policy's weight of each guide."""
    return nnx.initializers.constant(
        jnp.asarray([getattr(config, f"{name}_bias", 0.0) for name in guides(config)], jnp.float32)
    )
