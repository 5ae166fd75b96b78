"""Addresses of servers, and the choice among several. A server that comes back may have a new address."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Sequence

Addresses = Callable[[], tuple[str, ...]]
"""Returns the current `host:port` of each server; the position is its stable number, an empty string means down."""

_WILDCARDS = ("0.0.0.0", "::")


class PortTaken(OSError):
    """Another server listens on the requested port."""


def fixed(*addresses: str) -> Addresses:
    """Addresses that never change."""
    return lambda: addresses


def split(address: str) -> tuple[str, int]:
    """`host:port` (an IPv6 host in brackets) as (host, port); raises ValueError naming the address."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"address {address!r}: must be host:port, such as 127.0.0.1:8000")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_host_port(address: str) -> bool:
    """Whether `split` accepts it, and it is no URL."""
    with contextlib.suppress(ValueError):
        return "/" not in split(address)[0]
    return False


def join(bind: str, port: int) -> str:
    """A server's `host:port` for others: this machine's name if `bind` means "all interfaces"."""
    host = socket.gethostname() if bind in _WILDCARDS else bind
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(bind: str) -> bool:
    """Whether only this machine can reach the address."""
    return bind == "localhost" or bind.startswith("127.") or bind == "::1"


def accepts(address: str, *, timeout: float) -> bool:
    """Whether a server accepts connections at `address` within `timeout` seconds; immediately False for a dead process.

    Call this before any of Reverb's calls: such a call to a dead server waits for its whole timeout, and makes gRPC
    wait longer before it tries again once the server is back.
    """
    with (
        contextlib.suppress(OSError, UnicodeError),
        socket.create_connection(split(address), timeout=max(timeout, 0.001)),
    ):
        return True
    return False


class Failover:
    """Chooses the preferred server that is up, and avoids servers that failed for a while.

    Args:
        addresses: returns the current addresses of the servers; called every time.
        retry: seconds before a server that failed is used again.
        order: the servers' numbers, the preferred one first; None = in the order of `addresses`.
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
        """Records that a server failed."""
        now = time.monotonic()
        self._resting = {each: until for each, until in self._resting.items() if until > now}
        self._resting[address] = now + self._retry

    def describe(self) -> str:
        """All servers, for messages."""
        known = self._addresses()
        return ", ".join(f"{number}: {each or 'down'}" for number, each in enumerate(known)) or "none known"
