"""The coordinator: addresses, reports, reply."""

from __future__ import annotations

import dataclasses
import math

import pytest

from placement.runtimes.ray.coordinator import Coordinator
from placement.runtimes.ray.messages import Heartbeat, Rendezvous, RoleName, ServerLocation, Shortfall, Who
from placement.runtimes.ray.telemetry import summarise

SHARD, CACHE, LEARNER = Who(RoleName.SHARD, 1), Who(RoleName.CACHE, 0), Who(RoleName.LEARNER, 0)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def coordinator(clock: Clock) -> Coordinator:
    return Coordinator(shards=2, caches=1, heartbeat_seconds=1.0, clock=clock)


def _heartbeat(who: Who, address: str = "", **measures: float) -> Heartbeat:
    return Heartbeat(who, 1, "here", 7, address, ready=True, measures=measures)


def test_addresses_are_indexed_by_number_and_sent_once(coordinator: Coordinator) -> None:
    first = coordinator.heartbeat(_heartbeat(SHARD, "a:1"), -1)
    assert first.shards == (ServerLocation(), ServerLocation("a:1", "here")) and first.caches == (ServerLocation(),)
    again = coordinator.heartbeat(_heartbeat(SHARD, "a:1"), first.edition)
    assert again.edition == first.edition and again.shards is None and again.caches is None
    other = coordinator.heartbeat(_heartbeat(CACHE, "c:1"), first.edition)
    assert (
        other.edition > first.edition
        and other.shards == first.shards
        and other.caches == (ServerLocation("c:1", "here"),)
    )


def test_who_died_or_fell_silent_has_no_address(coordinator: Coordinator, clock: Clock) -> None:
    for who, address in ((SHARD, "a:1"), (CACHE, "c:1"), (LEARNER, "l:1")):
        coordinator.heartbeat(_heartbeat(who, address), -1)
    coordinator.forget(SHARD)
    reply = coordinator.heartbeat(_heartbeat(LEARNER, "l:1"), -1)
    assert reply.shards == (ServerLocation(), ServerLocation()) and reply.root == ServerLocation("l:1", "here")
    clock.now = 9.0
    coordinator.heartbeat(_heartbeat(LEARNER, "l:1"), -1)
    clock.now = 11.0
    reply = coordinator.heartbeat(_heartbeat(LEARNER, "l:1"), -1)
    assert reply.caches == (ServerLocation(),) and reply.root.address == "l:1"


def test_a_board_that_died_is_filled_again_by_reports(coordinator: Coordinator, clock: Clock) -> None:
    before = coordinator.heartbeat(_heartbeat(SHARD, "a:1"), -1)
    anew = Coordinator(shards=2, caches=1, heartbeat_seconds=1.0, clock=clock)
    reply = anew.heartbeat(_heartbeat(SHARD, "a:1"), before.edition)
    assert reply.edition != before.edition and reply.shards == before.shards


def test_orders_carry_who_lives_who_starves_and_the_end(coordinator: Coordinator) -> None:
    for number in range(3):
        reply = coordinator.heartbeat(_heartbeat(Who(RoleName.ACTOR, number)), -1)
    assert reply.actors == 3 and not reply.stop and reply.shortfall == Shortfall()
    coordinator.forget(Who(RoleName.ACTOR, 1))
    coordinator.report_shortfall(Shortfall(4, 5))
    coordinator.stop()
    reply = coordinator.heartbeat(_heartbeat(Who(RoleName.ACTOR, 0)), -1)
    assert reply.actors == 2 and reply.stop and reply.shortfall == Shortfall(4, 5)


def test_only_the_learner_gets_the_summary_with_the_restarts(coordinator: Coordinator) -> None:
    coordinator.restarts({"actor_restarts": 2.0})
    assert coordinator.heartbeat(_heartbeat(Who(RoleName.ACTOR, 0), rate=3.0), -1).summary == {}
    summary = coordinator.heartbeat(_heartbeat(LEARNER), -1).summary
    assert summary["actors"] == 1 and summary["actor_rate"] == 3 and summary["actor_restarts"] == 2


def test_rows_and_notes_are_shown_once(coordinator: Coordinator) -> None:
    coordinator.row({"iteration": 1.0})
    coordinator.note("hello")
    view = coordinator.view()
    assert view.rows == ({"iteration": 1.0},) and view.notes == ("hello",)
    assert coordinator.view().rows == () and coordinator.view().notes == ()


def test_measures_are_added_averaged_or_the_worst_of_all() -> None:
    reports = [
        _heartbeat(Who(RoleName.ACTOR, 0), episodes_per_second=1.0, read_ms_mean=2.0, read_ms_p99=5.0),
        _heartbeat(Who(RoleName.ACTOR, 1), episodes_per_second=2.0, read_ms_mean=4.0, read_ms_p99=math.nan),
    ]
    summary = summarise(reports)
    assert summary == {
        "actors": 2.0,
        "actor_episodes_per_second": 3.0,
        "actor_read_ms_mean": 3.0,
        "actor_read_ms_p99": 5.0,
    }


def test_each_learner_host_has_actors_and_hunger_of_its_own(clock: Clock) -> None:
    coordinator = Coordinator(shards=2, caches=0, learners=2, heartbeat_seconds=1.0, clock=clock)
    for number in range(3):
        coordinator.heartbeat(_heartbeat(Who(RoleName.ACTOR, number)), -1)
    coordinator.report_shortfall(Shortfall(1, 5), 1)
    first, second = (coordinator.heartbeat(_heartbeat(Who(RoleName.ACTOR, number)), -1) for number in range(2))
    assert (first.actors, first.shortfall) == (2, Shortfall()) and (second.actors, second.shortfall) == (
        1,
        Shortfall(1, 5),
    )


def test_learner_hosts_receive_the_rendezvous(coordinator: Coordinator) -> None:
    second = Who(RoleName.LEARNER, 1)
    assert (str(LEARNER), str(second)) == ("learner", "learner 1")
    assert coordinator.heartbeat(_heartbeat(second), -1).rendezvous == Rendezvous()
    requested = dataclasses.replace(_heartbeat(LEARNER), rendezvous=Rendezvous(2, "a:7"))
    assert (
        coordinator.heartbeat(requested, -1).rendezvous
        == coordinator.heartbeat(_heartbeat(second), -1).rendezvous
        == Rendezvous(2, "a:7")
    )
    coordinator.forget(LEARNER)
    assert coordinator.heartbeat(_heartbeat(second), -1).rendezvous == Rendezvous()
