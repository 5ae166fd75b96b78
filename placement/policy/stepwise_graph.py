"""The graph network of the stepwise policy: node features with positions, rounds of messages, a summary of the edges.

Nodes come before samples, so that a node's numbers for all samples lie side by side: gathering and scattering along
the edges then moves rows of B·D numbers (where all samples are of one design).

Axis legend: G designs, N graph nodes, E edges, T macros, B samples, F node features, D node width.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from placement.engine.observation import Observation
from placement.policy.graph_inputs import GraphInputs

FEATURES = 8
"""F: kind (hard, soft, port cluster), width, height, x, y, and whether these two are known."""
_NONE = 1e9


class EdgeSummary(NamedTuple):
    """Over the edges of a graph, float32 [B, D] each; zeros where there is none."""

    mean: jax.Array
    variance: jax.Array
    largest: jax.Array
    smallest: jax.Array


class MeanEdges(nnx.Module):
    """One round: edges from their ends and weights, the same in both directions; nodes add the mean of their edges."""

    def __init__(self, width: int, *, rngs: nnx.Rngs) -> None:
        # The one layer is split by its inputs, so that the products with the ends are made once per node.
        self.ends = nnx.Linear(width, 2 * width, rngs=rngs)
        self.weight = nnx.Linear(1, width, use_bias=False, rngs=rngs)

    def __call__(
        self, hidden: jax.Array, edges: jax.Array, edge_weight: jax.Array, edge_mask: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Nodes and edges after the round.

        Args:
            hidden: float32 [N, …, D].
            edges: int32 [E, 2].
            edge_weight: float32 [E].
            edge_mask: float32 [E], 0 at padding.

        Returns:
            (nodes float32 [N, …, D]; edges float32 [E, …, D], at padding whatever).
        """
        width = hidden.shape[-1]
        over_rest = (slice(None), *[None] * (hidden.ndim - 1))
        ends = self.ends(hidden)
        first, second = ends[edges[:, 0]], ends[edges[:, 1]]
        bias = self.weight(edge_weight[:, None]).reshape(-1, *[1] * (hidden.ndim - 2), width)
        forward = nnx.relu(first[..., :width] + second[..., width:] + bias)
        backward = nnx.relu(second[..., :width] + first[..., width:] + bias)
        edge = (forward + backward) / 2
        counted = edge * edge_mask[over_rest]
        total = jnp.zeros_like(hidden).at[edges[:, 0]].add(counted).at[edges[:, 1]].add(counted)
        degree = jnp.zeros(len(hidden)).at[edges[:, 0]].add(edge_mask).at[edges[:, 1]].add(edge_mask)
        return hidden + total / jnp.maximum(degree, 1)[over_rest], edge


class StepGraph(nnx.Module):
    """Node embeddings and a summary of the edges for each sample."""

    def __init__(self, width: int, rounds: int, *, rngs: nnx.Rngs) -> None:
        self.rounds = rounds
        self.input = nnx.Linear(FEATURES, width, rngs=rngs)
        for index in range(rounds):
            setattr(self, f"round_{index}", MeanEdges(width, rngs=rngs))

    def __call__(self, features: jax.Array, inputs: GraphInputs, design: jax.Array) -> tuple[jax.Array, EdgeSummary]:
        """Embeddings.

        Args:
            features: float32 [B, N, F].
            inputs: the designs' constants.
            design: int32 [B].

        Returns:
            (nodes float32 [B, N, D], summary of the edges after the last round).
        """
        hidden = nnx.relu(self.input(features))
        graph = inputs.edges, inputs.edge_weight, inputs.edge_mask
        if len(inputs.macros) == 1:
            nodes, summary = self._rounds(hidden.transpose(1, 0, 2), *(constants[0] for constants in graph))
            return nodes.transpose(1, 0, 2), summary
        return jax.vmap(self._rounds)(hidden, *(constants[design] for constants in graph))

    def _rounds(
        self, hidden: jax.Array, edges: jax.Array, edge_weight: jax.Array, edge_mask: jax.Array
    ) -> tuple[jax.Array, EdgeSummary]:
        """All rounds over one graph; `hidden` is float32 [N, …, D]."""
        for index in range(self.rounds):
            layer: MeanEdges = getattr(self, f"round_{index}")
            hidden, edge = layer(hidden, edges, edge_weight, edge_mask)
        return hidden, _summary(edge, edge_mask)


def _summary(edge: jax.Array, edge_mask: jax.Array) -> EdgeSummary:
    """Of float32 [E, …, D] over the first axis, padding left out."""
    counts = edge_mask.reshape(-1, *[1] * (edge.ndim - 1))
    count = jnp.sum(edge_mask)
    mean = jnp.sum(edge * counts, axis=0) / jnp.maximum(count, 1)
    variance = jnp.sum((edge - mean) ** 2 * counts, axis=0) / jnp.maximum(count, 1)
    largest = jnp.max(jnp.where(counts > 0, edge, -_NONE), axis=0)
    smallest = jnp.min(jnp.where(counts > 0, edge, _NONE), axis=0)
    return EdgeSummary(mean, variance, jnp.where(count > 0, largest, 0.0), jnp.where(count > 0, smallest, 0.0))


def node_features(inputs: GraphInputs, observation: Observation, placed: jax.Array) -> jax.Array:
    """float32 [B, N, F]: see `FEATURES`; x and y in [-1, 1], 0 where nobody knows them yet.

    Args:
        inputs: the designs' constants.
        observation: of B samples.
        placed: int32 [B], macros placed.
    """
    design = jnp.asarray(observation.design)
    position = 2 * jnp.stack([jnp.asarray(observation.x), jnp.asarray(observation.y)], axis=2) - 1
    done = jnp.arange(position.shape[1])[None] < placed[:, None]
    known = jnp.concatenate([position, jnp.ones_like(position[..., :1])], axis=2) * done[:, :, None]
    nodes = inputs.nodes[design]
    stands = jnp.concatenate([nodes[..., 9:11], nodes[..., 8:9]], axis=2)
    # Padding of the order points to node 0 and adds zeros.
    positions = jax.vmap(lambda base, order, values: base.at[order].add(values))(stands, inputs.order[design], known)
    return jnp.concatenate([nodes[..., :5], positions], axis=2)
