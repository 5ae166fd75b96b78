"""The contract of every kind of replay: the same tests over each kind."""

from __future__ import annotations

import importlib.util
import itertools
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from placement.episode import MalformedEpisode
from placement.replay.in_process import MemoryReplay
from placement.replay.replay import Replay, ReplayClosed, ReplayTimeout
from tests.support.episodes import STEPS, counts, episode
from tests.support.waiting import wait_until

CAPACITY = 4
PREFETCH = {"memory": 0, "reverb": 2}  # episodes held beyond the capacity once reading has started
LONG = 90.0


def _make(kind: str) -> Replay:
    if kind == "memory":
        return MemoryReplay(capacity=CAPACITY, steps=STEPS, designs=2)
    if importlib.util.find_spec("reverb") is None:
        pytest.skip("Reverb is not installed")
    from placement.replay.in_process import ReverbReplay

    return ReverbReplay(capacity=CAPACITY, steps=STEPS, designs=2)


@pytest.fixture(params=["memory", "reverb"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def replay(kind: str) -> Iterator[Replay]:
    result = _make(kind)
    yield result
    result.close()


class Thread(threading.Thread):
    """A thread whose result or exception is returned by `result`."""

    def __init__(self, work: Callable[[], object], name: str | None = None) -> None:
        super().__init__(name=name, daemon=True)
        self._work, self._value, self._error = work, None, None
        self.start()

    def run(self) -> None:
        try:
            self._value = self._work()
        except BaseException as error:  # noqa: BLE001  raised again by `result`
            self._error = error

    def result(self) -> object:
        self.join(LONG)
        assert not self.is_alive(), "the thread did not end"
        if self._error is not None:
            raise self._error
        return self._value


def test_order_and_content_are_kept(replay: Replay) -> None:
    written = [episode(count, version=count) for count in range(3)]
    for item in written:
        replay.write(item, timeout=LONG)
    assert replay.size() == 3
    read = replay.read(2, timeout=LONG) + replay.read(1, timeout=LONG)
    assert replay.size() == 0
    for one, other in zip(written, read, strict=True):
        for name in one._fields:
            expected, actual = getattr(one, name), getattr(other, name)
            np.testing.assert_array_equal(actual, expected)
            assert actual.dtype == expected.dtype and actual.shape == expected.shape, name


def test_a_dead_end_travels(replay: Replay) -> None:
    item = episode(0)
    item = item._replace(dead_end=np.array(True), costs=np.full(5, np.nan), reward=np.array(-4, np.float32))
    replay.write(item, timeout=LONG)
    (read,) = replay.read(1, timeout=LONG)
    assert read.dead_end and np.isnan(read.costs).all()


def test_a_full_replay_makes_the_writer_wait(replay: Replay, kind: str) -> None:
    most = CAPACITY + PREFETCH[kind]
    for count in range(CAPACITY):
        replay.write(episode(count), timeout=LONG)
    with pytest.raises(ReplayTimeout, match=r"MainThread waited 0\.2 s to write.*full.*learner"):
        for count in range(CAPACITY, most + 1):
            replay.write(episode(count), timeout=0.2)
    assert CAPACITY <= replay.size() <= most + 1


def test_a_read_lets_a_waiting_writer_continue(replay: Replay) -> None:
    def write() -> None:
        for count in range(3 * CAPACITY):
            replay.write(episode(count), timeout=LONG)

    writer = Thread(write)
    assert counts(replay.read(3 * CAPACITY, timeout=LONG)) == list(range(3 * CAPACITY))
    writer.result()


def test_a_write_that_timed_out_can_be_repeated(replay: Replay, kind: str) -> None:
    count = 0
    while True:
        try:
            replay.write(episode(count), timeout=0.05)
        except ReplayTimeout:
            break
        count += 1
    reader = Thread(lambda: replay.read(count, timeout=LONG))
    replay.write(episode(count), timeout=LONG)
    assert counts(reader.result()) == list(range(count))
    assert counts(replay.read(1, timeout=LONG)) == [count]
    assert replay.size() == 0


def test_a_read_past_its_deadline_says_who_waits_for_what_and_loses_nothing(replay: Replay) -> None:
    replay.write(episode(7), timeout=LONG)
    for seconds, came in ((0.3, "[01]"), (3, "[01]"), (30, "1")):  # on a loaded machine, it may arrive this late
        message = rf"MainThread waited {seconds} s for 2 episodes.*{came} arrived.*actors"
        with pytest.raises(ReplayTimeout, match=message) as late:
            replay.read(2, timeout=seconds)
        if "1 arrived" in str(late.value):
            break
    assert replay.size() == 1
    replay.write(episode(8), timeout=LONG)
    assert counts(replay.read(2, timeout=LONG)) == [7, 8]


def test_close_wakes_a_waiting_reader(replay: Replay) -> None:
    reader = Thread(lambda: replay.read(1, timeout=LONG), name="learner")
    wait_until(lambda: getattr(replay, "_reading", replay)._delivery.wanted == 1)
    replay.close()
    with pytest.raises(ReplayClosed, match="learner cannot read"):
        reader.result()


def test_close_wakes_a_waiting_writer(replay: Replay, kind: str) -> None:
    def write() -> None:
        for count in range(2 * CAPACITY + 2):
            replay.write(episode(count), timeout=LONG)

    writer = Thread(write, name="actor 3")
    wait_until(lambda: replay.size() >= CAPACITY)
    replay.close()
    with pytest.raises(ReplayClosed, match="actor 3 cannot write"):
        writer.result()


def test_a_closed_replay_rejects_calls(replay: Replay) -> None:
    replay.write(episode(0), timeout=LONG)
    replay.close()
    replay.close()
    with pytest.raises(ReplayClosed, match="cannot read"):
        replay.read(1, timeout=LONG)
    with pytest.raises(ReplayClosed, match="cannot write"):
        replay.write(episode(1), timeout=LONG)


def test_several_writers_and_readers_lose_and_repeat_nothing(replay: Replay) -> None:
    each, writers, readers, batch = 40, 3, 2, 6

    def write(actor: int) -> None:
        for count in range(each):
            replay.write(episode(count, actor=actor), timeout=LONG)

    def read() -> list[tuple[int, ...]]:
        rounds = each * writers // (readers * batch)
        batches = [replay.read(batch, timeout=LONG) for _ in range(rounds)]
        return [tuple(item.identity.tolist()) for items in batches for item in items]

    threads = [Thread(lambda actor=actor: write(actor)) for actor in range(writers)]
    results = [thread.result() for thread in [Thread(read) for _ in range(readers)]]
    for thread in threads:
        thread.result()
    assert sorted(itertools.chain(*results)) == [(actor, count) for actor in range(writers) for count in range(each)]
    for identities in results:  # one reader receives one writer's items in the order of writing
        for actor in range(writers):
            mine = [count for who, count in identities if who == actor]
            assert mine == sorted(mine)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("actions", np.zeros(STEPS + 1, np.int32)),
        ("actions", np.full(STEPS, -1, np.int32)),
        ("log_probabilities", np.zeros(STEPS, np.float64)),
        ("log_probabilities", np.full(STEPS, np.nan, np.float32)),
        ("log_probabilities", np.full(STEPS, 0.5, np.float32)),
        ("reward", np.array(np.inf, np.float32)),
        ("costs", np.full(5, np.nan)),
        ("length", np.array(STEPS + 1, np.int32)),
        ("length", np.array(STEPS - 1, np.int32)),
        ("design", np.array(2, np.int32)),
        ("version", np.array(-1, np.int32)),
        ("identity", [0, 1]),
    ],
)
def test_a_malformed_episode_is_rejected_at_the_writer(replay: Replay, field: str, value: object) -> None:
    with pytest.raises(MalformedEpisode, match=rf"^{field}|^actions: .*past the length"):
        replay.write(episode(0)._replace(**{field: value}), timeout=LONG)
    assert replay.size() == 0
