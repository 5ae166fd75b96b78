"""A model cache's gRPC server: two calls that carry raw bytes, whoever calls and however slow they are.

    version     asks with the version that the caller has, and seconds to wait for a newer one; the answer: the newest
    snapshot    the answer: the newest snapshot as a stream, the header first; nothing if there is none

With a run's token each call carries a secret derived from it (`authorization`), or is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import itertools
import struct
from collections.abc import AsyncIterator
from typing import Any

import grpc
import numpy as np

from placement.modelcache.header import SIZE
from placement.transport.addresses import PortTaken, is_loopback, join
from placement.transport.event_loop import event_loop, run
from placement.transport.token_proof import derived

SERVICE = "placement.ModelCache"
QUESTION = struct.Struct("<qd")
ANSWER = struct.Struct("<q")
CHUNK_BYTES = 1 << 20
LONGEST_HOLD_SECONDS = 10.0
START_SECONDS, STOP_SECONDS = 30.0, 10.0
_OPTIONS = (
    ("grpc.so_reuseport", 0),  # a port is one server's
    ("grpc.max_receive_message_length", 4096),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5000),
)


def credentials(token: str | None) -> tuple[tuple[str, str], ...]:
    """What a call to a cache of the run with that token carries; None = nothing."""
    return () if token is None else (("authorization", f"Bearer {derived(token, SERVICE)}"),)


class SnapshotServer:
    """Serves one snapshot, the newest.

    Args:
        port: TCP port; 0 = any free one.
        bind: the address by which others reach it. A loopback address: this machine only. Any other: it listens on all
            interfaces, because the user said so.
        token: the run's, without which nothing is answered; None = anybody is answered.

    Raises:
        PortTaken: something listens on `port` already.

    Attributes:
        port: TCP port that it listens on.
        address: `host:port` by which others reach it.
        served: snapshots read from it so far.
        strangers: calls refused because they lacked the token.
    """

    def __init__(self, *, port: int, bind: str, token: str | None = None) -> None:
        self.served = self.strangers = 0
        self._credentials = credentials(token)
        self._held: tuple[int, list[bytes]] = (-1, [])
        listen = join(bind, port) if is_loopback(bind) else f"[::]:{port}"
        self.port = run(self._start(listen), timeout=START_SECONDS)
        self.address = join(bind, self.port)

    def put(self, version: int, buffer: np.ndarray) -> None:
        """Replaces what is served (uint8 [bytes]), and wakes who waits for it; reads under way go on."""
        data = buffer.data
        ends = [0, SIZE, *range(SIZE + CHUNK_BYTES, buffer.size, CHUNK_BYTES), buffer.size]
        self._held = version, [bytes(data[start:end]) for start, end in itertools.pairwise(ends)]
        event_loop().call_soon_threadsafe(self._wake)

    def stop(self) -> None:
        """Ends the server; those who wait on it get errors. To be called once."""
        run(self._server.stop(None), timeout=STOP_SECONDS)

    async def _start(self, address: str) -> int:
        self._changed = asyncio.Event()
        self._server = grpc.aio.server(options=_OPTIONS)
        handlers = {
            "version": grpc.unary_unary_rpc_method_handler(self._version),
            "snapshot": grpc.unary_stream_rpc_method_handler(self._snapshot),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        try:
            port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise PortTaken(f"port {address.rpartition(':')[2]} is taken or cannot be used: {error}") from None
        await self._server.start()
        return int(port)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _require_token(self, context: Any) -> None:
        """Ends a call that lacks the token."""
        given = dict(context.invocation_metadata() or ())
        for name, value in self._credentials:
            found = given.get(name, "")
            if not isinstance(found, str) or not hmac.compare_digest(found.encode(), value.encode()):
                self.strangers += 1
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the call lacks the run's token")

    async def _version(self, request: bytes, context: Any) -> bytes:
        await self._require_token(context)
        has, hold = QUESTION.unpack(request)
        if self._held[0] <= has and hold > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(hold, LONGEST_HOLD_SECONDS))
        return ANSWER.pack(self._held[0])

    async def _snapshot(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        await self._require_token(context)
        for chunk in self._held[1]:
            yield chunk
        self.served += 1
