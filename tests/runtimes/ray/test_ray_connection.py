"""The end of a Ray started by the run."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from placement.config import RuntimeConfig
from placement.runtimes.ray import ray_connection
from placement.utils.worker_threads import WorkerFailed
from tests.support.waiting import wait_until


class _SlowRay:
    """Disconnects with a delay after the other processes have ended, and records which are alive."""

    def __init__(self, others: list[psutil.Process], expected: set[str]) -> None:
        self._others, self._expected = others, expected
        self.alive: set[str] = set()

    def _who(self) -> set[str]:
        return {ray_connection.program(one) for one in self._others if ray_connection.alive(one)}

    def shutdown(self) -> None:
        wait_until(lambda: self._who() == self._expected)
        time.sleep(0.3)
        self.alive = self._who()


@pytest.mark.parametrize(("hang_seconds", "alive"), [(600.0, {ray_connection.HEAD}), (0.2, set())])
def test_the_head_outlives_a_driver_that_disconnects_slowly_but_not_one_that_hangs(
    hang_seconds: float, alive: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_connection, "HANG_SECONDS", hang_seconds)
    monkeypatch.setattr(ray_connection, "END_SECONDS", 0.1)
    sleep = shutil.which("sleep")
    assert sleep is not None
    head, raylet = (Path(shutil.copy(sleep, tmp_path / name)) for name in (ray_connection.HEAD, "raylet"))
    before = ray_connection.descendants(os.getpid())
    started = [subprocess.Popen([program, "60"]) for program in (head, raylet)]
    try:
        ray = _SlowRay([psutil.Process(one.pid) for one in started], alive)
        ray_connection._stop(ray, before)
        assert ray.alive == alive
        assert all(one.wait(30) < 0 for one in started)
    finally:
        for one in started:
            one.kill()


class _BusyRay:
    """Is not ready in time in the first `late` starts."""

    def __init__(self, late: int) -> None:
        self.late, self.folders, self.ended = late, [], 0
        self.util = SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")

    def init(self, *, _temp_dir: str, **settings: object) -> None:
        self.folders.append(Path(_temp_dir).parent)
        assert sum(folder.exists() for folder in self.folders) == 1
        if len(self.folders) <= self.late:
            raise Exception(f"The current node {ray_connection.NOT_READY}. This could happen because ...")

    def shutdown(self) -> None:
        self.ended += 1


@pytest.mark.parametrize("late", [0, 1, ray_connection.STARTS])
def test_a_ray_that_is_not_ready_in_time_is_restarted(
    late: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_connection, "import_ray", lambda **_: ray)
    monkeypatch.setattr(ray_connection, "END_SECONDS", 0.0)
    ray, config = _BusyRay(late), RuntimeConfig()
    with (
        pytest.raises(WorkerFailed, match="not ready") if late == ray_connection.STARTS else contextlib.nullcontext(),
        ray_connection.opened(config, tmp_path),
    ):
        assert ray.ended == late
    assert len(ray.folders) == min(late + 1, ray_connection.STARTS)
    assert ray.ended == len(ray.folders) + (late == ray_connection.STARTS)
    assert not any(folder.exists() for folder in ray.folders)
    assert not (tmp_path / ray_connection.FOLDER_FILE).exists()


def test_another_error_of_ray_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(**settings: object) -> None:
        raise ValueError("no such setting")

    ray = _BusyRay(0)
    monkeypatch.setattr(ray_connection, "import_ray", lambda **_: ray)
    monkeypatch.setattr(ray, "init", reject)
    with pytest.raises(ValueError, match="no such setting"), ray_connection.opened(RuntimeConfig(), tmp_path):
        pass


def test_an_ended_process_has_no_name() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    process = psutil.Process(child.pid)
    child.wait(30)
    assert ray_connection.program(process) == ""
