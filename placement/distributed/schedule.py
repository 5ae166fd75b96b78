"""Which parameters an episode must be drawn with at least: the bound on staleness.

The learner publishes version i after i iterations. Episodes are counted in the order in which they are begun; the ones
that iteration i will learn from may be drawn with version i - max_staleness at the earliest.
"""

from __future__ import annotations

import threading


class EpisodeSchedule:
    """Hands out turns to begin episodes; shared by all actors of a process.

    Args:
        episodes_per_iteration: whole episodes that one iteration learns from.
        max_staleness: versions that an episode may lag behind when it is learned from. 0: actors and learner take
            turns; 1: actors collect for the next iteration while the learner learns.
        iteration: iterations already done.
    """

    def __init__(self, *, episodes_per_iteration: int, max_staleness: int, iteration: int = 0) -> None:
        self._per_iteration = episodes_per_iteration
        self._max_staleness = max_staleness
        self._begun = iteration * episodes_per_iteration
        self._lock = threading.Lock()

    def take(self, count: int) -> int:
        """Begins `count` episodes together; returns the version that they need at least.

        The first of them decides, so that a group that reaches into the next iteration never waits for itself: its
        last episodes lag by one version more for each iteration's worth that the group holds.
        """
        with self._lock:
            first = self._begun
            self._begun += count
        return max(first // self._per_iteration - self._max_staleness, 0)
