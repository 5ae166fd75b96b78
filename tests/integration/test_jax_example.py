"""The one-file PPO over `pool.xla()`: the steps credited with an episode's end, and a compiled program of it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import placement
from tests.support.designs import four_macros

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/jax_ppo.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("jax_ppo", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["jax_ppo"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["jax_ppo"]


def test_each_step_is_credited_with_its_own_episodes_end(example) -> None:
    """Compared with a plain loop over random episodes, which end in the rollout, begin before it or end after it."""
    generator = np.random.default_rng(0)
    terminated = generator.random((12, 5)) < 0.3
    terminated[1:] &= ~terminated[:-1]  # the step after an end only starts the next episode
    ignored = np.vstack([np.zeros((1, 5), bool), terminated[:-1]])
    reward = np.where(terminated, generator.random((12, 5)), 0.0)
    gained, known = example.returns(
        example.Outcomes(jnp.array(ignored), jnp.array(reward), jnp.array(terminated), jnp.array(reward))
    )
    for env in range(5):
        for t in range(12):
            end = next((later for later in range(t, 12) if terminated[later, env]), None)
            assert bool(known[t, env]) == (end is not None and not ignored[t, env])
            if known[t, env]:
                assert gained[t, env] == pytest.approx(reward[end, env])


def test_training_in_one_program(example) -> None:
    with placement.make_pool(four_macros(), 4, num_threads=1) as pool:
        found = example.train(pool, iterations=4, chunk=2)
        assert len(found) == 2 and all(np.isfinite(cost) and rate > 0 for cost, rate in found)
        best = min(placement.cost(pool.designs[0], pool.placement(env)).total for env in range(4))
    assert min(cost for cost, _ in found) >= 0.5 * best
    with placement.make_pool(four_macros(), 4, batch_size=2) as pool, pytest.raises(ValueError, match="all its env"):
        example.train(pool, iterations=1)
