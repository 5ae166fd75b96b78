"""A replay shard in a process of its own, which tests may kill."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.episodes import STEPS

ANSWER_SECONDS = 120.0
_SERVE = """
import dataclasses, json, sys
from placement.replay.shard import ReplayShard
shard = ReplayShard(**json.loads(sys.argv[1]))
print(json.dumps(shard.address), flush=True)
for line in sys.stdin:
    if line.strip() == "checkpoint":
        shard.checkpoint()
    print(json.dumps(dataclasses.asdict(shard.statistics())), flush=True)
"""


class ShardProcess:
    """Starts one, for episodes of `STEPS` steps; `address` waits until it is up.

    Args:
        number: the shard's.
        folder: of its checkpoints; None = none.
        capacity: episodes held at most.
        port: TCP port; 0 = any free one.
    """

    def __init__(self, number: int, folder: Path | None, *, capacity: int = 64, port: int = 0) -> None:
        options: dict[str, Any] = {"number": number, "capacity": capacity, "steps": STEPS, "port": port}
        options["checkpoint_folder"] = None if folder is None else str(folder)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
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
        """Its statistics, after it did `what`: "checkpoint" or "nothing"."""
        _ = self.address
        print(what, file=self._stdin)
        return self._answer()

    def hang(self, *, on: bool) -> None:
        """Stops it where it is, or lets it go on: the system goes on taking connections for it."""
        self._process.send_signal(signal.SIGSTOP if on else signal.SIGCONT)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED if on else os.WCONTINUED)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait(20)
        self._stdin.close()
        self._stdout.close()

    def _answer(self) -> Any:
        ready, _, _ = select.select([self._stdout], [], [], ANSWER_SECONDS)
        if not ready:
            raise TimeoutError(f"the shard's process did not answer within {ANSWER_SECONDS:g} s")
        return json.loads(self._stdout.readline())
