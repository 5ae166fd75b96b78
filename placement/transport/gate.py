"""A gate before a server that asks nobody who they are: it passes on only those who prove the run's token."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from placement.transport.addresses import PortTaken, join
from placement.transport.event_loop import run
from placement.transport.relay import PIECE, end, relay, watch
from placement.transport.token_proof import TokenRefused, demand

_log = logging.getLogger(__name__)
START_SECONDS, STOP_SECONDS = 30.0, 10.0
CONNECT_SECONDS = 10.0
MAX_UNPROVED = 256
"""Connections at once that have proved nothing yet; beyond that the oldest of them is closed."""


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
        port: TCP port that it listens on.
        address: `host:port` for clients.
        passed, refused: connections that proved the token, and that did not.
    """

    def __init__(self, behind: int, *, bind: str, token: str, port: int = 0) -> None:
        if not token:
            raise ValueError("a gate without a token keeps nobody out: give it the run's")
        self._behind, self._token = behind, token
        self.passed = self.refused = 0
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
            return await asyncio.start_server(self._serve, bind, port, limit=PIECE)
        except OSError as error:
            raise PortTaken(f"{bind} port {port} cannot be listened on: {error}") from error

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
                there = await asyncio.wait_for(
                    asyncio.open_connection("127.0.0.1", self._behind, limit=PIECE), CONNECT_SECONDS
                )
                watch(there[1])
                await relay((reader, writer), there)
        except (OSError, TimeoutError) as error:
            _log.debug("the gate at %s lost a connection: %s", self.address, error)
        except asyncio.CancelledError:
            pass  # the gate closes, or too many have proved nothing
        finally:
            self._open.discard(task)
            end(writer)

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
            watch(writer)
            await demand(reader, writer, self._token)
        except asyncio.IncompleteReadError as error:
            self.refused += bool(error.partial)  # one that says nothing only asks whether somebody listens
            return False
        except (TokenRefused, TimeoutError):
            self.refused += 1
            if self.refused == 1:
                with contextlib.suppress(OSError, TypeError):
                    _log.warning("%s refused a client without the run's token from %s", self.address, _peer(writer))
            return False
        finally:
            self._unproved.pop(task, None)
        self.passed += 1
        return True


def _peer(writer: asyncio.StreamWriter) -> str:
    return str(writer.get_extra_info("peername")[0])
