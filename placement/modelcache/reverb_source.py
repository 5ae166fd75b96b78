"""Asking caches for snapshots: first the version, bytes only when there is something newer, another when one dies."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from placement.modelcache.connection import SNAPSHOT_TABLE, CacheConnection, Patience, SourceClosed, SourceFailed
from placement.modelcache.header import SnapshotDamaged, Stamp, check
from placement.transport.latencies import Latencies, Summary

__all__ = ["Addresses", "Counts", "Patience", "Source", "SourceClosed", "SourceFailed"]

_Answer = TypeVar("_Answer")
Addresses = Callable[[], tuple[str, ...]]
"""The present `host:port` of the caches that may be used, nearest first; "" = down now."""


@dataclasses.dataclass(frozen=True)
class Counts:
    """What happened on the way to the snapshots.

    Attributes:
        reads: snapshots that were moved, and their latency in seconds.
        bytes: moved.
        questions: for the version.
        failures: of caches, each of which sent the reader to another one if there was one.
        damaged: snapshots that were torn or changed on the way and were thrown away.
        abandoned: threads that were given up in a read.
    """

    reads: Summary
    bytes: int
    questions: int
    failures: int
    damaged: int
    abandoned: int


class Source:
    """The caches that one reader, or one cache below them, may use. Not for several threads at once, but for `close`.

    Args:
        addresses: asked at the start, after every failure, while none of them can be used, and now and then.
        patience: how long to wait.
    """

    def __init__(self, addresses: Addresses, *, patience: Patience | None = None) -> None:
        self._lookup, self._patience = addresses, patience or Patience()
        self._addresses: tuple[str, ...] = ()
        self._looked_up = -math.inf
        self._rested: dict[str, float] = {}  # address → when it may be asked again
        self._connections: dict[str, CacheConnection] = {}
        self._closed = threading.Event()
        self._latencies = Latencies()
        self._bytes = self._questions = self._failures = self._damaged = self._abandoned = 0

    def stamp(self) -> Stamp:
        """The newest snapshot's stamp; NOTHING before the first publication. Moves no snapshot.

        Raises:
            SourceFailed: no cache answered.
            SourceClosed: closed meanwhile.
        """
        return self._first(self._ask)

    def newer(self, than: Stamp) -> np.ndarray | None:
        """A whole snapshot (uint8 [bytes], checksum proved) newer than `than`; None if there is none.

        Raises:
            SourceFailed: no cache answered, or none had a whole one.
            SourceClosed: closed meanwhile.
            SnapshotMismatch: a snapshot of a format that this program does not know.
        """
        return self._first(lambda connection: self._move(connection, than))

    def close(self) -> None:
        """Ends what is under way in another thread, within a second or so. May be called twice."""
        self._closed.set()

    def counts(self) -> Counts:
        """What happened so far."""
        return Counts(
            reads=self._latencies.summary(),
            bytes=self._bytes,
            questions=self._questions,
            failures=self._failures,
            damaged=self._damaged,
            abandoned=self._abandoned,
        )

    def latencies(self) -> list[float]:
        """Seconds that each of the last reads took, from the first byte asked for to the checksum."""
        return self._latencies.values()

    def _ask(self, connection: CacheConnection) -> Stamp:
        self._questions += 1
        return connection.stamp()

    def _move(self, connection: CacheConnection, than: Stamp) -> np.ndarray | None:
        if self._ask(connection) <= than:
            return None
        start = time.perf_counter()
        buffer = connection.sample(SNAPSHOT_TABLE, self._patience.read)
        stamp = check(buffer).stamp
        self._latencies.record(time.perf_counter() - start)
        self._bytes += buffer.size
        return buffer if stamp > than else None

    def _first(self, ask: Callable[[CacheConnection], _Answer]) -> _Answer:
        """The answer of the nearest cache that gives one."""
        if time.monotonic() - self._looked_up > self._patience.addresses or not self._usable():
            self._look_up()
        told: dict[str, str] = {}
        while True:
            usable = [each for each in self._usable() if each not in told]
            if not usable:
                raise SourceFailed(self._why(told))
            try:
                return ask(self._connection(usable[0]))
            except (SourceFailed, SnapshotDamaged) as error:
                told[usable[0]] = str(error)
                self._give_up(usable[0], error)

    def _usable(self) -> list[str]:
        """The known addresses that do not rest after a failure, nearest first."""
        now = time.monotonic()
        return [each for each in self._addresses if each and self._rested.get(each, now) <= now]

    def _why(self, told: dict[str, str]) -> str:
        if told:
            return "; ".join(told.values())
        return f"no cache to ask: {', '.join(each or 'down' for each in self._addresses) or 'none known'}"

    def _connection(self, address: str) -> CacheConnection:
        if address not in self._connections:
            self._connections[address] = CacheConnection(address, self._patience, self._closed)
        return self._connections[address]

    def _give_up(self, address: str, error: Exception) -> None:
        """Lets a cache rest after a failure, and looks up where the others are now."""
        self._failures += 1
        self._damaged += isinstance(error, SnapshotDamaged)
        self._abandoned += self._connections.pop(address).abandoned
        self._rested[address] = time.monotonic() + self._patience.retry
        self._look_up()

    def _look_up(self) -> None:
        self._addresses = tuple(self._lookup())
        self._looked_up = time.monotonic()
        self._rested = {each: when for each, when in self._rested.items() if each in self._addresses}
        self._connections = {each: line for each, line in self._connections.items() if each in self._addresses}
