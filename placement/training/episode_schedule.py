"""Which parameters an episode must be drawn with at least: the bound on staleness.

The learner publishes version i after i iterations. Episodes are counted in the order in which they are begun; the ones
that iteration i is to learn from may be drawn with version i - max_staleness at the earliest. No actor begins episodes
of a later iteration before all of the earlier ones are written, or a fast actor's episodes would overtake a slow one's
and make those older than the bound.
"""

from __future__ import annotations

import threading
from typing import NamedTuple


class ScheduleClosed(RuntimeError):
    """The run is ending: no more episodes are begun."""


class Turn(NamedTuple):
    """Permission to begin some episodes together.

    Attributes:
        iteration: that the first of them is for.
        version: of the parameters that they need at least.
    """

    iteration: int
    version: int


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
        self._under_way: list[int] = []  # the iterations of the turns that are not finished
        self._changed = threading.Condition()
        self._closed = False

    def begin(self, count: int, *, timeout: float) -> Turn:
        """Begins `count` episodes together, once all those of earlier iterations are written.

        The first of them decides, so that a group that reaches into the next iteration never waits for itself: its
        last episodes lag by one version more for each iteration's worth that the group holds.

        Raises:
            TimeoutError: other actors did not write theirs within `timeout` seconds.
            ScheduleClosed: `close` was called.
        """
        with self._changed:
            ready = self._changed.wait_for(lambda: self._closed or self._may_begin(), timeout)
            name = threading.current_thread().name
            if self._closed:
                raise ScheduleClosed(f"{name} begins no more episodes: the run is ending")
            iteration = self._begun // self._per_iteration
            if not ready:
                raise TimeoutError(
                    f"{name} waited {timeout:g} s for other actors to write their episodes for iteration "
                    f"{min(self._under_way)}, to begin those for iteration {iteration}"
                )
            self._begun += count
            self._under_way.append(iteration)
        return Turn(iteration, max(iteration - self._max_staleness, 0))

    def finish(self, turn: Turn) -> None:
        """All episodes of the turn are written."""
        with self._changed:
            self._under_way.remove(turn.iteration)
            self._changed.notify_all()

    def close(self) -> None:
        """Wakes all who wait (they get ScheduleClosed). May be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _may_begin(self) -> bool:
        next_iteration = self._begun // self._per_iteration
        return all(iteration >= next_iteration for iteration in self._under_way)
