"""The collection of episodes: too old, orphaned and falsified episodes are dropped; the best placement is found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from placement.config import EnvConfig
from placement.engine.costs import compute_costs
from placement.engine.pool import make_pool
from placement.episode import Episode
from placement.modelcache.store import Snapshot
from placement.netlist.design import Design
from placement.netlist.load import load
from placement.replay.in_process import MemoryReplay
from placement.replay.replay import ReplayClosed, ReplayTimeout
from placement.runtimes.ray import episode_collector
from placement.runtimes.ray.episode_collector import Bounds, EpisodeCollector, PublicationNumbers, Publications
from placement.runtimes.ray.messages import Shortfall
from placement.training.actor import Actor, ActorContext
from placement.training.best import BestTracker, EpisodeVerifier
from placement.training.inference import LocalInference
from tests.support.fakes import FakeAgent

LONG = 90.0


@pytest.fixture(scope="module")
def designs() -> list[Design]:
    return [load("toy6"), load("planted20")]


@pytest.fixture
def episodes(designs: list[Design]) -> Sequence[Episode]:
    """Returns eight episodes by an agent of version 0; the last half has another identity each time."""
    context = ActorContext(LocalInference(FakeAgent()), None, None, None, BestTracker(designs))  # type: ignore[arg-type]
    actor = Actor(0, context, make_pool(designs, 8, num_threads=1), key=jax.random.key(0))
    return actor.play_round(Snapshot(0, {"version": np.array(0, np.int32)}))


class Bench:
    """Fixtures of a test, over a replay in memory."""

    def __init__(
        self,
        designs: list[Design],
        folder: Path,
        *,
        oldest: int = 0,
        iteration: int = 0,
        strict: bool = False,
        numbers: PublicationNumbers | None = None,
    ) -> None:
        steps = max(len(design.placing_order) for design in designs)
        self.source = MemoryReplay(capacity=64, steps=steps, designs=len(designs))
        self.publications: Any = numbers or Publications(folder, iteration=iteration)
        self.best = BestTracker(designs)
        self.shortfall: list[Shortfall] = []
        self.stop = threading.Event()
        self.collecting = EpisodeCollector(
            self.source,
            self.publications,
            EpisodeVerifier(designs, EnvConfig(), self.best),
            bounds=Bounds(episodes=8, oldest=oldest, strict=strict),
            stop=self.stop,
            report_shortfall=self.shortfall.append,
        )

    def write(self, *episodes: Episode, version: int) -> None:
        for episode in episodes:
            self.source.write(episode._replace(version=np.array(version, np.int32)), timeout=LONG)


def test_episodes_come_with_their_iteration_and_the_best_placement_is_kept(
    designs: list[Design], episodes: Sequence[Episode], tmp_path: Path
) -> None:
    Publications(tmp_path, iteration=0)  # an earlier learner used some numbers
    bench = Bench(designs, tmp_path, iteration=7)
    bench.write(*episodes, version=bench.publications.number(7))
    taken = bench.collecting.read(8, timeout=LONG)
    assert [tuple(episode.identity) for episode in taken] == [tuple(episode.identity) for episode in episodes]
    assert {int(episode.version) for episode in taken} == {7}
    for index, design in enumerate(designs):
        best = bench.best.best(index)
        assert best is not None
        assert best.costs.total == min(episode.costs[4] for episode in episodes if episode.design == index)
        assert compute_costs(design, best.placement) == pytest.approx(best.costs, rel=1e-12)


def test_old_and_orphaned_episodes_are_dropped_and_counted(
    designs: list[Design], episodes: Sequence[Episode], tmp_path: Path
) -> None:
    before = Publications(tmp_path, iteration=0).number(0)
    bench = Bench(designs, tmp_path, oldest=1)
    numbers = [bench.publications.number(iteration) for iteration in range(4)]
    bench.write(episodes[0], version=before)  # by an actor with parameters of a learner that died
    bench.write(episodes[1], version=numbers[1])  # two versions behind
    bench.write(episodes[2], version=numbers[2])
    (taken,) = bench.collecting.read(1, timeout=LONG)
    assert tuple(taken.identity) == tuple(episodes[2].identity) and taken.version == 2
    assert (bench.collecting.orphaned, bench.collecting.stale, bench.collecting.rejected) == (1, 1, 0)


def _costlier(episode: Episode) -> Episode:
    return episode._replace(costs=episode.costs * 0.5)


def _illegal(episode: Episode) -> Episode:
    """Moves the second macro on top of the first."""
    actions = episode.actions.copy()
    actions[1] = actions[0]
    return episode._replace(actions=actions)


@pytest.mark.parametrize("spoil", [_costlier, _illegal])
def test_an_untrue_episode_is_rejected_and_counted(
    designs: list[Design], episodes: Sequence[Episode], tmp_path: Path, spoil: Callable[[Episode], Episode]
) -> None:
    bench = Bench(designs, tmp_path)
    version = bench.publications.number(0)
    bench.write(spoil(episodes[0]), episodes[2], version=version)
    (taken,) = bench.collecting.read(1, timeout=LONG)
    assert tuple(taken.identity) == tuple(episodes[2].identity)
    assert bench.collecting.rejected == 1
    assert bench.best.limit(0) == episodes[2].costs[4]


def test_an_episode_from_the_future_is_rejected(
    designs: list[Design], episodes: Sequence[Episode], tmp_path: Path
) -> None:
    bench = Bench(designs, tmp_path)
    version = bench.publications.number(0)
    bench.write(episodes[0], version=version + 1)
    bench.write(episodes[2], version=version)
    assert len(bench.collecting.read(1, timeout=LONG)) == 1 and bench.collecting.rejected == 1


def test_a_shortfall_is_reported_and_ends(
    designs: list[Design], episodes: Sequence[Episode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_collector, "SLICE_SECONDS", 0.001)
    monkeypatch.setattr(episode_collector, "SHORTFALL_SECONDS", 0.002)
    bench = Bench(designs, tmp_path)
    version = bench.publications.number(0)
    bench.write(episodes[0], version=version)

    def report_shortfall(shortfall: Shortfall) -> None:
        bench.shortfall.append(shortfall)
        if len(bench.shortfall) == 1:
            bench.write(episodes[2], version=version)

    bench.collecting._report_shortfall = report_shortfall
    assert len(bench.collecting.read(2, timeout=LONG)) == 2
    assert bench.shortfall[0] == Shortfall(1, 7), "one of eight was there"
    assert bench.shortfall[-1].missing == 0
    assert [shortfall.number for shortfall in bench.shortfall] == list(range(1, len(bench.shortfall) + 1))


def test_what_came_stays_for_the_next_read(
    designs: list[Design], episodes: Sequence[Episode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_collector, "SLICE_SECONDS", 0.001)
    bench = Bench(designs, tmp_path)
    version = bench.publications.number(0)
    bench.write(*episodes[:2], version=version)
    with pytest.raises(ReplayTimeout):
        bench.collecting.read(3, timeout=0.05)
    bench.write(*episodes[2:4], version=version)
    taken = bench.collecting.read(3, timeout=LONG) + bench.collecting.read(1, timeout=LONG)
    assert [tuple(one.identity) for one in taken] == [tuple(one.identity) for one in episodes[:4]]


def test_what_is_read_ahead_is_as_old_as_it_will_be(
    designs: list[Design], episodes: Sequence[Episode], tmp_path: Path
) -> None:
    bench = Bench(designs, tmp_path, oldest=0)
    version = bench.publications.number(0)
    bench.write(*episodes, version=version)
    assert len(bench.collecting.read(8, timeout=LONG)) == 8
    # From here on, the learner learns: episodes read are for the following iteration.
    again = [episode._replace(identity=episode.identity + 100) for episode in episodes]
    bench.write(again[0], version=version)
    with pytest.raises(ReplayTimeout):
        bench.collecting.read(1, timeout=0.05)
    assert bench.collecting.stale == 1
    bench.write(again[1], version=bench.publications.number(1))
    assert len(bench.collecting.read(1, timeout=LONG)) == 1
    assert bench.collecting.staleness() == {
        "staleness_0": 9.0,
        "staleness_1": 0.0,
        "staleness_2": 0.0,
        "staleness_3": 0.0,
        "staleness_4_up": 0,
    }


def test_waits_end_with_the_deadline_or_the_order_to_stop(
    designs: list[Design], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode_collector, "SLICE_SECONDS", 0.001)
    bench = Bench(designs, tmp_path)
    with pytest.raises(ReplayTimeout, match="for 3 episodes: 0 arrived"):
        bench.collecting.read(3, timeout=0.01)
    bench.stop.set()
    with pytest.raises(ReplayClosed):
        bench.collecting.read(3, timeout=LONG)


@pytest.mark.parametrize("strict", [True, False])
def test_invalid_episodes_are_rejected_by_the_collector(
    designs: list[Design], episodes: Sequence[Episode], tmp_path: Path, strict: bool
) -> None:
    bench = Bench(designs, tmp_path, strict=strict)
    version = bench.publications.number(0)
    expensive = episodes[0]._replace(
        costs=episodes[0].costs * 100
    )  # not the best, so it is not replayed for its placement
    bench.write(episodes[0], _illegal(expensive), episodes[2], version=version)
    taken = bench.collecting.read(2 if strict else 3, timeout=LONG)
    assert [one.identity.tolist() for one in taken][-1] == episodes[2].identity.tolist()
    assert bench.collecting.rejected == (1 if strict else 0)


def test_a_host_that_follows_takes_episodes_of_the_version_that_it_is_about_to_make(
    designs: list[Design], episodes: Sequence[Episode], tmp_path: Path
) -> None:
    bench = Bench(designs, tmp_path, numbers=PublicationNumbers(100, iteration=3))
    bench.publications.newest = 3
    bench.write(episodes[0], version=101)  # iteration 4
    bench.write(episodes[2], version=102)
    bench.write(episodes[4], version=100)
    assert [int(one.version) for one in bench.collecting.read(2, timeout=LONG)] == [4, 3]
    assert bench.collecting.rejected == 1
