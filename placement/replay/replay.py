"""The replay between actors and learner: whole episodes, first in first out, each consumed once; and one in memory.

All methods are thread-safe unless a class states otherwise.
"""

import collections
import threading
import time
from collections.abc import Callable
from typing import Protocol

from placement.episode import Episode, Schema


class ReplayTimeout(TimeoutError):
    """A read or a write waited past its deadline; the message names the waiting thread and the reason."""


class ReplayClosed(RuntimeError):
    """The replay was closed; nothing more can be read or written."""


class ReplayWriter(Protocol):
    """The actors' side."""

    def write(self, episode: Episode, *, timeout: float) -> None:
        """Adds one episode, waiting up to `timeout` seconds while the replay is full.

        Raises:
            MalformedEpisode: the episode breaks the rules of `Episode`.
            ReplayTimeout: the replay stayed full. Writing the same episode again from the same thread resumes the wait;
                the episode is added once.
            ReplayClosed: the replay is closed.
        """

    def close(self) -> None:
        """Wakes all waiting threads with ReplayClosed and frees the stored episodes. May be called twice."""


class ReplayReader(Protocol):
    """The learner's side."""

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        """Takes the `count` oldest episodes, waiting up to `timeout` seconds.

        Raises:
            ReplayTimeout: fewer arrived in time; they remain for the next read.
            ReplayClosed: the replay is closed.
            RuntimeError: reading failed for a reason other than a server's death.
        """

    def size(self) -> int:
        """The number of episodes that wait to be read."""

    def close(self) -> None:
        """Wakes all waiting threads with ReplayClosed and frees the stored episodes. May be called twice."""


class Replay(ReplayWriter, ReplayReader, Protocol):
    """Both sides in one process."""


class Delivery:
    """Hands episodes to readers, one reader at a time, each wait with a deadline.

    Args:
        name: the replay's name, for messages.
        available: returns the number of episodes that can be taken now; called with `changed` held.
        take: takes a number of episodes; called with `changed` held.
        explain: returns further reasons for too few episodes, for messages.

    Attributes:
        changed: held and notified by code that changes the available episodes.
        wanted: number of episodes that the waiting reader wants; 0 = no reader waits.
        closed: set once `close` was called.
    """

    def __init__(
        self,
        name: str,
        *,
        available: Callable[[], int],
        take: Callable[[int], list[Episode]],
        explain: Callable[[], str] = str,
    ) -> None:
        self._name, self._available, self._take, self._explain = name, available, take, explain
        self._reading = threading.Lock()  # one reader at a time, so that each receives consecutive episodes
        self._error: Exception | None = None
        self.changed = threading.Condition()
        self.wanted = 0
        self.closed = threading.Event()

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        """Takes `count` episodes, waiting up to `timeout` seconds; raises the errors of `ReplayReader.read`."""
        deadline = time.monotonic() + timeout
        if not self._reading.acquire(timeout=timeout):
            raise ReplayTimeout(f"{_me()} waited {timeout:g} s for another reader of {self._name}")
        try:
            with self.changed:
                self._wait(count, deadline)
                if self._available() < count:
                    raise ReplayTimeout(
                        f"{_me()} waited {timeout:g} s for {count} episodes from {self._name} and {self._available()} "
                        f"arrived: the actors are too slow or have stopped{self._explain()}"
                    )
                taken = self._take(count)
                self.changed.notify_all()
                return taken
        finally:
            self._reading.release()

    def _wait(self, count: int, deadline: float) -> None:
        """Waits with the condition held until enough episodes are available, an error or the deadline."""
        self.wanted = count
        self.changed.notify_all()
        try:
            self.changed.wait_for(
                lambda: self.closed.is_set() or self._error or self._available() >= count,
                max(deadline - time.monotonic(), 0.0),
            )
        finally:
            self.wanted = 0
        self.raise_if_closed("read")
        if self._error is not None:
            raise RuntimeError(f"reading from {self._name} failed: {self._error}") from self._error

    def fail(self, error: Exception) -> None:
        """Raises an error in all readers, now and later."""
        with self.changed:
            self._error = error
            self.changed.notify_all()

    def close(self) -> None:
        """Wakes all waiting threads."""
        with self.changed:
            self.closed.set()
            self.changed.notify_all()

    def raise_if_closed(self, what: str) -> None:
        """Raises ReplayClosed, naming the thread and `what` it cannot do, once the replay is closed."""
        if self.closed.is_set():
            raise ReplayClosed(f"{_me()} cannot {what}: {self._name} is closed")


class MemoryReplay(Replay):
    """A `Replay` in this process's memory: a bounded queue under a condition variable.

    Args:
        capacity: maximum number of stored episodes; writers wait when it is full, unless the reader wants more at once.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; None = not checked.
    """

    rejected = 0  # A malformed episode is never added, since `write` raises.

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
            ready = delivery.changed.wait_for(lambda: delivery.closed.is_set() or not self._is_full(), timeout)
            delivery.raise_if_closed("write")
            if not ready:
                raise ReplayTimeout(
                    f"{_me()} waited {timeout:g} s to write an episode: the in-memory replay "
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

    def _is_full(self) -> bool:
        return len(self._episodes) >= max(self._capacity, self._delivery.wanted)


def _me() -> str:
    return threading.current_thread().name
