"""The graph encoder: message passing between the macros of a design.

The graph's nodes are the macros to place. Its edges are the springs between them (`placement.policy.springs`), to which
nets are reduced once soft macros are eliminated. In each round, a macro's message is the mean of its neighbours'
embeddings, weighted by the edges. A layer maps message and embedding to a change of the embedding.

Axis legend: G designs, T macros in placing order (padded), F features of a macro, D width of an embedding.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from placement.policy.inputs import GraphInputs


class GraphEncoder(nnx.Module):
    """A network of `rounds` rounds of message passing, from `features` (F) numbers per macro to `width` (D) numbers."""

    def __init__(self, features: int, width: int, rounds: int, *, rngs: nnx.Rngs) -> None:
        self.input = nnx.Linear(features, width, rngs=rngs)
        self.rounds = rounds
        for index in range(rounds):
            setattr(self, f"round_{index}", nnx.Linear(2 * width, width, rngs=rngs))

    def __call__(self, macros: jax.Array, edges: jax.Array) -> jax.Array:
        """Embeds macros, float32 [G, T, F], by their `edge_weights`, float32 [G, T, T]; returns float32 [G, T, D]."""
        hidden = nnx.relu(self.input(macros))
        for index in range(self.rounds):
            layer: nnx.Linear = getattr(self, f"round_{index}")
            hidden = hidden + nnx.relu(layer(jnp.concatenate([hidden, edges @ hidden], axis=2)))
        return hidden


def edge_weights(inputs: GraphInputs) -> jax.Array:
    """Returns each macro's springs to the others over their sum, float32 [G, T, T]; 0 for a macro without springs."""
    lower = inputs.target_weights[:, 0] * inputs.stiffness[:, 0, :, None]  # springs to previously placed macros
    springs = lower + lower.transpose(0, 2, 1)
    return springs / jnp.maximum(springs.sum(axis=2, keepdims=True), 1e-9)
