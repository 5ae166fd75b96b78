"""Waiting for a state caused by other threads or processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], *, timeout: float = 120.0) -> None:
    """Polls every hundredth of a second; fails if the condition does not hold within `timeout` seconds."""
    deadline, pause = time.monotonic() + timeout, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "the expected state was not reached"
        pause.wait(0.01)
