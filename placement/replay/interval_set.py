"""A set of episodes' identities as intervals: exact, small, and saved with a checkpoint.

An actor numbers its episodes from 0, so its part of the set is a few intervals, with gaps where episodes were lost.
"""

from __future__ import annotations

import bisect

import numpy as np

MOST_INTERVALS = 256
"""Intervals kept for each actor; past that the oldest gap is closed: its counts are in the set from then on."""


class EpisodeIntervalSet:
    """A set of identities (actor, count).

    Args:
        rows: int64 [N, 3], as `rows()` gave them, to go on from; None = empty.
    """

    def __init__(self, rows: np.ndarray | None = None) -> None:
        self._intervals: dict[int, list[list[int]]] = {}  # actor → [first, last] in rising order, never touching
        for actor, first, last in np.asarray([] if rows is None else rows, np.int64).reshape(-1, 3).tolist():
            self._intervals.setdefault(actor, []).append([first, last])
        for intervals in self._intervals.values():
            intervals.sort()

    def add(self, actor: int, count: int) -> bool:
        """Adds an identity; whether it is new."""
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
        """int64 [N, 3]: actor, first and last count of each interval."""
        rows = [(actor, *interval) for actor, intervals in self._intervals.items() for interval in intervals]
        return np.array(rows, np.int64).reshape(-1, 3)
