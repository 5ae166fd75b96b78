"""Waits with a deadline: blocking work in a thread, and coroutines in the one event loop of all servers of a process.

In the event loop, neither a wait nor a slow peer holds a thread.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TypeVar

_Result = TypeVar("_Result")
_starting = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def within(seconds: float, work: Callable[[], _Result], *, name: str) -> _Result:
    """Returns or raises the result of `work`, which runs in a daemon thread `name` and is abandoned after `seconds`.

    Raises TimeoutError if it is not done in time.
    """
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  raised again by the caller
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future.result(seconds)


def event_loop() -> asyncio.AbstractEventLoop:
    """The loop, started at the first call. There is only one, since gRPC does not support several in a process well."""
    with _starting:
        if not _loops:
            _loops.append(asyncio.new_event_loop())
            threading.Thread(target=_loops[0].run_forever, name="servers", daemon=True).start()
        return _loops[0]


def run(work: Coroutine[object, object, _Result], *, timeout: float) -> _Result:
    """Runs `work` in the loop and waits for its result; not for use in the loop itself.

    Raises TimeoutError if there was no result within `timeout` seconds; `work` is cancelled.
    """
    future = asyncio.run_coroutine_threadsafe(work, event_loop())
    try:
        return future.result(timeout)
    except TimeoutError:
        future.cancel()
        raise
