"""How episodes are handed out: one reader at a time, every wait with a deadline that says who waits for whom."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from placement.ppo.trajectory import Episode
from placement.replay.base import ReplayClosed, ReplayTimeout


class Delivery:
    """Waits for episodes on behalf of readers.

    Args:
        name: of the replay, for messages.
        available: how many episodes can be taken now; called with `changed` held.
        take: takes that many; called with `changed` held.
        explain: more about why too few came, for messages.

    Attributes:
        changed: to be held and notified by whoever changes what is available.
        wanted: episodes that the waiting reader wants; 0 = nobody waits.
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
        self._reading = threading.Lock()  # one reader at a time, so that each gets consecutive episodes
        self._error: Exception | None = None
        self.changed = threading.Condition()
        self.wanted = 0
        self.closed = threading.Event()

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        """Takes `count` episodes, waiting up to `timeout` seconds.

        Raises:
            ReplayTimeout: fewer came in time; they stay for the next read.
            ReplayClosed: the replay is closed.
            RuntimeError: whoever brings episodes failed.
        """
        deadline = time.monotonic() + timeout
        if not self._reading.acquire(timeout=timeout):
            raise ReplayTimeout(f"{_me()} waited {timeout:g} s for another reader of {self._name}")
        try:
            with self.changed:
                return self._wait(count, deadline, timeout)
        finally:
            self._reading.release()

    def _wait(self, count: int, deadline: float, timeout: float) -> list[Episode]:
        """`count` episodes; the condition is held."""
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
        if self._available() < count:
            raise ReplayTimeout(
                f"{_me()} waited {timeout:g} s for {count} episodes from {self._name} and {self._available()} came: "
                f"the actors are too slow or have stopped{self._explain()}"
            )
        taken = self._take(count)
        self.changed.notify_all()
        return taken

    def fail(self, error: Exception) -> None:
        """Hands an error to whoever reads, now and later."""
        with self.changed:
            self._error = error
            self.changed.notify_all()

    def close(self) -> None:
        """Wakes all who wait."""
        with self.changed:
            self.closed.set()
            self.changed.notify_all()

    def raise_if_closed(self, what: str) -> None:
        """Raises ReplayClosed, naming the thread and `what` it cannot do, once the replay is closed."""
        if self.closed.is_set():
            raise ReplayClosed(f"{_me()} cannot {what}: {self._name} is closed")


def _me() -> str:
    return threading.current_thread().name
