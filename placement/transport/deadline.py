"""A deadline for work that knows none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Result = TypeVar("_Result")


def within(seconds: float, work: Callable[[], _Result], *, name: str) -> _Result:
    """What `work` returns or raises; it runs in a daemon thread `name`, which is given up after so many seconds.

    Raises:
        TimeoutError: it is not done in time.
    """
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  raised again by the caller
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future.result(seconds)
