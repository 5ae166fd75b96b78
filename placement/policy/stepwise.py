"""The comparison policy, in the form of Circuit Training: its graph network runs at every step.

After "A graph placement methodology for fast chip design" (Mirhoseini et al., Nature 2021) and what is published of
Circuit Training: node positions are among the node features, so nothing can be kept from step to step; attention of
the current macro over all nodes; fully connected layers and transposed convolutions up to a map of 128 × 128 cells, of
which the design's grid is cut out. It sees no maps of the grid, only the mask. What differs: a node's fixed position
counts as placed, the metadata are what `GraphInputs` has (no routing resources), padding is masked (`mask_padding`),
and the heads begin near zero.

Axis legend: G designs, N graph nodes, E edges, T macros, B samples, D node width, A width of the state, R grid rows,
C grid columns, P cells of the map along one axis.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from placement.config import PolicyConfig
from placement.engine.observation import Observation
from placement.policy.distribution import masked_logits
from placement.policy.graph_inputs import GraphInputs
from placement.policy.policy import Embeddings, padding_masks
from placement.policy.precision import product_dtype
from placement.policy.stepwise_graph import EdgeSummary, StepGraph, node_features
from placement.policy.upsampling import SEED_CELLS, SEED_CHANNELS, Upsampling

METADATA = 8
"""Numbers that say which design it is, and how far the episode is."""


class StepwisePolicy(nnx.Module):
    """See the module's text."""

    def __init__(self, config: PolicyConfig, *, rngs: nnx.Rngs) -> None:
        self.config = config
        width = config.node_width
        self.graph = StepGraph(width, config.rounds, rngs=rngs)
        self.metadata = nnx.Linear(METADATA, width, rngs=rngs)
        self.query = nnx.Linear(width, width, rngs=rngs)
        self.key = nnx.Linear(width, width, rngs=rngs)
        self.look = nnx.Linear(width, width, rngs=rngs)
        state = (3 + len(EdgeSummary._fields)) * width
        self.seed = nnx.Linear(state, SEED_CELLS**2 * SEED_CHANNELS, rngs=rngs)
        self.upsampling = Upsampling(dtype=product_dtype(config), rngs=rngs)
        self.value_first = nnx.Linear(state, 32, rngs=rngs)
        self.value_second = nnx.Linear(32, 8, rngs=rngs)
        small = nnx.initializers.variance_scaling(1e-4, "fan_in", "normal")
        self.value = nnx.Linear(8, 1, kernel_init=small, rngs=rngs)

    def embed(self, inputs: GraphInputs) -> Embeddings:
        """Nothing, [G, T, 0]: there is nothing that would hold for more than one step."""
        return jnp.zeros((*inputs.order.shape, 0))

    def decide(
        self, embeddings: Embeddings, inputs: GraphInputs, observation: Observation, energy: jax.Array | None = None
    ) -> tuple[jax.Array, jax.Array]:
        """Logits float32 [B, R, C] and values float32 [B] for a batch that may mix designs; it knows no springs."""
        del embeddings, energy
        design, mask = jnp.asarray(observation.design), jnp.asarray(observation.mask)
        state = self._state(inputs, observation)
        seed = nnx.relu(self.seed(state)).reshape(-1, SEED_CELLS, SEED_CELLS, SEED_CHANNELS)
        grid = inputs.grid[design]
        rows, columns = mask.shape[1:]
        valid = (jnp.arange(rows) < grid[:, :1])[:, :, None] & (jnp.arange(columns) < grid[:, 1:])[:, None, :]
        logits = masked_logits(self.upsampling(seed, grid, rows, columns), valid, mask != 0, floor=self.config.floor)
        value = self.value(nnx.relu(self.value_second(nnx.relu(self.value_first(state)))))[:, 0]
        return logits, value

    def _state(self, inputs: GraphInputs, observation: Observation) -> jax.Array:
        """float32 [B, A]: metadata, summary of the edges, what the current macro looks at, and itself."""
        design = jnp.asarray(observation.design)
        placed = jnp.minimum(jnp.asarray(observation.step), inputs.macros[design])
        step = jnp.minimum(placed, inputs.macros[design] - 1)
        node_mask, edge_mask = padding_masks(self.config, inputs)
        features = node_features(inputs, observation, placed)
        nodes, edges = self.graph(features, inputs._replace(edge_mask=edge_mask), design)
        if not self.config.graph:
            nodes, edges = jax.tree.map(jnp.zeros_like, (nodes, edges))
        current = jnp.take_along_axis(nodes, inputs.order[design, step][:, None, None], axis=1)[:, 0]
        metadata = nnx.relu(self.metadata(_metadata(inputs, design, placed)))
        attended = self._attention(current, nodes, node_mask[design])
        return jnp.concatenate([metadata, *edges, attended, current], axis=1)

    def _attention(self, current: jax.Array, nodes: jax.Array, mask: jax.Array) -> jax.Array:
        """One head of the current macro's [B, D] over all nodes' [B, N, D]: float32 [B, D]."""
        score = jnp.einsum("bd,bnd->bn", self.query(current), self.key(nodes)) / jnp.sqrt(float(nodes.shape[-1]))
        share = jax.nn.softmax(jnp.where(mask > 0, score, -1e9), axis=1)
        return jnp.einsum("bn,bnd->bd", share, self.look(nodes))


def _metadata(inputs: GraphInputs, design: jax.Array, placed: jax.Array) -> jax.Array:
    """float32 [B, METADATA]: the canvas's shape, the grid, how many macros, nodes and edges, and the share placed."""
    counts = [inputs.macros.astype(jnp.float32), inputs.node_mask.sum(axis=1), inputs.edge_mask.sum(axis=1)]
    constants = [inputs.aspect - 1, inputs.grid / 128, jnp.log1p(jnp.stack(counts, axis=1)) / 8]
    progress = placed / inputs.macros[design]
    return jnp.concatenate([jnp.concatenate(constants, axis=1)[design], progress[:, None]], axis=1)
