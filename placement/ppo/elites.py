"""The best episodes seen so far, to be imitated (after Oh et al. 2018, "Self-Imitation Learning").

Axis legend: G designs, K episodes kept of each, T steps (padded).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placement.episode import Episode, signature
from placement.ppo.advantage import REWARD_LIMIT, RewardStatistics


class Elites(NamedTuple):
    """The cheapest episodes of each design, cheapest first, no two alike; part of the learner's state.

    Attributes:
        actions: int32 [G, K, T], -1 past the length.
        length: int32 [G, K], 0 where there is none yet.
        reward: float32 [G, K], -∞ where there is none yet.
    """

    actions: np.ndarray
    length: np.ndarray
    reward: np.ndarray


def no_elites(designs: int, kept: int, steps: int) -> Elites:
    """Before any episode."""
    return Elites(
        actions=np.full((designs, kept, steps), -1, np.int32),
        length=np.zeros((designs, kept), np.int32),
        reward=np.full((designs, kept), -np.inf, np.float32),
    )


def updated_elites(elites: Elites, batch: Episode) -> Elites:
    """The elites with new episodes added (stacked, axis B before each field's own); dead ends are left out."""
    updated = Elites(*(array.copy() for array in elites))
    for which in np.unique(batch.design):
        mine = (batch.design == which) & ~batch.dead_end
        new = (batch.actions, batch.length, batch.reward)
        both = Elites(*(np.concatenate((old[which], more[mine])) for old, more in zip(elites, new, strict=True)))
        _, first = np.unique(both.actions, axis=0, return_index=True)
        first.sort()
        best = first[np.argsort(-both.reward[first], kind="stable")][: elites.length.shape[1]]
        for kept, found in zip(updated, both, strict=True):
            kept[which, : len(best)] = found[best]
    return updated


def drawn_elites(
    elites: Elites, statistics: RewardStatistics, count: int, generator: np.random.Generator
) -> tuple[list[Episode], np.ndarray]:
    """Episodes to imitate, drawn uniformly from those kept, and how strongly.

    Args:
        elites: what is kept.
        statistics: of each design's rewards.
        count: how many to draw; drawn with replacement where fewer are kept.
        generator: of the draws.

    Returns:
        (episodes, float32 [count]): by how many deviations each is better than its design's mean, in
        [0, `REWARD_LIMIT`]. No episode where none is kept.
    """
    design, place = np.nonzero(elites.length > 0)
    if not len(design):
        return [], np.zeros(0, np.float32)
    chosen = generator.choice(len(design), count, replace=count > len(design))
    design, place = design[chosen], place[chosen]
    blank = signature(elites.actions.shape[2])
    episodes = [
        blank._replace(
            design=np.array(which, np.int32),
            length=elites.length[which, at],
            actions=elites.actions[which, at],
            reward=elites.reward[which, at],
        )
        for which, at in zip(design, place, strict=True)
    ]
    better = (elites.reward[design, place] - statistics.mean[design]) / statistics.deviation[design]
    return episodes, np.clip(better, 0, REWARD_LIMIT).astype(np.float32)
