"""The graph encoder against a slow one, and its edges against the springs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from placement.policy.graph_encoder import GraphEncoder, edge_weights
from placement.policy.inputs import graph_inputs, stack
from tests.support.designs import Net, Node, NodeKind, build, random_design, square_canvas


def test_edges_are_the_springs_of_the_nets_between_macros() -> None:
    """Macros a, b and c, largest first; a net of weight 3 from a to b, and of 1 from a to c."""
    nodes = [Node(name, NodeKind.HARD, 25.0, 25.0, side, 1.0) for name, side in (("a", 3.0), ("b", 2.0), ("c", 1.0))]
    nets = [Net([("a", 0, 0), ("b", 0, 0)], 3.0), Net([("a", 0, 0), ("c", 0, 0)], 1.0)]
    inputs = stack([graph_inputs(build("three", square_canvas(), nodes, nets))], macros=4)
    expected = [[0, 0.75, 0.25, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(edge_weights(inputs)[0], expected, atol=1e-6)


def test_a_soft_macro_joins_what_it_is_joined_to() -> None:
    """Two equal springs in a row are one of half the strength: the macros b and c are as near to a."""
    nodes = [Node(name, NodeKind.HARD, 25.0, 25.0, side, 1.0) for name, side in (("a", 3.0), ("b", 2.0), ("c", 1.0))]
    nodes.append(Node("s", NodeKind.SOFT, 25.0, 25.0, 1.0, 1.0))
    nets = [
        Net([(one, 0, 0), (other, 0, 0)], weight)
        for one, other, weight in (("a", "s", 2.0), ("s", "b", 2.0), ("a", "c", 1.0))
    ]
    inputs = stack([graph_inputs(build("soft", square_canvas(), nodes, nets))])
    np.testing.assert_allclose(edge_weights(inputs)[0, 0], [0, 0.5, 0.5], atol=1e-3)


def test_each_round_adds_what_a_layer_makes_of_a_macro_and_its_neighbours() -> None:
    encoder = GraphEncoder(5, 4, 2, rngs=nnx.Rngs(0))
    inputs = stack([graph_inputs(random_design(seed, hard=hard)) for seed, hard in ((1, 6), (2, 4))])
    macros = np.random.default_rng(0).normal(size=(*inputs.size.shape[:2], 5)).astype(np.float32)
    found, edges = encoder(jnp.asarray(macros), edge_weights(inputs)), np.asarray(edge_weights(inputs))

    def layer(linear: nnx.Linear, given: np.ndarray) -> np.ndarray:
        return np.maximum(given @ np.asarray(linear.kernel[...]) + np.asarray(linear.bias[...]), 0)

    for design in range(2):
        hidden = [layer(encoder.input, one) for one in macros[design]]
        for number in range(2):
            means = [sum(edges[design, i, j] * hidden[j] for j in range(len(hidden))) for i in range(len(hidden))]
            made = [np.concatenate(pair) for pair in zip(hidden, means, strict=True)]
            hidden = [
                own + layer(getattr(encoder, f"round_{number}"), one) for own, one in zip(hidden, made, strict=True)
            ]
        np.testing.assert_allclose(found[design], hidden, rtol=1e-4, atol=1e-5)


def test_news_travels_one_edge_a_round() -> None:
    """A chain of four macros: with two rounds, the last two see nothing of the first."""
    encoder = GraphEncoder(3, 8, 2, rngs=nnx.Rngs(0))
    edges = jnp.asarray(np.eye(4, k=1) + np.eye(4, k=-1), jnp.float32)[None]

    def last(macros: jax.Array) -> jax.Array:
        return encoder(macros, edges)[0].sum(axis=1)

    reached = np.abs(np.asarray(jax.jacobian(last)(jnp.ones((1, 4, 3)))))[:, 0].sum(axis=2)
    assert (reached[:3, 0] > 0).all() and reached[3, 0] == 0
