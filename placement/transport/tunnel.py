"""The client's end of a gate: to programs that know of no token, a gate's server seems to be on this machine."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from placement.transport.addresses import split
from placement.transport.event_loop import run
from placement.transport.relay import PIECE, end, relay, watch
from placement.transport.token_proof import TokenRefused, prove

_log = logging.getLogger(__name__)
START_SECONDS = 30.0
CONNECT_SECONDS = 10.0
_CREDENTIALS = struct.Struct("3i")  # of a Unix socket's other end: process, user, group

Dial = Callable[[str], str]
"""From a server's `host:port` to what gRPC is to connect to."""


def direct(address: str) -> str:
    """Dials a server that asks for no token."""
    return address


class NetworkAccess(NamedTuple):
    """How a process serves others and reaches their servers.

    Attributes:
        bind: the address that its servers listen on.
        token: the run's, which all servers ask for; None = none is asked for.
        dial: the way to servers behind gates.
    """

    bind: str
    token: str | None = None
    dial: Dial = direct


class Tunnels:
    """Makes tunnels to gates, one for each, as they are asked for. For several threads at once.

    Args:
        token: the run's.
    """

    def __init__(self, token: str) -> None:
        if not token:
            raise ValueError("tunnels need the run's token")
        self._token = token
        self._lock = threading.Lock()
        self._servers: dict[str, tuple[str, asyncio.Server]] = {}

    def dial(self, address: str) -> str:
        """What gRPC is to connect to for the server behind the gate at `address`: an abstract Unix socket.

        Only processes of this user can use it. It has no file that could be left behind.
        """
        with self._lock:
            if address not in self._servers:
                self._servers[address] = self._open(f"placement-{os.getpid()}-{secrets.token_hex(8)}", *split(address))
            return self._servers[address][0]

    def _open(self, name: str, host: str, port: int) -> tuple[str, asyncio.Server]:
        carry = partial(self._carry, host, port)
        server = run(asyncio.start_unix_server(carry, f"\0{name}", limit=PIECE), timeout=START_SECONDS)
        return f"unix-abstract:{name}", server

    def close(self) -> None:
        """Takes no more connections; those that are open go on until either end closes them. May be called twice."""
        with self._lock:
            servers, self._servers = self._servers, {}
        for _, server in servers.values():
            server.get_loop().call_soon_threadsafe(server.close)

    async def _carry(self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, as long as it lasts."""
        try:
            _require_same_user(writer)
            there = await asyncio.wait_for(asyncio.open_connection(host, port, limit=PIECE), CONNECT_SECONDS)
            try:
                watch(there[1])
                await prove(*there, self._token)
                await relay((reader, writer), there)
            finally:
                end(there[1])
        except TokenRefused as error:
            _log.warning("%s:%d: %s", host, port, error)
        except (OSError, TimeoutError, EOFError) as error:
            _log.debug("no tunnel to %s:%d: %s", host, port, error)
        finally:
            end(writer)


def _require_same_user(writer: asyncio.StreamWriter) -> None:
    """Raises PermissionError unless the other end of a Unix socket is a process of this user."""
    other = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(other)
    if user != os.geteuid():
        raise PermissionError(f"user {user} may not use a tunnel of user {os.geteuid()}")
