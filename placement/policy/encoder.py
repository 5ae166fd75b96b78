"""The graph encoder: an edge-based graph network, run once per (parameters, design).

After "A graph placement methodology for fast chip design" (Mirhoseini et al., Nature 2021), section "Edge-based
graph neural network": an edge's embedding comes from both its end nodes and its weight, a node's from the mean of
its edges. The edge function is symmetrised over the edge's direction, as Circuit Training does.

Axis legend: N graph nodes, E edges, F node features, D node width.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx


class EdgeRound(nnx.Module):
    """One round: edges from their ends, then nodes from the mean of their edges, added to what they were."""

    def __init__(self, width: int, *, rngs: nnx.Rngs) -> None:
        # An edge's first layer is split by its inputs, so that the products with the ends are made once per node.
        self.ends = nnx.Linear(width, 2 * width, rngs=rngs)
        self.weight = nnx.Linear(1, width, use_bias=False, rngs=rngs)
        self.update = nnx.Linear(width, width, rngs=rngs)
        self.norm = nnx.LayerNorm(width, rngs=rngs)

    def __call__(
        self, hidden: jax.Array, edges: jax.Array, edge_weight: jax.Array, edge_mask: jax.Array, degree: jax.Array
    ) -> jax.Array:
        """float32 [N, D] → float32 [N, D]; `edges` int32 [E, 2], `edge_weight`, `edge_mask` [E], `degree` [N]."""
        width = hidden.shape[-1]
        ends = self.ends(self.norm(hidden))
        first, second = ends[edges[:, 0]], ends[edges[:, 1]]
        bias = self.weight(edge_weight[:, None])
        forward = nnx.relu(first[:, :width] + second[:, width:] + bias)
        backward = nnx.relu(second[:, :width] + first[:, width:] + bias)
        edge = (forward + backward) * (0.5 * edge_mask[:, None])
        total = jnp.zeros_like(hidden).at[edges[:, 0]].add(edge).at[edges[:, 1]].add(edge)
        return hidden + nnx.relu(self.update(total / degree[:, None]))


class GraphEncoder(nnx.Module):
    """Node embeddings of one design's graph."""

    def __init__(self, features: int, width: int, rounds: int, *, rngs: nnx.Rngs) -> None:
        self.rounds = rounds
        self.input = nnx.Linear(features, width, rngs=rngs)
        for index in range(rounds):
            setattr(self, f"round_{index}", EdgeRound(width, rngs=rngs))
        self.norm = nnx.LayerNorm(width, rngs=rngs)

    def __call__(self, nodes: jax.Array, edges: jax.Array, edge_weight: jax.Array, edge_mask: jax.Array) -> jax.Array:
        """Embeddings of all nodes.

        Args:
            nodes: float32 [N, F].
            edges: int32 [E, 2], end nodes; padding may point anywhere.
            edge_weight: float32 [E].
            edge_mask: float32 [E], 0 at padding.

        Returns:
            float32 [N, D].
        """
        hidden = nnx.relu(self.input(nodes))
        degree = jnp.zeros(len(nodes), nodes.dtype).at[edges[:, 0]].add(edge_mask).at[edges[:, 1]].add(edge_mask)
        for index in range(self.rounds):
            layer: EdgeRound = getattr(self, f"round_{index}")
            hidden = layer(hidden, edges, edge_weight, edge_mask, jnp.maximum(degree, 1))
        return self.norm(hidden)
