"""Ctrl-C and SIGTERM end a run cleanly: the first one requests a stop, the second one forces it.

Python runs signal handlers in the main thread only, and not while that is inside a long native call, such as compiling
for an accelerator. Therefore a watching thread, woken by the signal itself, handles urgent work at once.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_log = logging.getLogger(__name__)
SIGNALS = (signal.SIGINT, signal.SIGTERM)
JOIN_SECONDS = 60.0
WATCHER_SECONDS = 1.0  # maximum delay in seconds after which the watching thread sees a signal


class Interrupted(KeyboardInterrupt):
    """The run was requested to stop."""


class Interruption:
    """While its `with` statement lasts, SIGINT and SIGTERM set `requested` instead of ending the process at once.

    Outside the main thread, where Python takes no signals, nothing is changed.

    Args:
        requested: an event that other code may set to stop the run; by default, a new one.

    Attributes:
        requested: set when a stop was requested.
        at_once: called in its own thread as soon as a stop is requested; may be replaced.
    """

    def __init__(self, requested: threading.Event | None = None) -> None:
        self.requested = requested or threading.Event()
        self.at_once: Callable[[], None] = lambda: None
        self._handled = self._breakable = False
        self._before: dict[signal.Signals, Any] = {}
        self._watch = contextlib.ExitStack()

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
            self._start_watching()
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()
        self._watch.close()

    @contextlib.contextmanager
    def breakable(self) -> Iterator[None]:
        """A block that may be left half done; a request raises Interrupted in it, at the next Python instruction.

        Signal handlers that a library installs in the block are replaced at its end. If one of them has ended the
        program in the meantime, as Ray's does, that counts as the request.
        """
        self._breakable = True
        try:
            if self.requested.is_set():
                raise Interrupted
            yield
        except SystemExit:
            if self._before and self.requested.wait(WATCHER_SECONDS):
                raise Interrupted from None
            raise
        finally:
            self._breakable = False
            for number in self._before:
                signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.requested.set()
        if self._handled:
            self._restore()
            raise KeyboardInterrupt
        self._handled = True
        if self._breakable:
            raise Interrupted

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _start_watching(self) -> None:
        """Makes Python write every signal's number to a socket that a thread reads."""
        reading, writing = socket.socketpair()
        writing.setblocking(False)
        before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        thread = threading.Thread(target=self._read, args=(reading,), name="signal watcher", daemon=True)
        thread.start()
        self._watch.callback(reading.close)
        self._watch.callback(thread.join, JOIN_SECONDS)
        self._watch.callback(writing.close)  # This ends the reading.
        self._watch.callback(signal.set_wakeup_fd, before)

    def _read(self, reading: socket.socket) -> None:
        acted = False
        while number := reading.recv(1):
            if number[0] in SIGNALS and not acted:
                acted = True
                self.requested.set()
                try:
                    self.at_once()
                except Exception:  # noqa: BLE001  the run still ends in its own way, and saves then
                    _log.exception("the action after an interruption failed")
