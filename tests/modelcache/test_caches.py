"""Caches and their readers: whole snapshots, never older ones, transfers only on changes, whichever process dies."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placement.modelcache.store import Layout, SnapshotDamaged, SnapshotMismatch, StoreClosed, StoreTimeout
from placement.transport.addresses import PortTaken, split
from placement.transport.gate import new_token
from tests.support.waiting import wait_until

grpc = pytest.importorskip("grpc", reason="gRPC is not installed")
from placement.modelcache import reader as reader_module  # noqa: E402
from placement.modelcache.cache import ModelCache  # noqa: E402
from placement.modelcache.reader import CacheReader, Source, SourceFailed, Timeouts  # noqa: E402

LONG = 60.0
TOKEN = new_token()
LAYOUT = Layout({"kernel": np.zeros((64, 16), np.float32), "bias": np.zeros(16, np.float32)})
PATIENCE = Timeouts(call=5.0, read=20.0, retry=0.0)


def _parameters(value: float) -> dict[str, np.ndarray]:
    return {"kernel": np.full((64, 16), value, np.float32), "bias": np.full(16, value, np.float32)}


def _reads(source: Source) -> int:
    """Returns the number of snapshots that a source transferred."""
    return source.latencies.summary().operations


def _value(parameters: Any) -> float:
    """Returns the common value of all leaves; fails if a snapshot mixes several."""
    (value,) = np.unique(np.concatenate([parameters["kernel"].reshape(-1), parameters["bias"]]))
    return float(value)


def _pack(version: int) -> np.ndarray:
    return LAYOUT.pack(version, _parameters(version))


def _publish(cache: ModelCache, version: int) -> None:
    cache.publish(_pack(version))


def _address(server: Any) -> str:
    if isinstance(server, str):
        return server
    return server() if callable(server) else server.address


Make = Callable[..., Any]


@pytest.fixture
def make() -> Iterator[Make]:
    """Creates caches and readers that are closed at the end."""
    made: list[Any] = []

    def build(kind: str, *addresses: Any, **options: Any) -> Any:
        """`addresses`: caches, host:port strings or functions that return some, nearest first; none for a root."""
        now = lambda: tuple(_address(each) for each in addresses)  # noqa: E731
        options.setdefault("timeouts", PATIENCE)
        if kind == "reader":
            made.append(CacheReader(now, LAYOUT, **options))
        else:
            made.append(ModelCache(parents=now if addresses else None, **options))
        return made[-1]

    yield build
    for each in reversed(made):
        each.close()


# The run's token.


def test_with_the_token_snapshots_go_down_the_tree(make: Make) -> None:
    root = make("cache", token=TOKEN)
    reader = make("reader", make("cache", root, token=TOKEN), token=TOKEN)
    _publish(root, 3)
    assert _value(reader.wait_for(3, timeout=LONG).parameters) == 3.0
    assert root.unauthenticated == 0


@pytest.mark.parametrize("token", [None, TOKEN[:-1], new_token()], ids=["none", "cut", "another"])
def test_without_the_token_nothing_is_learned(make: Make, token: str | None) -> None:
    root = make("cache", token=TOKEN)
    _publish(root, 3)
    with contextlib.closing(Source(lambda: (root.address,), timeouts=PATIENCE, token=token)) as client:
        for call in (client.version, client.read):
            with pytest.raises(SourceFailed, match="rejects this run's token: the call does not carry"):
                call()
    with pytest.raises(StoreTimeout, match="rejects this run's token"):
        make("reader", root, token=token).wait_for(0, timeout=0.5)
    assert root.unauthenticated >= 3 and root.served == 0


def test_the_token_itself_does_not_travel() -> None:
    carried = dict(reader_module.credentials(TOKEN))["authorization"]
    assert TOKEN not in carried and carried == dict(reader_module.credentials(TOKEN))["authorization"]
    assert reader_module.credentials(None) == ()


# A chain of caches.


def test_a_snapshot_goes_down_the_tree_as_it_was_published(make: Make) -> None:
    root = make("cache")
    leaf = make("cache", make("cache", root))
    reader = make("reader", leaf)
    assert reader.version() == -1 and leaf.version == -1
    for version in (0, 1, 5):
        _publish(root, version)
        snapshot = reader.wait_for(version, timeout=LONG)
        assert (snapshot.version, _value(snapshot.parameters)) == (version, version)
        assert leaf.version == version and reader.version() == version
    assert not snapshot.parameters["kernel"].flags.writeable


def test_bytes_move_only_when_the_version_changed(make: Make) -> None:
    root = make("cache")
    leaf = make("cache", root)
    reader = make("reader", leaf)
    _publish(root, 3)
    for _ in range(20):
        reader.wait_for(0, timeout=LONG)
    counts = reader.source
    assert _reads(counts) == 1 and counts.questions >= 20 and counts.bytes == LAYOUT.size
    assert leaf.served == 1
    assert root.served == 1 and _reads(leaf.source) == 1
    _publish(root, 4)
    reader.wait_for(4, timeout=LONG)
    assert _reads(reader.source) == 2 and len(reader.source.latencies.values()) == 2
    assert root.served == 2


def test_what_is_returned_never_gets_older_though_another_cache_lags(make: Make) -> None:
    ahead, behind = make("cache"), make("cache")
    _publish(ahead, 9)
    _publish(behind, 8)
    reader = make("reader", ahead, behind)
    assert reader.wait_for(0, timeout=LONG).version == 9
    ahead.close()
    assert reader.wait_for(9, timeout=LONG).version == 9
    assert reader.version() == 9
    with pytest.raises(StoreTimeout, match=r"parameters of version 10; the newest is 9"):
        reader.wait_for(10, timeout=0.2)
    _publish(behind, 10)
    assert reader.wait_for(10, timeout=LONG).version == 10
    assert _reads(reader.source) == 2


def test_the_root_takes_rising_versions_only_and_whole_snapshots_only(make: Make) -> None:
    root = make("cache")
    _publish(root, 3)
    for version in (3, 2):
        with pytest.raises(ValueError, match=f"version {version} published after version 3"):
            _publish(root, version)
    damaged = _pack(4).copy()
    damaged[-1] ^= 1
    with pytest.raises(SnapshotDamaged):
        root.publish(damaged)
    assert root.version == 3 and make("reader", root).wait_for(0, timeout=LONG).version == 3
    with pytest.raises(RuntimeError, match="has parents"):
        _publish(make("cache", root), 4)


def test_a_restarted_learners_snapshots_replace_the_last_ones(make: Make) -> None:
    """Its numbers increase across the restart (`Publications`), so that an older root's never replace them."""
    roots = [make("cache")]
    leaf = make("cache", lambda: roots[-1].address)
    reader = make("reader", leaf)
    _publish(roots[0], 57)
    assert reader.wait_for(57, timeout=LONG).version == 57
    roots.append(make("cache"))
    roots[0].close()
    _publish(roots[1], 1000)
    snapshot = reader.wait_for(58, timeout=LONG)
    assert (snapshot.version, _value(snapshot.parameters)) == (1000, 1000)


# Damage.


def _write_by_hand(cache: Any, announced: int, buffer: np.ndarray) -> None:
    """Makes a cache announce and serve data that bypassed its checks."""
    cache._serve(announced, buffer)


def _torn() -> np.ndarray:
    buffer = _pack(7).copy()
    buffer[-100:] = _pack(6)[-100:]
    return buffer


def _boundless() -> np.ndarray:
    buffer = _pack(7).copy()
    buffer[24:32] = 0x7F  # the header's bytes of payload
    return buffer


DAMAGED = {
    "torn": _torn(),
    "cut": _pack(7)[:-1],
    "too long": np.concatenate([_pack(7), _pack(7)]),
    "boundless": _boundless(),
    "less than a header": np.zeros(5, np.uint8),
    "nothing": np.zeros(0, np.uint8),
}


@pytest.mark.parametrize("buffer", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_snapshot_is_dropped_and_the_next_cache_used(make: Make, buffer: np.ndarray) -> None:
    good, bad = make("cache"), make("cache")
    _write_by_hand(bad, 7, buffer)
    _publish(good, 6)
    reader, leaf = make("reader", bad, good), make("cache", bad, good)
    below = make("reader", leaf)
    for each in (reader, below):
        snapshot = each.wait_for(0, timeout=LONG)
        assert (snapshot.version, _value(snapshot.parameters)) == (6, 6)
    assert reader.source.damaged >= 1 and leaf.source.damaged >= 1
    assert below.source.damaged == 0
    _publish(good, 8)
    assert reader.wait_for(8, timeout=LONG).version == 8


def test_a_snapshot_that_is_older_than_announced_is_not_taken(make: Make) -> None:
    cache = make("cache")
    _publish(cache, 5)
    reader = make("reader", cache)
    reader.wait_for(5, timeout=LONG)
    _write_by_hand(cache, 6, _pack(4))
    with pytest.raises(StoreTimeout, match="the newest is 5"):
        reader.wait_for(6, timeout=0.3)
    assert reader.wait_for(0, timeout=LONG).version == 5


def test_another_models_snapshot_is_an_error_that_says_so(make: Make) -> None:
    cache = make("cache")
    other = {"other": np.zeros(3, np.float32)}
    cache.publish(Layout(other).pack(1, other))
    with pytest.raises(SnapshotMismatch, match="do the caches belong to a run with another policy"):
        make("reader", cache).wait_for(0, timeout=LONG)


def test_a_snapshot_of_another_format_is_an_error_that_says_so(make: Make) -> None:
    cache = make("cache")
    buffer = _pack(1).copy()
    buffer[:8] = np.frombuffer(b"MPSNAP\r\n", np.uint8)
    _write_by_hand(cache, 1, buffer)
    with pytest.raises(SnapshotMismatch, match=r"begins with b'MPSNAP\\r\\n'; must begin with b'MPSNAP2"):
        make("reader", cache).wait_for(0, timeout=LONG)


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Starts gRPC servers that implement only some of a cache's calls; returns an address."""
    servers: list[Any] = []

    def start(**calls: Any) -> str:
        server = grpc.server(futures.ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(reader_module.SERVICE, calls),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        servers.append(server)
        return f"127.0.0.1:{port}"

    yield start
    for server in servers:
        server.stop(0).wait(LONG)


def test_a_server_that_is_no_cache_is_named(make: Make, serve: Callable[..., str]) -> None:
    address = serve()
    with pytest.raises(StoreTimeout, match=f"{address} is not a model cache: Method not found"):
        make("reader", address).wait_for(0, timeout=0.1)


# Listening addresses.


def test_a_cache_listens_on_loopback_by_default_and_on_a_port_of_its_own(make: Make) -> None:
    cache = make("cache")
    assert cache.address == f"127.0.0.1:{cache.port}" and _listens(cache.port) <= {
        "0100007F",
        f"{0:016}FFFF00000100007F",
    }
    with pytest.raises(PortTaken, match=f"port {cache.port} is taken"):
        make("cache", port=cache.port)
    public = make("cache", bind="0.0.0.0")
    assert _listens(public.port) <= {"0" * 8, "0" * 32} and split(public.address)[0] == socket.gethostname()
    public.close()
    assert not _listens(public.port)


def _listens(port: int) -> set[str]:
    """Returns the local addresses of the listeners of a port, in the kernel's notation."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}


def test_a_process_that_serves_and_ends_prints_nothing_and_needs_neither_tensorflow_nor_jax() -> None:
    script = CACHE.replace("sys.stdin.read()", "assert not {'tensorflow', 'jax', 'reverb'} & set(sys.modules)")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LONG, check=True)
    assert done.stdout.startswith("127.0.0.1:") and done.stderr == ""


# Deaths.


def test_readers_go_to_another_cache_when_theirs_dies_and_back_when_it_returns(make: Make) -> None:
    root = make("cache")
    near, far = make("cache", root), make("cache", root)
    reader = make("reader", near, far)
    _publish(root, 1)
    reader.wait_for(1, timeout=LONG)
    near.close()
    _publish(root, 2)
    assert reader.wait_for(2, timeout=LONG).version == 2
    assert reader.source.failures >= 1
    again = make("cache", root, port=near.port)
    _publish(root, 3)
    assert reader.wait_for(3, timeout=LONG).version == 3
    while again.version < 3:
        reader.wait_for(0, timeout=LONG)
    far.close()
    _publish(root, 4)
    assert reader.wait_for(4, timeout=LONG).version == 4
    assert again.served >= 1


def test_a_dead_parents_children_follow_the_grandparent(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    root = make("cache")
    inner = make("cache", root)
    leaf = make("cache", inner, root)
    reader = make("reader", leaf)
    _publish(root, 1)
    reader.wait_for(1, timeout=LONG)
    inner.close()
    _publish(root, 2)
    assert reader.wait_for(2, timeout=LONG).version == 2
    with caplog.at_level(logging.WARNING):
        root.close()
        served = reader.wait_for(2, timeout=LONG)  # a cache without parents serves its snapshot
        wait_until(lambda: bool(caplog.messages))
    assert served.version == 2 and leaf.version == 2
    assert len(caplog.messages) == 1 and "keeps serving version 2" in caplog.messages[0]


def test_a_reader_that_finds_no_cache_looks_again_at_once(make: Make) -> None:
    """With the timeouts of a real run, in which caches and actors may start before the learner, or outlive it."""
    addresses: list[str] = []
    reader = CacheReader(lambda: tuple(addresses), LAYOUT)
    try:
        with pytest.raises(StoreTimeout, match="no cache is available: none known"):
            reader.wait_for(0, timeout=0.1)
        for version in (1, 2):
            cache = make("cache")
            _publish(cache, version)
            addresses[:] = [cache.address]
            assert reader.wait_for(version, timeout=Timeouts.retry).version == version
            addresses.clear()
            cache.close()
            with pytest.raises(StoreTimeout):
                reader.wait_for(version + 1, timeout=0.1)
    finally:
        reader.close()


def test_without_any_cache_what_is_held_is_returned_and_more_is_waited_for(make: Make) -> None:
    cache = make("cache")
    reader = make("reader", cache, "", "127.0.0.1:9")
    _publish(cache, 1)
    reader.wait_for(1, timeout=LONG)
    cache.close()
    assert reader.wait_for(1, timeout=LONG).version == 1
    assert reader.version() == 1
    with pytest.raises(StoreTimeout, match=r"version 2; the newest is 1: the cache at 127\.0\.0\.1:"):
        reader.wait_for(2, timeout=0.1)
    nobody = make("reader", "")
    assert nobody.version() == -1
    with pytest.raises(StoreTimeout, match="no cache is available: 0: down"):
        nobody.wait_for(0, timeout=0.1)


def test_a_read_from_a_server_that_stalls_or_dies_is_abandoned(make: Make, serve: Callable[..., str]) -> None:
    reading, release = threading.Event(), threading.Event()

    def stall(request: bytes, context: Any) -> Iterator[bytes]:
        reading.set()
        yield _pack(1)[:64].tobytes()
        release.wait(LONG)

    answer = reader_module.ANSWER.pack(1)
    stuck = serve(
        version=grpc.unary_unary_rpc_method_handler(lambda request, context: answer),
        snapshot=grpc.unary_stream_rpc_method_handler(stall),
    )
    good = make("cache")
    _publish(good, 1)
    reader = make("reader", stuck, good, timeouts=Timeouts(call=5.0, read=0.3, retry=60.0))
    assert reader.wait_for(1, timeout=LONG).version == 1
    assert reader.source.failures == 1
    release.set()


STALLED = """
import sys, threading
from placement.modelcache import cache
async def stall(self, request, context):
    yield self._held[1][0]
    print("stalled", flush=True)
    await self._changed.wait()
cache.ModelCache._answer_snapshot = stall
cache = cache.ModelCache(parents=lambda: tuple(sys.argv[1:]))
print(cache.address, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_cache_process_that_dies_in_the_middle_of_a_snapshot(
    make: Make, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """The keepalive detects a silent host, as after a power cut, long before the read's deadline."""
    keepalive = {"grpc.keepalive_time_ms": 100, "grpc.http2.ping_timeout_ms": 200}
    monkeypatch.setattr(reader_module, "_OPTIONS", tuple((dict(reader_module._OPTIONS) | keepalive).items()))
    root = make("cache")
    _publish(root, 1)
    process = _start_process(STALLED, root.address)
    try:
        address = process.stdout.readline().strip()
        reader = make("reader", address, root, timeouts=Timeouts(call=LONG, read=3 * LONG, retry=3 * LONG))
        read: list[Any] = []
        thread = threading.Thread(target=lambda: read.append(reader.wait_for(1, timeout=3 * LONG)))
        thread.start()
        assert process.stdout.readline() == "stalled\n"
        os.kill(process.pid, number)
        thread.join(LONG)
        assert read[0].version == 1 and reader.source.failures == 1
    finally:
        process.kill()
        process.communicate(timeout=LONG)


def _start_process(script: str, *arguments: str) -> Any:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


CACHE = """
import sys
from placement.modelcache.cache import ModelCache
cache = ModelCache(parents=lambda: tuple(sys.argv[1:]))
print(cache.address, flush=True)
sys.stdin.read()
cache.close()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_cache_process_that_is_really_killed_or_stopped(make: Make, number: signal.Signals) -> None:
    root = make("cache")
    process = _start_process(CACHE, root.address)
    try:
        address = process.stdout.readline().strip()
        reader = make("reader", address, root, timeouts=Timeouts(call=1.0, read=5.0, retry=60.0))
        _publish(root, 1)
        assert reader.wait_for(1, timeout=LONG).version == 1
        assert reader.source.failures == 0
        os.kill(process.pid, number)
        if number == signal.SIGKILL:
            process.wait(LONG)
        _publish(root, 2)
        assert reader.wait_for(2, timeout=LONG).version == 2
        assert reader.source.failures == 1
    finally:
        process.kill()
        process.communicate(timeout=LONG)


def test_a_cache_whose_reader_fails_ends_so_that_its_readers_move_on(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    root = make("cache")
    _publish(root, 1)
    leaf = make("cache", root)
    reader = make("reader", leaf, root)
    reader.wait_for(1, timeout=LONG)
    monkeypatch.setattr(leaf, "_put", lambda *rest: 1 / 0)
    with caplog.at_level(logging.ERROR):
        _publish(root, 2)
        assert reader.wait_for(2, timeout=LONG).version == 2
        leaf._reader.join(LONG)
    assert "cannot continue" in caplog.text and "ZeroDivisionError" in caplog.text


# Closing and concurrency.


def test_closing_wakes_those_who_wait(make: Make) -> None:
    root = make("cache")
    reader = make("reader", root)
    errors: list[Exception] = []

    def wait() -> None:
        try:
            reader.wait_for(1, timeout=LONG)
        except StoreClosed as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    reader.close()
    reader.close()
    thread.join(LONG)
    assert len(errors) == 1
    with pytest.raises(StoreClosed):
        reader.version()
    root.close()
    root.close()
    with pytest.raises(StoreClosed):
        _publish(root, 1)


def test_readers_in_many_threads_get_whole_snapshots_in_order_while_the_learner_publishes(make: Make) -> None:
    last = 30
    root = make("cache")
    leaf = make("cache", root)
    shared, own = make("reader", leaf, root), [make("reader", leaf, root) for _ in range(3)]
    seen: list[list[int]] = []
    failed: list[BaseException] = []

    def read(reader: Any) -> None:
        versions = [-1]
        try:
            while versions[-1] < last:
                snapshot = reader.wait_for(0, timeout=LONG)
                assert _value(snapshot.parameters) == snapshot.version
                versions.append(snapshot.version)
        except BaseException as error:  # noqa: BLE001  shown by the test
            failed.append(error)
        seen.append(versions)

    threads = [threading.Thread(target=read, args=(reader,)) for reader in [shared, shared, *own]]
    for thread in threads:
        thread.start()
    for version in range(last + 1):
        _publish(root, version)
    for thread in threads:
        thread.join(LONG)
    assert not failed and len(seen) == len(threads)
    assert all(versions == sorted(versions) and versions[-1] == last for versions in seen)
