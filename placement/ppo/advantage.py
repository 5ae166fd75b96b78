"""Returns and advantages of whole episodes, and rewards made comparable between designs. NumPy, on the host.

Axis legend: B episodes, T steps (padded), G designs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class RewardStatistics(NamedTuple):
    """Running statistics of each design's episode rewards; part of the learner's state.

    Attributes:
        mean: float32 [G], of the newest episodes.
        deviation: float32 [G], of the rewards about the mean of their own iteration.
        iterations: int32 [G], iterations that brought episodes of the design.
    """

    mean: np.ndarray
    deviation: np.ndarray
    iterations: np.ndarray


_MEAN_MEMORY, _DEVIATION_MEMORY = 48, 192
"""Episodes of a design that the running mean and deviation look back over. They must not lag: in a few iterations the
rewards rise by a deviation, and the deviation itself shrinks to a half."""
_LEAST_DEVIATION = 1e-4
"""Costs that differ by less than this are equal for every purpose."""
REWARD_LIMIT = 5.0
"""Normalised rewards are clipped to ± this, so that a dead end does not outweigh all other episodes."""


def initial_statistics(designs: int) -> RewardStatistics:
    """Statistics before any episode."""
    return RewardStatistics(np.zeros(designs, np.float32), np.ones(designs, np.float32), np.zeros(designs, np.int32))


def updated_statistics(
    statistics: RewardStatistics, design: np.ndarray, reward: np.ndarray, dead_end: np.ndarray
) -> RewardStatistics:
    """The statistics with one iteration's episodes added. Dead ends do not count: their penalty is no cost.

    The deviation is that within an iteration, as the policy that played it is one: the rise of the rewards from
    iteration to iteration is no part of it. Of a single episode its distance to the mean so far is taken.

    Args:
        statistics: so far.
        design: int [B].
        reward: float [B].
        dead_end: bool [B].
    """
    mean, deviation, iterations = (array.copy() for array in statistics)
    for which in np.unique(design[~dead_end]):
        rewards = reward[(design == which) & ~dead_end].astype(np.float64)
        iterations[which] += 1
        count = len(rewards)
        square = rewards.var(ddof=1) if count > 1 else (rewards[0] - mean[which]) ** 2 * (iterations[which] > 1)
        rate = max(1.0 / iterations[which], count / (count + _DEVIATION_MEMORY))
        square = (1 - rate) * deviation[which] ** 2 * (iterations[which] > 1) + rate * square
        rate = 1.0 if iterations[which] == 1 else count / (count + _MEAN_MEMORY)
        mean[which] = (1 - rate) * mean[which] + rate * rewards.mean()
        deviation[which] = max(np.sqrt(square), _LEAST_DEVIATION)
    return RewardStatistics(mean, deviation, iterations)


def normalised_rewards(statistics: RewardStatistics, design: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """float32 [B]: (reward - mean) / deviation of the episode's design, clipped to ± `REWARD_LIMIT`."""
    scaled = (reward - statistics.mean[design]) / statistics.deviation[design]
    return np.clip(scaled, -REWARD_LIMIT, REWARD_LIMIT).astype(np.float32)


def generalised_advantages(
    rewards: np.ndarray, values: np.ndarray, lengths: np.ndarray, *, decay: float
) -> tuple[np.ndarray, np.ndarray]:
    """Generalised advantage estimation at discount 1 (Schulman et al. 2016, equation 16).

    Args:
        rewards: float32 [B, T], paid after each step.
        values: float32 [B, T], predicted before each step.
        lengths: int [B], steps of each episode, after which nothing more is paid.
        decay: λ; 1 gives the Monte-Carlo return less the prediction.

    Returns:
        (advantages, returns), float32 [B, T]; the returns are the targets of the value head, advantages + values.
        0 past the episode's length.
    """
    batch, steps = rewards.shape
    inside = np.arange(steps)[None] < np.asarray(lengths)[:, None]
    rewards, values = np.where(inside, rewards, 0), np.where(inside, values, 0)
    advantages = np.zeros((batch, steps), np.float64)
    following, next_value = np.zeros(batch), np.zeros(batch)
    for step in reversed(range(steps)):
        error = rewards[:, step] + next_value - values[:, step]
        following = (error + decay * following) * inside[:, step]
        advantages[:, step], next_value = following, values[:, step]
    return advantages.astype(np.float32), np.where(inside, advantages + values, 0).astype(np.float32)


def normalised_per_design(advantages: np.ndarray, lengths: np.ndarray, design: np.ndarray) -> np.ndarray:
    """float32 [B, T]: mean 0 and deviation 1 over the steps of each design's episodes; 0 past the lengths."""
    inside = np.arange(advantages.shape[1])[None] < np.asarray(lengths)[:, None]
    result = np.zeros_like(advantages, np.float32)
    for which in np.unique(design):
        mine = inside & (design == which)[:, None]
        if mine.any():
            values = advantages[mine].astype(np.float64)
            result[mine] = (values - values.mean()) / max(values.std(), 1e-6)
    return result


def explained_variance(values: np.ndarray, returns: np.ndarray, lengths: np.ndarray) -> float:
    """1 - Var(returns - values) / Var(returns) over all steps; 0 where the returns do not vary."""
    inside = np.arange(values.shape[1])[None] < np.asarray(lengths)[:, None]
    variance = returns[inside].var() if inside.any() else 0.0
    return float(1 - (returns - values)[inside].var() / variance) if variance > 1e-12 else 0.0
