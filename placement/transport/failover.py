"""Which of several servers to use: the preferred one that is up, another while that one is down."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from placement.transport.addresses import Addresses


class Failover:
    """Remembers which servers failed, and leaves them alone for a while.

    Args:
        addresses: of the servers at present; asked every time.
        retry: seconds before a server that failed is used again.
        order: the servers' numbers, the preferred one first; None = as `addresses` has them.
    """

    def __init__(self, addresses: Addresses, *, retry: float, order: Sequence[int] | None = None) -> None:
        self._addresses, self._retry, self._order = addresses, retry, order
        self._resting: dict[str, float] = {}  # address → when it may be used again

    def usable(self) -> Iterator[tuple[int, str]]:
        """Number and address of each server that is up and did not just fail, the preferred one first."""
        known, now = self._addresses(), time.monotonic()
        for number in range(len(known)) if self._order is None else self._order:
            if known[number] and self._resting.get(known[number], now) <= now:
                yield number, known[number]

    def failed(self, address: str) -> None:
        """Takes note that a server failed."""
        now = time.monotonic()
        self._resting = {each: until for each, until in self._resting.items() if until > now}
        self._resting[address] = now + self._retry

    def describe(self) -> str:
        """All servers, for messages."""
        known = self._addresses()
        return ", ".join(f"{number}: {each or 'down'}" for number, each in enumerate(known)) or "none known"
