"""Worker threads: errors reach the parent, and all threads stop."""

from __future__ import annotations

import threading
import traceback

import pytest

from placement.utils.worker_threads import Supervisor, WorkerFailed, WorkerStuck

LONG = 90.0


def test_an_error_reaches_the_parent_with_its_cause_and_stops_the_others() -> None:
    supervisor, woken = Supervisor(), threading.Event()
    supervisor.on_stop(woken.set)

    def breaks(stop: threading.Event) -> None:
        raise KeyError("gone")

    supervisor.start("actor 0", lambda stop: None if stop.wait(LONG) else pytest.fail("not stopped"))
    supervisor.start("actor 1", breaks)
    assert woken.wait(LONG)
    with pytest.raises(WorkerFailed, match="actor 1 failed: KeyError: 'gone'") as caught:
        supervisor.check()
    assert isinstance(caught.value.__cause__, KeyError)
    frames = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert frames[-1].name == "breaks"
    supervisor.shut_down(timeout=LONG)


def test_the_first_error_counts() -> None:
    supervisor, go = Supervisor(), threading.Event()

    def late(stop: threading.Event) -> None:
        stop.wait(LONG)
        raise ValueError("because of the first")

    def first(stop: threading.Event) -> None:
        go.wait(LONG)
        raise OSError("first")

    supervisor.start("late", late)
    supervisor.start("first", first)
    go.set()
    assert supervisor.stop.wait(LONG)
    supervisor.shut_down(timeout=LONG)
    with pytest.raises(WorkerFailed, match="first failed: OSError: first"):
        supervisor.check()


def test_errors_while_stopping_are_no_failure() -> None:
    supervisor = Supervisor()

    def closes(stop: threading.Event) -> None:
        stop.wait(LONG)
        raise RuntimeError("closed")

    supervisor.start("actor", closes)
    supervisor.shut_down(timeout=LONG)
    supervisor.check()


def test_wake_ups_run_once() -> None:
    supervisor, calls = Supervisor(), []
    supervisor.on_stop(lambda: calls.append(1))
    supervisor.request_stop()
    supervisor.request_stop()
    supervisor.shut_down(timeout=LONG)
    assert calls == [1]


def test_who_does_not_end_is_named() -> None:
    supervisor, release = Supervisor(), threading.Event()
    supervisor.start("deaf actor", lambda stop: release.wait(LONG) and None)
    with pytest.raises(WorkerStuck, match=r"deaf actor did not end within 0\.05 s"):
        supervisor.shut_down(timeout=0.05)
    release.set()
    supervisor.shut_down(timeout=LONG)
