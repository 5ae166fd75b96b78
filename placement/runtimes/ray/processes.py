"""Processes below this one, as Linux's /proc tells, and how to make sure that none is left. Empty elsewhere."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_POLL_SECONDS = 0.05
_M_MMAP_THRESHOLD = -3  # glibc's malloc.h
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Process(NamedTuple):
    """One process; the start time tells it from a later one that got the same number.

    Attributes:
        pid: its number.
        started: clock ticks after the machine's start.
    """

    pid: int
    started: int


def descendants(pid: int) -> list[Process]:
    """Children of `pid`, their children and so on; nearest first."""
    children: dict[int, list[Process]] = {}
    for entry in _entries():
        fields = _status(entry)
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(Process(entry, int(fields[19])))
    found, level = [], [pid]
    while level:
        below = [process for parent in level for process in children.get(parent, [])]
        found += below
        level = [process.pid for process in below]
    return found


def alive(process: Process) -> bool:
    """Whether it still runs; one that has ended and was not yet collected by its parent does not."""
    fields = _status(process.pid)
    return fields is not None and int(fields[19]) == process.started and fields[0] not in "ZX"


def end_all(processes: Iterable[Process], *, timeout: float) -> list[Process]:
    """Waits up to `timeout` seconds for all to end, then kills who is left; returns those that had to be killed."""
    left = wait_for_end(processes, timeout=timeout)
    for process in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)
    wait_for_end(left, timeout=timeout)
    return left


def wait_for_end(processes: Iterable[Process], *, timeout: float) -> list[Process]:
    """Those that have not ended within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    left = [process for process in processes if alive(process)]
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        left = [process for process in left if alive(process)]
    return left


def resident_mb() -> float:
    """This process's resident memory, megabytes; 0 where it cannot be told."""
    try:
        return int((_PROC / "self" / "statm").read_text().split()[1]) * _PAGE_BYTES / 1e6
    except (OSError, ValueError, IndexError):
        return 0.0


def give_back_blocks(threshold: int) -> bool:
    """Has the C library give every freed block of at least `threshold` bytes back to the system at once.

    glibc raises that threshold with each such block that is freed, and keeps later ones; a server of large blocks then
    grows to a multiple of what it holds. Whether the C library took it (only glibc knows it).
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, threshold))
    except (OSError, AttributeError):
        return False


def _entries() -> list[int]:
    try:
        return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _status(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third on (state, parent, …); None if there is no such process."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
