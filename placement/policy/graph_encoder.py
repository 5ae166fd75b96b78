"""The graph encoder: messages between the macros of a design.

The graph's nodes are the macros to place, and its edges the springs between them (`placement.policy.springs`), to which
nets are reduced once soft macros are eliminated. In a round each macro takes the weighted mean of its neighbours'
embeddings, the weights being the edges', and adds what a layer makes of that and of its own embedding.

Axis legend: G designs, T macros in placing order (padded), F features of a macro, D width of an embedding.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from placement.policy.inputs import GraphInputs


class GraphEncoder(nnx.Module):
    """`rounds` rounds of message passing, which embed macros of `features` numbers in `width` numbers."""

    def __init__(self, features: int, width: int, rounds: int, *, rngs: nnx.Rngs) -> None:
        self.input = nnx.Linear(features, width, rngs=rngs)
        self.rounds = rounds
        for index in range(rounds):
            setattr(self, f"round_{index}", nnx.Linear(2 * width, width, rngs=rngs))

    def __call__(self, macros: jax.Array, edges: jax.Array) -> jax.Array:
        """float32 [G, T, F] and the `edge_weights`, float32 [G, T, T] → float32 [G, T, D]."""
        hidden = nnx.relu(self.input(macros))
        for index in range(self.rounds):
            layer: nnx.Linear = getattr(self, f"round_{index}")
            hidden = hidden + nnx.relu(layer(jnp.concatenate([hidden, edges @ hidden], axis=2)))
        return hidden


def edge_weights(inputs: GraphInputs) -> jax.Array:
    """float32 [G, T, T]: each macro's springs to the others over their sum; 0 where it has none."""
    lower = inputs.target_weights[:, 0] * inputs.stiffness[:, 0, :, None]  # to the macros placed before
    springs = lower + lower.transpose(0, 2, 1)
    return springs / jnp.maximum(springs.sum(axis=2, keepdims=True), 1e-9)
