"""Unauthenticated clients on the network or this machine cannot affect a run on Ray; they are only counted."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("reverb")

from placement.episode import signature
from placement.netlist.load import load
from tests.support.ray_run import LONG, RayRun

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]
CONNECT = """
import os, sys
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
import ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
    print("connected", ray.cluster_resources())
except Exception as error:
    print("refused", type(error).__name__)
os._exit(0)
"""


def _listeners(run: RayRun) -> list[tuple[str, int, int]]:
    """Returns (local address, port, process) of every socket that the run's processes listen on."""
    if shutil.which("ss") is None:
        pytest.skip("`ss` (iproute2) is not installed")
    pids = {run.process.pid, *(process.pid for process in run.below())}
    output = subprocess.run(["ss", "-H", "-l", "-t", "-n", "-p"], capture_output=True, text=True, check=True).stdout
    found = []
    for line in output.splitlines():
        address, _, port = line.split()[3].rpartition(":")
        owners = {int(pid) for pid in re.findall(r"pid=(\d+)", line)} & pids
        found += [(address, int(port), owner) for owner in owners]
    return found


def test_everything_listens_on_this_machine_only(run: RayRun) -> None:
    listeners = _listeners(run)
    pids = {int(one["pid"]) for one in run.seen.values()}
    assert len(listeners) >= 8 and pids & {pid for _, _, pid in listeners}
    loopback = re.compile(r"(127\.\d+\.\d+\.\d+|\[::1\]|\[::ffff:127\.0\.0\.1\]|.*%lo)")
    open_to_others = [listener for listener in listeners if not loopback.fullmatch(listener[0])]
    assert not open_to_others


def _gcs(run: RayRun) -> tuple[str, str]:
    """Returns the address of Ray's central process, and its token."""
    for process in run.below():
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[0]
        if command.endswith(b"gcs_server"):
            (port,) = {port for _, port, pid in _listeners(run) if pid == process.pid}
            variables = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
            (token,) = [one.split(b"=")[1] for one in variables if one.startswith(b"RAY_AUTH_TOKEN=")]
            return f"127.0.0.1:{port}", token.decode()
    raise AssertionError("Ray has no central process")


@pytest.mark.parametrize("token", ["none", "wrong", "right"])
@pytest.mark.slow
def test_nobody_joins_without_the_token(run: RayRun, token: str, tmp_path: Path) -> None:
    address, right = _gcs(run)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"HOME": str(tmp_path), "RAY_AUTH_MODE": "disabled" if token == "none" else "token"}
    environment["RAY_AUTH_TOKEN"] = {"none": "", "wrong": "0" * 64, "right": right}[token]
    command = [sys.executable, "-c", CONNECT, address]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONG, check=False)
    assert ("connected" in done.stdout) == (token == "right"), done.stdout
    reached = run.iteration()
    run.until(lambda: run.iteration() > reached + 5, "training continues", timeout=LONG)


def test_other_users_cannot_look_into_its_files(run: RayRun, folder: Path) -> None:
    session = Path((folder / "run" / ".ray-session").read_text())
    assert session.stat().st_mode & 0o077 == 0, "others can read Ray's folder"


def test_a_malformed_item_is_rejected_and_counted_and_training_continues(run: RayRun, folder: Path) -> None:
    from placement.replay.shard_items import ItemWriter

    steps = len(load("toy6").placing_order)
    good = signature(steps)._replace(identity=np.array([1, 1], np.int64), length=np.array(steps, np.int32))
    writer = ItemWriter(str(run.seen["shard 0"]["address"]))
    try:
        bad = (
            good._replace(log_probabilities=np.full(steps, np.nan, np.float32)),
            good._replace(version=np.array(-1, np.int32)),
            good._replace(costs=np.full(5, -1.0)),
        )
        for episode in bad:
            writer.begin(episode)
            assert writer.flush(LONG)
    finally:
        writer.close()

    def rejected() -> float:
        with (folder / "run" / "metrics.csv").open(newline="") as stream:
            return float(list(csv.DictReader(stream))[-1]["rejected_episodes"])

    run.until(lambda: rejected() >= len(bad), "they are counted", timeout=LONG)
    reached = run.iteration()
    run.until(lambda: run.iteration() > reached + 5, "training continues", timeout=LONG)
