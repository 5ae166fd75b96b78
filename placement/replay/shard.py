"""A replay shard: one Reverb server that holds whole episodes, first in first out, and knows of no other shard."""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import threading
from pathlib import Path

from placement.replay.base import ReplayTimeout
from placement.replay.shard_checkpoints import ShardCheckpoints
from placement.replay.shard_items import TABLE, make_table
from placement.replay.validation import Schema
from placement.transport.deadline import within
from placement.transport.gate import Gate
from placement.transport.reverb_server import ReverbServer, start_server

_log = logging.getLogger(__name__)
CHECKPOINT_SECONDS = 60.0
INFO_SECONDS = 10


@dataclasses.dataclass(frozen=True)
class ShardLoad:
    """What a shard tells of itself.

    Attributes:
        number: its stable number.
        address: `host:port`.
        size, capacity: episodes held, now and at most.
        written, taken: episodes in all, those before a restored checkpoint included.
        checkpoints: saved since it began.
        strangers: connections refused because they did not prove the run's token.
    """

    number: int
    address: str
    size: int
    capacity: int
    written: int
    taken: int
    checkpoints: int
    strangers: int = 0


class ReplayShard:
    """Starts a shard's server, from its last checkpoint if there is one.

    Args:
        number: its stable number, for messages.
        capacity: episodes held at most; writers wait when it is full.
        steps: T, the longest design's number of macros to place.
        port: TCP port; 0 = any free one.
        bind: address by which others reach it; other than a loopback address it listens on all interfaces.
        checkpoint_folder: where its checkpoints are; None = nothing is saved. A damaged checkpoint is put aside, with
            a warning.
        token: the run's, which all who write and read must prove; None = the server asks for nothing.

    Raises:
        PortTaken, ServerTimeout, NotPrivate: as `start_server`.

    Attributes:
        number: as given.
        address: `host:port` by which others reach it.
        port: TCP port that it listens on.
        restored: the checkpoint that it started from; None = it began empty.
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
        self.number = number
        self._capacity = capacity
        self._schema = Schema(steps)
        self._saved = None if checkpoint_folder is None else ShardCheckpoints(Path(checkpoint_folder))
        self._checkpoints = 0
        self._saving = threading.Lock()
        self._gate: Gate | None = None
        if token is None:
            self._server = self._start(port, bind)
            self.address, self.port = self._server.address, self._server.port
            return
        # Reverb cannot ask for anything, so it stays on this machine, behind a gate that does.
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
            table = make_table(self._schema, capacity=self._capacity)
            newest = self.restored = None if saved is None else saved.newest()
            try:
                return start_server(
                    [table],
                    port=port,
                    bind=bind,
                    checkpoint_folder=None if saved is None else saved.begun,
                    restore=newest,
                    private=private,
                )
            except RuntimeError as error:
                if saved is None or newest is None:
                    raise
                aside = saved.put_aside(newest)
                _log.warning(
                    "replay shard %d: its checkpoint is damaged (%s), put aside as %s", self.number, error, aside
                )

    def size(self) -> int:
        """Episodes held."""
        return self.statistics().size

    def checkpoint(self) -> Path:
        """Saves what is held, whole or not at all; writers and readers wait meanwhile. Only the newest is kept.

        Returns:
            The checkpoint's folder.

        Raises:
            ValueError: the shard has no checkpoint folder.
            ReplayTimeout: it was not saved in time.
            RuntimeError: it could not be saved.
        """
        if (saved := self._saved) is None:
            raise ValueError(f"replay shard {self.number} has no checkpoint folder: give it one when it is made")
        try:
            added = within(CHECKPOINT_SECONDS, functools.partial(self._save, saved), name="shard checkpoint")
        except TimeoutError:
            message = f"replay shard {self.number} waited {CHECKPOINT_SECONDS:g} s for its checkpoint in {saved.begun}"
            raise ReplayTimeout(message) from None
        self._checkpoints += 1
        return added

    def _save(self, saved: ShardCheckpoints) -> Path:
        with self._saving:
            return saved.add(Path(self._server.client.checkpoint()))

    def statistics(self) -> ShardLoad:
        """How full it is, and what came and went."""
        # Of the table as it is served: after a restart it is not the one that the server was given.
        info = self._server.client.server_info(timeout=INFO_SECONDS)[TABLE]
        return ShardLoad(
            number=self.number,
            address=self.address,
            size=int(info.current_size),
            capacity=self._capacity,
            written=int(info.rate_limiter_info.insert_stats.completed),
            taken=int(info.rate_limiter_info.sample_stats.completed),
            checkpoints=self._checkpoints,
            strangers=0 if self._gate is None else self._gate.refused,
        )

    def close(self) -> None:
        """Ends the server; those who wait on it get errors. May be called twice."""
        if self._gate is not None:
            self._gate.stop()
        self._server.stop()
