"""The bytes of an input file, unpacked where it is gzip, with the checksum that a design keeps of it."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import os
import zlib
from pathlib import Path

from placement.netlist.errors import DesignError

_GZIP_MAGIC = b"\x1f\x8b"


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """Where something came from: the file's name without its folder, and the SHA-256 of its unpacked bytes."""

    name: str
    sha256: str


def read_bytes(path: str | os.PathLike[str]) -> tuple[bytes, SourceFile]:
    """A file's bytes, unpacked where it is gzip; raises DesignError where it cannot be read."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise DesignError(f"{path}: cannot be read: {error.strerror or error}") from None
    if data.startswith(_GZIP_MAGIC):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise DesignError(f"{path}: damaged gzip file: {error}") from None
    return data, SourceFile(name=Path(path).name, sha256=hashlib.sha256(data).hexdigest())
