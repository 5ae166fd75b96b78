"""One writer at a time: the run that writes into a store holds its lease, an object that it changes every few seconds.

No clocks are compared: whoever finds a lease watches whether it changes. One that stays as it is was left by a run
that was killed, or cut off for longer than the watch takes; that one finds its lease taken, and stops.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import threading
import uuid
from collections.abc import Callable

from placement.config import ConfigError
from placement.training.object_storage.store import ObjectStore, StorageError

LEASE_NAME = ".lease.json"
BEAT_SECONDS = 5.0
WATCH_SECONDS = 30.0
"""Without a change, after which a lease counts as left behind: six beats."""
SETTLE_SECONDS = 2.0
"""After a lease was taken over, in which another one that takes it over at the same time shows itself."""


class Lease:
    """Held from `acquire` to `release`.

    Args:
        store: whose lease.
        key: the setting that names the store, for messages.
        lost: is called once, from another thread, when somebody else has taken the lease over.
        beat_seconds, watch_seconds, settle_seconds: as the constants; tests take shorter ones.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        key: str,
        lost: Callable[[], None],
        beat_seconds: float = BEAT_SECONDS,
        watch_seconds: float = WATCH_SECONDS,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        self._store, self._key, self._lost = store, key, lost
        self._beat_seconds, self._watch_seconds, self._settle = beat_seconds, watch_seconds, settle_seconds
        self._id, self._count, self.held = uuid.uuid4().hex, 0, False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)

    def acquire(self, note: Callable[[str], None]) -> None:
        """Takes the lease; `note` is told where that takes a while.

        Raises:
            ConfigError: another run holds it.
            StorageError: the store does not answer.
        """
        if not self._store.create(LEASE_NAME, self._content()):
            self._take_over(note)
        self.held = True
        self._thread.start()

    def release(self) -> None:
        """Gives the lease back, if it is still held; a store that does not answer is left as it is."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self._watch_seconds)
        if self.held:
            self.held = False
            with contextlib.suppress(StorageError):
                if self._mine():
                    self._store.remove(LEASE_NAME)

    def _take_over(self, note: Callable[[str], None]) -> None:
        found = self._store.read(LEASE_NAME)
        if found is not None:
            note(f"{self._store.address}: waits {self._watch_seconds:.0f} s to see whether {_holder(found)} is alive")
            self._stop.wait(self._watch_seconds)
            now = self._store.read(LEASE_NAME)
            if now is not None and now != found:
                raise ConfigError(f"{self._key}={self._store.address!r}: {_holder(now)} is training there")
        self._store.write(LEASE_NAME, self._content())
        self._stop.wait(self._settle)
        if not self._mine():
            raise ConfigError(f"{self._key}={self._store.address!r}: another run has just begun to train there")

    def _beat(self) -> None:
        while not self._stop.wait(self._beat_seconds):
            try:
                if not self._mine():
                    self.held = False
                    self._lost()
                    return
                self._count += 1
                self._store.write(LEASE_NAME, self._content())
            except StorageError:
                continue  # the publisher tells of it

    def _content(self) -> bytes:
        what = {"id": self._id, "host": platform.node(), "process": os.getpid(), "beats": self._count}
        return json.dumps(what).encode()

    def _mine(self) -> bool:
        return lease_owner(self._store) == self._id


def lease_owner(store: ObjectStore) -> str | None:
    """The identifier of whoever holds the lease; None where nobody does. Raises StorageError."""
    found = store.read(LEASE_NAME)
    try:
        return None if found is None else str(json.loads(found)["id"])
    except (ValueError, KeyError, TypeError):
        return "damaged"


def _holder(content: bytes) -> str:
    """Whose lease it is, in words."""
    try:
        found = json.loads(content)
        return f"process {int(found['process'])} on {str(found['host'])[:64]}"
    except (ValueError, KeyError, TypeError):
        return "another run"
