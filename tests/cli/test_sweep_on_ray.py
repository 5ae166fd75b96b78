"""A sweep with Hydra's Ray launcher: each job has its own process and folder; the same command resumes after Ctrl-C."""

from __future__ import annotations

import csv
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytest.importorskip("hydra_plugins.hydra_ray_launcher", reason="hydra-ray-launcher is not installed")

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
SECONDS = 400.0
ITERATIONS = 40
COMMAND = [
    *(sys.executable, str(ROOT / "train.py"), "preset=test", "-m", "hydra/launcher=ray"),
    *("+hydra.launcher.ray.init.num_cpus=2", "seed=1,2", f"ppo.iterations={ITERATIONS}"),
]


def _start(folder: Path, output: Path) -> subprocess.Popen[bytes]:
    """Starts the sweep's command in its own process group, as a shell does."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in (str(ROOT), *sys.path) if path)}
    variables |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    variables |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
    with output.open("wb") as stream:
        return subprocess.Popen(
            COMMAND, cwd=folder, env=variables, stdout=stream, stderr=stream, start_new_session=True
        )


def _jobs(folder: Path) -> dict[int, list[str]]:
    """Returns the command of each job's process, by its number."""
    found = {}
    for process in psutil.process_iter(["cmdline", "cwd"]):
        words = process.info["cmdline"] or []
        if process.info["cwd"] == str(folder) and any(word.startswith("run_dir=") for word in words):
            found[process.pid] = words
    return found


def _iterations(folder: Path) -> dict[str, list[int]]:
    """Returns the iterations in each run folder's metrics."""
    found = {}
    for path in folder.glob("runs/toy6/*/metrics.csv"):
        with path.open(newline="") as stream:
            found[path.parent.name] = [int(row["iteration"]) for row in csv.DictReader(stream)]
    return found


def test_jobs_run_in_parallel_and_resume_after_an_interrupt(tmp_path: Path) -> None:
    output = tmp_path / "said.txt"
    sweep = _start(tmp_path, output)
    try:
        deadline = time.monotonic() + SECONDS
        while sum(len(rows) > 1 for rows in _iterations(tmp_path).values()) < 2:
            assert sweep.poll() is None and time.monotonic() < deadline, output.read_text()
            time.sleep(0.1)
        jobs = _jobs(tmp_path)
        assert len(jobs) == 2, "the jobs are separate processes that run in parallel"
        os.killpg(sweep.pid, signal.SIGINT)
        assert sweep.wait(SECONDS) != 0
        _gone, alive = psutil.wait_procs([psutil.Process(pid) for pid in jobs if psutil.pid_exists(pid)], timeout=60)
        assert not alive, "a job continues without its sweep"
    finally:
        if sweep.poll() is None:
            sweep.kill()
    reached = {name: rows[-1] for name, rows in _iterations(tmp_path).items()}
    assert len(reached) == 2 and all(0 < last < ITERATIONS for last in reached.values())
    again = _start(tmp_path, output)
    assert again.wait(SECONDS) == 0, output.read_text()
    text = output.read_text()
    begun = [int(number) for number in re.findall(r"resumes after iteration (\d+)", text)]
    assert len(begun) == 2 and min(begun) > 0, text
    assert {name: rows[-1] for name, rows in _iterations(tmp_path).items()} == dict.fromkeys(reached, ITERATIONS)
    assert all(rows == list(range(1, ITERATIONS + 1)) for rows in _iterations(tmp_path).values()), "nothing twice"
    for name in reached:
        assert re.search(rf"│.*{re.escape(name)}", text), "the table has a line of each job"
