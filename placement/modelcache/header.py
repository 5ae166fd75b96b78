"""The first 64 bytes of a snapshot: which version, of which model, and whether it is whole.

    offset  size  field
         0     8  magic, which names the format
         8     4  CRC-32 of everything behind it, padding and payload included
        16     8  version (signed)
        24     8  bytes of payload behind the header
        32    16  schema: hash of the leaves' names, shapes and dtypes, and of the dtype on the wire

All little-endian, the rest zero. Needs NumPy only, so that a cache, which looks no further, needs no more.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np

MAGIC = b"MPSNAP2\n"
SIZE = 64
_FIELDS = struct.Struct("<8sI4xqQ16s16x")
_PROTECTED = 12  # the checksum covers the bytes from here on


class SnapshotDamaged(ValueError):
    """A snapshot's bytes are not what was published: torn, cut off, or changed on the way."""


class SnapshotMismatch(ValueError):
    """A whole snapshot, but of another model or another format than the reader's."""


class Header(NamedTuple):
    """A snapshot's header.

    Attributes:
        version: of the parameters.
        payload: bytes behind the header.
        schema: 16 bytes, see `Layout`.
    """

    version: int
    payload: int
    schema: bytes


def seal(buffer: np.ndarray, version: int, schema: bytes) -> None:
    """Writes the header of a snapshot (uint8 [64 + payload]) whose payload is complete."""
    _FIELDS.pack_into(buffer.data, 0, MAGIC, 0, version, buffer.size - SIZE, schema)
    struct.pack_into("<I", buffer.data, 8, zlib.crc32(buffer[_PROTECTED:].data))


def read(buffer: bytes | memoryview) -> Header:
    """The header at the start of `buffer` (at least 64 bytes); checksum and payload are not looked at.

    Raises:
        SnapshotDamaged: it is too short.
        SnapshotMismatch: a format that this program does not know.
    """
    if len(buffer) < SIZE:
        raise SnapshotDamaged(f"a snapshot of {len(buffer)} bytes, must have at least {SIZE}")
    magic, _, version, payload, schema = _FIELDS.unpack_from(buffer)
    if magic != MAGIC:
        raise SnapshotMismatch(f"a snapshot that begins with {magic!r}, must begin with {MAGIC!r}")
    return Header(version, payload, schema)


def check(buffer: np.ndarray) -> Header:
    """The header of a whole snapshot (uint8 [bytes], contiguous), proved by its checksum.

    Raises:
        SnapshotDamaged: the payload is too short or too long, or anything is not as it was sent.
        SnapshotMismatch: a format that this program does not know.
    """
    if not isinstance(buffer, np.ndarray) or buffer.dtype != np.uint8 or buffer.ndim != 1:
        kind = f"{buffer.dtype} {list(buffer.shape)}" if isinstance(buffer, np.ndarray) else type(buffer).__name__
        raise SnapshotDamaged(f"a snapshot is {kind}, must be uint8 [bytes]")
    header = read(buffer.data)
    if buffer.size - SIZE != header.payload:
        raise SnapshotDamaged(
            f"snapshot {header.version}: {buffer.size - SIZE} bytes of payload, the header says {header.payload}"
        )
    expected, found = int(buffer[8:_PROTECTED].view("<u4")[0]), zlib.crc32(buffer[_PROTECTED:].data)
    if found != expected:
        raise SnapshotDamaged(f"snapshot {header.version}: checksum {found:#010x}, the header says {expected:#010x}")
    return header
