"""A model cache: a Reverb server that holds the newest snapshot of the parameters, for readers and for caches below it.

The root, beside the learner, is published to; every other cache asks its parent for the version, moves the bytes only
when it changed, and serves them in its turn.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import uuid

import numpy as np

from placement.modelcache.base import StoreClosed
from placement.modelcache.connection import (
    SNAPSHOT_TABLE,
    STARTED,
    VERSION_TABLE,
    Patience,
    SourceClosed,
    SourceFailed,
)
from placement.modelcache.header import NOTHING, SIZE, SnapshotMismatch, Stamp, check
from placement.modelcache.reverb_source import Addresses, Counts, Source
from placement.transport.reverb_server import reverb, start_server

_log = logging.getLogger(__name__)
INSERT_SECONDS = 60.0
CLOSE_SECONDS = 30.0


@dataclasses.dataclass(frozen=True)
class CacheStatistics:
    """What a cache did.

    Attributes:
        version: of the snapshot that it holds; -1 = none.
        published: snapshots that it held so far.
        served: snapshots read from it since it started.
        source: its reading from its parents; None at the root.
    """

    version: int
    published: int
    served: int
    source: Counts | None


class ModelCache:
    """One cache of the tree.

    Args:
        port: TCP port; 0 = any free one.
        bind: the address by which others reach it (see `start_server`).
        parents: where snapshots come from, nearest first; None = this is the root, which is published to.
        poll_seconds: between two questions for the parent's version.
        patience: how long to wait for the parents.

    Raises:
        PortTaken: something listens on `port` already.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        bind: str = "127.0.0.1",
        parents: Addresses | None = None,
        poll_seconds: float = 0.2,
        patience: Patience | None = None,
    ) -> None:
        names = (SNAPSHOT_TABLE, VERSION_TABLE, f"{STARTED}{uuid.uuid4().hex}")
        self._tables = [_newest_only(name) for name in names]
        self._server = start_server(self._tables, port=port, bind=bind)
        self._publishing = threading.Lock()
        self._stamp, self._published = NOTHING, 0
        self._closed = threading.Event()
        self._poll_seconds = poll_seconds
        self._source = Source(parents, patience=patience) if parents is not None else None
        self._reader = threading.Thread(target=self._follow, name=f"model cache {self.address}", daemon=True)
        if self._source is not None:
            self._reader.start()

    @property
    def address(self) -> str:
        """`host:port` for readers."""
        return self._server.address

    @property
    def port(self) -> int:
        """TCP port for readers."""
        return self._server.port

    @property
    def version(self) -> int:
        """Of the snapshot that it holds; -1 = none yet."""
        return self._stamp.version

    @property
    def stamp(self) -> Stamp:
        """Of the snapshot that it holds; NOTHING = none yet."""
        return self._stamp

    def publish(self, version: int, buffer: np.ndarray) -> None:
        """Makes a packed snapshot (uint8 [bytes]) the newest one. At the root only.

        Raises:
            ValueError: `version` is not the snapshot's, or not above the newest of the same incarnation.
            SnapshotDamaged, SnapshotMismatch: it is no whole snapshot.
            StoreClosed: the cache is closed.
            RuntimeError: this cache has parents, or its server did not take it in time.
        """
        if self._source is not None:
            raise RuntimeError(f"the cache at {self.address} has parents; publish at the root of the tree")
        stamp = check(buffer).stamp
        if stamp.version != version:
            raise ValueError(f"version {version} published with a snapshot of version {stamp.version}")
        self._put(stamp, buffer)

    def statistics(self) -> CacheStatistics:
        """What it did so far."""
        served = 0 if self._closed.is_set() else self._tables[0].info.rate_limiter_info.sample_stats.completed
        source = self._source.counts() if self._source is not None else None
        return CacheStatistics(self.version, self._published, int(served), source)

    def close(self) -> None:
        """Ends the server; its readers go elsewhere. May be called twice."""
        self._closed.set()
        if self._source is not None:
            self._source.close()
            if threading.current_thread() is not self._reader:
                self._reader.join(CLOSE_SECONDS)
        with self._publishing:
            self._server.stop()

    def _put(self, stamp: Stamp, buffer: np.ndarray) -> None:
        """Hands a whole snapshot to the server: the snapshot first, then the version that announces it."""
        with self._publishing:
            if self._closed.is_set():
                raise StoreClosed(f"the cache at {self.address} is closed; version {stamp.version} was not published")
            if stamp <= self._stamp:
                raise ValueError(f"version {stamp.version} published after version {self.version}: versions must rise")
            writer = self._server.client.trajectory_writer(num_keep_alive_refs=1, validate_items=False)
            try:
                for table, data in ((SNAPSHOT_TABLE, buffer), (VERSION_TABLE, buffer[:SIZE])):
                    writer.append({table: data}, partial_step=table == SNAPSHOT_TABLE)
                    writer.create_item(table, 1.0, {table: writer.history[table][-1]})
                    writer.flush(0, timeout_ms=int(INSERT_SECONDS * 1000))
            except reverb.errors.DeadlineExceededError:
                raise RuntimeError(
                    f"the cache at {self.address} waited {INSERT_SECONDS:g} s for its own server to take version "
                    f"{stamp.version}"
                ) from None
            finally:
                writer.close()
            self._stamp = stamp
            self._published += 1

    def _follow(self) -> None:
        """Keeps up with the parents until closed. An error that is none of theirs ends the server: readers go on."""
        failing = False
        try:
            while not self._closed.wait(self._poll_seconds):
                failing = self._poll(failing=failing)
        except (SourceClosed, StoreClosed):
            pass
        except Exception:  # noqa: BLE001  the traceback is logged, the readers go elsewhere
            _log.exception("the cache at %s cannot go on and ends", self.address)
            self.close()

    def _poll(self, *, failing: bool) -> bool:
        """Takes what is newer, if anything; returns whether the parents fail, which is logged once."""
        assert self._source is not None
        try:
            buffer = self._source.newer(self._stamp)
        except (SourceFailed, SnapshotMismatch) as error:
            if not failing:
                _log.warning("the cache at %s goes on with version %d: %s", self.address, self.version, error)
            return True
        if buffer is not None:
            self._put(check(buffer).stamp, buffer)
        return False


def _newest_only(name: str) -> reverb.Table:
    """A table of one item, which the next one replaces."""
    fifo = reverb.selectors.Fifo
    return reverb.Table(name, fifo(), fifo(), max_size=1, rate_limiter=reverb.rate_limiters.MinSize(1))
