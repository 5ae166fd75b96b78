"""The descendants of this process, and that they end."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from placement.runtimes.ray import ray_connection, telemetry

CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
input()
"""


def _start() -> tuple[subprocess.Popen[str], int]:
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    return child, int(child.stdout.readline())


def test_grandchildren_are_found_and_ended() -> None:
    child, grandchild = _start()
    try:
        below = ray_connection.descendants(os.getpid())
        assert {child.pid, grandchild} <= {process.pid for process in below}
        ours = [process for process in below if process.pid in (child.pid, grandchild)]
        assert all(map(ray_connection.alive, ours))
        assert ray_connection.wait_for_end(ours, timeout=0.0) == ours
        assert set(ray_connection.end_all(ours, timeout=0.0)) == set(ours)
        child.wait(30)
        assert ray_connection.wait_for_end(ours, timeout=30) == []
    finally:
        child.kill()
        child.communicate()


def test_a_process_that_took_over_a_number_is_not_taken_for_the_one_before() -> None:
    (mine,) = [process for process in ray_connection.descendants(os.getppid()) if process.pid == os.getpid()]
    assert ray_connection.alive(mine)
    other = psutil.Process(mine.pid)
    other._create_time = mine.create_time() + 1  # psutil uses this to distinguish processes with the same number
    other._ident = (other.pid, other._create_time)
    assert not ray_connection.alive(other)


def test_freed_blocks_are_given_back() -> None:
    # Eight blocks of 16 MB below one that stays: once one such block was freed, glibc keeps the following ones. The
    # block that stays is larger than the holes that imports leave below the blocks.
    script = (
        "import sys, numpy as np\n"
        "from placement.runtimes.ray import role_process, telemetry\n"
        "if sys.argv[1] == 'set' and not role_process.return_freed_blocks(1 << 20): sys.exit(3)\n"
        "np.ones(1 << 24, np.uint8)\n"
        "blocks = [np.ones(1 << 24, np.uint8) for _ in range(8)]\n"
        "stays = np.ones(1 << 21, np.uint8); del blocks\n"
        "print(telemetry.resident_mb())"
    )
    done = [
        subprocess.run([sys.executable, "-c", script, mode], capture_output=True, text=True, check=False)
        for mode in ("set", "unset")
    ]
    if done[0].returncode == 3:
        pytest.skip("the C library is not glibc")
    given_back, kept = (float(one.stdout) for one in done)
    assert given_back < kept - 100


def test_the_resident_memory_is_known() -> None:
    assert 10 < telemetry.resident_mb() < 1e6
