"""Worker threads with an error path to their parent, a stop event, deadlines and joins; and the usable cores."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

_log = logging.getLogger(__name__)


def usable_cores() -> int:
    """Returns the number of cores that this process may run on, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerFailed(RuntimeError):
    """A worker raised an exception, which is this one's cause."""


class WorkerStuck(RuntimeError):
    """A worker did not end within its deadline after a stop request."""


class Supervisor:
    """Runs workers in threads; the first one to fail stops all, and `check` raises its error in the parent.

    Attributes:
        stop: set when the workers must end; every worker checks it in every round of its work.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._failure: tuple[str, BaseException] | None = None
        self._wake_ups: list[Callable[[], None]] = []

    def on_stop(self, wake_up: Callable[[], None]) -> None:
        """Calls `wake_up` once when the workers must stop, from the thread that stops them.

        It wakes waiting threads; it must not raise and must not wait for a worker.
        """
        with self._lock:
            self._wake_ups.append(wake_up)

    def start(self, name: str, work: Callable[[threading.Event], None]) -> None:
        """Runs `work(stop)` in a thread called `name`."""
        thread = threading.Thread(target=self._run, args=(name, work), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def check(self) -> None:
        """Raises WorkerFailed if a worker has failed, with the worker's exception as its cause."""
        with self._lock:
            failure = self._failure
        if failure is not None:
            name, error = failure
            raise WorkerFailed(f"{name} failed: {type(error).__name__}: {error}") from error

    def request_stop(self) -> None:
        """Requests all workers to end and wakes waiting threads; returns at once. May be called twice."""
        with self._lock:
            self.stop.set()
            wake_ups, self._wake_ups = self._wake_ups, []
        for wake_up in wake_ups:
            wake_up()

    def shut_down(self, *, timeout: float) -> None:
        """Stops all workers and joins them within `timeout` seconds; raises WorkerStuck naming those that remain."""
        self.request_stop()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        remaining = [thread.name for thread in self._threads if thread.is_alive()]
        if remaining:
            raise WorkerStuck(f"{', '.join(remaining)} did not end within {timeout:g} s after the request to stop")

    def _run(self, name: str, work: Callable[[threading.Event], None]) -> None:
        try:
            work(self.stop)
        except BaseException as error:  # noqa: BLE001  raised in the parent
            with self._lock:
                first = self._failure is None and not self.stop.is_set()
                if first:
                    self._failure = (name, error)
            if not first:
                _log.debug("%s ended with %s: %s while stopping", name, type(error).__name__, error)
            self.request_stop()
