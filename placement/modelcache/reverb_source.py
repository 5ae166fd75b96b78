"""Asking caches for snapshots: first the version, and bytes only when there is something newer; another when one dies.

Reverb's sampling has no deadline and waits for ever for a server that is gone. So every sample is taken in a thread of
its own and given up when the server no longer accepts connections, or when its deadline passes; a thread given up ends
when its server is back (`Counts.abandoned`).
"""

from __future__ import annotations

import dataclasses
import math
import socket
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from placement.modelcache.header import NOTHING, SnapshotDamaged, Stamp, check, read
from placement.transport.latencies import Latencies, Summary
from placement.transport.reverb_server import reverb

_Answer = TypeVar("_Answer")
Addresses = Callable[[], tuple[str, ...]]
"""The present `host:port` of the caches that may be used, nearest first; "" = down now."""

SNAPSHOT_TABLE = "snapshot"
VERSION_TABLE = "version"
STARTED = "started:"
"""Begins the name of a table that is always empty and whose name no other server has."""
GLANCE_SECONDS = 1.0
"""Before it is first looked whether the server is still there; twice as long before each further look."""
LONGEST_GLANCE_SECONDS = 8.0
SILENT_GLANCES = 3
"""So many in a row without an answer, on a link that may be full, count as a death; a refusal is one at once."""


class SourceClosed(RuntimeError):
    """The reader was closed while it waited."""


class SourceFailed(ConnectionError):
    """A cache did not answer, in time or at all; the message names it."""


@dataclasses.dataclass(frozen=True)
class Patience:
    """How long to wait; all in seconds.

    Attributes:
        call: for the answer to a small question.
        read: for the bytes of one snapshot.
        retry: before a cache that failed is asked again.
        addresses: before the addresses are looked up again though nothing failed.
    """

    call: float = 20.0
    read: float = 120.0
    retry: float = 5.0
    addresses: float = 30.0


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
        addresses: asked at the start, after every failure, and now and then.
        patience: how long to wait.
    """

    def __init__(self, addresses: Addresses, *, patience: Patience | None = None) -> None:
        self._lookup, self._patience = addresses, patience or Patience()
        self._addresses: tuple[str, ...] = ()
        self._looked_up = -math.inf
        self._rested: dict[str, float] = {}  # address → when it may be asked again
        self._lines: dict[str, _Line] = {}
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
        return self._first(lambda line: self._move(line, than))

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

    def _ask(self, line: _Line) -> Stamp:
        self._questions += 1
        return line.stamp()

    def _move(self, line: _Line, than: Stamp) -> np.ndarray | None:
        if self._ask(line) <= than:
            return None
        start = time.perf_counter()
        buffer = line.sample(SNAPSHOT_TABLE, self._patience.read)
        stamp = check(buffer).stamp
        self._latencies.record(time.perf_counter() - start)
        self._bytes += buffer.size
        return buffer if stamp > than else None

    def _first(self, ask: Callable[[_Line], _Answer]) -> _Answer:
        """The answer of the nearest cache that gives one."""
        if time.monotonic() - self._looked_up > self._patience.addresses:
            self._look_up()
        told: dict[str, str] = {}
        while True:
            now = time.monotonic()
            usable = [each for each in self._addresses if each and self._rested.get(each, now) <= now]
            usable = [each for each in usable if each not in told]
            if not usable:
                raise SourceFailed(self._why(told))
            try:
                return ask(self._line(usable[0]))
            except (SourceFailed, SnapshotDamaged) as error:
                told[usable[0]] = str(error)
                self._give_up(usable[0], error)

    def _why(self, told: dict[str, str]) -> str:
        if told:
            return "; ".join(told.values())
        return f"no cache to ask: {', '.join(each or 'down' for each in self._addresses) or 'none known'}"

    def _line(self, address: str) -> _Line:
        if address not in self._lines:
            self._lines[address] = _Line(address, self._patience, self._closed)
        return self._lines[address]

    def _give_up(self, address: str, error: Exception) -> None:
        """Lets a cache rest after a failure, and looks up where the others are now."""
        self._failures += 1
        self._damaged += isinstance(error, SnapshotDamaged)
        self._abandoned += self._lines.pop(address).abandoned
        self._rested[address] = time.monotonic() + self._patience.retry
        self._look_up()

    def _look_up(self) -> None:
        self._addresses = tuple(self._lookup())
        self._looked_up = time.monotonic()
        self._rested = {each: when for each, when in self._rested.items() if each in self._addresses}
        self._lines = {each: line for each, line in self._lines.items() if each in self._addresses}


class _Line:
    """The way to one cache."""

    def __init__(self, address: str, patience: Patience, closed: threading.Event) -> None:
        self._address, self._patience, self._closed = address, patience, closed
        self._client = reverb.Client(address)
        self._pulse: tuple[str, int] | None = None
        self._stamp = NOTHING
        self.abandoned = 0

    def stamp(self) -> Stamp:
        """The stamp of what the cache holds, sampled only when the cheaper pulse says that it changed."""
        pulse = self._ask_pulse()
        if pulse != self._pulse:
            self._stamp = read(self.sample(VERSION_TABLE, self._patience.call)).stamp if pulse[1] else NOTHING
            self._pulse = pulse
        return self._stamp

    def _ask_pulse(self) -> tuple[str, int]:
        """Something that differs for every server and after every publication."""
        watch = _Watch(self._address, self._patience.call)
        while True:
            try:
                tables = self._client.server_info(timeout=max(math.ceil(watch.glance), 1))
                break
            except (RuntimeError, reverb.errors.ReverbError) as error:
                if self._closed.is_set():
                    raise SourceClosed(f"closed while asking the cache at {self._address}") from None
                if watch.trouble():
                    raise SourceFailed(f"the cache at {self._address} does not answer: {error}") from None
        started = [name for name in tables if name.startswith(STARTED)]
        if VERSION_TABLE not in tables or not started:
            raise SourceFailed(f"{self._address} is no model cache: its tables are {', '.join(sorted(tables))}")
        return started[0], int(tables[VERSION_TABLE].rate_limiter_info.insert_stats.completed)

    def sample(self, table: str, seconds: float) -> np.ndarray:
        """The newest item of a table; raises SourceFailed, SourceClosed."""
        taken: list[np.ndarray] = []
        errors: list[Exception] = []
        done = threading.Event()
        client = self._client

        def take() -> None:
            try:
                (sample,) = client.sample(table, 1, emit_timesteps=False)
                taken.append(sample.data[0])
            except Exception as error:  # noqa: BLE001  told to the waiting thread
                errors.append(error)
            done.set()

        threading.Thread(target=take, name=f"read from {self._address}", daemon=True).start()
        watch = _Watch(self._address, seconds)
        while not done.wait(min(watch.glance, GLANCE_SECONDS)):
            trouble = watch.trouble()
            if self._closed.is_set() or trouble:
                self.abandoned += 1
                if self._closed.is_set():
                    raise SourceClosed(f"closed while reading from the cache at {self._address}")
                raise SourceFailed(f"the cache at {self._address} did not give its {table}: {trouble}")
        if errors:
            raise SourceFailed(f"the cache at {self._address} failed: {errors[0]}")
        return taken[0]


class _Watch:
    """Looks ever more rarely whether a server that does not answer is still there."""

    def __init__(self, address: str, seconds: float) -> None:
        self._address, self._seconds = address, seconds
        self._deadline = time.monotonic() + seconds
        self._silent = 0
        self.glance = GLANCE_SECONDS
        self._next = time.monotonic()

    def trouble(self) -> str:
        """Why waiting is in vain; empty while it is not, or while it is not time for the next look."""
        now = time.monotonic()
        if now > self._deadline:
            return f"{self._seconds:g} s are over"
        if now < self._next:
            return ""
        answer = _knock(self._address, max(self.glance, 1.0))
        self.glance = min(2 * self.glance, LONGEST_GLANCE_SECONDS)
        self._next = time.monotonic() + self.glance
        self._silent = self._silent + 1 if answer is None else 0
        if answer is False:
            return "nobody listens there"
        return "its host is silent" if self._silent >= SILENT_GLANCES else ""


def _knock(address: str, seconds: float) -> bool | None:
    """Whether somebody listens there (None: no answer); by a connection of its own, as Reverb's may be busy or dead."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    except (ConnectionRefusedError, ValueError):
        return False
    except OSError:
        return None
    return True
