"""Snapshots on the wire: a header and the leaves behind each other in one contiguous buffer.

Each leaf begins at a multiple of 64 bytes, so that arrays are read where they lie. Floating-point leaves travel as
float32 or, at half the bytes, rounded to bfloat16; all others as they are. Little-endian.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from placement.modelcache.base import Snapshot
from placement.modelcache.header import SIZE, WIRE_DTYPES, Header, SnapshotMismatch, Stamp, check

_ALIGNMENT = 64
_ON_WIRE = {"float32": np.dtype(np.float32), "bfloat16": np.dtype(jnp.bfloat16)}


class Leaf(NamedTuple):
    """One array of the parameters.

    Attributes:
        name: its path in the pytree.
        shape: of the array.
        dtype: that readers get.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype


class Layout:
    """How one model's parameters lie in a buffer; made by `Layout.of`.

    Attributes:
        leaves: in the order of the pytree.
        schema: 16 bytes that differ where names, shapes or dtypes differ.
    """

    def __init__(self, structure: Any, leaves: tuple[Leaf, ...]) -> None:
        self._structure = structure
        self.leaves = leaves
        text = repr([(leaf.name, leaf.shape, leaf.dtype.name) for leaf in leaves])
        self.schema = hashlib.blake2b(text.encode(), digest_size=16).digest()

    @classmethod
    def of(cls, parameters: Any) -> Layout:
        """The layout of such parameters (pytree of arrays or of shapes with dtypes; only shapes and dtypes count).

        Raises:
            TypeError: a leaf is wider than float32 can carry, or no numeric array.
        """
        paths, structure = jax.tree_util.tree_flatten_with_path(parameters)
        return cls(structure, tuple(_leaf(jax.tree_util.keystr(path), value) for path, value in paths))

    def size(self, wire_dtype: str = "float32") -> int:
        """Bytes of a whole snapshot."""
        return SIZE + self._offsets(wire_dtype)[-1]

    def pack(self, stamp: Stamp, parameters: Any, *, wire_dtype: str = "float32") -> np.ndarray:
        """One snapshot.

        Args:
            stamp: incarnation and version.
            parameters: pytree of arrays of this layout.
            wire_dtype: of floating-point leaves, "float32" or "bfloat16".

        Returns:
            uint8 [bytes], read-only.

        Raises:
            SnapshotMismatch: the parameters are not of this layout.
        """
        if Layout.of(parameters).schema != self.schema:
            raise SnapshotMismatch(
                f"parameters of version {stamp.version} have other names, shapes or dtypes than before"
            )
        offsets = self._offsets(wire_dtype)
        buffer = np.zeros(SIZE + offsets[-1], np.uint8)
        payload = buffer[SIZE:]
        for leaf, offset, value in zip(self.leaves, offsets, jax.tree.leaves(parameters), strict=False):
            array = np.ascontiguousarray(np.asarray(value), dtype=_wire(leaf.dtype, wire_dtype))
            payload[offset : offset + array.nbytes] = array.reshape(-1).view(np.uint8)
        header = Header(stamp, wire_dtype, self.schema, payload.size, zlib.crc32(payload.data))
        buffer[:SIZE] = np.frombuffer(header.pack(), np.uint8)
        buffer.setflags(write=False)
        return buffer

    def unpack(self, buffer: np.ndarray) -> Snapshot:
        """A snapshot's version and parameters.

        Args:
            buffer: uint8 [bytes]; what is returned may share its memory, so leave it alone afterwards.

        Returns:
            A pytree of read-only arrays of the layout's shapes and dtypes.

        Raises:
            SnapshotDamaged: the bytes are not those that were published.
            SnapshotMismatch: they are of a model with other names, shapes or dtypes.
        """
        header = check(buffer)
        if header.schema != self.schema:
            raise SnapshotMismatch(
                f"snapshot {header.stamp.version} is of another model: schema {header.schema.hex()}, expected "
                f"{self.schema.hex()}; do the caches belong to a run with another policy?"
            )
        offsets = self._offsets(header.wire_dtype)
        if header.payload != offsets[-1]:
            raise SnapshotMismatch(f"snapshot {header.stamp.version}: {header.payload} bytes, expected {offsets[-1]}")
        payload = buffer[SIZE:]
        payload.setflags(write=False)
        pieces = zip(self.leaves, offsets, strict=False)
        leaves = [_read(payload, offset, leaf, header.wire_dtype) for leaf, offset in pieces]
        return Snapshot(header.stamp.version, jax.tree.unflatten(self._structure, leaves))

    def _offsets(self, wire_dtype: str) -> list[int]:
        """Where each leaf begins in the payload, and the payload's size."""
        if wire_dtype not in WIRE_DTYPES:
            raise ValueError(f"wire_dtype={wire_dtype!r}, must be one of {', '.join(WIRE_DTYPES)}")
        offsets = [0]
        for leaf in self.leaves:
            size = int(np.prod(leaf.shape, dtype=np.int64)) * _wire(leaf.dtype, wire_dtype).itemsize
            offsets.append(-(-(offsets[-1] + size) // _ALIGNMENT) * _ALIGNMENT)
        return offsets


def pack(version: int, parameters: Any, *, wire_dtype: str = "float32", incarnation: int = 0) -> np.ndarray:
    """One snapshot of `parameters` (pytree of arrays) as uint8 [bytes]; see `Layout.pack`."""
    return Layout.of(parameters).pack(Stamp(incarnation, version), parameters, wire_dtype=wire_dtype)


def _leaf(name: str, value: Any) -> Leaf:
    dtype = np.dtype(value.dtype)
    if not (jnp.issubdtype(dtype, jnp.number) or dtype == np.bool_) or dtype in (np.float64, np.complex128):
        raise TypeError(f"parameter {name}: {dtype}, must be float32, float16, bfloat16, an integer or bool")
    return Leaf(name, tuple(value.shape), dtype)


def _wire(dtype: np.dtype, wire_dtype: str) -> np.dtype:
    """What a leaf travels as: never wider than it is."""
    narrower = jnp.issubdtype(dtype, jnp.floating) and _ON_WIRE[wire_dtype].itemsize < dtype.itemsize
    return _ON_WIRE[wire_dtype] if narrower else dtype


def _read(payload: np.ndarray, offset: int, leaf: Leaf, wire_dtype: str) -> np.ndarray:
    dtype = _wire(leaf.dtype, wire_dtype)
    size = int(np.prod(leaf.shape, dtype=np.int64)) * dtype.itemsize
    array = payload[offset : offset + size].view(dtype).reshape(leaf.shape)
    if dtype != leaf.dtype:
        array = array.astype(leaf.dtype)
        array.setflags(write=False)
    return array
