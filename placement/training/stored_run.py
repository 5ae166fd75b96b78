"""A run whose `run_dir` is object storage: it works in a local folder, and each checkpoint is published from there.

The store is the truth. A command begins with what the store holds, on whatever machine it is given; the working folder
of before is used where it is the same run, possibly further on. Training never waits for the store.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import logging
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from placement.config import ConfigError, TrainConfig
from placement.netlist.files import write_whole
from placement.training.object_storage.lease import Lease, lease_owner
from placement.training.object_storage.snapshot import Manifest, Publisher, fetch, read_manifest
from placement.training.object_storage.store import ObjectStore, StorageError, is_address
from placement.training.run_folder import working_folder
from placement.training.saving import FOLDER_NAME

_log = logging.getLogger(__name__)
RECORD_NAME = ".published.json"
LOOK_SECONDS = 1.0
PUBLISH_SECONDS = 30.0
"""Between two times at most, where only metrics or placements have changed; a checkpoint is published at once."""
RETRY_SECONDS = 10.0
END_SECONDS = 120.0
"""That the last state may take to be published once the run has ended."""


@contextlib.contextmanager
def stored(config: TrainConfig, *, note: Callable[[str], None] = print) -> Iterator[None]:
    """The command's part: where `run_dir` is object storage, nobody else trains there while the body runs.

    The working folder is made the run to go on with, and the store has the run's last state at the end, with whatever
    the body wrote after it. With `runtime=local` each checkpoint is published from here, too; with `runtime=ray` the
    learner does that (`published`).

    Args:
        config: all settings.
        note: is told what was fetched and published.

    Raises:
        ConfigError: `run_dir` is no address that can be used, or another run trains there. Nothing has begun.
        StorageError: the store does not answer; at the end: the last state is in the working folder only.
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
    """The learner's part where it is a process of its own, possibly on another node than the command: it has a working
    folder there, and publishes each checkpoint for as long as the command that it belongs to holds the lease.

    Raises:
        ConfigError, StorageError: as `stored`.
    """
    if not is_address(config.run_dir):
        yield
        return
    store, folder = ObjectStore(config.run_dir, key="run_dir"), working_folder(config.run_dir)
    owner, manifest = lease_owner(store), _begin_with(store, folder, note)
    with _Follower(store, folder, manifest, lambda: lease_owner(store) != owner).following(note):
        yield


def refresh(config: TrainConfig) -> None:
    """Brings the command's working folder to what the store has, where the learner wrote on another node.

    Raises:
        StorageError: the store cannot be read.
    """
    if is_address(config.run_dir):
        _bring(ObjectStore(config.run_dir, key="run_dir"), working_folder(config.run_dir))


def fetched(address: str, *, key: str) -> Path:
    """A copy of a stored run, in a folder of its name that is removed when the program ends.

    Raises:
        ConfigError: there is no run at `address`, or it cannot be read.
    """
    store = ObjectStore(address, key=key)
    temporary = tempfile.mkdtemp(prefix="macro-placement-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    folder = Path(temporary) / store.address.rpartition("/")[2]
    try:
        found = fetch(store, folder)
    except StorageError as error:
        raise ConfigError(f"{key}={address!r}: {error}") from None
    if found is None:
        raise ConfigError(f"{key}={address!r}: must be the folder of a training run: there is none")
    return folder


def _begin_with(store: ObjectStore, folder: Path, note: Callable[[str], None]) -> Manifest | None:
    """Makes the local folder the run to go on with; returns what the store lists."""
    manifest = read_manifest(store)
    if folder.exists():
        if manifest is None or _record(folder) == (store.address, manifest.id):
            note(f"{store.address}: goes on with {folder}")
            return manifest
        places = (folder.with_name(f"{folder.name}.before-{count}") for count in itertools.count(1))
        aside = next(place for place in places if not place.exists())
        folder.rename(aside)
        note(f"{store.address}: holds a run that went on elsewhere; what was in {folder} is now in {aside}")
    if manifest is not None:
        manifest = fetch(store, folder)
    if manifest is None:
        note(f"{store.address}: begins a run; works in {folder}")
        return None
    _write_record(folder, store.address, manifest)
    note(f"{store.address}: {len(manifest.files)} files fetched into {folder}, checkpoints {manifest.steps()}")
    return manifest


def _bring(store: ObjectStore, folder: Path) -> Manifest | None:
    """Copies what the store has over the working folder, unless that is the same, or further; what the store lists."""
    manifest = read_manifest(store)
    if manifest is not None and _record(folder) != (store.address, manifest.id):
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
            copy = Path(temporary) / "run"
            manifest = fetch(store, copy)
            shutil.copytree(copy, folder, dirs_exist_ok=True)
        if manifest is not None:
            _write_record(folder, store.address, manifest)
    return manifest


class _Follower:
    """Publishes from a thread of its own whenever there is a new checkpoint, now and then, and at the end.

    Args:
        store: where to.
        folder: the working folder.
        manifest: what the store lists.
        lost: whether somebody else has taken the store over.
        elsewhere: another process publishes until the end.
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
        """Publishes while the body runs and at its end.

        Raises:
            StorageError: the last state could not be published, and the body has not failed already.
        """
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
        where = f"the run is whole in {self._folder}: the same command, given there, publishes it"
        reason = self._failure or (f"no answer in {END_SECONDS:.0f} s" if self._thread.is_alive() else "")
        if self._taken:
            reason, where = "another run has taken it over", f"this one's last state is in {self._folder} alone"
        if not reason:
            note(f"published: {self._store.address}")
        elif failed:
            _log.warning("%s is not up to date: %s (%s)", self._store.address, reason, where)
        else:
            raise StorageError(f"{self._store.address} is not up to date: {reason} ({where})")

    def _follow(self) -> None:
        known = self._steps() if self._publisher.manifest is not None else []
        last, wait = time.monotonic(), LOOK_SECONDS
        while not self._stop.wait(wait):
            steps, wait = self._steps(), LOOK_SECONDS
            if not self._elsewhere and (steps != known or time.monotonic() - last > PUBLISH_SECONDS):
                told = bool(self._failure)
                if self._publish():
                    known, last = steps, time.monotonic()
                else:
                    wait = RETRY_SECONDS
                    if not told and not self._taken:
                        _log.warning("training goes on, and is published later: %s", self._failure)
        deadline = time.monotonic() + END_SECONDS / 2
        while not self._publish() and not self._taken and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)

    def _publish(self) -> bool:
        """Whether the store is up to date."""
        try:
            self._taken = self._taken or self._lost()
            if self._taken:
                return False
            if self._elsewhere:
                self._publisher.manifest = _bring(self._store, self._folder)
            if self._publisher.publish() and self._publisher.manifest is not None:
                _write_record(self._folder, self._store.address, self._publisher.manifest)
        except (StorageError, OSError) as error:
            self._failure = str(error)
            return False
        self._failure = ""
        return True

    def _steps(self) -> list[str]:
        found = (self._folder / FOLDER_NAME).glob("*")
        return sorted(path.name for path in found if path.name.isdigit())


def _stop_this_process(lost: threading.Event) -> None:
    """Asks the run to stop as Ctrl-C does."""
    lost.set()
    _log.warning("another run has taken over the run folder in object storage: this one stops")
    os.kill(os.getpid(), signal.SIGINT)


def _record(folder: Path) -> tuple[str, str] | None:
    """What the local folder was last the same as: address and the manifest's id."""
    try:
        found = json.loads((folder / RECORD_NAME).read_text(encoding="utf-8"))
        return str(found["address"]), str(found["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_record(folder: Path, address: str, manifest: Manifest) -> None:
    write_whole(folder / RECORD_NAME, json.dumps({"address": address, "id": manifest.id}) + "\n")
