"""The parameter store of one process: between its learner and its actors."""

from __future__ import annotations

import threading
from typing import Any

import jax
import numpy as np

from placement.modelcache.base import ParameterPublisher, ParameterStore, Snapshot, StoreClosed, StoreTimeout


class MemoryStore(ParameterPublisher, ParameterStore):
    """In this process's memory: copies of what is published, which are never changed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._snapshot: Snapshot | None = None
        self._closed = False

    def publish(self, version: int, parameters: Any) -> None:
        snapshot = Snapshot(version, jax.tree.map(_read_only_copy, parameters))
        with self._changed:
            self._raise_if_closed()
            newest = self._newest()
            if version <= newest:
                raise ValueError(f"version {version} published after version {newest}: versions must rise")
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
            raise StoreClosed(f"{threading.current_thread().name} cannot go on: the parameter store is closed")


def _read_only_copy(leaf: Any) -> np.ndarray:
    """A host copy of an array, so that neither donation nor writing changes what was published."""
    copied = np.array(leaf, copy=True)
    copied.setflags(write=False)
    return copied
