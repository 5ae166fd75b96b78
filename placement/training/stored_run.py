"""A run whose `run_dir` is object storage: it works in a local folder, and publishes each checkpoint from there.

The store is authoritative. A command begins with the state in the store, on any machine; an existing working folder is
used if it contains the same run, possibly in a later state. Training never waits for the store.

One run writes at a time: it holds the store's lease, an object that it changes every few seconds. No clocks are
compared. A run that finds a lease watches whether it changes; one that does not was left by a run that was killed, or
cut off for longer than the watch takes. Such a run finds its lease taken, and stops.
"""

import atexit
import contextlib
import itertools
import json
import logging
import os
import platform
import shutil
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from placement.config import ConfigError, TrainConfig
from placement.netlist.files import write_whole
from placement.training.object_storage import (
    Manifest,
    ObjectStore,
    Publisher,
    StorageError,
    fetch,
    is_address,
    read_manifest,
)
from placement.training.run_folder import CHECKPOINTS_NAME, working_folder

_log = logging.getLogger(__name__)
RECORD_NAME = ".published.json"
LOOK_SECONDS = 1.0
PUBLISH_SECONDS = 30.0
"""Maximum seconds between publications of changed metrics or placements; a checkpoint is published at once."""
RETRY_SECONDS = 10.0
END_SECONDS = 120.0  # timeout in seconds for publishing the last state once the run has ended
LEASE_NAME = ".lease.json"
BEAT_SECONDS = 5.0
WATCH_SECONDS = 30.0  # seconds without change after which a lease counts as abandoned: six beats
SETTLE_SECONDS = 2.0
"""Seconds after a takeover in which another run that takes the lease over at the same moment becomes visible."""


@contextlib.contextmanager
def stored(config: TrainConfig, *, note: Callable[[str], None] = print) -> Iterator[None]:
    """The command's side: if `run_dir` is object storage, no other run trains there while the body runs.

    The working folder becomes the run to resume, and the store has the run's last state at the end, including files
    that the body wrote after it. With `runtime=local` each checkpoint is published from here, too; with `runtime=ray`
    the learner does that (`published`). `note` is called with lines about fetched and published states.

    Raises ConfigError if `run_dir` is not a usable address or another run trains there, and StorageError if the store
    does not answer; at the end the last state is then in the working folder only.
    """
    if not is_address(config.run_dir):
        yield
        return
    store, lost = ObjectStore(config.run_dir, key="run_dir"), threading.Event()
    folder = working_folder(config.run_dir)
    lease = Lease(store, key="run_dir", lost=lambda: _stop_this_process(lost))
    lease.acquire(note)
    try:
        manifest = _begin_with(store, folder, note)
        follower = _Follower(store, folder, manifest, lost.is_set, elsewhere=config.runtime.name != "local")
        with follower.following(note):
            yield
    finally:
        lease.release()


@contextlib.contextmanager
def published(config: TrainConfig, *, note: Callable[[str], None]) -> Iterator[None]:
    """The learner's side if it is a separate process, possibly on another node than the command.

    It has a working folder there, and publishes each checkpoint while its command holds the lease. Raises the errors of
    `stored`.
    """
    if not is_address(config.run_dir):
        yield
        return
    store, folder = ObjectStore(config.run_dir, key="run_dir"), working_folder(config.run_dir)
    owner, manifest = lease_owner(store), _begin_with(store, folder, note)
    with _Follower(store, folder, manifest, lambda: lease_owner(store) != owner).following(note):
        yield


def refresh(config: TrainConfig) -> None:
    """Updates the command's working folder if the learner wrote on another node; raises StorageError."""
    if is_address(config.run_dir):
        _update(ObjectStore(config.run_dir, key="run_dir"), working_folder(config.run_dir))


def fetched(address: str, *, key: str) -> Path:
    """A copy of the run stored at `address`, in a folder of its name that is removed when the program ends."""
    store = ObjectStore(address, key=key)
    temporary = tempfile.mkdtemp(prefix="macro-placement-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    folder = Path(temporary) / store.address.rpartition("/")[2]
    try:
        found = fetch(store, folder)
    except StorageError as error:
        raise ConfigError(f"{key}={address!r}: {error}") from None
    if found is None:
        raise ConfigError(f"{key}={address!r}: must be the folder of a training run: none was found")
    return folder


class Lease:
    """A store's lease, held from `acquire` to `release`; the setting `key` names the store.

    `lost` is called once, from another thread, when another run has taken the lease over.
    """

    def __init__(self, store: ObjectStore, *, key: str, lost: Callable[[], None]) -> None:
        self._store, self._key, self._lost = store, key, lost
        self._id, self._count, self.held = uuid.uuid4().hex, 0, False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)

    def acquire(self, note: Callable[[str], None]) -> None:
        """Takes the lease, with a `note` if that takes a while; raises ConfigError if another run holds it."""
        if not self._store.create(LEASE_NAME, self._content()):
            self._take_over(note)
        self.held = True
        self._thread.start()

    def release(self) -> None:
        """Releases the lease, if it is still held; errors of the store are ignored."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=WATCH_SECONDS)
        if self.held:
            self.held = False
            with contextlib.suppress(StorageError):
                if self._mine():
                    self._store.remove(LEASE_NAME)

    def _take_over(self, note: Callable[[str], None]) -> None:
        where, found = f"{self._key}={self._store.address!r}", self._store.read(LEASE_NAME)
        if found is not None:
            note(f"{self._store.address}: waits {WATCH_SECONDS:.0f} s to see whether {_holder(found)} is alive")
            self._stop.wait(WATCH_SECONDS)
            now = self._store.read(LEASE_NAME)
            if now is not None and now != found:
                raise ConfigError(f"{where}: {_holder(now)} is training there")
        self._store.write(LEASE_NAME, self._content())
        self._stop.wait(SETTLE_SECONDS)
        if not self._mine():
            raise ConfigError(f"{where}: another run has just begun to train there")

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            try:
                if not self._mine():
                    self.held = False
                    self._lost()
                    return
                self._count += 1
                self._store.write(LEASE_NAME, self._content())
            except StorageError:
                continue  # The publisher reports it.

    def _content(self) -> bytes:
        what = {"id": self._id, "host": platform.node(), "process": os.getpid(), "beats": self._count}
        return json.dumps(what).encode()

    def _mine(self) -> bool:
        return lease_owner(self._store) == self._id


def lease_owner(store: ObjectStore) -> str | None:
    """The identifier of the run that holds the lease; None if there is none. Raises StorageError."""
    found = store.read(LEASE_NAME)
    try:
        return None if found is None else str(json.loads(found)["id"])
    except (ValueError, KeyError, TypeError):
        return "damaged"


def _holder(content: bytes) -> str:
    try:
        found = json.loads(content)
        return f"process {int(found['process'])} on {str(found['host'])[:64]}"
    except (ValueError, KeyError, TypeError):
        return "another run"


def _stop_this_process(lost: threading.Event) -> None:
    """Stops the run in the same way as Ctrl-C."""
    lost.set()
    _log.warning("another run has taken over the run folder in object storage: this one stops")
    os.kill(os.getpid(), signal.SIGINT)


class _Follower:
    """Publishes a folder from its own thread whenever there is a new checkpoint, at intervals, and at the end.

    `lost` returns whether another run has taken the store over; `elsewhere`: another process publishes until the end.
    """

    def __init__(
        self,
        store: ObjectStore,
        folder: Path,
        manifest: Manifest | None,
        lost: Callable[[], bool],
        *,
        elsewhere: bool = False,
    ) -> None:
        self._publisher, self._elsewhere = Publisher(store, folder, manifest), elsewhere
        self._store, self._folder, self._lost = store, folder, lost
        self._stop, self._failure, self._taken = threading.Event(), "", False
        self._thread = threading.Thread(target=self._follow, name="publisher", daemon=True)

    @contextlib.contextmanager
    def following(self, note: Callable[[str], None]) -> Iterator[None]:
        """Publishes while the body runs and at its end; raises StorageError, unless the body has failed already."""
        self._thread.start()
        failed = True
        try:
            yield
            failed = False
        finally:
            self._end(note, failed=failed)

    def _end(self, note: Callable[[str], None], *, failed: bool) -> None:
        self._stop.set()
        self._thread.join(timeout=END_SECONDS)
        reason = self._failure or (f"no answer in {END_SECONDS:.0f} s" if self._thread.is_alive() else "")
        where = f"the run is complete in {self._folder}: the same command, given there, publishes it"
        if self._taken:
            reason, where = "another run has taken it over", f"the last state of this run is only in {self._folder}"
        stale = f"{self._store.address} is not up to date: {reason} ({where})"
        if not reason:
            note(f"published: {self._store.address}")
        elif failed:
            _log.warning("%s", stale)
        else:
            raise StorageError(stale)

    def _follow(self) -> None:
        known = self._steps() if self._publisher.manifest is not None else []
        last, wait = time.monotonic(), LOOK_SECONDS
        while not self._stop.wait(wait):
            steps, wait = self._steps(), LOOK_SECONDS
            if not self._elsewhere and (steps != known or time.monotonic() - last > PUBLISH_SECONDS):
                reported = bool(self._failure)
                if self._publish():
                    known, last = steps, time.monotonic()
                    continue
                wait = RETRY_SECONDS
                if not reported and not self._taken:
                    _log.warning("training continues, and is published later: %s", self._failure)
        deadline = time.monotonic() + END_SECONDS / 2
        while not self._publish() and not self._taken and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)

    def _publish(self) -> bool:
        try:
            self._taken = self._taken or self._lost()
            if self._taken:
                return False
            if self._elsewhere:
                self._publisher.manifest = _update(self._store, self._folder)
            if self._publisher.publish() and self._publisher.manifest is not None:
                _write_record(self._folder, self._store.address, self._publisher.manifest)
        except (StorageError, OSError) as error:
            self._failure = str(error)
            return False
        self._failure = ""
        return True

    def _steps(self) -> list[str]:
        found = (self._folder / CHECKPOINTS_NAME).glob("*")
        return sorted(path.name for path in found if path.name.isdigit())


def _begin_with(store: ObjectStore, folder: Path, note: Callable[[str], None]) -> Manifest | None:
    """Makes the local folder the run to resume; returns the store's manifest."""
    manifest = read_manifest(store)
    if folder.exists():
        if manifest is None or _record(folder) == (store.address, manifest.id):
            note(f"{store.address}: resumes with {folder}")
            return manifest
        places = (folder.with_name(f"{folder.name}.before-{count}") for count in itertools.count(1))
        aside = next(place for place in places if not place.exists())
        folder.rename(aside)
        note(f"{store.address}: holds a run that was resumed elsewhere; the old content of {folder} is now in {aside}")
    if manifest is not None:
        manifest = fetch(store, folder)
    if manifest is None:
        note(f"{store.address}: starts a run; its working folder is {folder}")
        return None
    _write_record(folder, store.address, manifest)
    note(f"{store.address}: {len(manifest.files)} files fetched into {folder}, checkpoints {manifest.steps()}")
    return manifest


def _update(store: ObjectStore, folder: Path) -> Manifest | None:
    """Copies the store's state over the working folder, unless that is as new; returns the store's manifest."""
    manifest = read_manifest(store)
    if manifest is not None and _record(folder) != (store.address, manifest.id):
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
            copy = Path(temporary) / "run"
            manifest = fetch(store, copy)
            shutil.copytree(copy, folder, dirs_exist_ok=True)
        if manifest is not None:
            _write_record(folder, store.address, manifest)
    return manifest


def _record(folder: Path) -> tuple[str, str] | None:
    """The state that the local folder was last equal to, as its address and the manifest's id."""
    try:
        found = json.loads((folder / RECORD_NAME).read_text(encoding="utf-8"))
        return str(found["address"]), str(found["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_record(folder: Path, address: str, manifest: Manifest) -> None:
    write_whole(folder / RECORD_NAME, json.dumps({"address": address, "id": manifest.id}) + "\n")
