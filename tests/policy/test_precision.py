"""bfloat16 for the products of every cell: close to float32, and float32 where required."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from placement.config import EnvConfig, PolicyConfig, PPOConfig
from placement.policy.agent import Agent, Params
from placement.policy.features import product_dtype
from placement.ppo.learner import Learner
from tests.support.designs import four_macros, random_design, square_canvas
from tests.support.episodes import played_episodes
from tests.support.jaxprs import equations
from tests.support.observations import random_observation

DESIGNS = [four_macros(), random_design(1, hard=9, soft=5, ports=4, nets=30, canvas=square_canvas(9, 7))]
CONFIGS = [
    PolicyConfig(node_width=8, rounds=1, grid_width=8, dtype="float32"),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_bfloat16_is_close_to_float32(config: PolicyConfig) -> None:
    seen, noise = random_observation(DESIGNS, 0, 8), np.random.default_rng(1)
    results, params = [], None
    for dtype in ("float32", "bfloat16"):
        network = Agent(dataclasses.replace(config, dtype=dtype), DESIGNS).network
        shapes = jax.eval_shape(network.init, 0)
        assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(shapes))
        if params is None:
            params = jax.tree.map(lambda leaf: (0.2 * noise.standard_normal(leaf.shape)).astype(np.float32), shapes)
        decide = jax.jit(
            lambda params, seen, of=network: of.decide(params, of.embed(params, of.inputs), of.inputs, seen)
        )
        logits = decide(params, seen)
        assert logits.dtype == jnp.float32
        results.append(np.asarray(logits))
    logits, rounded = results
    legal = seen.mask != 0
    np.testing.assert_array_equal(rounded[~legal], logits[~legal])
    assert not np.array_equal(rounded, logits)
    spread = np.ptp(logits[legal])
    assert np.abs(rounded - logits)[legal].max() < 0.02 * spread


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_a_training_step_in_bfloat16_keeps_float32_parameters(config: PolicyConfig) -> None:
    env, config = EnvConfig(soft_placer="none"), dataclasses.replace(config, dtype="bfloat16")
    learner = Learner(config, PPOConfig(minibatch_size=32), env, DESIGNS, seed=0)
    before = learner.parameters()
    metrics = learner.update(played_episodes(DESIGNS, 8, 0, env=env), iteration=0)
    assert metrics["skipped_steps"] == 0
    assert metrics["gradient_norm"] > 0
    after = learner.parameters()
    assert all(leaf.dtype == np.float32 and np.isfinite(leaf).all() for leaf in jax.tree.leaves(after))
    assert any((one != other).any() for one, other in zip(*map(jax.tree.leaves, (before, after)), strict=True))


def test_auto_is_bfloat16_on_accelerators_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for backend, expected in (("cpu", jnp.float32), ("gpu", jnp.bfloat16), ("tpu", jnp.bfloat16)):
        monkeypatch.setattr(jax, "default_backend", lambda backend=backend: backend)
        assert product_dtype(PolicyConfig()) == expected
        assert product_dtype(PolicyConfig(dtype="float32")) == jnp.float32


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_products_of_float32_have_full_precision(
    config: PolicyConfig, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Accelerators use fewer digits by default: forward and backward pass."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    network = Agent(dataclasses.replace(config, dtype=dtype), DESIGNS).network
    seen, params = random_observation(DESIGNS, 0, 8), network.init(0)

    def loss(params: Params) -> jax.Array:
        logits = network.decide(params, network.embed(params, network.inputs), network.inputs, seen)
        return jnp.sum(jax.nn.log_softmax(logits)[:, 0, 0])

    forward = list(_products(jax.make_jaxpr(loss)(params).jaxpr))
    rounded = [line for line in forward if all(operand.aval.dtype == jnp.bfloat16 for operand in line.invars)]
    assert forward and bool(rounded) == (dtype == "bfloat16")
    for line in forward:
        if line not in rounded:
            assert line.params["precision"] == (jax.lax.Precision.HIGHEST,) * 2, line
    if dtype == "float32":
        backward = list(_products(jax.make_jaxpr(jax.grad(loss))(params).jaxpr))
        assert all(line.params["precision"] == (jax.lax.Precision.HIGHEST,) * 2 for line in backward)


def _products(jaxpr: Any) -> Iterator[Any]:
    return (line for line in equations(jaxpr) if line.primitive.name == "dot_general")


def test_maps_that_come_as_bfloat16_change_nothing() -> None:
    network = Agent(dataclasses.replace(CONFIGS[0], dtype="bfloat16"), DESIGNS).network
    seen, params = random_observation(DESIGNS, 0, 8), network.init(0)
    assert network.compact_maps
    decide = jax.jit(lambda seen: network.decide(params, network.embed(params, network.inputs), network.inputs, seen))
    compact = seen._replace(maps=seen.maps.astype(jnp.bfloat16))
    for one, other in zip(decide(seen), decide(compact), strict=True):
        np.testing.assert_array_equal(one, other)
