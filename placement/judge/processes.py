"""Work that several processes share, one of which may die."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from placement.netlist.errors import DesignError

Item = TypeVar("Item")
Result = TypeVar("Result")


def submit_all(
    pool: ProcessPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item], lost: DesignError
) -> list[Future[Result]]:
    """The results to come of `work`, in the order of `items`; raises `lost` where a process died already.

    That one died while another is being started shows as an OSError.
    """
    try:
        return [pool.submit(work, item) for item in items]
    except (BrokenProcessPool, OSError):
        raise lost from None


def process_lost(workers: int, does: str) -> DesignError:
    """What is told where one of so many processes, each of which `does` something, ended before its work."""
    return DesignError(f"workers={workers}: a process that {does} died, as for want of memory; try fewer")
