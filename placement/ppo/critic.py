"""The baseline of an episode's steps: a ridge regression of the rewards on `placement.ppo.history`, kept up to date.

One reward a whole episode is too little for a value head that learns by gradient steps: it saw each episode once, and
what tells episodes of one policy apart is small beside what tells their steps apart. A regression uses every episode
fully, and features and rewards are taken about their means over the iteration's episodes at the same step, so neither
the step nor the policy's progress has to be explained. Older iterations count less and less.

NumPy, on the host. Axis legend: B episodes, T steps (of the longest design), G designs, S segments of an episode,
H features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SEGMENTS = 8
"""S: an episode is cut into so many parts of equal length, each with weights of its own."""
_MEMORY = 0.8
"""What an iteration's episodes still count one iteration later."""
_PRIOR = 300.0
"""Strength of the ridge, in steps of episodes."""
_LIMIT = 2.0
"""Deviations from the mean, at most, that are predicted: early weights may be wild on features that hardly varied."""
_LEAST_DEVIATION = 1e-4
"""Features that vary less are left out: sums in float32 vary so much by themselves."""
_PRIOR_EPISODES = 4.0
"""Episodes that the running mean of a design's rewards counts for beside the iteration's own."""


class CriticState(NamedTuple):
    """Sums over the steps of all episodes so far; part of the learner's state.

    Attributes:
        gram: float32 [G, S, H, H], of products of features.
        moment: float32 [G, S, H], of features times reward.
        steps: float32 [G, S], how many.
    """

    gram: np.ndarray
    moment: np.ndarray
    steps: np.ndarray


def no_episodes(designs: int, features: int) -> CriticState:
    """Before any episode, with G = `designs` and H = `features`."""
    return CriticState(
        np.zeros((designs, SEGMENTS, features, features), np.float32),
        np.zeros((designs, SEGMENTS, features), np.float32),
        np.zeros((designs, SEGMENTS), np.float32),
    )


def regressed(
    state: CriticState,
    features: np.ndarray,
    rewards: np.ndarray,
    design: np.ndarray,
    lengths: np.ndarray,
    *,
    macros: np.ndarray,
    ratio: np.ndarray,
) -> tuple[np.ndarray, CriticState]:
    """The rewards predicted before each step, from earlier iterations' weights; and the state with these episodes.

    Args:
        state: of the iterations before.
        features: float32 [B, T, H].
        rewards: float32 [B], of the whole episodes, less the running mean of their design.
        design: int [B].
        lengths: int [B], steps that count.
        macros: int [G], of each design.
        ratio: float [G], deviation of each design's rewards, over that of the iteration before. Rewards come divided by
            it, so what was learned before is turned into the new unit; and the wider rewards were, the less it counts.

    Returns:
        (float32 [B, T], 0 past the lengths; the new state).
    """
    predicted = np.zeros(features.shape[:2], np.float32)
    state = _aged(state, np.maximum(np.asarray(ratio, np.float32), 1e-6))
    gram, moment, count = (array.copy() for array in state)
    for which in np.unique(design):
        mine = np.flatnonzero((design == which) & (np.asarray(lengths) > 0))
        if not len(mine):
            continue
        inside = np.arange(features.shape[1])[None] < np.asarray(lengths)[mine, None]
        about, left, mean = _centred(features[mine], rewards[mine], inside)
        segment = np.arange(features.shape[1]) * SEGMENTS // int(macros[which])
        guess = np.repeat(mean[None], len(mine), axis=0)
        for part in range(SEGMENTS):
            steps = np.flatnonzero(segment == part)
            weights = _weights(*(array[which, part] for array in state))
            guess[:, steps] += np.clip(about[:, steps] @ weights, -_LIMIT, _LIMIT)
            rows = about[:, steps].reshape(-1, features.shape[2])
            gram[which, part] += rows.T @ rows
            moment[which, part] += rows.T @ left[:, steps].ravel()
            count[which, part] += inside[:, steps].sum()
        predicted[mine] = np.where(inside, guess, 0)
    return predicted, CriticState(gram, moment, count)


def _aged(state: CriticState, ratio: np.ndarray) -> CriticState:
    """The state one iteration later, for rewards in units `ratio` (float32 [G]) times as large."""
    kept = _MEMORY * np.minimum(ratio, 1) ** 2
    gram, moment, count = state
    return CriticState(gram * kept[:, None, None, None], moment * (kept / ratio)[:, None, None], count * kept[:, None])


def _centred(
    features: np.ndarray, rewards: np.ndarray, inside: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features [B, T, H] and rewards [B, T] about their means at the same step, 0 outside; and the rewards' [T]."""
    alive = np.maximum(inside.sum(axis=0), 1).astype(np.float32)
    about = (features - np.einsum("bth,bt->th", features, inside) / alive[:, None]) * inside[:, :, None]
    total = rewards @ inside
    left = (rewards[:, None] - total / alive) * inside
    return about, left.astype(np.float32), (total / (alive + _PRIOR_EPISODES)).astype(np.float32)


def _weights(gram: np.ndarray, moment: np.ndarray, count: np.ndarray) -> np.ndarray:
    """float32 [H]: the ridge regression on features of deviation 1."""
    if count <= 0:
        return np.zeros_like(moment)
    deviation = np.sqrt(np.diagonal(gram) / count)
    scale = np.where(deviation > _LEAST_DEVIATION, 1 / np.maximum(deviation, _LEAST_DEVIATION), 0).astype(np.float64)
    matrix = gram * scale[:, None] * scale[None] + _PRIOR * np.eye(len(scale))
    return (np.linalg.solve(matrix, moment * scale) * scale).astype(np.float32)
