"""Parameters as one contiguous buffer: a header, then the leaves, each at a multiple of 64 bytes.

Arrays are read where they lie. Floating-point leaves travel as float32 or, at half the bytes, rounded to bfloat16; all
others as they are. Little-endian.
"""

from __future__ import annotations

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from placement.modelcache.base import Snapshot
from placement.modelcache.header import SIZE, SnapshotMismatch, check, seal

_ALIGNMENT = 64
_ON_WIRE = {"float32": np.dtype(np.float32), "bfloat16": np.dtype(jnp.bfloat16)}


class Layout:
    """How one model's parameters lie in a buffer.

    Args:
        parameters: pytree of arrays, or of shapes with dtypes; only names, shapes and dtypes count.

    Raises:
        TypeError: a leaf is wider than float32 can carry, or no numeric array.
    """

    def __init__(self, parameters: Any) -> None:
        paths, self._structure = jax.tree_util.tree_flatten_with_path(parameters)
        self._leaves = [_leaf(jax.tree_util.keystr(path), value) for path, value in paths]
        self._records = {wire_dtype: self._record(wire_dtype) for wire_dtype in _ON_WIRE}
        self._schemas = {self._schema(wire_dtype): wire_dtype for wire_dtype in _ON_WIRE}

    def size(self, wire_dtype: str = "float32") -> int:
        """Bytes of a whole snapshot; raises ValueError unless `wire_dtype` is "float32" or "bfloat16"."""
        if wire_dtype not in self._records:
            raise ValueError(f"wire_dtype={wire_dtype!r}, must be one of {', '.join(_ON_WIRE)}")
        return SIZE + self._records[wire_dtype].itemsize

    def pack(self, version: int, parameters: Any, *, wire_dtype: str = "float32") -> np.ndarray:
        """One snapshot.

        Args:
            version: of the parameters.
            parameters: pytree of arrays of this layout.
            wire_dtype: of floating-point leaves, "float32" or "bfloat16".

        Returns:
            uint8 [bytes], read-only.

        Raises:
            SnapshotMismatch: the parameters are not of this layout.
        """
        buffer = np.zeros(self.size(wire_dtype), np.uint8)
        if Layout(parameters)._leaves != self._leaves:
            raise SnapshotMismatch(f"parameters of version {version} have other names, shapes or dtypes than before")
        fields: np.ndarray = np.ndarray((), self._records[wire_dtype], buffer, SIZE)
        for number, value in enumerate(jax.tree.leaves(parameters)):
            fields[str(number)][...] = np.asarray(value)
        seal(buffer, version, self._schema(wire_dtype))
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
        wire_dtype = self._schemas.get(header.schema)
        if wire_dtype is None or header.payload != self._records[wire_dtype].itemsize:
            raise SnapshotMismatch(
                f"snapshot {header.version} is of another model ({header.payload} bytes, schema {header.schema.hex()}; "
                f"expected {self.size() - SIZE} bytes): do the caches belong to a run with another policy?"
            )
        fields: np.ndarray = np.ndarray((), self._records[wire_dtype], buffer, SIZE)
        leaves = [fields[str(number)].astype(leaf[2], copy=False) for number, leaf in enumerate(self._leaves)]
        for leaf in leaves:
            leaf.setflags(write=False)
        return Snapshot(header.version, jax.tree.unflatten(self._structure, leaves))

    def _record(self, wire_dtype: str) -> np.dtype:
        """The payload as one structured value; its fields are the leaves, named by their numbers."""
        formats, offsets, end = [], [], 0
        for _, shape, dtype in self._leaves:
            formats.append(np.dtype((_wire(dtype, wire_dtype), shape)))
            offsets.append(end)
            end = -(-(end + formats[-1].itemsize) // _ALIGNMENT) * _ALIGNMENT
        names = [str(number) for number in range(len(formats))]
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": end})

    def _schema(self, wire_dtype: str) -> bytes:
        """16 bytes that differ where names, shapes or dtypes differ."""
        text = repr([wire_dtype, *((name, shape, dtype.name) for name, shape, dtype in self._leaves)])
        return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _leaf(name: str, value: Any) -> tuple[str, tuple[int, ...], np.dtype]:
    """Name, shape and dtype of an array."""
    dtype = np.dtype(value.dtype)
    if not (jnp.issubdtype(dtype, jnp.number) or dtype == np.bool_) or dtype in (np.float64, np.complex128):
        raise TypeError(f"parameter {name}: {dtype}, must be float32, float16, bfloat16, an integer or bool")
    return name, tuple(value.shape), dtype


def _wire(dtype: np.dtype, wire_dtype: str) -> np.dtype:
    """What a leaf travels as: never wider than it is."""
    narrower = jnp.issubdtype(dtype, jnp.floating) and _ON_WIRE[wire_dtype].itemsize < dtype.itemsize
    return _ON_WIRE[wire_dtype] if narrower else dtype
