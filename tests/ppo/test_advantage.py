"""Advantages and statistics against hand-computed numbers."""

from __future__ import annotations

import numpy as np
import pytest

from placement.ppo.advantage import (
    REWARD_LIMIT,
    explained_variance,
    generalised_advantages,
    initial_statistics,
    normalised_per_design,
    normalised_rewards,
    updated_statistics,
)

REWARDS = np.array([[0, 0, 3.0], [0, -1.0, 9.0]], np.float32)  # the 9 lies past the second episode's end
VALUES = np.array([[1.0, 2.0, 2.5], [0.5, -0.5, 7.0]], np.float32)
LENGTHS = np.array([3, 2])


def test_monte_carlo_advantages_are_return_less_prediction() -> None:
    advantages, returns = generalised_advantages(REWARDS, VALUES, LENGTHS, decay=1.0)
    np.testing.assert_allclose(advantages, [[2.0, 1.0, 0.5], [-1.5, -0.5, 0.0]])
    np.testing.assert_allclose(returns, [[3, 3, 3], [-1, -1, 0]])


def test_generalised_advantages_by_hand() -> None:
    advantages, returns = generalised_advantages(REWARDS, VALUES, LENGTHS, decay=0.5)
    # Errors: 2 - 1 = 1, 2.5 - 2 = 0.5, 3 - 2.5 = 0.5; and -0.5 - 0.5 = -1, -1 + 0.5 = -0.5.
    np.testing.assert_allclose(advantages, [[1 + 0.5 * 0.75, 0.5 + 0.25, 0.5], [-1.25, -0.5, 0]])
    np.testing.assert_allclose(returns[0], [2.375, 2.75, 3.0])


def test_one_step_advantages_at_decay_zero() -> None:
    advantages, _ = generalised_advantages(REWARDS, VALUES, LENGTHS, decay=0.0)
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
    first = updated_statistics(initial_statistics(3), design, reward, dead_end)
    np.testing.assert_allclose(first.mean, [-0.9, -3.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose(first.deviation, [np.sqrt(0.02), 1e-4, 1.0], rtol=1e-5)
    np.testing.assert_array_equal(first.iterations, [1, 1, 0])
    second = updated_statistics(first, np.array([0, 0, 1]), np.array([-0.7, -0.5, -2.8]), np.zeros(3, bool))
    np.testing.assert_allclose(second.mean[:2], [-0.9 + 0.3 * 2 / 50, -3.0 + 0.2 / 49], rtol=1e-6)
    # About the iteration's own mean, which has risen; a single episode's about the mean so far.
    np.testing.assert_allclose(second.deviation[:2], [np.sqrt(0.02), 0.2 / np.sqrt(2)], rtol=1e-5)
    normalised = normalised_rewards(first, design, reward)
    np.testing.assert_allclose(normalised, [-np.sqrt(0.5), np.sqrt(0.5), 0, -REWARD_LIMIT], atol=1e-5)


def test_rising_rewards_are_told_in_deviations_of_one_iteration() -> None:
    """Rewards rise by half a deviation an iteration: the newest have deviation 1 all the same, and a mean near 0."""
    generator, statistics = np.random.default_rng(0), initial_statistics(1)
    for iteration in range(60):
        reward = (0.005 * iteration + 0.01 * generator.standard_normal(48)).astype(np.float32)
        statistics = updated_statistics(statistics, np.zeros(48, int), reward, np.zeros(48, bool))
    normalised = normalised_rewards(statistics, np.zeros(48, int), reward)
    assert 0.7 < normalised.std() < 1.3
    assert abs(normalised.mean()) < 1.0


def test_explained_variance() -> None:
    returns = np.array([[1.0, 2.0, 3.0]])
    assert explained_variance(returns, returns, np.array([3])) == pytest.approx(1)
    assert explained_variance(np.zeros((1, 3)), returns, np.array([3])) == pytest.approx(0)
    assert explained_variance(np.zeros((1, 3)), np.ones((1, 3)), np.array([3])) == 0
