"""Which episodes are kept to be imitated, and how strongly."""

from __future__ import annotations

import numpy as np

from placement.episode import Episode, signature
from placement.ppo.advantage import REWARD_LIMIT, RewardStatistics
from placement.ppo.elites import Elites, drawn_elites, no_elites, updated_elites


def _batch(rewards: list[float], *, design: int = 0, dead: int | None = None) -> Episode:
    """Episodes of two steps; the actions tell their reward."""
    count = len(rewards)
    batch = Episode(*(np.repeat(value[None], count, axis=0) for value in signature(2)))
    return batch._replace(
        design=np.full(count, design, np.int32),
        length=np.full(count, 2, np.int32),
        dead_end=np.arange(count) == (-1 if dead is None else dead),
        actions=np.stack([np.array([round(-10 * reward)] * 2, np.int32) for reward in rewards]),
        reward=np.array(rewards, np.float32),
    )


def _rewards(elites: Elites, design: int = 0) -> list[float]:
    return [round(float(reward), 3) for reward in elites.reward[design] if np.isfinite(reward)]


def test_the_cheapest_are_kept_once_each_by_design() -> None:
    elites = updated_elites(no_elites(2, 3, 2), _batch([-0.9, -0.5, -0.5]))
    assert _rewards(elites) == [-0.5, -0.9]
    elites = updated_elites(elites, _batch([-0.7, -0.8, -0.1], dead=2))
    assert _rewards(elites) == [-0.5, -0.7, -0.8]
    assert elites.actions[0, 1].tolist() == [7, 7]
    elites = updated_elites(elites, _batch([-2.0], design=1))
    assert (_rewards(elites), _rewards(elites, 1)) == ([-0.5, -0.7, -0.8], [-2.0])


def test_draws_say_how_much_better_than_the_mean() -> None:
    statistics = RewardStatistics(np.array([-0.7], np.float32), np.array([0.1], np.float32), np.array([1], np.int32))
    elites = updated_elites(no_elites(1, 4, 2), _batch([-0.5, -0.9, 0.9]))
    episodes, better = drawn_elites(elites, statistics, 3, np.random.default_rng(0))
    found = {round(float(episode.reward), 3): float(value) for episode, value in zip(episodes, better, strict=True)}
    assert found[-0.9] == 0
    assert round(found[-0.5], 4) == 2
    assert found[0.9] == REWARD_LIMIT
    assert len(drawn_elites(elites, statistics, 8, np.random.default_rng(0))[0]) == 8


def test_none_kept_none_drawn() -> None:
    statistics = RewardStatistics(np.zeros(1, np.float32), np.ones(1, np.float32), np.zeros(1, np.int32))
    episodes, better = drawn_elites(no_elites(1, 4, 2), statistics, 3, np.random.default_rng(0))
    assert (episodes, len(better)) == ([], 0)
