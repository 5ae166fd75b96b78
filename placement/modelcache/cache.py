"""A model cache: holds the newest snapshot of the parameters, for readers and for caches below it.

The root, beside the learner, is published to; every other cache asks its parent for the version, moves the bytes only
when it changed, and serves them in its turn.
"""

from __future__ import annotations

import logging
import threading

import numpy as np

from placement.modelcache.base import StoreClosed
from placement.modelcache.connection import SourceFailed, Timeouts
from placement.modelcache.header import SnapshotMismatch, check
from placement.modelcache.service import SnapshotServer
from placement.modelcache.source import HOLD_SECONDS, Source
from placement.transport.addresses import Addresses

_log = logging.getLogger(__name__)
CLOSE_SECONDS = 30.0


class ModelCache:
    """One cache of the tree.

    Args:
        port: TCP port; 0 = any free one.
        bind: the address by which others reach it (see `SnapshotServer`).
        parents: where snapshots come from, nearest first; None = this is the root, which is published to.
        poll_seconds: between two questions for the parent's version.
        timeouts: how long to wait for the parents.
        token: the run's, which readers and parents ask for; None = none is asked for.

    Raises:
        PortTaken: something listens on `port` already.

    Attributes:
        version: of the snapshot that it holds; -1 = none yet.
        published: snapshots that it held so far.
        source: its reading from its parents; None at the root.
        address: `host:port` for readers.
        port: TCP port for readers.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        bind: str = "127.0.0.1",
        parents: Addresses | None = None,
        poll_seconds: float = 0.2,
        timeouts: Timeouts | None = None,
        token: str | None = None,
    ) -> None:
        self.version, self.published = -1, 0
        self._server = SnapshotServer(port=port, bind=bind, token=token)
        self.address, self.port = self._server.address, self._server.port
        self._publishing = threading.Lock()
        self._closed = threading.Event()
        self._poll_seconds = poll_seconds
        self.source = Source(parents, timeouts=timeouts, token=token) if parents is not None else None
        self._reader = threading.Thread(target=self._follow, name=f"model cache {self.address}", daemon=True)
        if self.source is not None:
            self._reader.start()

    def publish(self, buffer: np.ndarray) -> None:
        """Makes a packed snapshot (uint8 [bytes]) the newest one. At the root only.

        Raises:
            ValueError: its version is not above the newest one.
            SnapshotDamaged, SnapshotMismatch: it is no whole snapshot.
            StoreClosed: the cache is closed.
            RuntimeError: this cache has parents.
        """
        if self.source is not None:
            raise RuntimeError(f"the cache at {self.address} has parents; publish at the root of the tree")
        self._put(check(buffer).version, buffer)

    @property
    def served(self) -> int:
        """Snapshots read from it since it started."""
        return self._server.served

    @property
    def strangers(self) -> int:
        """Calls refused because they lacked the run's token."""
        return self._server.strangers

    def close(self) -> None:
        """Ends the server; its readers go elsewhere. May be called twice."""
        with self._publishing:
            if self._closed.is_set():
                return
            self._closed.set()
            self._server.stop()
        if self.source is not None:
            self.source.close()
            if threading.current_thread() is not self._reader:
                self._reader.join(CLOSE_SECONDS)

    def _put(self, version: int, buffer: np.ndarray) -> None:
        with self._publishing:
            if self._closed.is_set():
                raise StoreClosed(f"the cache at {self.address} is closed; version {version} was not published")
            if version <= self.version:
                raise ValueError(f"version {version} published after version {self.version}: versions must rise")
            self._server.put(version, buffer)
            self.version = version
            self.published += 1

    def _follow(self) -> None:
        """Keeps up with the parents until closed. An error that is none of theirs ends the server: readers go on."""
        failing = False
        try:
            while not self._closed.wait(self._poll_seconds):
                failing = self._poll(failing=failing)
        except StoreClosed:
            pass
        except Exception:  # noqa: BLE001  the traceback is logged, the readers go elsewhere
            _log.exception("the cache at %s cannot go on and ends", self.address)
            self.close()

    def _poll(self, *, failing: bool) -> bool:
        """Takes what is newer, if anything; returns whether the parents fail, which is logged once."""
        assert self.source is not None
        try:
            if self.source.version(has=self.version, hold=HOLD_SECONDS) > self.version:
                version, buffer = self.source.read()
                if version > self.version:  # else the cache that announced it could not give it
                    self._put(version, buffer)
        except (SourceFailed, SnapshotMismatch) as error:
            if not failing:
                _log.warning("the cache at %s goes on with version %d: %s", self.address, self.version, error)
            return True
        return False
