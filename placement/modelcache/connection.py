"""The way to one cache: small questions and snapshots, each with a deadline, given up when the server is gone.

Reverb's sampling has no deadline and waits for ever for a server that is gone. So every sample is taken in a thread of
its own and given up when the server no longer accepts connections, or when its deadline passes; a thread given up ends
when its server is back.
"""

from __future__ import annotations

import dataclasses
import math
import socket
import threading
import time

import numpy as np

from placement.modelcache.header import NOTHING, Stamp, read
from placement.transport.reverb_server import reverb

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


class CacheConnection:
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
