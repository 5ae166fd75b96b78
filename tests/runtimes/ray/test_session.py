"""How a Ray of this run's own ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from placement.runtimes.ray import processes, session


class _SlowRay:
    """Disconnects only after some seconds, and looks who is alive."""

    def __init__(self, others: list[psutil.Process], seconds: float) -> None:
        self._others, self._seconds = others, seconds
        self.alive: set[str] = set()

    def shutdown(self) -> None:
        time.sleep(self._seconds)
        self.alive = {processes.name(one) for one in self._others if processes.alive(one)}


@pytest.mark.parametrize(("hang_seconds", "alive"), [(session.HANG_SECONDS, {session.HEAD}), (0.7, set())])
def test_the_head_outlives_a_driver_that_disconnects_slowly_but_not_one_that_hangs(
    hang_seconds: float, alive: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "HANG_SECONDS", hang_seconds)
    sleep = shutil.which("sleep")
    assert sleep is not None
    head, raylet = (Path(shutil.copy(sleep, tmp_path / name)) for name in (session.HEAD, "raylet"))
    before = processes.descendants(os.getpid())
    started = [subprocess.Popen([program, "60"]) for program in (head, raylet)]
    try:
        ray = _SlowRay([psutil.Process(one.pid) for one in started], 3 * session.END_SECONDS)
        session._stop(ray, before)
        assert ray.alive == alive
        assert all(one.wait(30) < 0 for one in started)
    finally:
        for one in started:
            one.kill()


def test_an_ended_process_has_no_name() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    process = psutil.Process(child.pid)
    child.wait(30)
    assert processes.name(process) == ""
