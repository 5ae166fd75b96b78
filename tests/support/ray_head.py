"""A Ray cluster of one node on this machine, on loopback with a token."""

from __future__ import annotations

import contextlib
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

from placement.runtimes.ray import ray_connection
from tests.support.ray_run import LONG

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


@contextlib.contextmanager
def ray_head(output: Path, *, cpus: int) -> Iterator[tuple[str, int]]:
    """Yields the address of a head node, and its process.

    Args:
        output: the file for its output.
        cpus: processors that it offers.
    """
    folder = Path("/tmp") / f"test-ray-{secrets.token_hex(4)}"  # short, for sockets' paths
    port = _free_port()
    options = ["--head", "--block", f"--port={port}", f"--num-cpus={cpus}", "--include-dashboard=false"]
    options += ["--object-store-memory=80000000", "--disable-usage-stats", f"--temp-dir={folder}"]
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", *options]
    with output.open("w") as out:
        head = subprocess.Popen(command, env={**os.environ, **VARIABLES}, stdout=out, stderr=out)
        try:
            deadline = time.monotonic() + LONG
            while not _answers(port):
                assert head.poll() is None and time.monotonic() < deadline, "the cluster did not start"
                time.sleep(0.1)
            yield f"127.0.0.1:{port}", head.pid
        finally:
            below = ray_connection.descendants(head.pid)
            head.send_signal(signal.SIGTERM)
            try:
                head.wait(30)
            finally:
                head.kill()
                ray_connection.end_all(below, timeout=5)
                subprocess.run(["rm", "-rf", str(folder)], check=True)


def named(head: int, word: bytes) -> list[psutil.Process]:
    """Returns the processes below a node with that word in their title; Ray names them after what they run."""
    found = []
    for process in ray_connection.descendants(head):
        with contextlib.suppress(OSError):  # it has just ended
            if word in Path(f"/proc/{process.pid}/cmdline").read_bytes():
                found.append(process)
    return found
