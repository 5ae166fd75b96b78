"""Advantages, statistics and losses compared with hand-computed numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from placement.episode import Episode, signature
from placement.ppo.ppo import (
    REWARD_LIMIT,
    Coefficients,
    Samples,
    approximate_kl,
    categorical_entropy,
    clipped_policy_loss,
    entropy_shortfall,
    explained_variance,
    generalised_advantages,
    initial_statistics,
    normalised_per_design,
    normalised_rewards,
    ppo_terms,
    targets,
    updated_statistics,
)

REWARDS = np.array([[0, 0, 3.0], [0, -1.0, 9.0]], np.float32)  # the 9 is past the end of the second episode
VALUES = np.array([[1.0, 2.0, 2.5], [0.5, -0.5, 7.0]], np.float32)
LENGTHS = np.array([3, 2])
COEFFICIENTS = Coefficients(jnp.float32(0.2), jnp.float32(0.01))


def _ended(design: np.ndarray, reward: np.ndarray, dead_end: np.ndarray) -> Episode:
    """Returns episodes of which only the end matters."""
    return signature(0)._replace(design=design, reward=reward, dead_end=dead_end)


def _batch(lengths: list[int]) -> Episode:
    """Returns episodes of one design in arrays of three steps."""
    batch = Episode(*(np.repeat(value[None], len(lengths), axis=0) for value in signature(3)))
    return batch._replace(length=np.array(lengths, np.int32))


def test_targets_are_normalised_advantages_and_what_the_baseline_explains() -> None:
    values = np.array([[0.25, 0.5, 0], [0.25, -0.5, 0]], np.float32)
    found = targets(_batch([2, 2]), np.array([1.0, -1.0], np.float32), values, decay=1.0)
    raw = np.array([0.75, 0.5, -1.25, -0.5])
    np.testing.assert_allclose(found.advantages[:, :2].ravel(), (raw - raw.mean()) / raw.std(), rtol=1e-6)
    assert not found.advantages[:, 2].any()
    assert found.explained_variance == pytest.approx(1 - raw.var() / 1)


def test_no_episode_is_better_than_another_if_all_of_a_design_have_the_same_reward() -> None:
    values = np.array([[0.25, 0.75, 0]] * 5, np.float32)
    batch = _batch([2] * 5)._replace(design=np.array([0, 0, 1, 1, 2], np.int32))
    found = targets(batch, np.array([1, 1, 1, -1, 1], np.float32), values, decay=0.5)
    assert [bool(one.any()) for one in found.advantages] == [False, False, True, True, True], "design 2 has one episode"


def test_monte_carlo_advantages_are_return_less_prediction() -> None:
    advantages = generalised_advantages(REWARDS, VALUES, LENGTHS, decay=1.0)
    np.testing.assert_allclose(advantages, [[2.0, 1.0, 0.5], [-1.5, -0.5, 0.0]])


def test_generalised_advantages_by_hand() -> None:
    advantages = generalised_advantages(REWARDS, VALUES, LENGTHS, decay=0.5)
    # Errors: 2 - 1 = 1, 2.5 - 2 = 0.5, 3 - 2.5 = 0.5; and -0.5 - 0.5 = -1, -1 + 0.5 = -0.5.
    np.testing.assert_allclose(advantages, [[1 + 0.5 * 0.75, 0.5 + 0.25, 0.5], [-1.25, -0.5, 0]])


def test_one_step_advantages_at_decay_zero() -> None:
    advantages = generalised_advantages(REWARDS, VALUES, LENGTHS, decay=0.0)
    np.testing.assert_allclose(advantages, [[1, 0.5, 0.5], [-1, -0.5, 0]])


def test_normalisation_is_per_design_and_ignores_padding() -> None:
    advantages = np.array([[1.0, 3.0, 99.0], [10.0, 30.0, 20.0]], np.float32)
    result = normalised_per_design(advantages, np.array([2, 3]), np.array([0, 1]))
    np.testing.assert_allclose(result[0], [-1, 1, 0])
    np.testing.assert_allclose(result[1], np.array([-10, 10, 0]) / np.std([10, 30, 20]), rtol=1e-6)


def test_equal_advantages_become_zero() -> None:
    result = normalised_per_design(np.full((2, 2), 0.3, np.float32), np.array([2, 2]), np.array([0, 0]))
    np.testing.assert_allclose(result, 0, atol=1e-6)


def test_statistics_follow_each_design_and_leave_dead_ends_out() -> None:
    design = np.array([0, 0, 1, 0])
    reward = np.array([-1.0, -0.8, -3.0, -4.0], np.float32)
    dead_end = np.array([False, False, False, True])
    first = updated_statistics(initial_statistics(3), _ended(design, reward, dead_end))
    np.testing.assert_allclose(first.mean, [-0.9, -3.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose(first.deviation, [np.sqrt(0.02), 1e-4, 1.0], rtol=1e-5)
    np.testing.assert_array_equal(first.iterations, [1, 1, 0])
    second = updated_statistics(first, _ended(np.array([0, 0, 1]), np.array([-0.7, -0.5, -2.8]), np.zeros(3, bool)))
    np.testing.assert_allclose(second.mean[:2], [-0.9 + 0.3 * 2 / 50, -3.0 + 0.2 / 49], rtol=1e-6)
    # Relative to the iteration's own mean, which has risen; a single episode's is relative to the mean so far.
    np.testing.assert_allclose(second.deviation[:2], [np.sqrt(0.02), 0.2 / np.sqrt(2)], rtol=1e-5)
    normalised = normalised_rewards(first, _ended(design, reward, dead_end))
    np.testing.assert_allclose(normalised, [-np.sqrt(0.5), np.sqrt(0.5), 0, -REWARD_LIMIT], atol=1e-5)


def test_rising_rewards_are_scaled_by_the_deviation_of_one_iteration() -> None:
    """Rewards rise by half a deviation per iteration: the newest still have deviation 1, and a mean near 0."""
    generator, statistics = np.random.default_rng(0), initial_statistics(1)
    for iteration in range(60):
        reward = (0.005 * iteration + 0.01 * generator.standard_normal(48)).astype(np.float32)
        batch = _ended(np.zeros(48, int), reward, np.zeros(48, bool))
        statistics = updated_statistics(statistics, batch)
    normalised = normalised_rewards(statistics, batch)
    assert 0.7 < normalised.std() < 1.3
    assert abs(normalised.mean()) < 1.0


def test_explained_variance() -> None:
    returns = np.array([[1.0, 2.0, 3.0]])
    assert explained_variance(returns, returns, np.array([3])) == pytest.approx(1)
    assert explained_variance(np.zeros((1, 3)), returns, np.array([3])) == pytest.approx(0)
    assert explained_variance(np.zeros((1, 3)), np.ones((1, 3)), np.array([3])) == 0


def test_policy_loss_by_hand() -> None:
    ratios = jnp.array([1.0, 1.5, 1.5, 0.5, 0.5])
    advantages = jnp.array([2.0, 2.0, -2.0, 2.0, -2.0])
    loss = clipped_policy_loss(jnp.log(ratios), advantages, 0.2)
    np.testing.assert_allclose(loss, [-2.0, -2.4, 3.0, -1.0, 1.6], rtol=1e-6)


def test_no_gradient_where_the_clip_binds() -> None:
    slope = jax.vmap(jax.grad(lambda log_ratio, advantage: clipped_policy_loss(log_ratio, advantage, 0.2)))
    gradient = slope(jnp.log(jnp.array([1.5, 0.5, 1.5, 0.5])), jnp.array([1.0, -1.0, -1.0, 1.0]))
    np.testing.assert_allclose(gradient, [0, 0, 1.5, -0.5], rtol=1e-6)


def test_the_entropy_shortfall_excludes_steps_past_the_end() -> None:
    log_probabilities = -np.array([[0.5, 1.5, 90.0], [1.0, 90.0, 90.0]], np.float32)  # 90: past the end
    batch = _batch([2, 1])._replace(log_probabilities=log_probabilities)
    assert entropy_shortfall(batch, 1.25) == pytest.approx(0.25)
    assert entropy_shortfall(batch, 0.75) == 0


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
        weights=jnp.array([1.0, 1.0, 0.0]),
    )
    terms = ppo_terms(logits, samples, COEFFICIENTS)
    policy = -0.5 * 1.2 + 1.0  # ratio 2 clipped to 1.2, with weight one half; ratio 1
    entropy = 1.5 * np.log(2) - (0.4 * np.log(0.2) + 0.6 * np.log(0.6))
    np.testing.assert_allclose(terms.policy_loss, policy, rtol=1e-6)
    np.testing.assert_allclose(terms.entropy, entropy, rtol=1e-6)
    np.testing.assert_allclose(terms.approx_kl, 1 - np.log(2), rtol=1e-5)
    np.testing.assert_allclose(terms.clip_fraction, 1.0)
    np.testing.assert_allclose(terms.loss, policy - 0.01 * entropy, rtol=1e-5)
