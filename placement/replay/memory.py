"""The replay inside one process: a bounded queue under a condition variable."""

from __future__ import annotations

import collections
import threading
import time

from placement.ppo.trajectory import Episode, signature
from placement.replay.base import ReplayClosed, ReplayTimeout
from placement.replay.validation import check


class MemoryReplay:
    """A `Replay` in this process's memory.

    Args:
        capacity: episodes held at most; writers wait when it is full.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; None = not checked.
    """

    refused = 0  # a malformed episode never gets in: `write` raises

    def __init__(self, *, capacity: int, steps: int, designs: int | None = None) -> None:
        self._capacity = capacity
        self._signature = signature(steps)
        self._designs = designs
        self._episodes: collections.deque[Episode] = collections.deque()
        self._changed = threading.Condition()
        self._reading = threading.Lock()  # one reader at a time, so that each gets consecutive episodes
        self._wanted = 0  # episodes that the current reader still lacks beyond the queue's capacity
        self._closed = False

    def write(self, episode: Episode, *, timeout: float) -> None:
        """Adds one episode, waiting up to `timeout` seconds for room.

        Raises:
            MalformedEpisode: the episode breaks the rules of `Episode`.
            ReplayTimeout: there was no room in time; the episode was not added.
            ReplayClosed: the replay is closed.
        """
        check(episode, self._signature, designs=self._designs)
        with self._changed:
            room = self._changed.wait_for(lambda: self._closed or self._has_room(), timeout)
            self._raise_if_closed("write")
            if not room:
                raise ReplayTimeout(
                    f"{threading.current_thread().name} waited {timeout:g} s to write an episode: the in-memory replay "
                    f"is full ({self._capacity} episodes) and the learner took none"
                )
            self._episodes.append(episode)
            self._changed.notify_all()

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        """Takes the `count` oldest episodes, waiting up to `timeout` seconds.

        Raises:
            ReplayTimeout: fewer came in time; they stay for the next read.
            ReplayClosed: the replay is closed.
        """
        deadline = time.monotonic() + timeout
        if not self._reading.acquire(timeout=timeout):
            raise ReplayTimeout(
                f"{threading.current_thread().name} waited {timeout:g} s for another reader of the in-memory replay"
            )
        try:
            with self._changed:
                return self._take(count, deadline, timeout)
        finally:
            self._reading.release()

    def _take(self, count: int, deadline: float, timeout: float) -> list[Episode]:
        """`count` episodes; the condition is held. A count above the capacity makes room while it waits."""
        self._wanted = count
        self._changed.notify_all()
        try:
            self._changed.wait_for(
                lambda: self._closed or len(self._episodes) >= count, max(deadline - time.monotonic(), 0.0)
            )
        finally:
            self._wanted = 0
        self._raise_if_closed("read")
        if len(self._episodes) < count:
            raise ReplayTimeout(
                f"{threading.current_thread().name} waited {timeout:g} s for {count} episodes from the in-memory "
                f"replay and {len(self._episodes)} came: the actors are too slow or have stopped"
            )
        taken = [self._episodes.popleft() for _ in range(count)]
        self._changed.notify_all()
        return taken

    def size(self) -> int:
        """Episodes waiting to be read."""
        with self._changed:
            return len(self._episodes)

    def close(self) -> None:
        """Wakes all who wait (they get ReplayClosed) and frees what is held. May be called twice."""
        with self._changed:
            self._closed = True
            self._episodes.clear()
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._episodes) < max(self._capacity, self._wanted)

    def _raise_if_closed(self, what: str) -> None:
        if self._closed:
            raise ReplayClosed(f"{threading.current_thread().name} cannot {what}: the in-memory replay is closed")
