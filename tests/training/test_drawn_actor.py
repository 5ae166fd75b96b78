"""The designs that an actor draws, independent of the other actors and of where it begins."""

from __future__ import annotations

import dataclasses
import threading

import jax
import numpy as np
import pytest

from placement.config import EPISODES_PER_DESIGN, EnvConfig
from placement.engine.drawn_designs import DrawnDesigns
from placement.episode import Episode
from placement.modelcache.store import MemoryStore, Snapshot
from placement.netlist.design import Design
from placement.netlist.generators.synthetic import SyntheticDesigns
from placement.replay.in_process import MemoryReplay
from placement.training.actor import ActorContext, EpisodeSchedule
from placement.training.drawn_actor import DrawnActor, DrawnEnvironments
from placement.training.inference import LocalInference
from tests.support.fakes import FakeAgent

ENVS = 2 * EPISODES_PER_DESIGN
SNAPSHOT = Snapshot(0, {"version": np.array(0, np.int32)})


@pytest.fixture(scope="module")
def drawn() -> DrawnEnvironments:
    env = EnvConfig(soft_placer="none")
    designs = DrawnDesigns(SyntheticDesigns(macros=(3, 5), soft_macros=(1.0, 2.0)), env, kept=100)
    return DrawnEnvironments(designs, env, ENVS, threads=1, compact_maps=False, electrostatic=False, actors=2)


def _actor(drawn: DrawnEnvironments, number: int, *, count: int = 0) -> DrawnActor:
    agent, steps = FakeAgent(), drawn.designs.shape[2]
    schedule = EpisodeSchedule(episodes_per_iteration=ENVS, max_staleness=0)
    replay = MemoryReplay(capacity=ENVS, steps=steps)
    context = ActorContext(LocalInference(agent), schedule, MemoryStore(), replay, best=None)
    return DrawnActor(number, context, drawn, agent, key=jax.random.key(number), count=count)


def _designs(episodes: list[Episode]) -> list[int]:
    return [int(episode.design) for episode in episodes]


def test_actors_draw_different_designs_and_resume_where_they_were(drawn: DrawnEnvironments) -> None:
    first, second = _actor(drawn, 0), _actor(drawn, 1)
    rounds = [list(actor.play_round(SNAPSHOT)) for actor in (first, second, first)]
    assert [_designs(one) for one in rounds] == [
        [number for number in numbers for _ in range(EPISODES_PER_DESIGN)] for numbers in ([0, 2], [1, 3], [4, 6])
    ]
    again = list(_actor(drawn, 0, count=ENVS).play_round(SNAPSHOT))
    for old, new in zip(rounds[2], again, strict=True):
        assert all(np.array_equal(*fields) for fields in zip(old, new, strict=True))


def test_an_episode_is_of_the_design_that_it_names(drawn: DrawnEnvironments) -> None:
    episodes = list(_actor(drawn, 1).play_round(SNAPSHOT))
    lengths = {int(one.design): int(one.length) for one in episodes if not one.dead_end}
    assert lengths
    for number, length in lengths.items():
        assert length == len(drawn.designs[number].placing_order)


class _SlowDesigns(DrawnDesigns):
    """Designs of which those after the first round are delivered once `go` is set."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.go, self.wanted = threading.Event(), threading.Event()

    def __getitem__(self, index: int) -> Design:  # type: ignore[override]
        if index >= ENVS // EPISODES_PER_DESIGN:
            self.wanted.set()
            assert self.go.wait(60)
        return super().__getitem__(index)


def test_an_actor_stops_while_its_next_designs_are_made(drawn: DrawnEnvironments) -> None:
    env = EnvConfig(soft_placer="none")
    slow = _SlowDesigns(SyntheticDesigns(macros=(3, 5), soft_macros=(1.0, 2.0)), env, kept=100)
    actor = _actor(dataclasses.replace(drawn, designs=slow, actors=1), 0)
    assert actor.play_round(SNAPSHOT)
    assert slow.wanted.wait(60)
    stop = threading.Event()
    stop.set()
    assert not actor.play_round(SNAPSHOT, stop.is_set)
    slow.go.set()
