"""Well-formed episodes for tests of what carries them."""

from __future__ import annotations

import numpy as np

from placement.ppo.trajectory import Episode, signature

STEPS = 6


def episode(count: int, *, actor: int = 0, version: int = 0, steps: int = STEPS) -> Episode:
    """A well-formed episode of full length whose identity is (actor, count)."""
    return signature(steps)._replace(
        identity=np.array([actor, count], np.int64),
        version=np.array(version, np.int32),
        length=np.array(steps, np.int32),
        actions=np.arange(steps, dtype=np.int32),
        log_probabilities=np.full(steps, -1.5, np.float32),
        values=np.linspace(-1, 1, steps, dtype=np.float32),
        reward=np.array(-0.75, np.float32),
        costs=np.array([100.0, 0.1, 0.5, 0.8, 0.75]),
    )


def counts(episodes: list[Episode]) -> list[int]:
    """The second part of each episode's identity."""
    return [int(item.identity[1]) for item in episodes]
