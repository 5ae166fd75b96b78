"""Gates and tunnels: connections on which both ends prove that they have the run's token, before anything else passes.

A `Gate` listens in front of a server that cannot authenticate its clients, and passes on only those with the token.
`Tunnels` are the clients' end: to programs without the token, a gate's server seems to be on this machine. The token
itself is not sent:

    gate → client    16 bytes that name the protocol, 32 random bytes
    client → gate    32 random bytes, HMAC-SHA256 of "client" and the random bytes of both
    gate → client    HMAC-SHA256 of "server" and the random bytes of both

The data that follow are neither encrypted nor signed: an attacker who can change bytes on the way can still do so.
"""

import asyncio
import contextlib
import hashlib
import hmac
import logging
import os
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from placement.transport.addresses import PortTaken, join, split
from placement.transport.event_loop import run

_log = logging.getLogger(__name__)
START_SECONDS, STOP_SECONDS = 30.0, 10.0
CONNECT_SECONDS = 10.0
PROOF_SECONDS = 10.0  # timeout for the other end to prove itself, in seconds
MAX_UNPROVED = 256  # maximum number of connections without a proof; beyond it the oldest of them is closed
CHUNK = 256 * 1024  # maximum number of bytes read at once; as many wait for a slow reader before the sender is blocked
SILENCE_SECONDS = 20  # seconds without data after which the system probes the other machine
LOST_SECONDS = 60  # seconds without an answer from the other machine after which a connection is closed

MAGIC = b"placement gate 1"
RANDOM = 32
DIGEST = hashlib.sha256().digest_size
_CREDENTIALS = struct.Struct("3i")  # credentials of a Unix socket's other end: process, user, group
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

Dial = Callable[[str], str]
"""Maps a server's `host:port` to the address that gRPC connects to: `direct`, or `Tunnels.dial` if there are gates."""


def direct(address: str) -> str:
    """Dials a server without a gate."""
    return address


class NetworkAccess(NamedTuple):
    """The network settings with which a process serves others and reaches their servers."""

    bind: str  # the address that its servers listen on
    token: str | None = None  # the run's token, which clients of all servers must prove; None = they need not
    dial: Dial = direct  # see `Dial`


class TokenRejected(ConnectionError):
    """The other end does not have the run's token, or is not a gate."""


def new_token() -> str:
    """A secret for one run: 64 hexadecimal digits."""
    return secrets.token_hex(32)


def derived(token: str, purpose: str) -> str:
    """A secret for one purpose, which does not reveal `token`; hexadecimal."""
    return hmac.new(token.encode(), purpose.encode(), hashlib.sha256).hexdigest()


async def demand(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """The gate's side of the proof.

    Raises:
        TokenRejected: the client's proof is wrong.
        TimeoutError, EOFError, OSError: the client sent none.
    """
    own = secrets.token_bytes(RANDOM)
    writer.write(MAGIC + own)
    answer = await asyncio.wait_for(reader.readexactly(RANDOM + DIGEST), PROOF_SECONDS)
    both = own + answer[:RANDOM]
    if not hmac.compare_digest(answer[RANDOM:], _proof(token, b"client", both)):
        raise TokenRejected("a client does not have the run's token")
    writer.write(_proof(token, b"server", both))


async def prove(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """The client's side of the proof.

    Raises:
        TokenRejected: the other end is not a gate, or rejects the token, or does not have it.
        TimeoutError, EOFError, OSError: it does not answer.
    """
    challenge = await asyncio.wait_for(reader.readexactly(len(MAGIC) + RANDOM), PROOF_SECONDS)
    magic, theirs = challenge[: len(MAGIC)], challenge[len(MAGIC) :]
    if magic != MAGIC:
        raise TokenRejected(f"not a gate: its greeting begins with {magic!r} instead of {MAGIC!r}")
    own = secrets.token_bytes(RANDOM)
    writer.write(own + _proof(token, b"client", theirs + own))
    try:
        answer = await asyncio.wait_for(reader.readexactly(DIGEST), PROOF_SECONDS)
    except asyncio.IncompleteReadError:
        raise TokenRejected("the gate rejects this run's token") from None
    if not hmac.compare_digest(answer, _proof(token, b"server", theirs + own)):
        raise TokenRejected("the gate does not have this run's token")


def _proof(token: str, role: bytes, both: bytes) -> bytes:
    return hmac.new(token.encode(), role + both, hashlib.sha256).digest()


class Gate:
    """Listens for clients with the token, and connects them to a server on this machine's loopback.

    Args:
        behind: the server's TCP port on 127.0.0.1.
        bind: the address to listen on.
        token: the run's.
        port: TCP port; 0 = any free one.

    Raises:
        PortTaken: the port, or the address, cannot be listened on.

    Attributes:
        port, address: TCP port, and `host:port`, for clients.
        passed, rejected: numbers of connections that proved the token, and that did not.
    """

    def __init__(self, behind: int, *, bind: str, token: str, port: int = 0) -> None:
        if not token:
            raise ValueError("a gate needs the run's token")
        self._behind, self._token = behind, token
        self.passed = self.rejected = 0
        self._unproved: dict[asyncio.Task[None], None] = {}
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = run(self._start(bind, port), timeout=START_SECONDS)
        self.port = int(self._server.sockets[0].getsockname()[1])
        self.address = join(bind, self.port)

    def stop(self) -> None:
        """Closes all connections. May be called twice."""
        run(self._stop(), timeout=STOP_SECONDS)

    async def _start(self, bind: str, port: int) -> asyncio.Server:
        try:
            return await asyncio.start_server(self._serve, bind, port, limit=CHUNK)
        except OSError as error:
            raise PortTaken(f"cannot listen on {bind} port {port}: {error}") from error

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in self._open:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            if await self._admit(task, reader, writer):
                await _relay((reader, writer), await _connect("127.0.0.1", self._behind))
        except (OSError, TimeoutError) as error:
            _log.debug("the gate at %s lost a connection: %s", self.address, error)
        except asyncio.CancelledError:
            pass  # The gate closes, or too many connections have proved nothing.
        finally:
            self._open.discard(task)
            _end(writer)

    async def _admit(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether a client proves the token in time."""
        self._unproved[task] = None
        if len(self._unproved) > MAX_UNPROVED:
            oldest = next(iter(self._unproved))
            self._unproved.pop(oldest)
            oldest.cancel()
        try:
            _keep_alive(writer)
            await demand(reader, writer, self._token)
        except asyncio.IncompleteReadError as error:
            self.rejected += bool(error.partial)  # A client that sends nothing only checks whether a server listens.
            return False
        except (TokenRejected, TimeoutError):
            self.rejected += 1
            if self.rejected == 1:
                with contextlib.suppress(OSError, TypeError):
                    peer = writer.get_extra_info("peername")[0]
                    _log.warning("%s rejected a client without the run's token from %s", self.address, peer)
            return False
        finally:
            self._unproved.pop(task, None)
        self.passed += 1
        return True


class Tunnels:
    """Opens tunnels to gates, one for each, on demand. Thread-safe.

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
        """Returns the address, an abstract Unix socket, that gRPC connects to for the server behind the gate at
        `address`.

        Only processes of this user can use it. No file is left behind.
        """
        with self._lock:
            if address not in self._servers:
                name = f"placement-{os.getpid()}-{secrets.token_hex(8)}"
                start = asyncio.start_unix_server(partial(self._carry, *split(address)), f"\0{name}", limit=CHUNK)
                self._servers[address] = f"unix-abstract:{name}", run(start, timeout=START_SECONDS)
            return self._servers[address][0]

    def close(self) -> None:
        """Accepts no more connections; open ones last until either end closes them. May be called twice."""
        with self._lock:
            servers, self._servers = self._servers, {}
        for _, server in servers.values():
            server.get_loop().call_soon_threadsafe(server.close)

    async def _carry(self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection until it ends."""
        try:
            _require_same_user(writer)
            there = await _connect(host, port)
            try:
                await prove(*there, self._token)
                await _relay((reader, writer), there)
            finally:
                _end(there[1])
        except TokenRejected as error:
            _log.warning("%s:%d: %s", host, port, error)
        except (OSError, TimeoutError, EOFError) as error:
            _log.debug("no tunnel to %s:%d: %s", host, port, error)
        finally:
            _end(writer)


def _require_same_user(writer: asyncio.StreamWriter) -> None:
    """Raises PermissionError unless the other end of a Unix socket is a process of this user."""
    other = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(other)
    if user != os.geteuid():
        raise PermissionError(f"user {user} may not use a tunnel of user {os.geteuid()}")


async def _connect(host: str, port: int) -> _Streams:
    streams = await asyncio.wait_for(asyncio.open_connection(host, port, limit=CHUNK), CONNECT_SECONDS)
    _keep_alive(streams[1])
    return streams


async def _relay(here: _Streams, there: _Streams) -> None:
    """Passes bytes both ways until one side ends or its machine is lost; closes both."""
    directions = [asyncio.ensure_future(_pass(here[0], there[1])), asyncio.ensure_future(_pass(there[0], here[1]))]
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for direction in directions:
            direction.cancel()
        for writer in (here[1], there[1]):
            _end(writer)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()


def _end(writer: asyncio.StreamWriter) -> None:
    """Closes a connection once everything written is sent; does not wait."""
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Makes the system close a TCP connection when the other machine is lost, and send small messages at once."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in (
        ("TCP_KEEPIDLE", SILENCE_SECONDS),
        ("TCP_KEEPINTVL", SILENCE_SECONDS // 4),
        ("TCP_USER_TIMEOUT", LOST_SECONDS * 1000),
    ):
        if hasattr(socket, name):  # Linux
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
