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
        advantages, returns: float32 [B, T], 0 past the episodes' lengths.
        explained_variance: of what is paid from each step to the end (not the mixed returns), by the episodes' values.
    """

    advantages: np.ndarray
    returns: np.ndarray
    explained_variance: float


def targets(config: PPOConfig, statistics: RewardStatistics, batch: Episode) -> Targets:
    """Advantages and returns as the settings say.

    Args:
        config: the algorithm's settings.
        statistics: of each design's rewards, this iteration's included.
        batch: the episodes stacked, axis B before each field's own.
    """
    final = advantage.normalised_rewards(statistics, batch.design, batch.reward)
    rewards = np.zeros(batch.values.shape, np.float32)
    played = np.flatnonzero(batch.length > 0)
    rewards[played, batch.length[played] - 1] = final[played]
    values = batch.values if config.baseline != "none" else np.zeros_like(batch.values)
    advantages, returns = advantage.generalised_advantages(rewards, values, batch.length, decay=config.gae_lambda)
    _, paid = advantage.generalised_advantages(rewards, values, batch.length, decay=1.0)
    explained = advantage.explained_variance(batch.values, paid, batch.length)
    advantages = advantage.normalised_per_design(advantages, batch.length, batch.design)
    return Targets(advantages, returns, explained)


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
