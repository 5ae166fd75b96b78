"""A replay shard: one Reverb server that stores whole episodes, first in first out, and its checkpoints on disk."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
import os
import shutil
import tempfile
import threading
from pathlib import Path

from placement.episode import Schema
from placement.replay.replay import ReplayTimeout
from placement.replay.shard_items import TABLE, make_table
from placement.transport.event_loop import within
from placement.transport.gate import Gate
from placement.transport.reverb_server import ReverbServer, start_server

_log = logging.getLogger(__name__)
CHECKPOINT_SECONDS = 60.0
INFO_SECONDS = 10
COMPLETE = "DONE"  # the file that Reverb writes last into a checkpoint's folder
_UNFINISHED = ".saving-"


@dataclasses.dataclass(frozen=True)
class ShardLoad:
    """A shard's report about itself."""

    size: int  # size, capacity: current and maximum number of stored episodes
    capacity: int
    written: int  # written, taken: total numbers of episodes, including those before a restored checkpoint
    taken: int
    checkpoints: int  # number of checkpoints saved since it began
    unauthenticated: int = 0  # number of connections closed because the client did not prove the run's token


class ReplayShard:
    """Starts a shard's server, from its last checkpoint if there is one.

    Args:
        number: its stable number, for messages.
        capacity: maximum number of stored episodes; writers wait when it is full.
        steps: T, the longest design's number of macros to place.
        port: TCP port; 0 = any free one.
        bind: address by which others reach it; with one that is not a loopback address, it listens on all interfaces.
        checkpoint_folder: the folder of its checkpoints; None = nothing is saved. A damaged checkpoint is moved aside,
            with a warning.
        token: the run's token, which all clients must prove; None = clients need not prove anything.

    Raises:
        PortTaken, ServerTimeout, NotPrivate: like `start_server`.

    Attributes:
        port, address: TCP port, and `host:port`, by which others reach it.
        restored: the checkpoint that it started from; None = it started empty.
    """

    def __init__(
        self,
        *,
        number: int,
        capacity: int,
        steps: int,
        port: int = 0,
        bind: str = "127.0.0.1",
        checkpoint_folder: str | os.PathLike[str] | None = None,
        token: str | None = None,
    ) -> None:
        self._number = number
        self._capacity, self._steps = capacity, steps
        self._saved = None if checkpoint_folder is None else ShardCheckpoints(Path(checkpoint_folder))
        self._checkpoints = 0
        self._saving = threading.Lock()
        self._gate: Gate | None = None
        if token is None:
            self._server = self._start(port, bind)
            self.address, self.port = self._server.address, self._server.port
            return
        # Reverb cannot authenticate clients, so it is reachable from this machine only, behind a gate that can.
        self._server = self._start(0, "127.0.0.1", private=True)
        try:
            self._gate = Gate(self._server.port, bind=bind, token=token, port=port)
        except BaseException:
            self._server.stop()
            raise
        self.address, self.port = self._gate.address, self._gate.port

    def _start(self, port: int, bind: str, *, private: bool = False) -> ReverbServer:
        saved = self._saved
        while True:
            newest = self.restored = None if saved is None else saved.newest()
            try:
                return start_server(
                    [make_table(Schema(self._steps), capacity=self._capacity)],
                    port=port,
                    bind=bind,
                    checkpoint_folder=None if saved is None else saved.unfinished,
                    restore=newest,
                    private=private,
                )
            except RuntimeError as error:
                if saved is None or newest is None:
                    raise
                aside = saved.move_aside(newest)
                _log.warning(
                    "replay shard %d: its checkpoint is damaged (%s), moved aside as %s", self._number, error, aside
                )

    def size(self) -> int:
        """Number of stored episodes."""
        return self.statistics().size

    def checkpoint(self) -> Path:
        """Saves the stored episodes, completely or not at all, while writers and readers wait. Only the newest is kept.

        Returns:
            The checkpoint's folder.

        Raises:
            ValueError: the shard has no checkpoint folder.
            ReplayTimeout: it was not saved in time.
            RuntimeError: it could not be saved.
        """
        if (saved := self._saved) is None:
            raise ValueError(f"replay shard {self._number} has no checkpoint folder: give it one when it is created")
        try:
            added = within(CHECKPOINT_SECONDS, functools.partial(self._save, saved), name="shard checkpoint")
        except TimeoutError:
            message = f"replay shard {self._number} waited {CHECKPOINT_SECONDS:g} s for its checkpoint"
            raise ReplayTimeout(f"{message} in {saved.unfinished}") from None
        self._checkpoints += 1
        return added

    def _save(self, saved: ShardCheckpoints) -> Path:
        with self._saving:
            return saved.add(Path(self._server.client.checkpoint()))

    def statistics(self) -> ShardLoad:
        """The fill level, and the numbers of episodes that arrived and left."""
        # Read from the served table, which after a restart is not the one that the server was given.
        info = self._server.client.server_info(timeout=INFO_SECONDS)[TABLE]
        return ShardLoad(
            size=int(info.current_size),
            capacity=self._capacity,
            written=int(info.rate_limiter_info.insert_stats.completed),
            taken=int(info.rate_limiter_info.sample_stats.completed),
            checkpoints=self._checkpoints,
            unauthenticated=0 if self._gate is None else self._gate.rejected,
        )

    def close(self) -> None:
        """Ends the server; clients that wait on it get errors. May be called twice."""
        if self._gate is not None:
            self._gate.stop()
        self._server.stop()


class ShardCheckpoints:
    """One shard's checkpoints in a folder, numbered: the newest has the highest number, regardless of any clock.

    Reverb names its checkpoints by time, restores the last name, and keeps the last name only; on a machine whose clock
    is behind, that is an older one. Therefore each checkpoint is written into a separate folder and renamed to the next
    number once it is complete. Unfinished files of a killed process are removed.

    Args:
        folder: created if it does not exist.

    Attributes:
        unfinished: the folder that Reverb writes into; empty between checkpoints.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for path in (*folder.glob(f"{_UNFINISHED}*"), *(path for path in self._numbered() if not _is_complete(path))):
            shutil.rmtree(path, ignore_errors=True)
        self.unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder))

    def newest(self) -> Path | None:
        """The last complete checkpoint; None if there is none."""
        return next((path for path in reversed(self._numbered()) if _is_complete(path)), None)

    def add(self, written: Path) -> Path:
        """Makes the checkpoint in `unfinished` the newest, and removes all others; returns its new path.

        Raises OSError if it cannot be renamed. The newest is still the previous one.
        """
        previous = self._numbered()
        number = int(previous[-1].name) + 1 if previous else 1
        added = written.rename(self._folder / f"{number:09d}")
        for path in previous:
            shutil.rmtree(path, ignore_errors=True)
        return added

    def move_aside(self, checkpoint: Path) -> Path:
        """Moves a checkpoint that cannot be read out of the way; returns its new path."""
        aside = self._folder.with_name(f"{self._folder.name}-damaged")
        aside.mkdir(exist_ok=True)
        places = (aside / f"{checkpoint.name}-{count}" for count in itertools.count(1))
        return checkpoint.rename(next(place for place in places if not place.exists()))

    def _numbered(self) -> list[Path]:
        """The checkpoints, oldest first."""
        found = [path for path in self._folder.iterdir() if path.name.isdigit() and path.is_dir()]
        return sorted(found, key=lambda path: int(path.name))


def _is_complete(checkpoint: Path) -> bool:
    return (checkpoint / COMPLETE).exists()
