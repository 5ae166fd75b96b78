"""One event loop for all servers of a process, in a thread of its own: no waiting or slow peer holds a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import TypeVar

_Result = TypeVar("_Result")
_starting = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def event_loop() -> asyncio.AbstractEventLoop:
    """The loop, started at the first call; gRPC serves one loop per process well."""
    with _starting:
        if not _loops:
            _loops.append(asyncio.new_event_loop())
            threading.Thread(target=_loops[0].run_forever, name="servers", daemon=True).start()
        return _loops[0]


def run(work: Coroutine[object, object, _Result], *, timeout: float) -> _Result:
    """Runs `work` in the loop and waits for its result; not for use in the loop itself.

    Raises:
        TimeoutError: there was none within `timeout` seconds; `work` is cancelled.
    """
    future = asyncio.run_coroutine_threadsafe(work, event_loop())
    try:
        return future.result(timeout)
    except TimeoutError:
        future.cancel()
        raise
