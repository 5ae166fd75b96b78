"""The targets of an iteration's samples: advantages for the policy, returns for the value head. NumPy, on the host.

Axis legend: B episodes, T steps (padded), G designs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.config import PPOConfig
from placement.episode import Episode
from placement.netlist.design import Design
from placement.netlist.graph import net_members
from placement.ppo import advantage
from placement.ppo.advantage import RewardStatistics


class Targets(NamedTuple):
    """Of an iteration.

    Attributes:
        advantages, returns: float32 [B, T], 0 past `lengths`.
        lengths: int [B], steps that are learned from; 0 where an episode is left out.
        explained_variance: of what is paid from each step to the end (not the mixed returns), by the episodes' values.
    """

    advantages: np.ndarray
    returns: np.ndarray
    lengths: np.ndarray
    explained_variance: float


def targets(
    config: PPOConfig, statistics: RewardStatistics, batch: Episode, potential_steps: np.ndarray | None = None
) -> Targets:
    """Advantages and returns as the settings say.

    Args:
        config: the algorithm's settings.
        statistics: of each design's rewards, this iteration's included.
        batch: the episodes stacked, axis B before each field's own.
        potential_steps: float32 [B, T], by how much each step lowered the potential, in units of the reward; None: no
            shaping. See `shaped`.
    """
    lengths = counted_lengths(config, batch)
    scale = np.ones(len(lengths), np.float32)
    final = batch.reward.astype(np.float32)
    if config.reward_normalisation == "design":
        final = advantage.normalised_rewards(statistics, batch.design, batch.reward)
        scale = 1 / statistics.deviation[batch.design]
    rewards = np.zeros(batch.values.shape, np.float32)
    played = np.flatnonzero(lengths > 0)
    rewards[played, lengths[played] - 1] = final[played]
    if potential_steps is not None:
        lowered = config.shaping * scale[:, None] * potential_steps
        rewards = shaped(rewards, lowered, lengths)
        if config.baseline == "history":  # it was predicted without shaping; what has been paid so far is known
            batch = batch._replace(values=batch.values + np.cumsum(lowered, axis=1) - lowered)
    values = batch.values if config.baseline != "none" else np.zeros_like(batch.values)
    advantages, returns = advantage.generalised_advantages(rewards, values, lengths, decay=config.gae_lambda)
    _, paid = advantage.generalised_advantages(rewards, values, lengths, decay=1.0)
    explained = advantage.explained_variance(batch.values, paid, lengths)
    if config.advantage_normalisation == "design":
        advantages = advantage.normalised_per_design(advantages, lengths, batch.design)
    return Targets(advantages, returns, lengths, explained)


def counted_lengths(config: PPOConfig, batch: Episode) -> np.ndarray:
    """Steps of each episode that are learned from: int [B]."""
    return np.where(batch.dead_end & (not config.learn_dead_ends), 0, batch.length)


def shaped(rewards: np.ndarray, lowered: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Rewards with Φ(next state) - Φ(state) added to each step (Ng, Harada, Russell 1999), Φ being 0 at both ends.

    The sum over an episode, and so the order of policies by it, stays as it was.

    Args:
        rewards: float32 [B, T].
        lowered: float32 [B, T], Φ(state) - Φ(next state) before the end is taken as 0.
        lengths: int [B].
    """
    inside = np.arange(rewards.shape[1])[None] < np.asarray(lengths)[:, None]
    lowered = np.where(inside, lowered, 0)
    result = rewards - lowered
    played = np.flatnonzero(np.asarray(lengths) > 0)
    result[played, np.asarray(lengths)[played] - 1] += lowered.sum(axis=1)[played]
    return result.astype(np.float32)


def wire_shares(designs: Sequence[Design], steps: int) -> np.ndarray:
    """float32 [G, T]: summed weight of each macro's nets over that of all nets, in placing order.

    What the wire mask shows of a cell, times this, is the wirelength cost that placing the macro there adds.
    """
    result = np.zeros((len(designs), steps), np.float32)
    for index, design in enumerate(designs):
        net, node = net_members(design)
        weight = np.bincount(node, design.netlist.net_weight[net], design.netlist.num_nodes)
        order = design.placing_order
        result[index, : len(order)] = weight[order] / max(float(design.netlist.net_weight.sum()), 1e-30)
    return result
