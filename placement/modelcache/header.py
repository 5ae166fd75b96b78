"""The first 64 bytes of a snapshot on the wire: what it is, whose it is, and whether it is whole.

    offset  size  field
         0     8  magic
         8     2  format version
        10     2  dtype of floating-point leaves on the wire (`WIRE_DTYPES`)
        12     4  CRC-32 of the payload
        16     8  incarnation of the publisher (unsigned)
        24     8  model version (signed)
        32     8  bytes of payload behind the header
        40    16  schema: hash of the leaves' names, shapes and dtypes
        56     4  CRC-32 of bytes 0 to 55
        60     4  zero

All little-endian. Needs NumPy only, so that a cache, which looks no further, needs no more.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np

MAGIC = b"MPSNAP\r\n"
FORMAT = 1
WIRE_DTYPES = ("float32", "bfloat16")
SIZE = 64
_FIELDS = struct.Struct("<8sHHIQqQ16s")
_CHECKSUM = struct.Struct("<II")
assert _FIELDS.size + _CHECKSUM.size == SIZE


class SnapshotDamaged(ValueError):
    """A snapshot's bytes are not what was published: torn, cut off, or changed on the way."""


class SnapshotMismatch(ValueError):
    """A whole snapshot, but of another model or another format than the reader's."""


class Stamp(NamedTuple):
    """What orders snapshots: a restarted learner's are newer than any before it, whatever their versions.

    Attributes:
        incarnation: of the publisher; rises with each of its restarts.
        version: rises with each publication of one incarnation.
    """

    incarnation: int
    version: int


NOTHING = Stamp(0, -1)
"""Older than every snapshot."""


class Header(NamedTuple):
    """A snapshot's header.

    Attributes:
        stamp: incarnation and version.
        wire_dtype: of floating-point leaves, one of `WIRE_DTYPES`.
        schema: 16 bytes, hash of the leaves' names, shapes and dtypes.
        payload: bytes behind the header.
        checksum: CRC-32 of the payload.
    """

    stamp: Stamp
    wire_dtype: str
    schema: bytes
    payload: int
    checksum: int

    def pack(self) -> bytes:
        """The 64 bytes."""
        wire = WIRE_DTYPES.index(self.wire_dtype)
        fields = _FIELDS.pack(MAGIC, FORMAT, wire, self.checksum, *self.stamp, self.payload, self.schema)
        return fields + _CHECKSUM.pack(zlib.crc32(fields), 0)


def read(buffer: np.ndarray) -> Header:
    """The header at the start of `buffer` (uint8, at least 64 bytes); the payload is not looked at.

    Raises:
        SnapshotDamaged: it is no header, or its checksum is wrong.
        SnapshotMismatch: a format or a wire dtype that this program does not know.
    """
    if not isinstance(buffer, np.ndarray) or buffer.dtype != np.uint8 or buffer.ndim != 1:
        kind = f"{buffer.dtype} {list(buffer.shape)}" if isinstance(buffer, np.ndarray) else type(buffer).__name__
        raise SnapshotDamaged(f"a snapshot is {kind}, must be uint8 [bytes]")
    if buffer.size < SIZE:
        raise SnapshotDamaged(f"a snapshot of {buffer.size} bytes, must have at least {SIZE}")
    raw = buffer[:SIZE].tobytes()
    magic, number, wire, checksum, incarnation, version, payload, schema = _FIELDS.unpack_from(raw)
    found, zero = _CHECKSUM.unpack_from(raw, _FIELDS.size)
    if magic != MAGIC or zero or found != zlib.crc32(raw[: _FIELDS.size]):
        raise SnapshotDamaged(f"a snapshot's header is damaged: it begins with {raw[:8]!r}, checksum {found:#010x}")
    if number != FORMAT or wire >= len(WIRE_DTYPES):
        raise SnapshotMismatch(f"a snapshot of format {number}, wire dtype {wire}; this program knows format {FORMAT}")
    return Header(Stamp(incarnation, version), WIRE_DTYPES[wire], schema, payload, checksum)


def check(buffer: np.ndarray) -> Header:
    """The header of a whole snapshot (uint8), its payload proved by the checksum.

    Raises:
        SnapshotDamaged, SnapshotMismatch: as `read`; also a payload that is too short, too long, or not what was sent.
    """
    header = read(buffer)
    payload = buffer[SIZE:]
    if payload.size != header.payload:
        raise SnapshotDamaged(
            f"snapshot {header.stamp.version}: {payload.size} bytes of payload, the header says {header.payload}"
        )
    found = zlib.crc32(np.ascontiguousarray(payload).data)
    if found != header.checksum:
        raise SnapshotDamaged(
            f"snapshot {header.stamp.version}: checksum {found:#010x}, the header says {header.checksum:#010x}"
        )
    return header
