"""The parameter store over a tree of caches: the learner's side publishes at the root, an actor's side reads."""

from __future__ import annotations

import threading
import time
from typing import Any

from placement.modelcache.base import Snapshot, StoreClosed, StoreTimeout
from placement.modelcache.connection import Patience, SourceClosed, SourceFailed
from placement.modelcache.header import NOTHING, Stamp, read
from placement.modelcache.reverb_cache import ModelCache
from placement.modelcache.reverb_source import Addresses, Counts, Source
from placement.modelcache.wire import Layout


class RootStore:
    """The learner's side: a `ParameterStore` that packs what is published and hands it to the root cache.

    Args:
        cache: the root; it is the caller's to close.
        layout: of the parameters.
        wire_dtype: "float32", or "bfloat16" for half the bytes.
        incarnation: above that of every earlier learner of this run, so that caches and readers that outlived it take
            this one's snapshots although their versions went back to a checkpoint's; default: the clock, ns.
    """

    def __init__(
        self, cache: ModelCache, layout: Layout, wire_dtype: str = "float32", *, incarnation: int | None = None
    ) -> None:
        self._cache, self._layout, self._wire_dtype = cache, layout, wire_dtype
        self._incarnation = time.time_ns() if incarnation is None else incarnation
        self._changed = threading.Condition()
        self._snapshot: Snapshot | None = None
        self._closed = False

    def publish(self, version: int, parameters: Any) -> None:
        """Makes `parameters` (pytree of arrays of the layout) the newest snapshot.

        Raises:
            ValueError: `version` is not above the newest one.
            SnapshotMismatch: the parameters are not of the layout.
            StoreClosed: the store or the cache is closed.
        """
        with self._changed:
            self._raise_if_closed()
        buffer = self._layout.pack(Stamp(self._incarnation, version), parameters, wire_dtype=self._wire_dtype)
        self._cache.publish(version, buffer)
        with self._changed:
            self._snapshot = self._layout.unpack(buffer)
            self._changed.notify_all()

    def version(self) -> int:
        """The newest version; -1 before the first publication."""
        with self._changed:
            return -1 if self._snapshot is None else self._snapshot.version

    def wait_for(self, version: int, *, timeout: float) -> Snapshot:
        """The newest snapshot as actors get it, once it is at least `version`.

        Raises:
            StoreTimeout: none came within `timeout` seconds.
            StoreClosed: the store is closed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has(version), timeout)
            self._raise_if_closed()
            if self._snapshot is None or self._snapshot.version < version:
                newest = -1 if self._snapshot is None else self._snapshot.version
                raise StoreTimeout(
                    f"{threading.current_thread().name} waited {timeout:g} s for the learner to publish version "
                    f"{version}; the newest is {newest}"
                )
            return self._snapshot

    def close(self) -> None:
        """Wakes all who wait (they get StoreClosed). May be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _has(self, version: int) -> bool:
        return self._snapshot is not None and self._snapshot.version >= version

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise StoreClosed(f"{threading.current_thread().name} cannot go on: the parameter store is closed")


class CacheReader:
    """An actor's side: the newest snapshot from the nearest cache that answers. For several threads at once.

    What it gives never gets older: a cache that lags behind what was given already is waited for. After the learner was
    restarted from a checkpoint the versions may go back once; what comes then is newer all the same.

    Args:
        addresses: the present addresses of the caches it may use, nearest first.
        layout: of the parameters.
        poll_seconds: between two questions for the version, while it waits.
        patience: how long to wait for a cache.
    """

    def __init__(
        self,
        addresses: Addresses,
        layout: Layout,
        *,
        poll_seconds: float = 0.1,
        patience: Patience | None = None,
    ) -> None:
        self._layout, self._poll_seconds = layout, poll_seconds
        self._source = Source(addresses, patience=patience)
        self._reading = threading.Lock()  # one thread asks and moves; the others find what it got
        self._snapshot: Snapshot | None = None
        self._stamp = NOTHING
        self._closed = threading.Event()

    def version(self) -> int:
        """The newest version that a cache has; the one held already where none answers; -1 before the first.

        Raises:
            StoreClosed: the store is closed.
        """
        with self._reading:
            self._raise_if_closed()
            try:
                return max(self._source.stamp(), self._stamp).version
            except SourceFailed:
                return self._stamp.version
            except SourceClosed:
                raise self._closed_error() from None

    def wait_for(self, version: int, *, timeout: float) -> Snapshot:
        """The newest snapshot, once it is at least `version` or of a learner that was restarted since the last one.

        Where no cache answers, what is held already is given if it is at least `version`. Bytes that are on their way
        when the time is up are waited for (`Patience.read` seconds at most) rather than thrown away.

        Raises:
            StoreTimeout: none came within `timeout` seconds.
            StoreClosed: the store is closed.
            SnapshotMismatch: the caches belong to another model.
        """
        deadline = time.monotonic() + timeout
        incarnation = self._stamp.incarnation
        trouble = ""
        while True:
            if not self._reading.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
                raise self._late(version, timeout, "another thread is still reading")
            try:
                self._raise_if_closed()
                trouble = self._refresh()
                restarted = NOTHING.incarnation < incarnation < self._stamp.incarnation
                if self._snapshot is not None and (self._stamp.version >= version or restarted):
                    return self._snapshot
            finally:
                self._reading.release()
            if time.monotonic() >= deadline:
                raise self._late(version, timeout, trouble)
            self._closed.wait(min(self._poll_seconds, max(deadline - time.monotonic(), 0.0)))

    def statistics(self) -> Counts:
        """Reads with their latencies (mean, median, p99), bytes, questions, failures."""
        return self._source.counts()

    def latencies(self) -> list[float]:
        """Seconds of each of the last reads that moved bytes."""
        return self._source.latencies()

    def close(self) -> None:
        """Wakes all who wait (they get StoreClosed). May be called twice."""
        self._closed.set()
        self._source.close()

    def _refresh(self) -> str:
        """Moves what is newer; returns what went wrong, which is no error while there is time."""
        try:
            buffer = self._source.newer(self._stamp)
        except SourceFailed as error:
            return str(error)
        except SourceClosed:
            raise self._closed_error() from None
        if buffer is not None:
            self._snapshot = self._layout.unpack(buffer)
            self._stamp = read(buffer).stamp
        return ""

    def _late(self, version: int, timeout: float, trouble: str) -> StoreTimeout:
        reason = trouble or "the learner is too slow or has stopped"
        return StoreTimeout(
            f"{threading.current_thread().name} waited {timeout:g} s for parameters of version {version}; the newest "
            f"is {self._stamp.version}: {reason}"
        )

    def _raise_if_closed(self) -> None:
        if self._closed.is_set():
            raise self._closed_error()

    def _closed_error(self) -> StoreClosed:
        return StoreClosed(f"{threading.current_thread().name} cannot go on: the parameter store is closed")
