"""The way to one cache: its version and its snapshot, each call with a deadline; a dead server is noticed at once."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np

from placement.modelcache.header import SIZE, SnapshotDamaged, SnapshotMismatch, read
from placement.modelcache.service import ANSWER, CHUNK_BYTES, QUESTION, SERVICE, credentials

_OPTIONS = (
    ("grpc.max_receive_message_length", 2 * CHUNK_BYTES),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),  # a new connection does not wait because an older one failed
    ("grpc.keepalive_time_ms", 10_000),  # a host that vanished is noticed in a call without a word for so long …
    ("grpc.http2.ping_timeout_ms", 20_000),  # … and for so long again: a link that is full takes its time
    ("grpc.http2.max_pings_without_data", 0),  # no limit
)


class SourceFailed(ConnectionError):
    """A cache did not answer, in time or at all; the message names it."""


@dataclasses.dataclass(frozen=True)
class Timeouts:
    """How long a reader waits; all in seconds.

    Attributes:
        call: for the answer to a small question.
        read: for the bytes of one snapshot.
        retry: before a cache that failed is asked again.
    """

    call: float = 20.0
    read: float = 120.0
    retry: float = 5.0


class CacheConnection:
    """The way to one cache, with the run's token where there is one; for several threads at once."""

    def __init__(self, address: str, timeouts: Timeouts, *, token: str | None = None) -> None:
        self._address, self._timeouts, self._credentials = address, timeouts, credentials(token)
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        self._version = self._channel.unary_unary(f"/{SERVICE}/version")
        self._snapshot = self._channel.unary_stream(f"/{SERVICE}/snapshot")

    def version(self, has: int, hold: float) -> int:
        """The newest version that the cache holds, -1 = none; waits `hold` seconds for one above `has`."""
        question = QUESTION.pack(has, hold)
        try:
            return int(
                ANSWER.unpack(self._version(question, timeout=hold + self._timeouts.call, metadata=self._credentials))[
                    0
                ]
            )
        except (grpc.RpcError, ValueError) as error:  # ValueError: closed by another thread
            raise self._failure(error) from None

    def snapshot(self) -> np.ndarray:
        """The newest snapshot (uint8 [bytes]), its checksum not proved yet.

        Raises:
            SourceFailed: it did not come, or not in time.
            SnapshotDamaged, SnapshotMismatch: its header is wrong, or more came than that says.
        """
        try:
            return _assemble(self._snapshot(b"", timeout=self._timeouts.read, metadata=self._credentials))
        except (SnapshotDamaged, SnapshotMismatch):
            raise
        except (grpc.RpcError, ValueError) as error:
            raise self._failure(error) from None

    def close(self) -> None:
        """Ends what is under way in other threads."""
        self._channel.close()

    def _failure(self, error: Any) -> SourceFailed:
        if not isinstance(error, grpc.RpcError):
            return SourceFailed(f"the connection to the cache at {self._address} was closed")
        if error.code() == grpc.StatusCode.UNAUTHENTICATED:
            return SourceFailed(f"the cache at {self._address} refuses this run's token: {error.details()}")
        if error.code() == grpc.StatusCode.UNIMPLEMENTED:
            return SourceFailed(f"{self._address} is no model cache: {error.details()}")
        return SourceFailed(f"the cache at {self._address} failed: {error.code().name}, {error.details()}")


def _assemble(chunks: Iterator[bytes]) -> np.ndarray:
    """The chunks behind each other, copied once."""
    first = next(chunks, b"")
    size, end = SIZE + read(first).payload, 0
    try:
        buffer = np.empty(size, np.uint8)
    except (MemoryError, ValueError):
        raise SnapshotDamaged(f"a snapshot's header says {size} bytes, for which there is no room") from None
    for chunk in itertools.chain([first], chunks):
        if end + len(chunk) > size:
            raise SnapshotDamaged(f"a snapshot has more than the {size} bytes that its header says")
        buffer[end : end + len(chunk)] = np.frombuffer(chunk, np.uint8)
        end += len(chunk)
    return buffer[:end]
