"""A run on a Ray cluster that runs already: it joins with the token, trains, and leaves the cluster as it was."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

pytest.importorskip("ray")
pytest.importorskip("reverb")

from placement.runtimes.ray import processes
from tests.support.ray_run import FAKES, LONG, RayRun, toy

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]
TOKEN = secrets.token_hex(16)
VARIABLES = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": TOKEN,
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # 127.0.0.1 only
    "RAY_USAGE_STATS_ENABLED": "0",
    "XLA_FLAGS": "",
}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(LONG)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The address of a head node of ten processors, and its process."""
    folder = Path("/tmp") / f"test-ray-{secrets.token_hex(4)}"  # short, for sockets' paths
    port = _free_port()
    options = ["--head", "--block", f"--port={port}", "--num-cpus=10", "--include-dashboard=false"]
    options += ["--object-store-memory=80000000", "--disable-usage-stats", f"--temp-dir={folder}"]
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", *options]
    said = (tmp_path_factory.mktemp("ray") / "said").open("w")
    head = subprocess.Popen(command, env={**os.environ, **VARIABLES}, stdout=said, stderr=said)
    try:
        deadline = time.monotonic() + LONG
        while not _answers(port):
            assert head.poll() is None and time.monotonic() < deadline, "the cluster did not start"
            time.sleep(0.1)
        yield f"127.0.0.1:{port}", head.pid
    finally:
        below = processes.descendants(head.pid)
        head.send_signal(signal.SIGTERM)
        try:
            head.wait(30)
        finally:
            head.kill()
            processes.end_all(below, timeout=5)
            said.close()
            subprocess.run(["rm", "-rf", str(folder)], check=True)


def _of_runs(head: int) -> list[psutil.Process]:
    """Processes of roles below that node; Ray names processes after what they run."""
    return [process for process in processes.descendants(head) if b"Process" in _title(process.pid)]


def _title(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has just ended
        return b""


def test_a_run_joins_trains_and_leaves(cluster: tuple[str, int], tmp_path: Path) -> None:
    address, head = cluster
    config = toy(tmp_path, iterations=10**6, runtime={"address": address, "bind": "node", "actors": 1})
    with RayRun(config, makers=FAKES, environment=VARIABLES) as run:
        run.until(lambda: run.iteration() > 20, "training has begun", timeout=LONG)
        below = _of_runs(head)
        assert {one["pid"] for one in run.seen.values()} <= {process.pid for process in below}
        run.send(signal.SIGINT)
        assert run.end(timeout=LONG) == 0, run.output()
        assert not processes.wait_for_end(below, timeout=LONG), "processes of the run live on"
    assert not _of_runs(head)


def test_without_the_token_it_is_told_in_one_line(cluster: tuple[str, int], tmp_path: Path) -> None:
    config = toy(tmp_path, iterations=30, runtime={"address": cluster[0]})
    with RayRun(config, makers=FAKES, environment={**VARIABLES, "RAY_AUTH_TOKEN": "0" * 32}) as run:
        assert run.end(timeout=LONG) != 0
        assert "no Ray cluster can be used there" in run.output()
