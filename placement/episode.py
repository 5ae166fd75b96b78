"""Whole episodes between actor and learner: their arrays, the rules for them, and sets of their identities.

Actions travel, observations do not: the learner's engine plays the actions again (microseconds a step), so that an
episode of Ariane takes about 2 kB instead of megabytes. Axis legend: T macros to place (the longest design's, padded).
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

MOST_INTERVALS = 256
"""Maximum number of intervals for each actor; beyond it the oldest gap is closed, and its counts belong to the set."""


class Episode(NamedTuple):
    """A whole episode, made of arrays only, so that nothing needs unpickling."""

    identity: np.ndarray  # int64 [2], (actor, count): unique in a run, so that no episode is counted twice
    design: np.ndarray  # int32 [], index into the run's designs
    version: np.ndarray  # int32 [], the model version that every action was drawn with
    length: np.ndarray  # int32 [], actions taken
    dead_end: np.ndarray  # bool [], whether it ended because a macro had no legal cell
    actions: np.ndarray  # int32 [T], row · columns + column; -1 past `length`
    log_probabilities: np.ndarray  # float32 [T], log probabilities of the actions when drawn; 0 past `length`
    reward: np.ndarray  # float32 [], the episode's only reward: minus its cost, or the dead-end penalty
    costs: np.ndarray  # float64 [5], wirelength (µm), wirelength, density, congestion and total cost; NaN at a dead end


def signature(steps: int) -> Episode:
    """An all-zero episode of the shapes and dtypes above; `steps` is T."""
    return Episode(
        identity=np.zeros(2, np.int64),
        design=np.zeros((), np.int32),
        version=np.zeros((), np.int32),
        length=np.zeros((), np.int32),
        dead_end=np.zeros((), np.bool_),
        actions=np.zeros(steps, np.int32),
        log_probabilities=np.zeros(steps, np.float32),
        reward=np.zeros((), np.float32),
        costs=np.zeros(5, np.float64),
    )


def stack_episodes(episodes: Sequence[Episode]) -> Episode:
    """Stacks episodes (at least one) of one T to a batch, with the axis B before each field's own."""
    return Episode(*(np.stack(values) for values in zip(*episodes, strict=True)))


class MalformedEpisode(ValueError):
    """An episode breaks the rules of `Episode`; the message names the field, its value and the rule."""


class Schema:
    """The requirements on every episode of a run before it is learned from, regardless of its writer.

    Args:
        steps: T.
        designs: the number of the run's designs; None = any index of at least 0 is valid.

    Attributes:
        like: an all-zero episode of the right shapes and dtypes.
    """

    def __init__(self, steps: int, designs: int | None = None) -> None:
        self.like = signature(steps)
        self._last_design = np.iinfo(np.int32).max if designs is None else designs - 1

    def fields(self) -> list[tuple[str, np.ndarray]]:
        """(name, array of the right shape and dtype) of each field."""
        return list(self.like._asdict().items())

    def check(self, episode: Episode) -> None:
        """Raises MalformedEpisode unless `episode` has the right shapes and dtypes, and sensible contents."""
        if len(episode) != len(self.like):
            raise MalformedEpisode(f"{len(episode)} fields, expected {len(self.like)}")
        for name, expected in self.fields():
            array = getattr(episode, name)
            if not isinstance(array, (np.ndarray, np.generic)):
                raise MalformedEpisode(f"{name}: a {type(array).__name__}, expected an array")
            if array.dtype != expected.dtype or array.shape != expected.shape:
                raise MalformedEpisode(
                    f"{name}: {array.dtype} {list(array.shape)}, expected {expected.dtype} {list(expected.shape)}"
                )
        self._check_scalars(episode)
        self._check_steps(episode)

    def _check_scalars(self, episode: Episode) -> None:
        steps, last = len(self.like.actions), self._last_design
        _require((episode.identity >= 0).all(), "identity", episode.identity, "at least 0")
        _require(0 <= episode.design <= last, "design", episode.design, f"in [0, {last}]")
        _require(episode.version >= 0, "version", episode.version, "at least 0")
        _require(0 <= episode.length <= steps, "length", episode.length, f"in [0, {steps}]")
        _require(np.isfinite(episode.reward), "reward", episode.reward, "finite")
        if episode.dead_end:
            _require(np.isnan(episode.costs).all(), "costs", episode.costs, "NaN at a dead end")
        else:
            _require(episode.length >= 1, "length", episode.length, "at least 1 unless at a dead end")
            good = np.isfinite(episode.costs).all() and (episode.costs >= 0).all()
            _require(good, "costs", episode.costs, "finite and at least 0")

    def _check_steps(self, episode: Episode) -> None:
        taken, padding = np.split(episode.actions, [int(episode.length)])
        _require((taken >= 0).all(), "actions", taken, "at least 0 up to the length")
        _require((padding == -1).all(), "actions", padding, "-1 past the length")
        likely = np.isfinite(episode.log_probabilities).all() and (episode.log_probabilities <= 1e-3).all()
        _require(likely, "log_probabilities", episode.log_probabilities, "finite and at most 0")
        padding = episode.log_probabilities[int(episode.length) :]
        _require((padding == 0).all(), "log_probabilities", padding, "0 past the length")


def _require(ok: object, name: str, value: object, right: str) -> None:
    if not ok:
        raise MalformedEpisode(f"{name}: {value}, must be {right}")


class EpisodeIntervalSet:
    """A set of identities (actor, count) as intervals: exact, small, and saved with a checkpoint.

    An actor numbers its episodes from 0, so its counts form a few intervals, with gaps where episodes were lost.

    Args:
        rows: int64 [N, 3], an earlier value of `rows()` to resume from; None = empty.
    """

    def __init__(self, rows: np.ndarray | None = None) -> None:
        self._intervals: dict[int, list[list[int]]] = {}  # actor → [first, last] in rising order, never touching
        for actor, first, last in np.asarray([] if rows is None else rows, np.int64).reshape(-1, 3).tolist():
            self._intervals.setdefault(actor, []).append([first, last])
        for intervals in self._intervals.values():
            intervals.sort()

    def add(self, actor: int, count: int) -> bool:
        """Adds an identity; returns whether it is new."""
        intervals = self._intervals.setdefault(actor, [])
        at = bisect.bisect_right(intervals, count, key=lambda interval: interval[0])
        if at and count <= intervals[at - 1][1]:
            return False
        joins_before = at > 0 and intervals[at - 1][1] == count - 1
        joins_after = at < len(intervals) and intervals[at][0] == count + 1
        if joins_before and joins_after:
            intervals[at - 1][1] = intervals.pop(at)[1]
        elif joins_before:
            intervals[at - 1][1] = count
        elif joins_after:
            intervals[at][0] = count
        else:
            intervals.insert(at, [count, count])
            if len(intervals) > MOST_INTERVALS:
                intervals[0][1] = intervals.pop(1)[1]
        return True

    def rows(self) -> np.ndarray:
        """Actor, first and last count of each interval, int64 [N, 3]."""
        rows = [(actor, *interval) for actor, intervals in self._intervals.items() for interval in intervals]
        return np.array(rows, np.int64).reshape(-1, 3)
