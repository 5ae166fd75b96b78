"""Advantages and returns of whole episodes, against hand-computed numbers."""

from __future__ import annotations

import numpy as np

from placement.config import EnvConfig, PPOConfig
from placement.engine.observation import MAPS
from placement.engine.pool import make_pool
from placement.episode import Episode, signature
from placement.ppo.advantage import RewardStatistics
from placement.ppo.targets import targets, wire_shares
from tests.support.designs import random_design, square_canvas

STATISTICS = RewardStatistics(np.array([-1.0], np.float32), np.array([0.5], np.float32), np.array([3], np.int32))


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


def test_rewards_are_scaled_by_their_design() -> None:
    found = targets(PPOConfig(), STATISTICS, _batch([-0.5, -1.5], [False, False]))
    np.testing.assert_allclose(found.returns, [[1, 1, 0], [-1, -1, 0]])


def test_dead_ends_are_learned_from() -> None:
    found = targets(PPOConfig(), STATISTICS, _batch([-0.5, -4.0], [False, True]))
    np.testing.assert_allclose(found.returns, [[1, 1, 0], [-5, -5, 0]])  # clipped to the reward limit
    assert found.advantages[1, :2].max() < 0 < found.advantages[0, :2].min()


def test_advantages_are_normalised_over_each_design() -> None:
    found = targets(PPOConfig(), STATISTICS, _batch([-0.5, -1.5], [False, False]))
    np.testing.assert_allclose(found.advantages, [[1, 1, 0], [-1, -1, 0]], atol=1e-6)


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
