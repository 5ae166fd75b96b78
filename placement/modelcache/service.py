"""A model cache's gRPC server: two calls that carry raw bytes, whoever calls and however slow they are.

    version     asks with the version that the caller has, and seconds to wait for a newer one; the answer: the newest
    snapshot    the answer: the newest snapshot as a stream, the header first; nothing if there is none

All servers of a process share one thread, which runs an event loop: neither a waiting nor a slow reader holds a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import struct
import threading
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import grpc
import numpy as np

from placement.modelcache.header import SIZE
from placement.transport.addresses import PortTaken, is_loopback, join

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
_starting = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


class SnapshotServer:
    """Serves one snapshot, the newest.

    Args:
        port: TCP port; 0 = any free one.
        bind: the address by which others reach it. A loopback address: this machine only. Any other: it listens on all
            interfaces, because the user said so.

    Raises:
        PortTaken: something listens on `port` already.

    Attributes:
        port: TCP port that it listens on.
        address: `host:port` by which others reach it.
        served: snapshots read from it so far.
    """

    def __init__(self, *, port: int, bind: str) -> None:
        self.served = 0
        self._held: tuple[int, list[bytes]] = (-1, [])
        self.port = _run(self._start(join(bind, port) if is_loopback(bind) else f"[::]:{port}"), START_SECONDS)
        self.address = join(bind, self.port)

    def put(self, version: int, buffer: np.ndarray) -> None:
        """Replaces what is served (uint8 [bytes]), and wakes who waits for it; reads under way go on."""
        data = buffer.data
        ends = [0, SIZE, *range(SIZE + CHUNK_BYTES, buffer.size, CHUNK_BYTES), buffer.size]
        self._held = version, [bytes(data[start:end]) for start, end in itertools.pairwise(ends)]
        _loop().call_soon_threadsafe(self._wake)

    def stop(self) -> None:
        """Ends the server; those who wait on it get errors. To be called once."""
        _run(self._server.stop(None), STOP_SECONDS)

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

    async def _version(self, request: bytes, context: Any) -> bytes:
        has, hold = QUESTION.unpack(request)
        if self._held[0] <= has and hold > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(hold, LONGEST_HOLD_SECONDS))
        return ANSWER.pack(self._held[0])

    async def _snapshot(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        for chunk in self._held[1]:
            yield chunk
        self.served += 1


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of this process's servers; gRPC serves one loop per process well."""
    with _starting:
        if not _loops:
            _loops.append(asyncio.new_event_loop())
            threading.Thread(target=_loops[0].run_forever, name="model cache server", daemon=True).start()
        return _loops[0]


def _run(work: Coroutine[Any, Any, Any], seconds: float) -> Any:
    """Runs `work` in the loop and waits for its result; raises TimeoutError after so many seconds."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result(seconds)
