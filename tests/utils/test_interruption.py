"""Signals end what may be interrupted, and wait for what may not."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import threading

import pytest

from placement.utils.interruption import Interrupted, Interruption


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_breaks_off_a_wait(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Interruption() as interruption:
        timer = threading.Timer(0.05, os.kill, [os.getpid(), number])
        with pytest.raises(Interrupted), interruption.breakable():
            timer.start()
            threading.Event().wait(20)
            pytest.fail("the wait was not interrupted")
        timer.join(20)
        assert interruption.requested.is_set()
    assert signal.getsignal(number) == before


def test_what_cannot_wait_is_done_while_the_main_thread_is_in_a_native_call() -> None:
    # Waiting for a mutex simulates a compiler: no signal interrupts it, and no Python code runs in the main thread.
    library, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    library.pthread_mutex_init(mutex, None)
    held, done, in_time = threading.Event(), threading.Event(), []

    def hold() -> None:
        library.pthread_mutex_lock(mutex)
        held.set()
        threading.Event().wait(0.05)
        os.kill(os.getpid(), signal.SIGINT)
        in_time.append(done.wait(20))
        library.pthread_mutex_unlock(mutex)

    with Interruption() as interruption:
        interruption.at_once = done.set
        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(20)
        library.pthread_mutex_lock(mutex)
        holder.join(20)
    assert in_time == [True]
    previous = signal.set_wakeup_fd(-1)
    assert previous == -1


def test_a_failure_of_what_cannot_wait_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> None:
        raise OSError("disk full")

    with caplog.at_level(logging.ERROR), Interruption() as interruption:
        interruption.at_once = fails
        os.kill(os.getpid(), signal.SIGINT)
        assert interruption.requested.wait(20)
    assert "disk full" in caplog.text


def test_a_librarys_handler_that_ends_the_program_is_a_request_like_any_other() -> None:
    """Ray's `init` installs such a handler."""

    def handler(number: int, frame: object) -> None:
        raise SystemExit(number)

    with Interruption() as interruption:
        with pytest.raises(Interrupted), interruption.breakable():
            signal.signal(signal.SIGTERM, handler)
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) != handler, "the library's handler is still installed"
        assert interruption.requested.is_set()


def test_the_end_of_a_program_without_a_signal_stays_what_it_is() -> None:
    with pytest.raises(SystemExit), Interruption() as interruption, interruption.breakable():
        raise SystemExit(3)


def test_a_signal_elsewhere_is_kept_until_the_next_breakable_block() -> None:
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.requested.is_set()
        with pytest.raises(Interrupted), interruption.breakable():
            pytest.fail("the block was entered")


def test_the_second_signal_forces() -> None:
    with Interruption():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt) as caught:
            signal.raise_signal(signal.SIGINT)
        assert not isinstance(caught.value, Interrupted)


def test_in_another_thread_nothing_is_changed() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with Interruption() as interruption, interruption.breakable():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    assert seen == [before]
