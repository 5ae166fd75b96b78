"""The parameter store between learner and actors: numbered snapshots, of which only the newest counts.

A store is what a process asks for parameters, wherever they come from: the learner's own memory, or a cache in a tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class StoreTimeout(TimeoutError):
    """A snapshot did not come in time; the message says who waited for which version."""


class StoreClosed(RuntimeError):
    """The store was closed; nothing more can be read or published."""


class Snapshot(NamedTuple):
    """Parameters with their version.

    Attributes:
        version: rises with every publication, from 0, also through restarts of the learner.
        parameters: pytree of read-only host arrays.
    """

    version: int
    parameters: Any


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
        """The newest version; -1 before the first publication. Cheap: moves no parameters."""

    def wait_for(self, version: int, *, timeout: float) -> Snapshot:
        """The newest snapshot, once it is at least `version`; with 0 this is just the newest.

        Raises:
            StoreTimeout: none came within `timeout` seconds.
            StoreClosed: the store is closed.
        """

    def close(self) -> None:
        """Wakes all who wait (they get StoreClosed). May be called twice."""
