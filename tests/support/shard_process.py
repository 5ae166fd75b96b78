"""A replay shard in its own process, which tests may kill.

The processes are forked from one that has imported TensorFlow already, which takes seconds.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.support.episodes import STEPS

ANSWER_SECONDS = 120.0
_fork = multiprocessing.get_context("forkserver")
_fork.set_forkserver_preload(["placement.replay.shard"])


def _serve(options: dict[str, Any], orders: Connection) -> None:
    from placement.replay.shard import ReplayShard

    shard = ReplayShard(**options)
    orders.send(shard.address)
    while True:
        if orders.recv() == "checkpoint":
            shard.checkpoint()
        orders.send(dataclasses.asdict(shard.statistics()))


class ShardProcess:
    """Starts a shard for episodes of `STEPS` steps; `address` waits until it is ready.

    Args:
        number: the shard's.
        folder: of its checkpoints; None = none.
        capacity: episodes held at most.
        port: TCP port; 0 = any free one.
    """

    def __init__(self, number: int, folder: Path | None, *, capacity: int = 64, port: int = 0) -> None:
        options: dict[str, Any] = {"number": number, "capacity": capacity, "steps": STEPS, "port": port}
        options["checkpoint_folder"] = None if folder is None else str(folder)
        self._orders, theirs = _fork.Pipe()
        self._process = _fork.Process(target=_serve, args=(options, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._address = ""

    @property
    def address(self) -> str:
        """`host:port`."""
        self._address = self._address or self._answer()
        return self._address

    @property
    def port(self) -> int:
        """Its TCP port."""
        return int(self.address.rpartition(":")[2])

    def ask(self, what: str) -> dict[str, Any]:
        """Returns its statistics after it did `what`: "checkpoint" or "nothing"."""
        _ = self.address
        self._orders.send(what)
        return self._answer()

    def hang(self, *, on: bool) -> None:
        """Stops it or lets it continue: the system still accepts connections for it."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGSTOP if on else signal.SIGCONT)
        state, deadline = Path(f"/proc/{self._process.pid}/stat"), time.monotonic() + ANSWER_SECONDS
        while (state.read_text().rpartition(")")[2].split()[0] == "T") != on:
            assert time.monotonic() < deadline, "the signal had no effect"
            threading.Event().wait(0.01)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self._process.kill()
        self._process.join(20)
        self._orders.close()

    def _answer(self) -> Any:
        if not self._orders.poll(ANSWER_SECONDS):
            raise TimeoutError(f"the shard's process did not answer within {ANSWER_SECONDS:g} s")
        return self._orders.recv()
