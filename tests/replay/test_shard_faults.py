"""Shards that are really killed: writers use others, the shard returns, nothing is counted twice or torn."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.episode import Episode, Schema
from placement.replay.replay import ReplayTimeout
from tests.support.episodes import STEPS, counts, episode
from tests.support.shard_process import ShardProcess

pytest.importorskip("placement.replay.shard_items", reason="Reverb is not installed", exc_type=ImportError)
from placement.replay import shard_items, shard_reader, shard_writer
from placement.replay.shard_reader import ShardedReplay
from placement.replay.shard_writer import ShardWriter
from tests.support.waiting import wait_until

LONG = 120.0


class Shards:
    """Several shards in their own processes, and their current addresses."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self.processes = [ShardProcess(number, folder / str(number)) for number in range(count)]
        self._known = [process.address for process in self.processes]

    def addresses(self) -> tuple[str, ...]:
        return tuple(self._known)

    def restart(self, number: int, *, same_port: bool) -> None:
        old = self.processes[number]
        self.processes[number] = ShardProcess(number, self._folder / str(number), port=old.port if same_port else 0)
        self._known[number] = self.processes[number].address


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_writer, "RETRY_SECONDS", 0.2)
    monkeypatch.setattr(shard_reader, "RETRY_SECONDS", 0.1)
    monkeypatch.setattr(shard_reader, "WATCH_SECONDS", 0.1)


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[Shards]:
    made = Shards(tmp_path, 2)
    yield made
    for process in made.processes:
        process.kill()


@pytest.fixture
def replay(shards: Shards) -> Iterator[ShardedReplay]:
    made = ShardedReplay(shards.addresses, steps=STEPS, designs=2, ahead=2)
    yield made
    made.close()


@pytest.mark.parametrize("same_port", [True, False], ids=["same port", "another port"])
def test_a_killed_shard_is_bypassed_and_returns(shards: Shards, replay: ShardedReplay, same_port: bool) -> None:
    writers = [ShardWriter(shards.addresses, home=home, steps=STEPS) for home in range(2)]
    taken = []
    for count in range(8):
        for home, mine in enumerate(writers):
            mine.write(episode(count, actor=home), timeout=LONG)
    taken += replay.read(4, timeout=LONG)
    written = shards.processes[0].ask("checkpoint")["written"]
    taken += replay.read(4, timeout=LONG)
    shards.processes[0].kill()
    for count in range(8, 12):  # both write to shard 1 now
        for home, mine in enumerate(writers):
            mine.write(episode(count, actor=home), timeout=LONG)
    assert [mine.shard for mine in writers] == [1, 1]
    assert [mine.moves for mine in writers] == [1, 0]
    taken += replay.read(6, timeout=LONG)  # shard 1 alone has this number left
    wait_until(lambda: replay.statistics()[0].failures == 1 and not replay.statistics()[0].connected)
    shards.restart(0, same_port=same_port)
    assert shards.processes[0].ask("nothing")["written"] == written  # from its checkpoint: nobody has written since
    wait_until(lambda: writers[0].shard == 0 or _write_another(writers[0]))
    wait_until(lambda: replay.statistics()[0].connected)
    # Nothing of the surviving shard is lost; of the killed one, at most what was written or fetched last.
    expected = {(1, count) for count in range(12)} | {(0, count) for count in range(8, 12)}
    while expected - {_identity(item) for item in taken}:
        taken += replay.read(1, timeout=LONG)
    taken += _rest(replay)
    identities = [_identity(item) for item in taken]
    assert len(identities) == len(set(identities))
    assert replay.rejected == 0
    assert replay.statistics()[0].address == shards.addresses()[0]


_extra = iter(range(100, 100_000))


def _write_another(mine: ShardWriter) -> bool:
    mine.write(episode(next(_extra), actor=9), timeout=LONG)
    threading.Event().wait(0.05)
    return False


def _identity(item: Episode) -> tuple[int, ...]:
    return tuple(item.identity.tolist())


def _rest(replay: ShardedReplay) -> list[Episode]:
    """Returns the remaining episodes until none arrives for a while: a duplicate would be among them."""
    found: list[Episode] = []
    with contextlib.suppress(ReplayTimeout):
        while True:
            found += replay.read(1, timeout=0.5)
    return found


def test_a_shard_that_ends_while_a_reader_connects_ends_that_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise shard_items.tf.errors.UnavailableError(None, None, "Connection reset by peer")

    monkeypatch.setattr(shard_items, "_dataset", lost)
    with pytest.raises(shard_items.ItemsEnded, match="reset by peer"):
        shard_items.ItemReader("127.0.0.1:1", Schema(STEPS))


def test_both_sides_report_that_all_shards_are_dead(shards: Shards, replay: ShardedReplay) -> None:
    mine = ShardWriter(shards.addresses, home=0, steps=STEPS)
    mine.write(episode(0), timeout=LONG)
    assert counts(replay.read(1, timeout=LONG)) == [0]
    wait_until(lambda: all(shard.connected for shard in replay.statistics()))
    for process in shards.processes:
        process.kill()
    with pytest.raises(ReplayTimeout, match=r"waited 1 s to write an episode: no replay shard answers \(0: 127"):
        mine.write(episode(1), timeout=1)
    wait_until(lambda: not any(shard.connected for shard in replay.statistics()))
    with pytest.raises(ReplayTimeout, match=r"0 arrived.*; shard 0 \(127.*\) is down: .*; shard 1 \(127.*\) is down"):
        replay.read(1, timeout=0.2)
    shards.restart(1, same_port=False)
    mine.write(episode(1), timeout=LONG)  # the same episode, still unconfirmed by any shard
    assert counts(replay.read(1, timeout=LONG)) == [1]
    assert mine.shard == 1


def test_a_shard_that_hangs_is_bypassed_and_returns(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_items, "SILENCE_SECONDS", 1.0)
    with contextlib.closing(ShardedReplay(shards.addresses, steps=STEPS, designs=2, ahead=2)) as replay:
        mine = ShardWriter(shards.addresses, home=0, steps=STEPS)
        mine.write(episode(0), timeout=LONG)
        assert counts(replay.read(1, timeout=LONG)) == [0]
        shards.processes[0].hang(on=True)
        try:
            mine.write(episode(1), timeout=LONG)
            assert mine.shard == 1
            wait_until(lambda: not replay.statistics()[0].connected)
            assert counts(replay.read(1, timeout=LONG)) == [1]
        finally:
            shards.processes[0].hang(on=False)
        wait_until(lambda: replay.statistics()[0].connected)
        wait_until(lambda: mine.shard == 0 or _write_another(mine))
