"""Objects under one address of S3 or Google Cloud Storage, each read and written whole, within a deadline.

The libraries are fsspec's, which Orbax uses as well. They take credentials, endpoints and regions from where the
providers' own tools take them (`AWS_PROFILE`, `AWS_ENDPOINT_URL`, `GOOGLE_APPLICATION_CREDENTIALS` and so on).
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

import fsspec.asyn  # type: ignore[import-untyped]

from placement.config import ConfigError

CALL_SECONDS = 60.0
"""That one object may take, the library's own attempts included."""
CONNECT_SECONDS = 10.0
_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<bucket>[^/]*)/*(?P<path>.*)")
_OPTIONS: dict[str, dict[str, Any]] = {
    "s3": {"config_kwargs": {"connect_timeout": CONNECT_SECONDS, "retries": {"max_attempts": 2}}},
    "gs": {"timeout": CALL_SECONDS},
}
"""What each scheme's library is opened with."""
EXTRAS = {"s3": "s3fs", "gs": "gcsfs"}
"""The library that each scheme needs; the project's extra of the scheme's name installs it."""


class StorageError(RuntimeError):
    """The store does not do what was asked; the message says which object and why."""


def is_address(place: str) -> bool:
    """Whether a setting names object storage rather than a folder."""
    return _ADDRESS.fullmatch(place) is not None


class ObjectStore:
    """The objects whose names begin with one address.

    Args:
        address: `s3://BUCKET/PATH` or `gs://BUCKET/PATH`.
        key: the setting that names it, for messages.

    Raises:
        ConfigError: it is no such address, or the library is not installed.

    Attributes:
        address: without a slash at its end.
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
        """An object's content; None where there is no such object. Raises StorageError."""
        try:
            return self._call(name, self._files._cat_file)
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Writes an object, whole, over whatever stands there. Raises StorageError."""
        try:
            self._call(name, self._files._pipe_file, data)
        except FileNotFoundError:
            raise self._no_bucket(name) from None

    def create(self, name: str, data: bytes) -> bool:
        """Writes an object unless there is one; returns whether it did. Raises StorageError."""
        if self.read(name) is not None:  # also for stores that know no conditional writes
            return False
        try:
            self._call(name, self._files._pipe_file, data, mode="create")
        except FileExistsError:
            return False
        except FileNotFoundError:
            raise self._no_bucket(name) from None
        return True

    def remove(self, name: str) -> None:
        """Removes an object; one that is not there is no mistake. Raises StorageError."""
        with contextlib.suppress(FileNotFoundError):
            self._call(name, self._files._rm_file)

    def _no_bucket(self, name: str) -> StorageError:
        return StorageError(f"{self.address}/{name} cannot be written: there is no such bucket")

    def _call(self, name: str, function: Any, *args: Any, **options: Any) -> Any:
        """Runs one of the library's coroutines on an object; FileNotFoundError and FileExistsError pass."""
        path = f"{self._root}/{name}"
        try:
            return fsspec.asyn.sync(self._files.loop, function, path, *args, timeout=CALL_SECONDS, **options)
        except (FileNotFoundError, FileExistsError):
            raise
        except Exception as error:  # each library has its own kinds, without a common base
            if "PreconditionFailed" in str(error) or "conditionNotMet" in str(error):
                raise FileExistsError(path) from None
            raise StorageError(f"{self.address}/{name}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What went wrong, in one line."""
    if isinstance(error, TimeoutError):
        return f"no answer in {CALL_SECONDS:.0f} s"
    if type(error).__name__ in ("NoCredentialsError", "DefaultCredentialsError"):
        return "no credentials were found where the provider's own tools look for them (its page says where)"
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
