"""Asking caches for snapshots: first the version, bytes only when there is something newer, another when one dies."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from placement.modelcache.base import StoreClosed
from placement.modelcache.connection import CacheConnection, SourceFailed, Timeouts
from placement.modelcache.header import SnapshotDamaged, check
from placement.transport.addresses import Addresses
from placement.transport.failover import Failover
from placement.transport.latencies import Latencies

_Answer = TypeVar("_Answer")
HOLD_SECONDS = 1.0
"""So long a cache keeps a question for a newer version, in the hope that one comes."""


class Source:
    """The caches that a reader, or a cache below them, may use. For several threads at once.

    Args:
        addresses: of the caches at present, nearest first.
        timeouts: how long to wait.
        token: the run's; None = the caches ask for none.

    Attributes:
        latencies: of the snapshots that were moved, from the first byte asked for to the checksum.
        bytes: moved.
        questions: for the version.
        failures: of caches, each of which sent the reader to another one if there was one.
        damaged: snapshots that were torn or changed on the way and were thrown away.
    """

    def __init__(self, addresses: Addresses, *, timeouts: Timeouts | None = None, token: str | None = None) -> None:
        self._timeouts, self._token = timeouts or Timeouts(), token
        self._failover = Failover(addresses, retry=self._timeouts.retry)
        self._connections: dict[str, CacheConnection] = {}
        self._lock = threading.Lock()  # for everything below, and the connections
        self._closed = False
        self.latencies = Latencies()
        self.bytes = self.questions = self.failures = self.damaged = 0

    def version(self, *, has: int = -1, hold: float = 0.0) -> int:
        """The newest version, -1 before the first publication; waits up to `hold` seconds for one above `has`.

        Raises:
            SourceFailed: no cache answered.
            StoreClosed: closed meanwhile.
        """
        with self._lock:
            self.questions += 1
        return self._first(lambda connection: connection.version(has, hold))

    def read(self) -> tuple[int, np.ndarray]:
        """The newest snapshot's version, and the snapshot (uint8 [bytes]), whole: its checksum is proved.

        Raises:
            SourceFailed: no cache answered, or none had a whole one.
            StoreClosed: closed meanwhile.
            SnapshotMismatch: a snapshot of a format that this program does not know.
        """
        return self._first(self._move)

    def close(self) -> None:
        """Ends what is under way in other threads. May be called twice."""
        with self._lock:
            self._closed = True
            connections = list(self._connections.values())
        for connection in connections:
            connection.close()

    def _move(self, connection: CacheConnection) -> tuple[int, np.ndarray]:
        start = time.perf_counter()
        buffer = connection.snapshot()
        version = check(buffer).version
        self.latencies.record(time.perf_counter() - start)
        with self._lock:
            self.bytes += buffer.size
        return version, buffer

    def _first(self, ask: Callable[[CacheConnection], _Answer]) -> _Answer:
        """The answer of the nearest cache that gives one."""
        errors = []
        for _, address in self._failover.usable():
            connection = self._connection(address)
            try:
                return ask(connection)
            except (SourceFailed, SnapshotDamaged) as error:
                self._give_up(address, connection, error)
                errors.append(str(error))
        raise SourceFailed("; ".join(errors) or f"no cache to ask: {self._failover.describe()}")

    def _connection(self, address: str) -> CacheConnection:
        with self._lock:
            if self._closed:
                raise self._closed_error()
            if address not in self._connections:
                self._connections[address] = CacheConnection(address, self._timeouts, token=self._token)
            return self._connections[address]

    def _give_up(self, address: str, connection: CacheConnection, error: Exception) -> None:
        """Closes a connection that failed, and leaves its cache alone for a while."""
        with self._lock:
            if self._closed:
                raise self._closed_error()
            self.failures += 1
            self.damaged += isinstance(error, SnapshotDamaged)
            self._failover.failed(address)
            if self._connections.get(address) is connection:
                del self._connections[address]
        connection.close()

    @staticmethod
    def _closed_error() -> StoreClosed:
        return StoreClosed(f"{threading.current_thread().name} cannot go on: the parameter store is closed")
