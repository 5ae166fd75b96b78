"""Ctrl-C and SIGTERM end a run cleanly: the first one asks, the second one forces."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """Somebody asked the run to stop."""


class Interruption:
    """While its `with` statement lasts, SIGINT and SIGTERM set `requested` instead of ending the process at once.

    Outside the main thread, where Python takes no signals, nothing is changed.

    Attributes:
        requested: set when somebody asked the run to stop.
    """

    def __init__(self) -> None:
        self.requested = threading.Event()
        self._breakable = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._restore()

    @contextlib.contextmanager
    def breakable(self) -> Iterator[None]:
        """A block that may be left half done: a request raises Interrupted in it at once."""
        self._breakable = True
        try:
            if self.requested.is_set():
                raise Interrupted
            yield
        finally:
            self._breakable = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested.is_set():
            self._restore()
            raise KeyboardInterrupt
        self.requested.set()
        if self._breakable:
            raise Interrupted

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
