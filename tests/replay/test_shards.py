"""Shards, writers and the learner's reader in one process: fairness, checkpoints, malformed items, statistics."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from placement.episode import MalformedEpisode
from placement.replay.replay import ReplayClosed, ReplayTimeout
from placement.transport.addresses import Addresses, fixed
from tests.support.episodes import STEPS, counts, episode

pytest.importorskip("placement.replay.shard_items", reason="Reverb is not installed", exc_type=ImportError)
from placement.replay.shard import ReplayShard
from placement.replay.shard_items import ShardMismatch
from placement.replay.shard_reader import ShardedReplay
from placement.replay.shard_writer import ShardWriter
from tests.support.by_hand import write_item
from tests.support.waiting import wait_until

LONG = 90.0
Make = Callable[..., tuple[list[ReplayShard], Addresses]]


@pytest.fixture
def shards() -> Iterator[Make]:
    made: list[ReplayShard] = []

    def make(count: int, **options: object) -> tuple[list[ReplayShard], Addresses]:
        new = [ReplayShard(**{"number": number, "capacity": 64, "steps": STEPS} | options) for number in range(count)]
        made.extend(new)
        return new, fixed(*(shard.address for shard in new))

    yield make
    for shard in made:
        shard.close()


@pytest.fixture
def reader(shards: Make) -> Iterator[Callable[..., ShardedReplay]]:
    made: list[ShardedReplay] = []

    def make(addresses: Addresses, **options: object) -> ShardedReplay:
        made.append(ShardedReplay(addresses, **{"steps": STEPS, "designs": 2, "ahead": 0} | options))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def writer(addresses: Addresses, home: int, **options: object) -> ShardWriter:
    return ShardWriter(addresses, home=home, **{"steps": STEPS, "designs": 2} | options)


def test_each_writer_keeps_to_its_home_and_the_reader_draws_from_all_fairly(shards: Make, reader) -> None:
    made, addresses = shards(3)
    for home in range(3):
        mine = writer(addresses, home)
        for count in range(20 + 10 * home):
            mine.write(episode(count, actor=home), timeout=LONG)
        assert (mine.shard, mine.written, mine.moves) == (home, 20 + 10 * home, 0)
        latency = mine.latencies.summary()
        assert latency.operations == 20 + 10 * home
        assert 0 < latency.p50 <= latency.p99 <= latency.worst
    assert [shard.size() for shard in made] == [20, 30, 40]
    replay = reader(addresses)
    replay.wait_until_connected(timeout=LONG)
    for _ in range(2):
        actors = [int(item.identity[0]) for item in replay.read(30, timeout=LONG)]
        assert [actors.count(home) for home in range(3)] == [10, 10, 10]
    rest = replay.read(30, timeout=LONG)  # shard 0 has none left: the others take over its share
    assert sorted({int(item.identity[0]) for item in rest}) == [1, 2]
    for home in (1, 2):  # first in, first out
        mine = [int(item.identity[1]) for item in rest if item.identity[0] == home]
        assert mine == list(range(20, 20 + len(mine)))
    statistics = replay.statistics()
    assert [shard.taken for shard in statistics] == [20, 30, 40]
    assert [shard.skew for shard in statistics] == [pytest.approx(taken / 30) for taken in (20, 30, 40)]
    assert all(shard.connected and shard.rate > 0 and shard.wait > 0 for shard in statistics)
    wait_until(lambda: replay.size() == 0)  # all were taken; the tables are polled once a second


def test_a_full_shard_makes_its_writer_wait_and_is_named(shards: Make, reader) -> None:
    _, addresses = shards(2, capacity=4)
    mine = writer(addresses, 1)
    for count in range(4):
        mine.write(episode(count), timeout=LONG)
    with pytest.raises(ReplayTimeout, match=r"MainThread waited 0\.2 s to write.*replay shard 1 .* is full.*learner"):
        mine.write(episode(4), timeout=0.2)
    replay = reader(addresses)
    assert counts(replay.read(4, timeout=LONG)) == [0, 1, 2, 3]
    mine.write(episode(4), timeout=LONG)  # the same episode still waits, because it exists already
    mine.write(episode(5), timeout=LONG)
    assert counts(replay.read(2, timeout=LONG)) == [4, 5]
    assert replay.duplicates == 0


def test_a_malformed_item_is_rejected_and_counted_and_reading_continues(shards: Make, reader) -> None:
    made, addresses = shards(2)
    mine = writer(addresses, 0)
    replay = reader(addresses)
    bad = (
        [np.zeros(3)],
        {**episode(1)._asdict(), "log_probabilities": np.full(STEPS, np.nan, np.float32)},
        {**episode(1)._asdict(), "actions": np.zeros(STEPS, np.float64)},
        {**episode(1)._asdict(), "identity": np.array([-1, 0])},
    )
    for count, item in enumerate(bad):
        write_item(made[0].address, item)
        mine.write(episode(count), timeout=LONG)
    assert counts(replay.read(len(bad), timeout=LONG)) == list(range(len(bad)))
    assert replay.rejected == len(bad)
    assert [shard.rejected for shard in replay.statistics()] == [len(bad), 0]
    assert replay.statistics()[0].failures == 0


def test_a_malformed_episode_is_rejected_at_the_writer(shards: Make) -> None:
    made, addresses = shards(1)
    with pytest.raises(MalformedEpisode, match=r"^design"):
        writer(addresses, 0).write(episode(0)._replace(design=np.array(2, np.int32)), timeout=LONG)
    assert made[0].size() == 0


def test_an_episode_that_reached_two_shards_is_taken_once(shards: Make, reader) -> None:
    _, addresses = shards(2)
    for home in range(2):
        mine = writer(addresses, home)
        for count in range(3):
            mine.write(episode(count), timeout=LONG)
    writer(addresses, 0).write(episode(3), timeout=LONG)
    replay = reader(addresses)
    assert sorted(counts(replay.read(4, timeout=LONG))) == [0, 1, 2, 3]
    assert replay.intervals().tolist() == [[0, 0, 3]]
    with pytest.raises(ReplayTimeout, match="for 1 episodes from the replay shards and 0 arrived"):
        replay.read(1, timeout=0.5)
    assert replay.duplicates == 3


def test_a_shard_returns_from_its_checkpoint_and_nothing_counts_twice(shards: Make, reader, tmp_path: Path) -> None:
    (shard,), addresses = shards(1, checkpoint_folder=tmp_path)
    mine = writer(addresses, 0)
    for count in range(6):
        mine.write(episode(count), timeout=LONG)
    first = reader(addresses)
    assert counts(first.read(1, timeout=LONG)) == [0]
    saved = shard.checkpoint()
    assert saved.parent == tmp_path
    taken = first.read(4, timeout=LONG)
    assert shard.statistics().checkpoints == 1
    first.stop()
    shard.close()
    (again,), addresses = shards(1, checkpoint_folder=tmp_path)
    restored = again.size()
    assert restored > 0
    second = reader(addresses, intervals=first.intervals())
    mine = writer(addresses, 0)
    mine.write(episode(6), timeout=LONG)
    assert counts(second.read(2, timeout=LONG)) == [5, 6]
    assert second.duplicates == restored - 1
    assert counts(taken) == [1, 2, 3, 4]


def test_what_was_not_taken_is_not_seen(shards: Make, reader) -> None:
    _, addresses = shards(1)
    mine = writer(addresses, 0)
    replay = reader(addresses, ahead=4)
    for count in range(4):
        mine.write(episode(count), timeout=LONG)
    assert counts(replay.read(1, timeout=LONG)) == [0]
    wait_until(lambda: replay.statistics()[0].ready == 3)
    assert replay.intervals().tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("damage", ["cut", "unfinished"])
def test_a_damaged_checkpoint_is_moved_aside(
    shards: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    folder = tmp_path / "shard0"
    (shard,), addresses = shards(1, checkpoint_folder=folder)
    writer(addresses, 0).write(episode(0), timeout=LONG)
    saved = shard.checkpoint()
    shard.close()
    if damage == "cut":
        file = saved / "items.tfrecord"
        file.write_bytes(file.read_bytes()[:-20])
    else:
        (saved / "DONE").unlink()
    with caplog.at_level(logging.WARNING):
        (again,), _ = shards(1, checkpoint_folder=folder)
    assert again.size() == 0 and not saved.exists()
    if damage == "cut":
        assert "replay shard 0: its checkpoint is damaged" in caplog.text
        assert (tmp_path / "shard0-damaged" / f"{saved.name}-1").exists()


def test_the_newest_checkpoint_counts_though_the_clock_was_set_back(
    shards: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shard0"
    (ahead,), addresses = shards(1, checkpoint_folder=folder)
    client = ahead._server.client
    with monkeypatch.context() as clock:
        save = client.checkpoint

        def save_in_the_future() -> str:
            """Returns a checkpoint name of Reverb on a machine whose clock is ahead."""
            saved = Path(save())
            return str(saved.rename(saved.with_name("2999-01-01T00:00:00.000000000+00:00")))

        clock.setattr(client, "checkpoint", save_in_the_future)
        writer(addresses, 0).write(episode(0), timeout=LONG)
        ahead.checkpoint()
    ahead.close()
    (behind,), addresses = shards(1, checkpoint_folder=folder)
    assert behind.size() == 1
    writer(addresses, 0).write(episode(1), timeout=LONG)
    newest = behind.checkpoint()
    behind.close()
    (again,), _ = shards(1, checkpoint_folder=folder)
    assert again.size() == 2
    assert [path for path in folder.iterdir() if not path.name.startswith(".")] == [newest], "only the newest is kept"


def test_a_checkpoint_needs_a_folder(shards: Make) -> None:
    (shard,), _ = shards(1)
    with pytest.raises(ValueError, match="replay shard 0 has no checkpoint folder"):
        shard.checkpoint()


def test_a_shard_of_another_run_is_rejected_by_name(shards: Make, reader) -> None:
    _, addresses = shards(1, steps=STEPS + 1)
    with pytest.raises(ShardMismatch, match=rf"replay shard 0 \(127.*does not contain episodes of {STEPS} steps"):
        writer(addresses, 0).write(episode(0), timeout=LONG)
    with pytest.raises(RuntimeError, match=r"replay shard 0 .*does not contain episodes"):
        reader(addresses).read(1, timeout=LONG)


def test_close_wakes_reader_and_writer(shards: Make, reader) -> None:
    _, addresses = shards(1, capacity=1)
    replay, mine = reader(fixed("127.0.0.1:9")), writer(addresses, 0)
    errors: list[BaseException] = []

    def wait_for(work: Callable[[], object]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except ReplayClosed as error:
                errors.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    mine.write(episode(0), timeout=LONG)
    threads = [
        wait_for(lambda: replay.read(1, timeout=LONG)),
        wait_for(lambda: mine.write(episode(1), timeout=LONG)),
    ]
    wait_until(lambda: replay._delivery.wanted == 1 and mine._pending is not None)
    replay.close()
    mine.close()
    for thread in threads:
        thread.join(LONG)
    assert len(errors) == 2


def test_the_home_must_be_one_of_the_shards() -> None:
    with pytest.raises(ValueError, match=r"home shard 2: there are 2 shards.*\[0, 1\]"):
        writer(fixed("127.0.0.1:1", "127.0.0.1:2"), 2)


def test_both_sides_report_that_no_shard_answers(reader) -> None:
    nowhere = fixed("127.0.0.1:9", "")
    with pytest.raises(ReplayTimeout, match=r"no replay shard answers \(0: 127\.0\.0\.1:9, 1: down\)"):
        writer(nowhere, 0).write(episode(0), timeout=0.3)
    replay = reader(nowhere)
    with pytest.raises(ReplayTimeout, match=r"0 arrived.*shard 0 \(never found\) is down.*shard 1"):
        replay.read(1, timeout=0.3)
    with pytest.raises(ReplayTimeout, match=r"waited 0\.1 s for the shards; shard 0"):
        replay.wait_until_connected(timeout=0.1)
