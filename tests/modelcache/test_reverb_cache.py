"""Caches and their readers: whole snapshots, never older ones, bytes only when something changed, whoever dies."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from placement.modelcache.base import StoreClosed, StoreTimeout
from placement.modelcache.header import SIZE, SnapshotDamaged, SnapshotMismatch, Stamp
from placement.modelcache.wire import Layout, pack

cache_module = pytest.importorskip("placement.modelcache.reverb_cache", reason="no Reverb", exc_type=ImportError)
line_module = pytest.importorskip("placement.modelcache.connection")
store_module = pytest.importorskip("placement.modelcache.reverb_store")

LONG = 60.0
LAYOUT = Layout.of({"kernel": np.zeros((64, 16), np.float32), "bias": np.zeros(16, np.float32)})
PATIENCE = line_module.Patience(call=5.0, read=20.0, retry=0.0, addresses=0.0)


def _parameters(value: float) -> dict[str, np.ndarray]:
    return {"kernel": np.full((64, 16), value, np.float32), "bias": np.full(16, value, np.float32)}


def _value(parameters: Any) -> float:
    """The one value that all leaves have; fails where a snapshot is mixed from several."""
    (value,) = np.unique(np.concatenate([parameters["kernel"].reshape(-1), parameters["bias"]]))
    return float(value)


def _publish(cache: Any, version: int, *, incarnation: int = 1) -> None:
    cache.publish(version, pack(version, _parameters(version), incarnation=incarnation))


Make = Callable[..., Any]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes caches and readers that are closed at the end."""
    made: list[Any] = []

    def build(kind: str, *addresses: Any, **options: Any) -> Any:
        """`addresses`: caches or host:port strings, nearest first; none for a root."""
        now = lambda: tuple(each if isinstance(each, str) else each.address for each in addresses)  # noqa: E731
        options.setdefault("poll_seconds", 0.01)
        options.setdefault("patience", PATIENCE)
        if kind == "reader":
            made.append(store_module.CacheReader(now, LAYOUT, **options))
        else:
            made.append(cache_module.ModelCache(parents=now if addresses else None, **options))
        return made[-1]

    yield build
    for each in reversed(made):
        each.close()


@pytest.fixture(autouse=True)
def _short_glances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "GLANCE_SECONDS", 0.1)


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
    counts = reader.statistics()
    assert counts.reads.operations == 1 and counts.questions >= 20 and counts.bytes == LAYOUT.size()
    assert leaf.statistics().served == 1
    assert root.statistics().served == 1 and leaf.statistics().source.reads.operations == 1
    _publish(root, 4)
    reader.wait_for(4, timeout=LONG)
    assert reader.statistics().reads.operations == 2 and len(reader.latencies()) == 2
    assert root.statistics().served == 2


def test_what_is_given_never_gets_older_though_another_cache_lags(make: Make) -> None:
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
    assert reader.statistics().reads.operations == 2


def test_the_root_takes_rising_versions_only_and_whole_snapshots_only(make: Make) -> None:
    root = make("cache")
    _publish(root, 3)
    for version in (3, 2):
        with pytest.raises(ValueError, match=f"version {version} published after version 3"):
            _publish(root, version)
    with pytest.raises(ValueError, match="version 5 published with a snapshot of version 4"):
        root.publish(5, pack(4, _parameters(4)))
    damaged = pack(4, _parameters(4)).copy()
    damaged[-1] ^= 1
    with pytest.raises(SnapshotDamaged):
        root.publish(4, damaged)
    assert root.version == 3 and make("reader", root).wait_for(0, timeout=LONG).version == 3
    with pytest.raises(RuntimeError, match="has parents"):
        _publish(make("cache", root), 4)


def test_a_restarted_learners_snapshots_replace_newer_versions_of_its_last_life(make: Make) -> None:
    first = make("cache")
    roots = [first]
    leaf = cache_module.ModelCache(parents=lambda: (roots[-1].address,), poll_seconds=0.01, patience=PATIENCE)
    reader = make("reader", leaf)
    try:
        _publish(first, 57, incarnation=1)
        assert reader.wait_for(57, timeout=LONG).version == 57
        second = make("cache")
        roots.append(second)
        first.close()
        _publish(second, 40, incarnation=2)
        # An actor that waits for the next version must not wait for ever for one of the lost ones.
        snapshot = reader.wait_for(58, timeout=LONG)
        assert (snapshot.version, _value(snapshot.parameters)) == (40, 40)
        with pytest.raises(StoreTimeout):
            reader.wait_for(41, timeout=0.2)
    finally:
        leaf.close()


# Damage.


def _write_by_hand(cache: Any, announced: np.ndarray, buffer: np.ndarray) -> None:
    """Puts a snapshot into a cache's tables past its checks."""
    for table, data in ((line_module.SNAPSHOT_TABLE, buffer), (line_module.VERSION_TABLE, announced)):
        writer = cache_module.reverb.Client(cache.address).trajectory_writer(num_keep_alive_refs=1)
        writer.append([data])
        writer.create_item(table, 1.0, [writer.history[0][-1]])
        writer.flush(0, timeout_ms=int(LONG * 1000))
        writer.close()


def _torn() -> np.ndarray:
    buffer = pack(7, _parameters(7), incarnation=1).copy()
    buffer[-100:] = pack(6, _parameters(6))[-100:]
    return buffer


@pytest.mark.parametrize(
    "buffer", [_torn(), _torn()[:-1], np.zeros(5), np.zeros((3, 3), np.uint8)], ids=["torn", "cut", "floats", "matrix"]
)
def test_a_damaged_snapshot_is_thrown_away_and_the_next_cache_asked(make: Make, buffer: np.ndarray) -> None:
    good, bad = make("cache"), make("cache")
    _write_by_hand(bad, pack(7, _parameters(7), incarnation=1)[:SIZE].copy(), buffer)
    _publish(good, 6)
    reader, leaf = make("reader", bad, good), make("cache", bad, good)
    below = make("reader", leaf)
    for each in (reader, below):
        snapshot = each.wait_for(0, timeout=LONG)
        assert (snapshot.version, _value(snapshot.parameters)) == (6, 6)
    assert reader.statistics().damaged >= 1 and leaf.statistics().source.damaged >= 1
    assert below.statistics().damaged == 0
    _publish(good, 8)
    assert reader.wait_for(8, timeout=LONG).version == 8


def test_a_snapshot_that_is_older_than_announced_is_not_taken(make: Make) -> None:
    cache = make("cache")
    _publish(cache, 5)
    reader = make("reader", cache)
    reader.wait_for(5, timeout=LONG)
    _write_by_hand(cache, pack(6, _parameters(6), incarnation=1)[:SIZE].copy(), pack(4, _parameters(4), incarnation=1))
    with pytest.raises(StoreTimeout, match="the newest is 5"):
        reader.wait_for(6, timeout=0.3)
    assert reader.wait_for(0, timeout=LONG).version == 5


def test_another_models_snapshot_is_an_error_that_says_so(make: Make) -> None:
    cache = make("cache")
    cache.publish(1, pack(1, {"other": np.zeros(3, np.float32)}))
    with pytest.raises(SnapshotMismatch, match="do the caches belong to a run with another policy"):
        make("reader", cache).wait_for(0, timeout=LONG)


def test_a_server_that_is_no_cache_is_named(make: Make) -> None:
    server = cache_module.start_server([cache_module.reverb.Table.queue("episodes", 1)])
    try:
        with pytest.raises(StoreTimeout, match=f"{server.address} is no model cache: its tables are episodes"):
            make("reader", server).wait_for(0, timeout=0.1)
    finally:
        server.stop()


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
    assert reader.statistics().failures >= 1
    again = make("cache", root, port=near.port)
    _publish(root, 3)
    assert reader.wait_for(3, timeout=LONG).version == 3
    while again.version < 3:
        reader.wait_for(0, timeout=LONG)
    far.close()
    _publish(root, 4)
    assert reader.wait_for(4, timeout=LONG).version == 4
    assert again.statistics().served >= 1


def test_a_dead_parents_children_go_on_with_the_grandparent(make: Make, caplog: pytest.LogCaptureFixture) -> None:
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
        served = reader.wait_for(2, timeout=LONG)  # a cache without parents serves what it has
        _wait_until(lambda: bool(caplog.messages))
    assert served.version == 2 and leaf.version == 2
    assert len(caplog.messages) == 1 and "goes on with version 2" in caplog.messages[0]


def _wait_until(done: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(LONG / 0.02)):
        if done():
            return
        pause.wait(0.02)
    raise AssertionError("did not come about")


def test_who_finds_nobody_looks_again_at_once(make: Make) -> None:
    """With the patience of a real run, in which caches and actors may start before the learner, or outlive it."""
    addresses: list[str] = []
    reader = store_module.CacheReader(lambda: tuple(addresses), LAYOUT, poll_seconds=0.01)
    try:
        with pytest.raises(StoreTimeout, match="no cache to ask: none known"):
            reader.wait_for(0, timeout=0.1)
        for version in (1, 2):
            cache = make("cache")
            _publish(cache, version, incarnation=version)
            addresses[:] = [cache.address]
            assert reader.wait_for(version, timeout=line_module.Patience.retry).version == version
            addresses.clear()
            cache.close()
            with pytest.raises(StoreTimeout):
                reader.wait_for(version + 1, timeout=0.1)
    finally:
        reader.close()


def test_without_any_cache_what_is_held_is_given_and_more_is_waited_for(make: Make) -> None:
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
    with pytest.raises(StoreTimeout, match="no cache to ask: down"):
        nobody.wait_for(0, timeout=0.1)


def test_a_read_from_a_server_that_dies_or_stalls_meanwhile_is_given_up(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reverb's own sampling would wait for ever."""
    stuck, good = make("cache"), make("cache")
    _publish(stuck, 1)
    _publish(good, 1)
    release = threading.Event()
    sample = cache_module.reverb.Client.sample

    def stall(client: Any, table: str, *rest: Any, **options: Any) -> Any:
        if client.server_address == stuck.address and table == line_module.SNAPSHOT_TABLE:
            release.wait(LONG)
        return sample(client, table, *rest, **options)

    monkeypatch.setattr(cache_module.reverb.Client, "sample", stall)
    reader = make("reader", stuck, good, patience=line_module.Patience(call=5.0, read=0.3, retry=60.0))
    assert reader.wait_for(1, timeout=LONG).version == 1
    assert reader.statistics().abandoned == 1
    dying = make("reader", stuck, good, patience=line_module.Patience(read=3 * LONG, retry=60.0))
    monkeypatch.setattr(line_module, "_knock", lambda address, seconds: address != stuck.address)
    assert dying.wait_for(1, timeout=LONG).version == 1
    assert dying.statistics().abandoned == 1
    silent = make("reader", stuck, good, patience=line_module.Patience(read=3 * LONG, retry=60.0))
    knocks: list[str] = []

    def knock(address: str, seconds: float) -> bool | None:
        knocks.append(address)
        return None if address == stuck.address and len(knocks) != 2 else True

    monkeypatch.setattr(line_module, "_knock", knock)
    assert silent.wait_for(1, timeout=LONG).version == 1
    assert len(knocks) == 5 and set(knocks) == {stuck.address}  # one that was heard among silent ones starts anew
    release.set()


CACHE = """
import sys
from placement.modelcache.reverb_cache import ModelCache
cache = ModelCache(parents=lambda: tuple(sys.argv[1:]), poll_seconds=0.01)
print(cache.address, flush=True)
sys.stdin.read()
cache.close()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_cache_process_that_is_really_killed_or_stopped(make: Make, number: signal.Signals) -> None:
    root = make("cache")
    process = subprocess.Popen(
        [sys.executable, "-c", CACHE, root.address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        reader = make("reader", address, root, patience=line_module.Patience(call=1.0, read=5.0, retry=60.0))
        _publish(root, 1)
        assert reader.wait_for(1, timeout=LONG).version == 1
        assert reader.statistics().failures == 0
        os.kill(process.pid, number)
        if number == signal.SIGKILL:
            process.wait(LONG)
        _publish(root, 2)
        assert reader.wait_for(2, timeout=LONG).version == 2
        assert reader.statistics().failures == 1
    finally:
        process.kill()
        process.communicate(timeout=LONG)


def test_a_cache_whose_reader_fails_ends_so_that_its_readers_go_on(
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
    assert "cannot go on" in caplog.text and "ZeroDivisionError" in caplog.text


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


# The learner's side.


@pytest.mark.parametrize("wire_dtype", ["float32", "bfloat16"])
def test_the_learner_publishes_what_actors_read(make: Make, wire_dtype: str) -> None:
    root = make("cache")
    store = store_module.RootStore(root, LAYOUT, wire_dtype, incarnation=4)
    assert store.version() == -1
    with pytest.raises(StoreTimeout, match="version 0; the newest is -1"):
        store.wait_for(0, timeout=0.01)
    third = np.float32(1) / np.float32(3)
    store.publish(2, _parameters(third))
    read = make("reader", root).wait_for(2, timeout=LONG)
    own = store.wait_for(2, timeout=LONG)
    assert store.version() == root.version == 2 and root.stamp == Stamp(4, 2)
    assert _value(read.parameters) == _value(own.parameters)
    assert (_value(read.parameters) == third) == (wire_dtype == "float32")
    with pytest.raises(ValueError, match="versions must rise"):
        store.publish(2, _parameters(1))
    store.close()
    with pytest.raises(StoreClosed):
        store.publish(3, _parameters(1))


def test_a_new_learner_counts_as_newer_without_being_told_a_number(make: Make) -> None:
    stamps = []
    for _ in range(2):
        root = make("cache")
        store_module.RootStore(root, LAYOUT).publish(0, _parameters(0))
        stamps.append(root.stamp)
    assert stamps[0] < stamps[1]
