"""Errors of a run on Ray are reported in one line, and no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("reverb")

from placement.runtimes.ray import ray_connection
from tests.support.ray_run import FAKES, LONG, ROOT, RayRun, toy, unreadable_lines

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]


@pytest.mark.slow
@pytest.mark.parametrize(("missing", "remedy"), [("ray", "install the `ray` extra"), ("reverb", "`make install`")])
def test_without_an_extra_it_says_which_one(tmp_path: Path, missing: str, remedy: str) -> None:
    blocked = (
        "import importlib.util, runpy, sys\n"
        f"missing = {missing!r}\n"
        "sys.modules[missing] = None\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == missing else find(name, *rest)\n"
        "sys.argv = ['train.py', 'preset=test', 'runtime=ray', 'run_dir=run']\n"
        f"runpy.run_path({str(ROOT / 'train.py')!r}, run_name='__main__')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", blocked]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LONG, check=False
    )
    assert done.returncode == 2, done.stderr
    assert remedy in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_an_actor_that_raises_ends_the_run_with_its_error(tmp_path: Path) -> None:
    config = toy(tmp_path, iterations=10**6, runtime={"actors": 1, "caches": 0})
    factories = {**FAKES, "agent": "tests.support.fakes:NoSuchAgent"}
    with RayRun(config, factories=factories, environment={"XLA_FLAGS": ""}) as run:
        below = run.until(run.below, "processes are started", timeout=LONG)
        assert run.end(timeout=LONG) == 1
        assert "failed: AttributeError" in run.output() and "NoSuchAgent" in run.output()
        assert not ray_connection.wait_for_end([*below, *run.below()], timeout=LONG)


@pytest.mark.slow
def test_a_signal_while_it_starts_ends_it_in_one_line(tmp_path: Path) -> None:
    with RayRun(toy(tmp_path, iterations=10, runtime={}), factories=FAKES, environment={"XLA_FLAGS": ""}) as run:
        below = run.until(run.below, "Ray is starting", timeout=LONG)
        run.send(signal.SIGTERM)
        assert run.end(timeout=LONG) == 0, run.output()
        assert run.lines[-1] == "interrupted 0\n" and unreadable_lines(run.lines) == []
        assert not ray_connection.wait_for_end([*below, *run.below()], timeout=LONG)


@pytest.mark.slow
def test_a_full_disk_ends_the_run_in_one_line(tmp_path: Path) -> None:
    config = toy(tmp_path, iterations=10, runtime={"actors": 1, "caches": 0, "checkpoint_every": 2})
    factories = {**FAKES, "learner": "tests.support.recording:LearnerWithoutRoom"}
    with RayRun(config, factories=factories, environment={"XLA_FLAGS": ""}) as run:
        assert run.end(timeout=LONG) == 1
        last_line = run.lines[-1]  # the lines before it are the uncaught exception of the script
        assert last_line.startswith("placement.utils.disk.DiskFull"), run.output()
        assert f"{tmp_path}/checkpoints/2 cannot be written: No space left on device" in last_line


@pytest.mark.slow
def test_a_process_that_uses_too_much_memory_is_restarted_and_reports_it(tmp_path: Path) -> None:
    runtime = {"actors": 1, "caches": 0, "roles": {"actor": {"memory_mb": 150}}}
    config = toy(tmp_path, iterations=10**6, runtime=runtime)
    with RayRun(config, factories=FAKES, environment={"XLA_FLAGS": ""}) as run:
        run.until(lambda: "more than its limit of 150 MB" in run.output(), "the message is printed", timeout=LONG)
        run.until(lambda: "actor 0 died and is restarted" in run.output(), "it is restarted", timeout=LONG)
