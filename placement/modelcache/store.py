"""The parameter store between learner and actors: numbered snapshots, of which only the newest counts.

This module has its interface, the store inside one process, and the format of a snapshot in the caches: a header of 64
bytes, then the leaves, each at a multiple of 64 bytes, all little-endian.

    offset  size  field
         0     8  magic, which names the format
         8     4  CRC-32 of all bytes after it, including padding and payload
        16     8  version (signed)
        24     8  bytes of payload after the header
        32    16  schema: hash of the leaves' names, shapes and dtypes

JAX is imported only where pytrees are handled, so that a cache, which needs only the header, works without it.
"""

import hashlib
import struct
import threading
import zlib
from typing import Any, NamedTuple, Protocol

import numpy as np

MAGIC = b"MPSNAP2\n"
HEADER_BYTES = 64
_HEADER = struct.Struct("<8sI4xqQ16s16x")
_PROTECTED = 12  # The checksum covers the bytes from here on.
_ALIGNMENT = 64


class StoreTimeout(TimeoutError):
    """A snapshot did not arrive in time; the message names the reader and the version."""


class StoreClosed(RuntimeError):
    """The store was closed; nothing more can be read or published."""


class SnapshotDamaged(ValueError):
    """A snapshot's bytes differ from the published ones: torn, cut off, or changed on the way."""


class SnapshotMismatch(ValueError):
    """An intact snapshot, but of another model or another format than the reader's."""


class Snapshot(NamedTuple):
    """Parameters with their version."""

    version: int  # a number that rises with every publication, from 0, also through restarts of the learner
    parameters: Any  # pytree of read-only host arrays


class ParameterPublisher(Protocol):
    """The learner's side of a store."""

    def publish(self, version: int, parameters: Any) -> None:
        """Makes `parameters` (pytree of arrays) the newest snapshot.

        Raises:
            ValueError: `version` is not above the newest one.
            StoreClosed: the store is closed.
        """


class ParameterStore(Protocol):
    """An actor's side of a store. All methods may be called from several threads at once."""

    def version(self) -> int:
        """The newest version; -1 before the first publication. It is cheap and moves no parameters."""

    def wait_for(self, version: int, *, timeout: float) -> Snapshot:
        """Returns the newest snapshot, once it is at least `version`; with 0 this is simply the newest.

        Raises:
            StoreTimeout: none arrived within `timeout` seconds.
            StoreClosed: the store is closed.
        """

    def close(self) -> None:
        """Wakes all waiting threads with StoreClosed. May be called twice."""


class MemoryStore(ParameterPublisher, ParameterStore):
    """A store of immutable copies in this process's memory."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._snapshot: Snapshot | None = None
        self._closed = False

    def publish(self, version: int, parameters: Any) -> None:
        import jax

        snapshot = Snapshot(version, jax.tree.map(_read_only_copy, parameters))
        with self._changed:
            self._raise_if_closed()
            newest = self._newest()
            if version <= newest:
                raise ValueError(f"version {version} published after version {newest}: versions must increase")
            self._snapshot = snapshot
            self._changed.notify_all()

    def version(self) -> int:
        with self._changed:
            return self._newest()

    def wait_for(self, version: int, *, timeout: float) -> Snapshot:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._newest() >= version, timeout)
            self._raise_if_closed()
            if self._snapshot is None or self._snapshot.version < version:
                raise StoreTimeout(
                    f"{threading.current_thread().name} waited {timeout:g} s for parameters of version {version}; the "
                    f"newest is {self._newest()}: the learner is too slow or has stopped"
                )
            return self._snapshot

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _newest(self) -> int:
        return -1 if self._snapshot is None else self._snapshot.version

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise StoreClosed(f"{threading.current_thread().name} cannot continue: the parameter store is closed")


def _read_only_copy(leaf: Any) -> np.ndarray:
    """A host copy of an array, so that neither donation nor writing changes the published values."""
    copied = np.array(leaf, copy=True)
    copied.setflags(write=False)
    return copied


class Header(NamedTuple):
    """A snapshot's header; the module's docstring explains its fields."""

    version: int
    payload: int
    schema: bytes


def read_header(buffer: bytes | memoryview) -> Header:
    """The header at the start of `buffer`; raises the errors of `check_snapshot`, but does not check the payload."""
    if len(buffer) < HEADER_BYTES:
        raise SnapshotDamaged(f"a snapshot has {len(buffer)} bytes; must have at least {HEADER_BYTES}")
    magic, _, version, payload, schema = _HEADER.unpack_from(buffer)
    if magic != MAGIC:
        raise SnapshotMismatch(f"a snapshot begins with {magic!r}; must begin with {MAGIC!r}")
    return Header(version, payload, schema)


def check_snapshot(buffer: np.ndarray) -> Header:
    """The header of a whole snapshot (uint8 [bytes], contiguous), whose checksum is verified.

    Raises:
        SnapshotDamaged: the payload is too short or too long, or any byte was changed on the way.
        SnapshotMismatch: the format is unknown.
    """
    if not isinstance(buffer, np.ndarray) or buffer.dtype != np.uint8 or buffer.ndim != 1:
        kind = f"{buffer.dtype} {list(buffer.shape)}" if isinstance(buffer, np.ndarray) else type(buffer).__name__
        raise SnapshotDamaged(f"a snapshot is {kind}; must be uint8 [bytes]")
    header = read_header(buffer.data)
    if buffer.size - HEADER_BYTES != header.payload:
        raise SnapshotDamaged(
            f"snapshot {header.version}: {buffer.size - HEADER_BYTES} bytes of payload, "
            f"the header declares {header.payload}"
        )
    expected, found = int(buffer[8:_PROTECTED].view("<u4")[0]), zlib.crc32(buffer[_PROTECTED:].data)
    if found != expected:
        raise SnapshotDamaged(f"snapshot {header.version}: checksum {found:#010x}, expected {expected:#010x}")
    return header


class Layout:
    """The layout of one model's parameters in a snapshot's bytes.

    Args:
        parameters: pytree of arrays, or of shapes with dtypes; only names, shapes and dtypes count.

    Attributes:
        size: bytes of a whole snapshot.

    Raises:
        TypeError: a leaf is wider than float32, or not a numeric array.
    """

    def __init__(self, parameters: Any) -> None:
        import jax

        paths, self._structure = jax.tree_util.tree_flatten_with_path(parameters)
        self._leaves = [_leaf(jax.tree_util.keystr(path), value) for path, value in paths]
        # The payload is one structured value; its fields are the leaves, named by their numbers.
        formats = [np.dtype((dtype, shape)) for _, shape, dtype in self._leaves]
        offsets, end = [], 0
        for each in formats:
            offsets.append(end)
            end = -(-(end + each.itemsize) // _ALIGNMENT) * _ALIGNMENT
        names = [str(number) for number in range(len(formats))]
        self._payload = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": end})
        text = repr(["float32", *((name, shape, dtype.name) for name, shape, dtype in self._leaves)])
        self._schema = hashlib.blake2b(text.encode(), digest_size=16).digest()
        self.size = HEADER_BYTES + end

    def pack(self, version: int, parameters: Any) -> np.ndarray:
        """Packs one snapshot as uint8 [bytes], read-only.

        Args:
            version: the version of the parameters.
            parameters: pytree of arrays of this layout.

        Raises:
            SnapshotMismatch: the parameters have another layout.
        """
        import jax

        if Layout(parameters)._leaves != self._leaves:
            raise SnapshotMismatch(f"parameters of version {version} have other names, shapes or dtypes than before")
        buffer = np.zeros(self.size, np.uint8)
        fields: np.ndarray = np.ndarray((), self._payload, buffer, HEADER_BYTES)
        for number, value in enumerate(jax.tree.leaves(parameters)):
            fields[str(number)][...] = np.asarray(value)
        _HEADER.pack_into(buffer.data, 0, MAGIC, 0, version, self.size - HEADER_BYTES, self._schema)
        struct.pack_into("<I", buffer.data, 8, zlib.crc32(buffer[_PROTECTED:].data))
        buffer.setflags(write=False)
        return buffer

    def unpack(self, buffer: np.ndarray) -> Snapshot:
        """Unpacks a snapshot's version and parameters.

        Args:
            buffer: uint8 [bytes]; the result may share its memory, so do not change it afterwards.

        Returns:
            A pytree of read-only arrays of the layout's shapes and dtypes.

        Raises:
            SnapshotDamaged: the bytes differ from the published ones.
            SnapshotMismatch: they are of a model with other names, shapes or dtypes.
        """
        import jax

        header = check_snapshot(buffer)
        if header.schema != self._schema or header.payload != self._payload.itemsize:
            raise SnapshotMismatch(
                f"snapshot {header.version} is of another model ({header.payload} bytes, schema {header.schema.hex()}; "
                f"expected {self._payload.itemsize} bytes): do the caches belong to a run with another policy?"
            )
        fields: np.ndarray = np.ndarray((), self._payload, buffer, HEADER_BYTES)
        leaves = [fields[str(number)] for number in range(len(self._leaves))]
        for leaf in leaves:
            leaf.setflags(write=False)
        return Snapshot(header.version, jax.tree.unflatten(self._structure, leaves))


def _leaf(name: str, value: Any) -> tuple[str, tuple[int, ...], np.dtype]:
    """Name, shape and dtype of an array."""
    import jax.numpy as jnp

    dtype = np.dtype(value.dtype)
    if not (jnp.issubdtype(dtype, jnp.number) or dtype == np.bool_) or dtype in (np.float64, np.complex128):
        raise TypeError(f"parameter {name}: {dtype}, must be float32, float16, bfloat16, an integer or bool")
    return name, tuple(value.shape), dtype
