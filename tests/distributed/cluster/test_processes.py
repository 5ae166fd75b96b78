"""Which processes are below this one, and that they end."""

from __future__ import annotations

import os
import subprocess
import sys

from placement.distributed.cluster import processes

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
        below = processes.descendants(os.getpid())
        assert {child.pid, grandchild} <= {process.pid for process in below}
        ours = [process for process in below if process.pid in (child.pid, grandchild)]
        assert all(map(processes.alive, ours))
        assert processes.wait_for_end(ours, timeout=0.0) == ours
        assert set(processes.end_all(ours, timeout=0.0)) == set(ours)
        child.wait(30)
        assert processes.wait_for_end(ours, timeout=30) == []
    finally:
        child.kill()
        child.communicate()


def test_a_process_that_took_over_a_number_is_not_taken_for_the_one_before() -> None:
    (mine,) = [process for process in processes.descendants(os.getppid()) if process.pid == os.getpid()]
    assert processes.alive(mine)
    assert not processes.alive(mine._replace(started=mine.started + 1))


def test_the_resident_memory_is_known() -> None:
    assert 10 < processes.resident_mb() < 1e6
