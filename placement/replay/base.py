"""The replay interface between actors and learner: whole episodes, first in first out, each consumed once.

All methods may be called from several threads at once unless a class says otherwise.
"""

from __future__ import annotations

from typing import Protocol

from placement.ppo.trajectory import Episode


class ReplayTimeout(TimeoutError):
    """A read or a write waited past its deadline; the message says who waited for what."""


class ReplayClosed(RuntimeError):
    """The replay was closed; nothing more can be read or written."""


class ReplayWriter(Protocol):
    """The actors' side."""

    def write(self, episode: Episode, *, timeout: float) -> None:
        """Adds one episode, waiting up to `timeout` seconds for room.

        Raises:
            MalformedEpisode: the episode breaks the rules of `Episode`.
            ReplayTimeout: there was no room in time. Writing the same episode again from the same thread goes on
                waiting; it is added once.
            ReplayClosed: the replay is closed.
        """

    def close(self) -> None:
        """Wakes all who wait (they get ReplayClosed) and frees what is held. May be called twice."""


class ReplayReader(Protocol):
    """The learner's side."""

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        """Takes the `count` oldest episodes, waiting up to `timeout` seconds.

        Raises:
            ReplayTimeout: fewer came in time; they stay for the next read.
            ReplayClosed: the replay is closed.
            RuntimeError: reading failed for a reason that is not a server's death.
        """

    def size(self) -> int:
        """Episodes waiting to be read."""

    def close(self) -> None:
        """Wakes all who wait (they get ReplayClosed) and frees what is held. May be called twice."""


class Replay(ReplayWriter, ReplayReader, Protocol):
    """Both sides in one process."""
