"""A model cache stores the newest snapshot of the parameters, for readers and for caches below it.

The learner publishes to the root, beside it; every other cache asks its parent for the version, moves the bytes only
when it changed, and serves them to any number of readers, however slow. `reader` describes the calls.
"""

import asyncio
import contextlib
import hmac
import itertools
import logging
import threading
from collections.abc import AsyncIterator
from typing import Any

import grpc
import numpy as np

from placement.modelcache.reader import (
    ANSWER,
    CHUNK_BYTES,
    HOLD_SECONDS,
    POLL_SECONDS,
    QUESTION,
    SERVICE,
    Source,
    SourceFailed,
    Timeouts,
    credentials,
)
from placement.modelcache.store import HEADER_BYTES, SnapshotMismatch, StoreClosed, check_snapshot
from placement.transport.addresses import Addresses, PortTaken, is_loopback, join
from placement.transport.event_loop import event_loop, run

_log = logging.getLogger(__name__)
LONGEST_HOLD_SECONDS = 10.0
START_SECONDS, STOP_SECONDS, CLOSE_SECONDS = 30.0, 10.0, 30.0
_OPTIONS = (
    ("grpc.so_reuseport", 0),  # a port belongs to one server
    ("grpc.max_receive_message_length", 4096),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5000),
)


class ModelCache:
    """One cache of the tree, with its gRPC server.

    Args:
        port: TCP port; 0 = any free one.
        bind: the address by which others reach it. With a loopback address only this machine does; with any other it
            listens on all interfaces.
        parents: the sources of snapshots, nearest first; None = this is the root, which is published to.
        timeouts: timeouts of the parents.
        token: the run's token, which readers and parents require; None = none is required.

    Raises:
        PortTaken: something listens on `port` already.

    Attributes:
        version: version of its snapshot; -1 = none yet.
        published: number of snapshots that it has stored so far.
        served: number of snapshots read from it so far.
        unauthenticated: number of calls rejected because they lacked the run's token.
        source: its reading from its parents; None at the root.
        port, address: TCP port, and `host:port`, by which others reach it.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        bind: str = "127.0.0.1",
        parents: Addresses | None = None,
        timeouts: Timeouts | None = None,
        token: str | None = None,
    ) -> None:
        self.version, self.published, self.served, self.unauthenticated = -1, 0, 0, 0
        self._credentials = credentials(token)
        self._held: tuple[int, list[bytes]] = (-1, [])  # version and chunks of the served snapshot
        listen = join(bind, port) if is_loopback(bind) else f"[::]:{port}"
        self.port = run(self._start(listen), timeout=START_SECONDS)
        self.address = join(bind, self.port)
        self._publishing = threading.Lock()
        self._closed = threading.Event()
        self.source = Source(parents, timeouts=timeouts, token=token) if parents is not None else None
        self._reader = threading.Thread(target=self._follow, name=f"model cache {self.address}", daemon=True)
        if self.source is not None:
            self._reader.start()

    def publish(self, buffer: np.ndarray) -> None:
        """Makes a packed snapshot (uint8 [bytes]) the newest one. At the root only.

        Raises:
            ValueError: its version is not above the newest one.
            SnapshotDamaged, SnapshotMismatch: it is not an intact snapshot.
            StoreClosed: the cache is closed.
            RuntimeError: this cache has parents.
        """
        if self.source is not None:
            raise RuntimeError(f"the cache at {self.address} has parents; publish at the root of the tree")
        self._put(check_snapshot(buffer).version, buffer)

    def close(self) -> None:
        """Ends the server; its readers use another cache. May be called twice."""
        with self._publishing:
            if self._closed.is_set():
                return
            self._closed.set()
            run(self._server.stop(None), timeout=STOP_SECONDS)
        if self.source is not None:
            self.source.close()
            if threading.current_thread() is not self._reader:
                self._reader.join(CLOSE_SECONDS)

    def _put(self, version: int, buffer: np.ndarray) -> None:
        with self._publishing:
            if self._closed.is_set():
                raise StoreClosed(f"the cache at {self.address} is closed; version {version} was not published")
            if version <= self.version:
                raise ValueError(f"version {version} published after version {self.version}: versions must increase")
            self._serve(version, buffer)
            self.version = version
            self.published += 1

    def _serve(self, version: int, buffer: np.ndarray) -> None:
        """Replaces the served snapshot and wakes waiting readers; reads under way keep the old one."""
        data = buffer.data
        ends = [0, HEADER_BYTES, *range(HEADER_BYTES + CHUNK_BYTES, buffer.size, CHUNK_BYTES), buffer.size]
        self._held = version, [bytes(data[start:end]) for start, end in itertools.pairwise(ends)]
        event_loop().call_soon_threadsafe(self._wake)

    def _follow(self) -> None:
        """Follows the parents until closed. Any other error ends the server, so that readers use another cache."""
        failing = False
        try:
            while not self._closed.wait(POLL_SECONDS):
                failing = self._poll(failing=failing)
        except StoreClosed:
            pass
        except Exception:  # noqa: BLE001  the traceback is logged, the readers use another cache
            _log.exception("the cache at %s cannot continue and ends", self.address)
            self.close()

    def _poll(self, *, failing: bool) -> bool:
        """Fetches a newer snapshot, if any; returns whether the parents fail, which is logged once."""
        assert self.source is not None
        try:
            if self.source.version(has=self.version, hold=HOLD_SECONDS) > self.version:
                version, buffer = self.source.read()
                if version > self.version:  # Otherwise the cache that announced it could not provide it.
                    self._put(version, buffer)
        except (SourceFailed, SnapshotMismatch) as error:
            if not failing:
                _log.warning("the cache at %s keeps serving version %d: %s", self.address, self.version, error)
            return True
        return False

    # The methods below run in the event loop.

    async def _start(self, address: str) -> int:
        self._changed = asyncio.Event()
        self._server = grpc.aio.server(options=_OPTIONS)
        handlers = {
            "version": grpc.unary_unary_rpc_method_handler(self._answer_version),
            "snapshot": grpc.unary_stream_rpc_method_handler(self._answer_snapshot),
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
        """Ends a call without the token."""
        given = dict(context.invocation_metadata() or ())
        for name, value in self._credentials:
            found = given.get(name, "")
            if not isinstance(found, str) or not hmac.compare_digest(found.encode(), value.encode()):
                self.unauthenticated += 1
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the call does not carry the run's token")

    async def _answer_version(self, request: bytes, context: Any) -> bytes:
        await self._require_token(context)
        has, hold = QUESTION.unpack(request)
        if self._held[0] <= has and hold > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(hold, LONGEST_HOLD_SECONDS))
        return ANSWER.pack(self._held[0])

    async def _answer_snapshot(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        await self._require_token(context)
        for chunk in self._held[1]:
            yield chunk
        self.served += 1
