"""Advantages and returns under each setting, against hand-computed numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from placement.config import ConfigError, EnvConfig, PPOConfig
from placement.engine.observation import MAPS
from placement.engine.pool import make_pool
from placement.episode import Episode, signature
from placement.ppo.advantage import RewardStatistics
from placement.ppo.targets import shaped, targets, wire_shares
from tests.support.designs import random_design, square_canvas

STATISTICS = RewardStatistics(np.array([-1.0], np.float32), np.array([0.5], np.float32), np.array([3], np.int32))
PLAIN = PPOConfig(advantage_normalisation="none")


def _batch(rewards: list[float], dead: list[bool], *, values: float = 0.25) -> Episode:
    """Episodes of two steps each, in arrays of three."""
    count = len(rewards)
    batch = Episode(*(np.repeat(value[None], count, axis=0) for value in signature(3)))
    inside = np.array([True, True, False])
    return batch._replace(
        length=np.full(count, 2, np.int32),
        values=np.where(inside, values, 0).astype(np.float32).repeat(count).reshape(3, count).T.copy(),
        dead_end=np.array(dead),
        reward=np.array(rewards, np.float32),
    )


def test_rewards_are_scaled_and_the_prediction_is_taken_off() -> None:
    found = targets(PLAIN, STATISTICS, _batch([-0.5, -1.5], [False, False]))
    np.testing.assert_allclose(found.returns, [[1, 1, 0], [-1, -1, 0]])
    np.testing.assert_allclose(found.advantages, [[0.75, 0.75, 0], [-1.25, -1.25, 0]])


def test_without_baseline_and_scaling_the_advantage_is_the_reward() -> None:
    config = dataclasses.replace(PLAIN, reward_normalisation="none", baseline="none")
    found = targets(config, STATISTICS, _batch([-0.5, -1.5], [False, False]))
    np.testing.assert_allclose(found.advantages, [[-0.5, -0.5, 0], [-1.5, -1.5, 0]])
    np.testing.assert_allclose(found.returns, found.advantages)


def test_dead_ends_teach_unless_they_are_left_out() -> None:
    batch = _batch([-0.5, -4.0], [False, True])
    assert targets(PLAIN, STATISTICS, batch).lengths.tolist() == [2, 2]
    found = targets(dataclasses.replace(PLAIN, learn_dead_ends=False), STATISTICS, batch)
    assert found.lengths.tolist() == [2, 0]
    assert not found.advantages[1].any()


def test_advantages_are_normalised_over_each_design_by_default() -> None:
    found = targets(PPOConfig(), STATISTICS, _batch([-0.5, -1.5], [False, False]))
    np.testing.assert_allclose(found.advantages, [[1, 1, 0], [-1, -1, 0]], atol=1e-6)


def test_shaping_moves_reward_between_steps_and_keeps_its_sum() -> None:
    rewards = np.array([[0, 0, -3.0], [0, 2.0, 0]], np.float32)
    falls = np.array([[0.5, 0.25, 1.0], [1.0, 0.5, 9.0]], np.float32)
    result = shaped(rewards, falls, np.array([3, 2]))
    np.testing.assert_allclose(result, [[-0.5, -0.25, -3 - 1 + 1.75], [-1.0, 2 - 0.5 + 1.5, 0]])
    np.testing.assert_allclose(result.sum(axis=1), rewards.sum(axis=1))


def test_shaping_is_in_units_of_the_scaled_reward() -> None:
    falls = np.array([[0.1, 0.1, 0.0]], np.float32)
    config = dataclasses.replace(PLAIN, shaping=2.0, gae_lambda=0.0, baseline="none")
    found = targets(config, STATISTICS, _batch([-0.5], [False]), falls)
    # one step: Φ falls by 0.1 · 2 / 0.5; the end gives both falls back
    np.testing.assert_allclose(found.advantages, [[-0.4, 1 - 0.4 + 0.8, 0]], rtol=1e-6)


def test_wire_mask_times_shares_adds_up_to_the_wirelength_cost() -> None:
    """Without soft macros, episodes differ in the steps' added wirelength by as much as in the cost of the whole."""
    design = random_design(3, hard=5, soft=0, ports=4, nets=12, canvas=square_canvas(8, 6))
    pool = make_pool(design, 6, config=EnvConfig(soft_placer="none"))
    shares = wire_shares([design], pool.spec.steps)
    generator = np.random.default_rng(0)
    (observation, _), added = pool.reset(), np.zeros(6)
    for step in range(pool.spec.steps):
        legal = observation["mask"].reshape(6, -1)
        actions = (generator.random(legal.shape) * legal).argmax(axis=1).astype(np.int32)
        wire = observation["maps"][:, MAPS.index("wire_mask")].reshape(6, -1)
        added += wire[np.arange(6), actions] * shares[0, step]
        observation, _, _, _, info = pool.step(actions)
    placed = ~info["dead_end"]
    cost = info["costs"][placed, 1]
    assert len(cost) >= 3 and np.ptp(cost) > 0.01
    np.testing.assert_allclose(added[placed] - added[placed][0], cost - cost[0], atol=1e-5)


@pytest.mark.parametrize("name", ["advantage_normalisation", "reward_normalisation", "baseline"])
def test_unknown_choices_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"ppo.{name}='mean'"):
        PPOConfig(**{name: "mean"})
