"""A run folder's files in object storage: written one by one, and listed last, so that no half state is taken for one.

Every file keeps its name. `.manifest.json` lists those of the newest whole state with their sizes and checksums; it is
written after them, and what it no longer lists is removed after it. So whoever reads finds a whole state at any time:
the files of checkpoints are never changed, and of the others (`metrics.csv`, placements) newer ones do no harm, just
as after the run was killed.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from placement.training.object_storage.store import ObjectStore, StorageError
from placement.training.saving import FOLDER_NAME

MANIFEST_NAME = ".manifest.json"
FORMAT = 1
READERS = 8
TRIES = 3
"""To read a state that is replaced meanwhile."""
LEFT_OUT = ("shards",)
"""Folders that are not kept in object storage: large, and of no use to another start."""
_CHECKPOINT = re.compile(rf"{FOLDER_NAME}/(\d+)/.+")


@dataclasses.dataclass(frozen=True)
class FileEntry:
    """A file of a state: bytes, and SHA-256 in hexadecimal digits."""

    size: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Manifest:
    """A whole state.

    Attributes:
        id: differs from that of every other state.
        files: entries by their paths in the run folder, with slashes.
    """

    id: str
    files: Mapping[str, FileEntry]

    def steps(self) -> list[int]:
        """The checkpoints in it, oldest first."""
        return sorted({int(found[1]) for path in self.files if (found := _CHECKPOINT.fullmatch(path))})


def read_manifest(store: ObjectStore) -> Manifest | None:
    """What the store lists; None where it holds no run.

    Raises:
        StorageError: it cannot be read, or is none of this program's.
    """
    data = store.read(MANIFEST_NAME)
    if data is None:
        return None
    try:
        content = json.loads(data)
        files = {str(path): FileEntry(int(size), str(sha256)) for path, (size, sha256) in content["files"].items()}
        manifest, written = Manifest(str(content["id"]), files), content["format"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StorageError(f"{store.address}/{MANIFEST_NAME} is damaged") from None
    strange = next((path for path in files if not _inside(path)), None)
    if written != FORMAT or strange is not None:
        reason = f"it names {strange!r}" if strange is not None else f"its format is {written!r}"
        raise StorageError(f"{store.address}/{MANIFEST_NAME} is not of this program: {reason}")
    return manifest


def fetch(store: ObjectStore, folder: Path) -> Manifest | None:
    """Copies the newest whole state into `folder`, which must not be there; None where the store holds no run.

    Raises:
        StorageError: it cannot be read, or no state stayed whole while it was read. `folder` is then not there.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    steps: list[int] = []
    for _ in range(TRIES):
        manifest = read_manifest(store)
        if manifest is None:
            return None
        steps = manifest.steps()
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            if _copy(store, manifest, temporary):
                temporary.rename(folder)
                return manifest
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    raise StorageError(f"{store.address}: no checkpoint could be read whole; {MANIFEST_NAME} lists {steps}")


class Publisher:
    """Brings a store to the state of a run folder, again and again.

    Args:
        store: that nobody else writes.
        folder: the run folder.
        manifest: what the store lists now.

    Attributes:
        manifest: what the store lists since the last `publish`.
    """

    def __init__(self, store: ObjectStore, folder: Path, manifest: Manifest | None) -> None:
        self._store, self._folder, self.manifest = store, folder, manifest
        self._seen: dict[str, tuple[tuple[int, int], FileEntry]] = {}

    def publish(self) -> bool:
        """Writes what has changed; returns whether anything had.

        Raises:
            StorageError: an object could not be written. The store's last whole state is as it was.
        """
        before = {} if self.manifest is None else self.manifest.files
        files: dict[str, FileEntry] = {}
        for name, path in _files(self._folder):
            entry = self._bring(name, path, before.get(name))
            if entry is not None:
                files[name] = entry
        # A checkpoint that training has removed meanwhile may have been read in part.
        files = {name: entry for name, entry in files.items() if (self._folder / (_checkpoint_of(name) or "")).is_dir()}
        if files == dict(before):
            return False
        manifest = Manifest(uuid.uuid4().hex, files)
        listed = {name: [entry.size, entry.sha256] for name, entry in files.items()}
        content = {"format": FORMAT, "id": manifest.id, "files": listed}
        self._store.write(MANIFEST_NAME, json.dumps(content, indent=1).encode())
        self.manifest = manifest
        for name in before:
            if name not in files:
                self._store.remove(name)
        return True

    def _bring(self, name: str, path: Path, before: FileEntry | None) -> FileEntry | None:
        """Writes a file unless the store has it; None where it went away meanwhile."""
        try:
            status = path.stat()
            mark = (status.st_size, status.st_mtime_ns)
            known = self._seen.get(name)
            if known is not None and known[0] == mark and known[1] == before:
                return before
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        entry = FileEntry(len(data), hashlib.sha256(data).hexdigest())
        if entry != before:
            self._store.write(name, data)
        self._seen[name] = (mark, entry)
        return entry


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a run folder that belong to its state, with their names in it; whole checkpoints only."""
    for at, folders, names in os.walk(folder):
        here = Path(at).relative_to(folder)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and (here / name).as_posix() not in LEFT_OUT
            and (here != Path(FOLDER_NAME) or name.isdigit())
        )
        for name in sorted(names):
            if not name.startswith("."):
                yield (here / name).as_posix(), Path(at) / name


def _checkpoint_of(name: str) -> str | None:
    """The folder of the checkpoint that a file is of; None for others."""
    found = _CHECKPOINT.fullmatch(name)
    return f"{FOLDER_NAME}/{found[1]}" if found else None


def _inside(path: str) -> bool:
    """Whether a path stays in the folder that it is put into."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and "\\" not in path and ".." not in parts


def _copy(store: ObjectStore, manifest: Manifest, folder: Path) -> bool:
    """Copies the files of a state; whether at least one of its checkpoints, if it has any, is whole."""
    with concurrent.futures.ThreadPoolExecutor(READERS) as readers:
        contents = dict(zip(manifest.files, readers.map(store.read, manifest.files), strict=True))
    broken = {_checkpoint_of(name) for name, entry in manifest.files.items() if not _same(contents[name], entry)}
    whole = False
    for name, data in contents.items():
        checkpoint = _checkpoint_of(name)
        if data is None or (checkpoint is not None and checkpoint in broken):
            continue
        whole = whole or checkpoint is not None
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return whole or not manifest.steps()


def _same(data: bytes | None, entry: FileEntry) -> bool:
    return data is not None and len(data) == entry.size and hashlib.sha256(data).hexdigest() == entry.sha256
