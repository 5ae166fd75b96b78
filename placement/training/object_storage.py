"""Object storage (S3, Google Cloud Storage): objects under one address, and a run folder's files in it.

The libraries are fsspec's, which Orbax uses as well. They take credentials, endpoints and regions from the same sources
as the providers' own tools (`AWS_PROFILE`, `AWS_ENDPOINT_URL`, `GOOGLE_APPLICATION_CREDENTIALS` and so on).

Files are written one by one under their own names. Then `.manifest.json` lists the files of the newest complete state
with their sizes and checksums, and files that it no longer lists are removed. A reader therefore finds a complete state
at any time: files of checkpoints never change, and newer versions of the others (`metrics.csv`, placements) do no harm,
just as after a kill.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import fsspec.asyn  # type: ignore[import-untyped]

from placement.config import ConfigError
from placement.training.run_folder import CHECKPOINTS_NAME

CALL_SECONDS = 60.0  # timeout for one object in seconds, including the library's own attempts
CONNECT_SECONDS = 10.0
_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<bucket>[^/]*)/*(?P<path>.*)")
_OPTIONS: dict[str, dict[str, Any]] = {  # options of each scheme's library
    "s3": {"config_kwargs": {"connect_timeout": CONNECT_SECONDS, "retries": {"max_attempts": 2}}},
    "gs": {"timeout": CALL_SECONDS},
}
EXTRAS = {"s3": "s3fs", "gs": "gcsfs"}
"""The library that each scheme needs; the project's extra of the scheme's name installs it."""
MANIFEST_NAME = ".manifest.json"
FORMAT = 1  # format version of the manifest
READERS = 8
TRIES = 3  # number of attempts to read a state that is replaced during the read
LEFT_OUT = ("shards",)
"""Folders that are not kept in object storage, because they are large and useless to another start."""
_CHECKPOINT = re.compile(rf"{CHECKPOINTS_NAME}/(\d+)/.+")


class StorageError(RuntimeError):
    """The store failed to do what was requested; the message names the object and the reason."""


def is_address(place: str) -> bool:
    """Whether a setting names object storage rather than a folder."""
    return _ADDRESS.fullmatch(place) is not None


class ObjectStore:
    """The objects whose names begin with one address, `s3://BUCKET/PATH` or `gs://BUCKET/PATH`.

    `key` is the setting that names it, for messages. Raises ConfigError if the address is malformed, or the library is
    not installed.
    """

    def __init__(self, address: str, *, key: str) -> None:
        found = _ADDRESS.fullmatch(address)
        scheme = found["scheme"] if found else ""
        if found is None or scheme not in EXTRAS or not found["bucket"] or not found["path"].strip("/"):
            raise ConfigError(f"{key}={address!r}: must be a folder, or s3://BUCKET/PATH, or gs://BUCKET/PATH")
        self.address = address.rstrip("/")
        try:
            kind = fsspec.get_filesystem_class(scheme)
        except ImportError:
            raise ConfigError(
                f"{key}={address!r}: needs the library {EXTRAS[scheme]}: pip install 'macro-placement[{scheme}]'"
            ) from None
        self._root = f"{found['bucket']}/{found['path'].strip('/')}"
        self._files = kind(use_listings_cache=False, skip_instance_cache=True, **_OPTIONS[scheme])

    def read(self, name: str) -> bytes | None:
        """An object's content; None if there is no such object. Raises StorageError."""
        try:
            return self._call(name, self._files._cat_file)
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes, **options: Any) -> None:
        """Writes a whole object and replaces an existing one; `options` are the library's. Raises StorageError."""
        try:
            self._call(name, self._files._pipe_file, data, **options)
        except FileNotFoundError:
            raise StorageError(f"{self.address}/{name} cannot be written: no such bucket") from None

    def create(self, name: str, data: bytes) -> bool:
        """Writes an object unless there is one; returns whether it did. Raises StorageError."""
        if self.read(name) is not None:  # for stores without conditional writes, too
            return False
        try:
            self.write(name, data, mode="create")
        except FileExistsError:
            return False
        return True

    def remove(self, name: str) -> None:
        """Removes an object, if it exists. Raises StorageError."""
        with contextlib.suppress(FileNotFoundError):
            self._call(name, self._files._rm_file)

    def _call(self, name: str, function: Any, *args: Any, **options: Any) -> Any:
        """Runs one of the library's coroutines on an object; FileNotFoundError and FileExistsError pass."""
        path = f"{self._root}/{name}"
        try:
            return fsspec.asyn.sync(self._files.loop, function, path, *args, timeout=CALL_SECONDS, **options)
        except (FileNotFoundError, FileExistsError):
            raise
        except Exception as error:  # Each library has its own exceptions, without a common base.
            if "PreconditionFailed" in str(error) or "conditionNotMet" in str(error):
                raise FileExistsError(path) from None
            raise StorageError(f"{self.address}/{name}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer in {CALL_SECONDS:.0f} s"
    if type(error).__name__ in ("NoCredentialsError", "DefaultCredentialsError"):
        return "no credentials were found where the provider's tools look for them (see the provider's documentation)"
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class FileEntry(NamedTuple):
    """A file of a state: its size in bytes, and its SHA-256 in hexadecimal digits."""

    size: int
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> FileEntry:
        return cls(len(data), hashlib.sha256(data).hexdigest())


class Manifest(NamedTuple):
    """A complete state: its unique id, and its files' entries by their paths in the run folder, with slashes."""

    id: str
    files: Mapping[str, FileEntry]

    def steps(self) -> list[int]:
        return sorted({int(found[1]) for path in self.files if (found := _CHECKPOINT.fullmatch(path))})


def read_manifest(store: ObjectStore) -> Manifest | None:
    """The store's manifest; None if it contains no run. Raises StorageError if it was not written by this program."""
    data = store.read(MANIFEST_NAME)
    if data is None:
        return None
    try:
        content = json.loads(data)
        files = {str(path): FileEntry(int(size), str(sha256)) for path, (size, sha256) in content["files"].items()}
        manifest, written = Manifest(str(content["id"]), files), content["format"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StorageError(f"{store.address}/{MANIFEST_NAME} is damaged") from None
    outside = next((path for path in files if not _inside(path)), None)
    if written != FORMAT or outside is not None:
        reason = f"it names {outside!r}" if outside is not None else f"its format version is {written!r}"
        raise StorageError(f"{store.address}/{MANIFEST_NAME} was not written by this program: {reason}")
    return manifest


def fetch(store: ObjectStore, folder: Path) -> Manifest | None:
    """Copies the newest complete state into `folder`, which must not exist; returns None if the store contains no run.

    Raises StorageError, and makes no folder, if no state stays complete while it is read.
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
    """Updates a store, which has no other writer, to the state of a run folder, repeatedly.

    `manifest` is the store's current manifest.
    """

    def __init__(self, store: ObjectStore, folder: Path, manifest: Manifest | None) -> None:
        self._store, self._folder, self.manifest = store, folder, manifest
        self._seen: dict[str, tuple[tuple[int, int], FileEntry]] = {}

    def publish(self) -> bool:
        """Writes all changes; returns whether there were any. An error leaves the last complete state unchanged."""
        before = {} if self.manifest is None else self.manifest.files
        files: dict[str, FileEntry] = {}
        for name, path in _files(self._folder):
            entry = self._upload(name, path, before.get(name))
            if entry is not None:
                files[name] = entry
        # A checkpoint that training removed during the read may be incomplete.
        files = {name: entry for name, entry in files.items() if (self._folder / (_checkpoint_of(name) or "")).is_dir()}
        if files == dict(before):
            return False
        manifest = Manifest(uuid.uuid4().hex, files)
        content = {"format": FORMAT, **manifest._asdict()}
        self._store.write(MANIFEST_NAME, json.dumps(content, indent=1).encode())
        self.manifest = manifest
        for name in before:
            if name not in files:
                self._store.remove(name)
        return True

    def _upload(self, name: str, path: Path, before: FileEntry | None) -> FileEntry | None:
        """Writes a file unless the store has it; returns None if the file has since been removed."""
        try:
            status = path.stat()
            mark = (status.st_size, status.st_mtime_ns)
            known = self._seen.get(name)
            if known is not None and known[0] == mark and known[1] == before:
                return before
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        entry = FileEntry.of(data)
        if entry != before:
            self._store.write(name, data)
        self._seen[name] = (mark, entry)
        return entry


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a run folder that belong to its state, with their names; complete checkpoints only."""
    for at, folders, names in os.walk(folder):
        here = Path(at).relative_to(folder)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and (here / name).as_posix() not in LEFT_OUT
            and (here != Path(CHECKPOINTS_NAME) or name.isdigit())
        )
        for name in sorted(names):
            if not name.startswith("."):
                yield (here / name).as_posix(), Path(at) / name


def _checkpoint_of(name: str) -> str | None:
    """The folder of the checkpoint that a file belongs to; None for other files."""
    found = _CHECKPOINT.fullmatch(name)
    return f"{CHECKPOINTS_NAME}/{found[1]}" if found else None


def _inside(path: str) -> bool:
    """Whether a path stays inside the folder that it is joined to."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and "\\" not in path and ".." not in parts


def _copy(store: ObjectStore, manifest: Manifest, folder: Path) -> bool:
    """Copies the files of a state; returns whether at least one of its checkpoints, if it has any, is complete."""
    with concurrent.futures.ThreadPoolExecutor(READERS) as readers:
        contents = dict(zip(manifest.files, readers.map(store.read, manifest.files), strict=True))
    same = {name: data is not None and FileEntry.of(data) == manifest.files[name] for name, data in contents.items()}
    broken = {_checkpoint_of(name) for name in contents if not same[name]} - {None}
    kept = {name: data for name, data in contents.items() if data is not None and _checkpoint_of(name) not in broken}
    for name, data in kept.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return any(_checkpoint_of(name) for name in kept) or not manifest.steps()
