"""The replay inside one process: a bounded queue under a condition variable."""

from __future__ import annotations

import collections
import threading

from placement.ppo.trajectory import Episode
from placement.replay.base import Replay, ReplayTimeout
from placement.replay.delivery import Delivery
from placement.replay.validation import Schema


class MemoryReplay(Replay):
    """A `Replay` in this process's memory.

    Args:
        capacity: episodes held at most; writers wait when it is full, unless the reader wants more at once.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; None = not checked.
    """

    refused = 0  # a malformed episode never gets in: `write` raises

    def __init__(self, *, capacity: int, steps: int, designs: int | None = None) -> None:
        self._capacity = capacity
        self._schema = Schema(steps, designs)
        self._episodes: collections.deque[Episode] = collections.deque()
        self._delivery = Delivery(
            "the in-memory replay",
            available=lambda: len(self._episodes),
            take=lambda count: [self._episodes.popleft() for _ in range(count)],
        )

    def write(self, episode: Episode, *, timeout: float) -> None:
        self._schema.check(episode)
        delivery = self._delivery
        with delivery.changed:
            room = delivery.changed.wait_for(lambda: delivery.closed.is_set() or self._has_room(), timeout)
            delivery.raise_if_closed("write")
            if not room:
                raise ReplayTimeout(
                    f"{threading.current_thread().name} waited {timeout:g} s to write an episode: the in-memory replay "
                    f"is full ({self._capacity} episodes) and the learner took none"
                )
            self._episodes.append(episode)
            delivery.changed.notify_all()

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        return self._delivery.read(count, timeout=timeout)

    def size(self) -> int:
        with self._delivery.changed:
            return len(self._episodes)

    def close(self) -> None:
        self._delivery.close()
        with self._delivery.changed:
            self._episodes.clear()

    def _has_room(self) -> bool:
        return len(self._episodes) < max(self._capacity, self._delivery.wanted)
