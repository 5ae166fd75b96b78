"""Checkpoints with Orbax: a pytree of arrays and a JSON record, written whole or not at all; nothing is unpickled.

Each leaf of the tree is saved under a number; the record holds every leaf's place in the tree, shape, dtype and
checksum. So a checkpoint of another network is told apart from a damaged one before anything is used.
"""

from __future__ import annotations

import contextlib
import logging
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import orbax.checkpoint as ocp

_log = logging.getLogger(__name__)
FORMAT = 1


class CheckpointError(RuntimeError):
    """A checkpoint cannot be used; the message names its folder and what is wrong."""


class CheckpointMismatch(CheckpointError):
    """The checkpoint holds another tree (another network, another design) than the one asked for."""


class CheckpointDamaged(CheckpointError):
    """The checkpoint's files are incomplete or changed."""


class Restored(NamedTuple):
    """What a checkpoint held.

    Attributes:
        step: its number.
        tree: pytree of host arrays (random keys as keys).
        record: the JSON record given to `save`.
    """

    step: int
    tree: Any
    record: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run: the last few are kept.

    Args:
        folder: where they are; made when the first one is saved.
        keep: how many of the newest stay.
        read_only: nothing is written or cleaned up, as beside a run that goes on.
    """

    def __init__(self, folder: str | Path, *, keep: int = 3, read_only: bool = False) -> None:
        self._folder = Path(folder).absolute()
        self._keep = keep
        self._read_only = read_only
        self._manager: ocp.CheckpointManager | None = None

    def steps(self) -> list[int]:
        """The numbers of the complete checkpoints, oldest first."""
        if not self._folder.is_dir():
            return []
        manager = self._open()
        manager.reload()  # another process may have saved
        return sorted(manager.all_steps())

    def save(self, step: int, tree: Any, record: Mapping[str, Any]) -> None:
        """Saves a pytree of arrays and a JSON-able record under the number `step`; returns when both are on disk.

        What was there under this number is replaced.
        """
        leaves = {path: _to_host(leaf) for path, leaf in _flatten(tree).items()}
        manifest = {path: _describe(array) for path, array in leaves.items()}
        arrays = {_name(index): array for index, array in enumerate(leaves.values())}
        manager = self._open()
        if step in manager.all_steps():
            manager.delete(step)
        manager.save(
            step,
            args=ocp.args.Composite(
                arrays=ocp.args.StandardSave(arrays),
                record=ocp.args.JsonSave({"format": FORMAT, "leaves": manifest, "record": dict(record)}),
            ),
            force=True,
        )
        manager.wait_until_finished()

    def record(self, step: int | None = None) -> dict[str, Any]:
        """The JSON record of a checkpoint (the newest by default); raises CheckpointError."""
        return self._read_record(self._step(step))["record"]

    def restore(self, like: Mapping[str, Any], *, step: int | None = None) -> Restored:
        """The entries of a saved tree that `like` has, as host arrays in the structure of `like`.

        Args:
            like: mapping of pytrees with the leaves' shapes and dtypes; entries that it lacks are not read.
            step: which checkpoint; None = the newest that is not damaged (a warning names the damaged ones).

        Raises:
            CheckpointMismatch: a leaf is missing, or has another shape or dtype.
            CheckpointDamaged: the files of every checkpoint considered are incomplete or changed.
            CheckpointError: there is no checkpoint.
        """
        if step is not None:
            return self._restore(like, self._step(step))
        self._step(None)
        damage: CheckpointDamaged | None = None
        for candidate in reversed(self.steps()):
            try:
                return self._restore(like, candidate)
            except CheckpointDamaged as error:
                damage = error
                _log.warning("%s; trying the one before", error)
        raise damage or CheckpointError(f"{self._folder}: no checkpoint")

    def close(self) -> None:
        """Ends Orbax's threads."""
        if self._manager is not None:
            self._manager.close()
            self._manager = None

    def _open(self) -> ocp.CheckpointManager:
        if self._manager is None:
            writes = not self._read_only
            alone = _this_process_alone()
            if writes:
                self._folder.mkdir(parents=True, exist_ok=True)
            handlers = {
                "arrays": ocp.StandardCheckpointHandler(multiprocessing_options=alone),
                "record": ocp.JsonCheckpointHandler(multiprocessing_options=alone),
            }
            with _without_warnings("absl"):  # of which `read_only` alone brings two
                options = ocp.CheckpointManagerOptions(
                    max_to_keep=self._keep if writes else None,
                    create=False,
                    cleanup_tmp_directories=writes,
                    read_only=self._read_only,
                    enable_async_checkpointing=False,
                    multiprocessing_options=alone,
                )
                self._manager = ocp.CheckpointManager(self._folder, options=options, item_handlers=handlers)
        return self._manager

    def _step(self, step: int | None) -> int:
        steps = self.steps()
        if not steps or (step is not None and step not in steps):
            wanted = "no checkpoint" if step is None else f"no checkpoint {step}"
            raise CheckpointError(f"{self._folder}: {wanted}; there are {steps or 'none'}")
        return steps[-1] if step is None else step

    def _place(self, step: int) -> Path:
        return self._folder / str(step)

    def _read_record(self, step: int) -> dict[str, Any]:
        content = self._read(step, "record", ocp.args.JsonRestore())
        if not isinstance(content, dict) or not {"format", "leaves", "record"} <= content.keys():
            raise CheckpointDamaged(f"{self._place(step)}: its record is incomplete")
        if content["format"] != FORMAT:
            raise CheckpointMismatch(f"{self._place(step)}: of format {content['format']}, expected {FORMAT}")
        return content

    def _read(self, step: int, item: str, how: Any) -> Any:
        """One item of a checkpoint; whatever Orbax or TensorStore raises means damage."""
        try:
            return self._open().restore(step, args=ocp.args.Composite(**{item: how}))[item]
        except Exception as error:  # their exceptions have no common base
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise CheckpointDamaged(f"{self._place(step)}: cannot be read ({reason[:300]})") from error

    def _restore(self, like: Mapping[str, Any], step: int) -> Restored:
        content = self._read_record(step)
        saved: dict[str, dict[str, Any]] = content["leaves"]
        wanted = _flatten(dict(like))
        self._compare(saved, wanted, set(map(_top, like)), step)
        names = {path: _name(index) for index, path in enumerate(saved)}
        target = {names[path]: np.zeros(entry["shape"], _dtype(entry["dtype"])) for path, entry in saved.items()}
        arrays = self._read(step, "arrays", ocp.args.StandardRestore(target))
        leaves = []
        for path, leaf in wanted.items():
            array = np.asarray(arrays[names[path]])
            if _checksum(array) != saved[path]["checksum"]:
                raise CheckpointDamaged(f"{self._place(step)}: {path} does not match its checksum")
            leaves.append(_from_host(array, leaf))
        structure = jax.tree.structure(dict(like))
        return Restored(step, jax.tree.unflatten(structure, leaves), content["record"])

    def _compare(
        self, saved: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Any], entries: set[str], step: int
    ) -> None:
        """Raises CheckpointMismatch naming the first few leaves that differ."""
        present = {path for path in saved if _entry(path) in entries}
        differences = [f"lacks {path}" for path in wanted if path not in present]
        differences += [f"has {path} besides" for path in sorted(present - wanted.keys())]
        for path in sorted(present & wanted.keys()):
            here, there = _describe(_to_host(wanted[path])), saved[path]
            if (here["dtype"], here["shape"]) != (there["dtype"], there["shape"]):
                differences.append(
                    f"{path} is {there['dtype']} {there['shape']}, expected {here['dtype']} {here['shape']}"
                )
        if differences:
            more = f" and {len(differences) - 3} more differences" if len(differences) > 3 else ""
            raise CheckpointMismatch(
                f"{self._place(step)}: is of another network or design: {'; '.join(differences[:3])}{more}"
            )


def _this_process_alone() -> ocp.options.MultiprocessingOptions:
    """Of several learner hosts one saves, and waits for no other."""
    if jax.process_count() == 1:
        return ocp.options.MultiprocessingOptions()
    index = jax.process_index()
    return ocp.options.MultiprocessingOptions(
        primary_host=index, active_processes={index}, barrier_sync_key_prefix=f"host{index}"
    )


@contextlib.contextmanager
def _without_warnings(logger: str) -> Iterator[None]:
    held = logging.getLogger(logger)
    level = held.level
    held.setLevel(logging.ERROR)
    try:
        yield
    finally:
        held.setLevel(level)


def _flatten(tree: Any) -> dict[str, Any]:
    """The leaves by their place in the tree."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}


def _top(key: str) -> str:
    return f"[{key!r}]"


def _entry(path: str) -> str:
    """The top-level part of a leaf's place, such as ``['learner']``."""
    return path[: path.index("]") + 1]


def _name(index: int) -> str:
    return f"leaf{index:05d}"


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_host(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _from_host(array: np.ndarray, like: Any) -> Any:
    if not _is_key(like):
        return array
    return jax.random.wrap_key_data(jax.numpy.asarray(array), impl=jax.random.key_impl(like))


def _dtype(name: str) -> np.dtype:
    return jax.numpy.dtype(name)  # knows bfloat16, too


def _checksum(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


def _describe(array: np.ndarray) -> dict[str, Any]:
    return {"dtype": str(array.dtype), "shape": list(array.shape), "checksum": _checksum(array)}
