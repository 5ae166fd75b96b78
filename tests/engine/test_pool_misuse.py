"""Calls that the pool rejects; after every rejection it continues as if there had been no call."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from placement.engine.pool import EnvironmentPool, WorkerError, make_pool
from placement.engine.state import IllegalAction
from placement.netlist.errors import DesignError
from tests.support.cost_terms import one_macro_pool
from tests.support.designs import Node, NodeKind, build, four_macros, square_canvas
from tests.support.waiting import wait_until

DEADLINE = 20.0  # seconds for an event that should be immediate


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


@pytest.fixture(params=["synchronous", "asynchronous"])
def pool(request):
    batch = {"synchronous": 4, "asynchronous": 2}[request.param]
    with make_pool(four_macros(), 4, batch_size=batch, num_threads=2) as made:
        yield made


def receive_all(pool: EnvironmentPool) -> list[int]:
    seen: list[int] = []
    while pool.in_flight:
        seen += pool.recv(timeout=DEADLINE)[4]["env_id"].tolist()
    return sorted(seen)


def assert_usable(pool: EnvironmentPool) -> None:
    """Checks that every idle environment can be reset, stepped and received."""
    pool.async_reset()
    assert receive_all(pool) == [0, 1, 2, 3]
    pool.send(pool.sample_actions())
    assert receive_all(pool) == [0, 1, 2, 3]


def begun(pool: EnvironmentPool) -> EnvironmentPool:
    pool.async_reset()
    receive_all(pool)
    return pool


def test_a_second_reset_in_flight(pool) -> None:
    pool.async_reset()
    with pytest.raises(RuntimeError, match="environment 0 is in flight; receive its result"):
        pool.async_reset()
    assert receive_all(pool) == [0, 1, 2, 3]
    assert_usable(pool)


def test_more_sends_than_environments(pool) -> None:
    begun(pool).send(pool.sample_actions())
    with pytest.raises(RuntimeError, match="in flight"):
        pool.send(ids(0, 0, 0, 0))
    assert receive_all(pool) == [0, 1, 2, 3]
    with pytest.raises(IndexError, match=r"4 must be in \[0, 4\)"):
        pool.send(ids(0, 0, 0, 0, 0), ids(0, 1, 2, 3, 4))
    assert_usable(pool)


def test_a_send_to_a_busy_environment(pool) -> None:
    begun(pool).send(ids(12, 12), ids(2, 3))
    for call in (
        lambda: pool.send(ids(12, 12), ids(1, 2)),
        lambda: pool.async_reset(ids(3)),
        lambda: pool.snapshot(2),
        lambda: pool.restore(2, b""),
        lambda: pool.placement(3),
        lambda: pool.sample_actions(ids(3)),
        lambda: pool.observe(ids(0, 3)),
    ):
        with pytest.raises(RuntimeError, match=r"environment [23] is in flight"):
            call()
    assert pool.in_flight == 2
    assert receive_all(pool) == [2, 3]
    assert_usable(pool)


def test_the_same_environment_twice(pool) -> None:
    with pytest.raises(ValueError, match="1 occurs twice in one call"):
        begun(pool).send(ids(12, 12, 12), ids(1, 0, 1))
    with pytest.raises(ValueError, match="3 occurs twice"):
        pool.async_reset(ids(3, 3))
    assert pool.in_flight == 0
    assert_usable(pool)


@pytest.mark.parametrize("bad", [-1, 4, 2**31 - 1, -(2**31)])
def test_an_environment_that_does_not_exist(pool, bad) -> None:
    begun(pool)
    for call in (
        lambda: pool.send(ids(12, 12), ids(0, bad)),
        lambda: pool.step(ids(12, 12), ids(0, bad)),
        lambda: pool.async_reset(ids(bad)),
        lambda: pool.snapshot(bad),
        lambda: pool.restore(bad, b""),
        lambda: pool.placement(bad),
        lambda: pool.observe(ids(bad)),
    ):
        with pytest.raises(IndexError, match=rf"{bad} must be in \[0, 4\)"):
            call()
    assert_usable(pool)


@pytest.mark.parametrize(
    ("actions", "env_id", "error", "message"),
    [
        (np.zeros(4, np.float32), None, TypeError, "actions: must be integers, not float32"),
        ([0.0, 0.0, 0.0, 0.0], None, TypeError, "must be integers, not float64"),
        (np.zeros(4, np.bool_), None, TypeError, "must be integers, not bool"),
        (["a", "b", "c", "d"], None, TypeError, "must be integers"),
        (np.array([12, 12, 12, 2**40]), None, IllegalAction, r"actions: 1099511627776 must be in \[-2147483648, 2147"),
        (ids(1, 2, 3), None, ValueError, r"actions: shape \[3\], expected \[4\]"),
        (np.zeros((4, 1), np.int32), None, ValueError, r"shape \[4, 1\], expected \[4\]"),
        (np.int32(3), None, ValueError, r"actions: shape \[\], expected \[4\]"),
        (ids(1, 2), np.array([0.0, 1.0]), TypeError, "env_id: must be integers, not float64"),
        (ids(1, 2), [0, 2**31], ValueError, "env_id: 2147483648 must be in"),
        (ids(1, 2), np.zeros((1, 2), np.int32), ValueError, r"env_id: shape \[1, 2\]"),
        (ids(1, 2), ids(1), ValueError, r"actions: shape \[2\], expected \[1\]"),
        (ids(), ids(), ValueError, "must contain at least one environment"),
    ],
)
def test_a_wrong_shape_or_dtype_at_any_call(pool, actions, env_id, error, message) -> None:
    begun(pool)
    for call in (pool.send, pool.step, pool.send):
        with pytest.raises(error, match=message):
            call(actions, env_id)
    assert_usable(pool)
    with pytest.raises(error, match=message):
        pool.send(actions, env_id)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (25, "environment 2: action 25 .*'large'.*not a cell of the grid of 5 × 5"),
        (-1, "environment 2: action -1 for macro 'large'.*not a cell"),
        (2**31 - 1, "environment 2: action 2147483647"),
        (20, r"environment 2: action 20 \(row 4, column 0\).*beyond the canvas of 50 × 50"),
        (3, "environment 2: .*overlap macro 'kept'"),
    ],
)
def test_an_illegal_action(pool, action, message) -> None:
    before = [begun(pool).snapshot(env) for env in range(4)]
    for call in (pool.send, pool.step):
        with pytest.raises(IllegalAction, match=message):
            call(ids(12, 12, action, 12))
    assert pool.in_flight == 0
    assert [pool.snapshot(env) for env in range(4)] == before
    assert_usable(pool)


def test_recv_with_nothing_in_flight(pool) -> None:
    for timeout in (None, 5.0):
        with pytest.raises(RuntimeError, match="would wait forever: 0 environments are in flight"):
            pool.recv(timeout)
    begun(pool)
    with pytest.raises(RuntimeError, match="would wait forever"):
        pool.recv()
    if not pool.synchronous:
        pool.send(ids(12), ids(3))
        with pytest.raises(RuntimeError, match="1 environments are in flight and a batch needs 2"):
            pool.recv()
        pool.send(ids(12), ids(1))
        assert receive_all(pool) == [1, 3]
    assert_usable(pool)


def slow(seconds: float) -> Callable[[float], float]:
    """Returns a cost term that takes this many seconds."""

    def evaluate(x: float) -> float:
        time.sleep(seconds)
        return 0.0

    return evaluate


def test_recv_from_several_threads_at_once() -> None:
    done = threading.Event()
    with one_macro_pool(4, lambda x: float(not done.wait(DEADLINE)), batch_size=2, num_threads=2) as pool:
        pool.send(ids(0, 0, 0, 0))
        received: list[int] = []

        def receive() -> None:
            while not received:
                with contextlib.suppress(RuntimeError):  # the main thread is inside its own short recv
                    received.extend(pool.recv(DEADLINE)[4]["env_id"].tolist())

        thread = threading.Thread(target=receive)
        thread.start()
        error: Exception = TimeoutError()
        while isinstance(error, TimeoutError):  # until the thread has started
            with pytest.raises((TimeoutError, RuntimeError)) as caught:
                pool.recv(timeout=0.01)
            error = caught.value
        assert "another thread is receiving" in str(error)
        with pytest.raises(RuntimeError, match=r"in flight|another thread is receiving"):
            pool.step(ids(0, 0, 0, 0))
        done.set()
        thread.join(DEADLINE)
        assert sorted(received + receive_all(pool)) == [0, 1, 2, 3]
        assert_usable(pool)


def test_recv_in_time_or_not_at_all() -> None:
    done = threading.Event()
    with one_macro_pool(4, lambda x: float(not done.wait(DEADLINE)), batch_size=2, num_threads=2) as pool:
        pool.send(ids(0, 0, 0, 0))
        with pytest.raises(TimeoutError, match=r"no batch was ready within 0\.01"):
            pool.recv(timeout=0.01)
        done.set()
        assert receive_all(pool) == [0, 1, 2, 3]
        for wrong in (-1.0, float("nan")):
            with pytest.raises(ValueError, match="timeout"):
                pool.recv(timeout=wrong)


def test_a_timeout_in_synchronous_mode_loses_nothing() -> None:
    with one_macro_pool(8, slow(0.03), num_threads=1) as pool:  # the caller's own thread
        with pytest.raises(TimeoutError):
            pool.step(np.zeros(8, np.int32), timeout=0.0)
        assert pool.in_flight == 8
        assert pool.recv(timeout=DEADLINE)[4]["elapsed_step"].tolist() == [1] * 8


@pytest.mark.parametrize("batch", [4, 2])
def test_an_exception_in_a_worker_names_its_environment(batch: int) -> None:
    with one_macro_pool(4, lambda x: np.nan if x > 20 else 0.0, batch_size=batch, num_threads=2) as pool:
        pool.send(ids(4, 0), ids(3, 1))  # the right one fails
        with pytest.raises(
            WorkerError, match=r"environment 3: its step failed.*returned a value that is not finite"
        ) as caught:
            pool.recv(DEADLINE)
        assert caught.value.env_id == 3
        info = pool.recv(DEADLINE)[4]
        assert dict(zip(info["env_id"].tolist(), info["elapsed_step"].tolist(), strict=True)) == {3: 0, 1: 1}
        pool.async_reset()
        assert receive_all(pool) == [0, 1, 2, 3]


def test_use_after_close(pool) -> None:
    begun(pool)
    state = pool.snapshot(0)
    pool.send(ids(12, 12), ids(0, 1))
    pool.close()
    pool.close()
    for call in (
        pool.recv,
        pool.async_reset,
        pool.reset,
        pool.observe,
        pool.sample_actions,
        lambda: pool.send(ids(12, 12, 12, 12)),
        lambda: pool.step(ids(12, 12, 12, 12)),
        lambda: pool.snapshot(0),
        lambda: pool.restore(0, state),
        lambda: pool.placement(0),
    ):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    assert len(pool) == 4 and pool.closed


def test_close_ends_the_threads_with_work_in_flight() -> None:
    before = set(os.listdir("/proc/self/task"))  # threads of libraries may end during the test
    calls: list[float] = []

    def term(x: float) -> float:
        calls.append(x)
        wait_until(lambda: pool.closed)
        time.sleep(0.02)
        return 0.0

    for batch in (64, 8):
        pool = one_macro_pool(64, term, batch_size=batch, num_threads=3)
        assert len(set(os.listdir("/proc/self/task")) - before) == 3
        calls.clear()
        pool.send(np.zeros(64, np.int32))
        pool.close()
        assert len(calls) < 64  # it does not wait for queued work
        assert set(os.listdir("/proc/self/task")) <= before
    pool = None  # it refers to the term, and the term refers to it


def test_close_wakes_who_receives() -> None:
    def term(x: float) -> float:
        wait_until(lambda: pool.closed)
        return 0.0

    pool = one_macro_pool(4, term, batch_size=2, num_threads=1)
    pool.send(ids(0, 0, 0, 0))
    raised: list[BaseException] = []

    def receive() -> None:
        try:
            pool.recv(DEADLINE)
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=receive)
    thread.start()
    pool.close()
    thread.join(DEADLINE)
    assert "closed" in str(raised[0])
    pool = None  # it refers to the term, and the term refers to it


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_envs": 0}, "num_envs=0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"batch_size": 5}, r"batch_size=5: must be in \[1, 4\]"),
        ({"num_threads": -1}, "num_threads=-1"),
        ({"seed": -1}, "seed=-1"),
        ({"design_of_env": [0, 0, 0, 1]}, "design_of_env"),
        ({"design_of_env": [0]}, "design_of_env"),
        ({"designs": []}, "designs"),
    ],
)
def test_wrong_settings(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        make_pool(**{"designs": four_macros(), "num_envs": 4, **settings})


def test_a_design_that_cannot_be_played_is_named() -> None:
    nodes = [Node("p", NodeKind.PORT, 0, 0), Node("huge", NodeKind.HARD, 10, 10, 20, 20)]
    with pytest.raises(DesignError, match=r"'small' cannot be played: node 'huge' extends beyond the canvas"):
        make_pool([four_macros(), build("small", square_canvas(2, 2), nodes, [])], 4)


def run_python(code: str) -> subprocess.CompletedProcess:
    """Runs `code` in its own interpreter, after a preamble of imports."""
    preamble = """
        import os, signal, sys, threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in a shell's background inherits it ignored
        import numpy as np
        from placement.engine.pool import make_pool
        from tests.support.cost_terms import one_macro_pool
        from tests.support.designs import four_macros
    """
    script = textwrap.dedent(preamble) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=300, check=False
    )


def test_a_forked_child_must_create_a_pool() -> None:
    done = run_python("""
        pool = make_pool(four_macros(), 4, batch_size=2, num_threads=2)
        pool.async_reset(); pool.recv(10)
        child = os.fork()
        if child == 0:
            for call in (pool.recv, pool.async_reset, lambda: pool.send(np.zeros(4, np.int32)), pool.observe):
                try:
                    call()
                except RuntimeError as error:
                    assert "forked" in str(error), error
                else:
                    os._exit(1)
            pool.close()
            own = make_pool(four_macros(), 2, num_threads=2)
            own.reset(timeout=10)
            own.close()
            del pool
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        pool.recv(10)
        print("parent goes on")
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "parent goes on\n", "")


def test_the_interpreter_exits_cleanly_with_work_in_flight() -> None:
    done = run_python("""
        pool = one_macro_pool(4, lambda x: time.sleep(0.05) or 0.0, batch_size=2, num_threads=2)
        pool.send(np.zeros(4, np.int32))
        kept = pool.recv(10)
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_control_c_in_recv_leaves_a_usable_pool() -> None:
    done = run_python("""
        begun, go, ended = [], threading.Event(), []
        def term(x):
            begun.append(x)
            if len(begun) == 1:
                os.kill(os.getpid(), signal.SIGINT)
            go.wait(60)
            ended.append(x)
            return 0.0
        pool = one_macro_pool(4, term, batch_size=2, num_threads=2)
        pool.send(np.zeros(4, np.int32))
        try:
            pool.recv()
        except KeyboardInterrupt:
            print("interrupted", not ended)
        go.set()
        pool.recv(10), pool.recv(10)
        pool.reset(timeout=10)
        print("usable")
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted True\nusable\n", "")


def test_control_c_ends_a_program_that_receives() -> None:
    done = run_python("""
        first = [signal.SIGINT]
        def term(x):
            if first:
                os.kill(os.getpid(), first.pop())
            time.sleep(0.3)
            return 0.0
        pool = one_macro_pool(4, term, batch_size=2, num_threads=2)
        pool.send(np.zeros(4, np.int32))
        pool.recv()
    """)
    assert done.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in done.stderr and "terminate" not in done.stderr
