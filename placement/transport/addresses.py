"""Where servers are: addresses may change when a server comes back, so they are asked for, not kept."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

Addresses = Callable[[], tuple[str, ...]]
"""The present `host:port` of each server; the position is its stable number, an empty string means that it is down."""

_WILDCARDS = ("0.0.0.0", "::")


class PortTaken(OSError):
    """Another server listens on the port that was asked for."""


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
    """Whether `split` takes it, and it is no URL."""
    with contextlib.suppress(ValueError):
        return "/" not in split(address)[0]
    return False


def join(bind: str, port: int) -> str:
    """A server's `host:port` for others: this machine's name where `bind` says "all interfaces"."""
    host = socket.gethostname() if bind in _WILDCARDS else bind
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(bind: str) -> bool:
    """Whether an address reaches this machine only."""
    return bind == "localhost" or bind.startswith("127.") or bind == "::1"


def accepts(address: str, *, timeout: float) -> bool:
    """Whether something takes connections at `address` within `timeout` seconds; a dead process's port says no at once.

    To be asked before any call of Reverb's: such a call to a dead server waits for its whole timeout, and each one lets
    gRPC wait longer before it tries again once the server is back.
    """
    with (
        contextlib.suppress(OSError, UnicodeError),
        socket.create_connection(split(address), timeout=max(timeout, 0.001)),
    ):
        return True
    return False
