"""The bytes of an input file, unpacked where it is gzip, with the checksum that a design keeps of it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path

from placement.netlist.files import unpacked_bytes


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """Where something came from: the file's name without its folder, and the SHA-256 of its unpacked bytes."""

    name: str
    sha256: str


def read_bytes(path: str | os.PathLike[str]) -> tuple[bytes, SourceFile]:
    """A file's bytes, unpacked where it is gzip; raises DesignError where it cannot be read."""
    data = unpacked_bytes(path)
    return data, SourceFile(name=Path(path).name, sha256=hashlib.sha256(data).hexdigest())
