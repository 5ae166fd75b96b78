"""The losses against hand-computed numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from placement.ppo.loss import (
    Coefficients,
    Samples,
    approximate_kl,
    categorical_entropy,
    clipped_policy_loss,
    ppo_terms,
)

COEFFICIENTS = Coefficients(jnp.float32(0.2), jnp.float32(0.5), jnp.float32(0.01))


def test_policy_loss_by_hand() -> None:
    ratios = jnp.array([1.0, 1.5, 1.5, 0.5, 0.5])
    advantages = jnp.array([2.0, 2.0, -2.0, 2.0, -2.0])
    loss = clipped_policy_loss(jnp.log(ratios), advantages, 0.2)
    np.testing.assert_allclose(loss, [-2.0, -2.4, 3.0, -1.0, 1.6], rtol=1e-6)


def test_no_gradient_where_the_clip_binds() -> None:
    slope = jax.vmap(jax.grad(lambda log_ratio, advantage: clipped_policy_loss(log_ratio, advantage, 0.2)))
    gradient = slope(jnp.log(jnp.array([1.5, 0.5, 1.5, 0.5])), jnp.array([1.0, -1.0, -1.0, 1.0]))
    np.testing.assert_allclose(gradient, [0, 0, 1.5, -0.5], rtol=1e-6)


def test_entropy_of_uniform_and_of_masked_actions() -> None:
    logits = jnp.array([[0.0, 0.0, 0.0, 0.0], [0.0, -1e9, 0.0, -1e9], [5.0, -1e9, -1e9, -1e9]])
    entropy = categorical_entropy(jax.nn.log_softmax(logits))
    np.testing.assert_allclose(entropy, [np.log(4), np.log(2), 0.0], atol=1e-6)
    gradient = jax.grad(lambda logits: categorical_entropy(jax.nn.log_softmax(logits)).sum())(logits)
    assert np.isfinite(gradient).all()


def test_approximate_kl_is_zero_at_one_and_positive_elsewhere() -> None:
    np.testing.assert_allclose(approximate_kl(jnp.log(jnp.array([1.0, 2.0, 0.5]))), [0, 1 - np.log(2), np.log(2) - 0.5])


def test_terms_are_weighted_sums_by_hand() -> None:
    logits = jnp.log(jnp.array([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6], [1.0, 1.0, 1.0]]))
    samples = Samples(
        actions=jnp.array([0, 2, 1]),
        log_probabilities=jnp.log(jnp.array([0.25, 0.6, 0.1])),
        off_policy=jnp.array([0.5, 1.0, 1.0]),
        advantages=jnp.array([1.0, -1.0, 100.0]),
        returns=jnp.array([1.0, 0.0, 50.0]),
        imitation=jnp.zeros(3),
        weights=jnp.array([1.0, 1.0, 0.0]),
    )
    terms = ppo_terms(logits, jnp.array([0.0, 2.0, 0.0]), samples, COEFFICIENTS)
    policy = -0.5 * 1.2 + 1.0  # ratio 2 clipped to 1.2, weighed by a half; ratio 1
    value = 0.5 * 1 + 0.5 * 4
    entropy = 1.5 * np.log(2) - (0.4 * np.log(0.2) + 0.6 * np.log(0.6))
    np.testing.assert_allclose(terms.policy_loss, policy, rtol=1e-6)
    np.testing.assert_allclose(terms.value_loss, value, rtol=1e-6)
    np.testing.assert_allclose(terms.entropy, entropy, rtol=1e-6)
    np.testing.assert_allclose(terms.approx_kl, 1 - np.log(2), rtol=1e-5)
    np.testing.assert_allclose(terms.clip_fraction, 1.0)
    np.testing.assert_allclose(terms.loss, policy + 0.5 * value - 0.01 * entropy, rtol=1e-5)
