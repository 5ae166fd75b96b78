"""An actor's side of the parameter store: reads from the tree of caches."""

from __future__ import annotations

import threading
import time

from placement.modelcache.base import ParameterStore, Snapshot, StoreTimeout
from placement.modelcache.connection import SourceFailed, Timeouts
from placement.modelcache.layout import Layout
from placement.modelcache.source import HOLD_SECONDS, Source
from placement.transport.addresses import Addresses


class CacheReader(ParameterStore):
    """The newest snapshot from the nearest cache that answers. For several threads at once.

    What it gives never gets older: a cache that lags behind what was given already is waited for.

    Args:
        addresses: the present addresses of the caches it may use, nearest first.
        layout: of the parameters.
        poll_seconds: between two questions for the version, while it waits.
        timeouts: how long to wait for a cache.
        token: the run's; None = the caches ask for none.

    Attributes:
        source: the caches, and what happened on the way to them.
    """

    def __init__(
        self,
        addresses: Addresses,
        layout: Layout,
        *,
        poll_seconds: float = 0.1,
        timeouts: Timeouts | None = None,
        token: str | None = None,
    ) -> None:
        self._layout, self._poll_seconds = layout, poll_seconds
        self.source = Source(addresses, timeouts=timeouts, token=token)
        self._reading = threading.Lock()  # one thread moves the bytes; the others find what it got
        self._snapshot: Snapshot | None = None
        self._closed = threading.Event()

    def version(self) -> int:
        """The newest version that a cache has; the one held already where none answers; -1 before the first."""
        try:
            return max(self.source.version(), self._held())
        except SourceFailed:
            return self._held()

    def wait_for(self, version: int, *, timeout: float) -> Snapshot:
        """The newest snapshot, once it is at least `version`.

        Where no cache answers, what is held already is given if it is at least `version`. Bytes that are on their way
        when the time is up are waited for (`Timeouts.read` seconds at most) rather than thrown away.

        Raises:
            StoreTimeout: none came within `timeout` seconds.
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
            self._closed.wait(min(self._poll_seconds, left))

    def close(self) -> None:
        self._closed.set()
        self.source.close()

    def _refresh(self, hold: float, deadline: float) -> str:
        """Moves what is newer; returns what went wrong, which is no error while there is time."""
        try:
            newest = self.source.version(has=self._held(), hold=hold)
            if not self._reading.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
                return "another thread is still reading"
            try:
                if newest > self._held():
                    version, buffer = self.source.read()
                    if version > self._held():  # else the cache that announced it could not give it
                        self._snapshot = self._layout.unpack(buffer)
            finally:
                self._reading.release()
        except SourceFailed as error:
            return str(error)
        return ""

    def _held(self) -> int:
        return -1 if self._snapshot is None else self._snapshot.version
