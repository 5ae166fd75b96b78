"""Processes below this one: finding them, ending them, their memory."""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Iterable

import psutil

_POLL_SECONDS = 0.05
_M_MMAP_THRESHOLD = -3  # glibc's malloc.h


def descendants(pid: int) -> list[psutil.Process]:
    """Children of `pid`, their children and so on; empty if there is no such process."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


def alive(process: psutil.Process) -> bool:
    """Whether it still runs; one that has ended and was not yet collected by its parent does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    return False


def name(process: psutil.Process) -> str:
    """Of the program that it runs; empty if it has ended."""
    with contextlib.suppress(psutil.Error):
        return process.name()
    return ""


def end_all(processes: Iterable[psutil.Process], *, timeout: float) -> list[psutil.Process]:
    """Waits up to `timeout` seconds for all to end, then kills who is left; returns those that had to be killed."""
    left = wait_for_end(processes, timeout=timeout)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.kill()
    wait_for_end(left, timeout=timeout)
    return left


def wait_for_end(processes: Iterable[psutil.Process], *, timeout: float) -> list[psutil.Process]:
    """Those that have not ended within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    left = [process for process in processes if alive(process)]
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        left = [process for process in left if alive(process)]
    return left


def resident_mb() -> float:
    """This process's resident memory, megabytes."""
    return float(psutil.Process().memory_info().rss) / 1e6


def give_back_blocks(threshold: int) -> bool:
    """Has the C library give every freed block of at least `threshold` bytes back to the system at once.

    glibc raises that threshold with each such block that is freed, and keeps later ones; a server of large blocks then
    grows to a multiple of what it holds. Whether the C library took it (only glibc knows it).
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, threshold))
    except (OSError, AttributeError):
        return False
