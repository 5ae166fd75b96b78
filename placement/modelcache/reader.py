"""Reads from the tree of caches: first the version, bytes only if there are newer ones, another cache if one dies.

A cache has two gRPC calls, which carry raw bytes:

    version     sends the version that the caller has and seconds to wait for a newer one; returns the newest version
    snapshot    returns the newest snapshot as a stream, the header first; nothing if there is none

With a run's token each call carries a secret derived from it (`authorization`), or is rejected.
"""

import dataclasses
import itertools
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import grpc
import numpy as np

from placement.modelcache.store import (
    HEADER_BYTES,
    Layout,
    ParameterStore,
    Snapshot,
    SnapshotDamaged,
    SnapshotMismatch,
    StoreClosed,
    StoreTimeout,
    check_snapshot,
    read_header,
)
from placement.transport.addresses import Addresses, Failover
from placement.transport.gate import derived
from placement.transport.latencies import Latencies

SERVICE = "placement.ModelCache"
QUESTION = struct.Struct("<qd")
ANSWER = struct.Struct("<q")
CHUNK_BYTES = 1 << 20
HOLD_SECONDS = 1.0  # maximum seconds that a cache delays its answer while it waits for a newer version
POLL_SECONDS = 0.02  # seconds between two queries for a newer version
_OPTIONS = (
    ("grpc.max_receive_message_length", 2 * CHUNK_BYTES),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),  # A new connection must not wait because an older one failed.
    ("grpc.keepalive_time_ms", 10_000),  # Detects a host that vanished during a call after this long without data …
    ("grpc.http2.ping_timeout_ms", 20_000),  # … and this long again, since a full link takes its time.
    ("grpc.http2.max_pings_without_data", 0),  # no limit
)
_Answer = TypeVar("_Answer")


def credentials(token: str | None) -> tuple[tuple[str, str], ...]:
    """The metadata of a call to a cache of the run with that token; None = empty."""
    return () if token is None else (("authorization", f"Bearer {derived(token, SERVICE)}"),)


class SourceFailed(ConnectionError):
    """A cache did not answer, in time or at all; the message names it."""


@dataclasses.dataclass(frozen=True)
class Timeouts:
    """A reader's timeouts, in seconds."""

    call: float = 20.0  # timeout of a small query
    read: float = 120.0  # timeout of the bytes of one snapshot
    retry: float = 5.0  # delay before a failed cache is used again


class CacheReader(ParameterStore):
    """Reads the newest snapshot from the nearest cache that answers. Thread-safe.

    The returned versions never decrease: the reader waits for a cache that lags behind them.

    Args:
        addresses: returns the current addresses of the usable caches, nearest first.
        layout: the layout of the parameters.
        timeouts: timeouts of a cache.
        token: the run's; None = the caches require none.

    Attributes:
        source: the caches, and statistics of the connections.
    """

    def __init__(
        self, addresses: Addresses, layout: Layout, *, timeouts: Timeouts | None = None, token: str | None = None
    ) -> None:
        self._layout = layout
        self.source = Source(addresses, timeouts=timeouts, token=token)
        self._reading = threading.Lock()  # One thread moves the bytes; the others use its result.
        self._snapshot: Snapshot | None = None
        self._closed = threading.Event()

    def version(self) -> int:
        """The newest version that a cache has; the stored one if none answers; -1 before the first."""
        try:
            return max(self.source.version(), self._held())
        except SourceFailed:
            return self._held()

    def wait_for(self, version: int, *, timeout: float) -> Snapshot:
        """Returns the newest snapshot, once it is at least `version`.

        If no cache answers, the stored snapshot is returned if it is at least `version`. A transfer under way at the
        deadline is completed (within `Timeouts.read` seconds) rather than discarded.

        Raises:
            StoreTimeout: none arrived within `timeout` seconds.
            StoreClosed: the store is closed.
            SnapshotMismatch: the caches belong to another model.
        """
        deadline, hold = time.monotonic() + timeout, 0.0
        while True:
            trouble = self._refresh(hold, deadline)
            left = deadline - time.monotonic()
            if self._snapshot is not None and self._snapshot.version >= version:
                return self._snapshot
            if left <= 0:
                reason = trouble or "the learner is too slow or has stopped"
                raise StoreTimeout(
                    f"{threading.current_thread().name} waited {timeout:g} s for parameters of version {version}; the "
                    f"newest is {self._held()}: {reason}"
                )
            hold = min(left, HOLD_SECONDS)
            self._closed.wait(min(POLL_SECONDS, left))

    def close(self) -> None:
        self._closed.set()
        self.source.close()

    def _refresh(self, hold: float, deadline: float) -> str:
        """Moves a newer snapshot, if any; returns the failure, which is not an error before the deadline."""
        try:
            newest = self.source.version(has=self._held(), hold=hold)
            if not self._reading.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
                return "another thread is still reading"
            try:
                if newest > self._held():
                    version, buffer = self.source.read()
                    if version > self._held():  # Otherwise the cache that announced it could not provide it.
                        self._snapshot = self._layout.unpack(buffer)
            finally:
                self._reading.release()
        except SourceFailed as error:
            return str(error)
        return ""

    def _held(self) -> int:
        return -1 if self._snapshot is None else self._snapshot.version


class Source:
    """The caches that a reader, or a cache below them, may use. Thread-safe.

    Args:
        addresses: returns the current addresses of the caches, nearest first.
        timeouts: timeouts of a cache.
        token: the run's; None = the caches require none.

    Attributes:
        latencies: latencies of snapshots, from the request to the checksum.
        bytes: number of bytes moved.
        questions: number of queries for the version.
        failures: number of failures of caches; after each, the reader used another one if there was one.
        damaged: number of snapshots dropped because they were torn or changed on the way.
    """

    def __init__(self, addresses: Addresses, *, timeouts: Timeouts | None = None, token: str | None = None) -> None:
        self._timeouts, self._credentials = timeouts or Timeouts(), credentials(token)
        self._failover = Failover(addresses, retry=self._timeouts.retry)
        self._channels: dict[str, grpc.Channel] = {}
        self._lock = threading.Lock()  # guards all attributes below, and the channels
        self._closed = False
        self.latencies = Latencies()
        self.bytes = self.questions = self.failures = self.damaged = 0

    def version(self, *, has: int = -1, hold: float = 0.0) -> int:
        """The newest version, -1 before the first publication; waits up to `hold` seconds for one above `has`.

        Raises:
            SourceFailed: no cache answered.
            StoreClosed: the store was closed.
        """
        question, timeout = QUESTION.pack(has, hold), hold + self._timeouts.call

        def ask(channel: grpc.Channel) -> int:
            call = channel.unary_unary(f"/{SERVICE}/version")
            return int(ANSWER.unpack(call(question, timeout=timeout, metadata=self._credentials))[0])

        with self._lock:
            self.questions += 1
        return self._first(ask)

    def read(self) -> tuple[int, np.ndarray]:
        """Reads the newest snapshot's version, and the snapshot (uint8 [bytes]) with a correct checksum.

        Raises:
            SourceFailed: no cache answered, or none had an intact snapshot.
            StoreClosed: the store was closed.
            SnapshotMismatch: a snapshot of a format that this program does not know.
        """

        def move(channel: grpc.Channel) -> tuple[int, np.ndarray]:
            start, call = time.perf_counter(), channel.unary_stream(f"/{SERVICE}/snapshot")
            buffer = _assemble(call(b"", timeout=self._timeouts.read, metadata=self._credentials))
            version = check_snapshot(buffer).version
            self.latencies.record(time.perf_counter() - start)
            with self._lock:
                self.bytes += buffer.size
            return version, buffer

        return self._first(move)

    def close(self) -> None:
        """Ends operations under way in other threads. May be called twice."""
        with self._lock:
            self._closed = True
            channels = list(self._channels.values())
        for channel in channels:
            channel.close()

    def _first(self, ask: Callable[[grpc.Channel], _Answer]) -> _Answer:
        """The answer of the nearest cache that answers."""
        errors = []
        for _, address in self._failover.usable():
            channel = self._channel(address)
            try:
                return ask(channel)
            except SnapshotMismatch:
                raise
            except (grpc.RpcError, ValueError) as error:  # ValueError: damaged, or closed by another thread
                self._drop(address, channel, error)
                errors.append(_explain(address, error))
        raise SourceFailed("; ".join(errors) or f"no cache is available: {self._failover.describe()}")

    def _channel(self, address: str) -> grpc.Channel:
        with self._lock:
            self._raise_if_closed()
            if address not in self._channels:
                self._channels[address] = grpc.insecure_channel(address, options=_OPTIONS)
            return self._channels[address]

    def _drop(self, address: str, channel: grpc.Channel, error: Exception) -> None:
        """Closes a failed connection, and avoids its cache for a while."""
        with self._lock:
            self._raise_if_closed()
            self.failures += 1
            self.damaged += isinstance(error, SnapshotDamaged)
            self._failover.failed(address)
            if self._channels.get(address) is channel:
                del self._channels[address]
        channel.close()

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise StoreClosed(f"{threading.current_thread().name} cannot continue: the parameter store is closed")


def _explain(address: str, error: Any) -> str:
    """The reason why a call to the cache at `address` failed."""
    if isinstance(error, SnapshotDamaged):
        return str(error)
    if not isinstance(error, grpc.RpcError):
        return f"the connection to the cache at {address} was closed"
    if error.code() == grpc.StatusCode.UNAUTHENTICATED:
        return f"the cache at {address} rejects this run's token: {error.details()}"
    if error.code() == grpc.StatusCode.UNIMPLEMENTED:
        return f"{address} is not a model cache: {error.details()}"
    return f"the cache at {address} failed: {error.code().name}, {error.details()}"


def _assemble(chunks: Iterator[bytes]) -> np.ndarray:
    """Concatenates the chunks with a single copy."""
    first = next(chunks, b"")
    size, end = HEADER_BYTES + read_header(first).payload, 0
    try:
        buffer = np.empty(size, np.uint8)
    except (MemoryError, ValueError):
        raise SnapshotDamaged(f"a snapshot's header declares {size} bytes, more than the available memory") from None
    for chunk in itertools.chain([first], chunks):
        if end + len(chunk) > size:
            raise SnapshotDamaged(f"a snapshot has more than the {size} bytes that its header declares")
        buffer[end : end + len(chunk)] = np.frombuffer(chunk, np.uint8)
        end += len(chunk)
    return buffer[:end]
