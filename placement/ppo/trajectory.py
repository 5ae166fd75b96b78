"""One episode as it travels from actor to learner: actions and what the actor knew, not observations.

The learner's engine plays the actions again to recompute the observations (microseconds a step), so that an episode
of Ariane takes about 2 kB instead of megabytes. Axis legend: T macros to place (the longest design's, padded).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Episode(NamedTuple):
    """A whole episode; arrays only, so that nothing needs unpickling.

    Attributes:
        identity: int64 [2], (actor, count): unique in a run, so that no episode is counted twice.
        design: int32 [], index into the run's designs.
        version: int32 [], the model version that every action was drawn with.
        length: int32 [], actions taken.
        dead_end: bool [], whether it ended because a macro had no legal cell.
        actions: int32 [T], row · columns + column; -1 past `length`.
        log_probabilities: float32 [T], of the actions when drawn; 0 past `length`.
        values: float32 [T], the value head's predictions when drawn; 0 past `length`.
        reward: float32 [], the episode's only reward: minus its cost, or the dead-end penalty.
        costs: float64 [5], wirelength (µm), wirelength, density, congestion and proxy cost; NaN at a dead end.
    """

    identity: np.ndarray
    design: np.ndarray
    version: np.ndarray
    length: np.ndarray
    dead_end: np.ndarray
    actions: np.ndarray
    log_probabilities: np.ndarray
    values: np.ndarray
    reward: np.ndarray
    costs: np.ndarray


def signature(steps: int) -> Episode:
    """An all-zero episode of the shapes and dtypes above, for tables and checks; `steps` is T."""
    return Episode(
        identity=np.zeros(2, np.int64),
        design=np.zeros((), np.int32),
        version=np.zeros((), np.int32),
        length=np.zeros((), np.int32),
        dead_end=np.zeros((), np.bool_),
        actions=np.zeros(steps, np.int32),
        log_probabilities=np.zeros(steps, np.float32),
        values=np.zeros(steps, np.float32),
        reward=np.zeros((), np.float32),
        costs=np.zeros(5, np.float64),
    )


def stack_episodes(episodes: Sequence[Episode]) -> Episode:
    """Episodes of one T as one, axis B before each field's own; at least one."""
    return Episode(*(np.stack(values) for values in zip(*episodes, strict=True)))
