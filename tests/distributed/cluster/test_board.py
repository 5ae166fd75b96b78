"""The board: addresses, reports, orders."""

from __future__ import annotations

import dataclasses
import math

import pytest

from placement.distributed.cluster.board import Board, summarise
from placement.distributed.cluster.messages import Hunger, Meeting, Place, Report, RoleName, Who

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
def board(clock: Clock) -> Board:
    return Board(shards=2, caches=1, report_seconds=1.0, clock=clock)


def _report(who: Who, address: str = "", **measures: float) -> Report:
    return Report(who, 1, "here", 7, address, ready=True, measures=measures)


def test_addresses_stand_at_their_numbers_and_are_told_once(board: Board) -> None:
    first = board.report(_report(SHARD, "a:1"), -1)
    assert first.shards == (Place(), Place("a:1", "here")) and first.caches == (Place(),)
    again = board.report(_report(SHARD, "a:1"), first.edition)
    assert again.edition == first.edition and again.shards is None and again.caches is None
    other = board.report(_report(CACHE, "c:1"), first.edition)
    assert other.edition > first.edition and other.shards == first.shards and other.caches == (Place("c:1", "here"),)


def test_who_died_or_fell_silent_has_no_address(board: Board, clock: Clock) -> None:
    for who, address in ((SHARD, "a:1"), (CACHE, "c:1"), (LEARNER, "l:1")):
        board.report(_report(who, address), -1)
    board.forget(SHARD)
    orders = board.report(_report(LEARNER, "l:1"), -1)
    assert orders.shards == (Place(), Place()) and orders.root == Place("l:1", "here")
    clock.now = 9.0
    board.report(_report(LEARNER, "l:1"), -1)
    clock.now = 11.0
    orders = board.report(_report(LEARNER, "l:1"), -1)
    assert orders.caches == (Place(),) and orders.root.address == "l:1"


def test_a_board_that_died_is_filled_again_by_reports(board: Board, clock: Clock) -> None:
    before = board.report(_report(SHARD, "a:1"), -1)
    anew = Board(shards=2, caches=1, report_seconds=1.0, clock=clock)
    orders = anew.report(_report(SHARD, "a:1"), before.edition)
    assert orders.edition != before.edition and orders.shards == before.shards


def test_orders_carry_who_lives_who_starves_and_the_end(board: Board) -> None:
    for number in range(3):
        orders = board.report(_report(Who(RoleName.ACTOR, number)), -1)
    assert orders.actors == 3 and not orders.stop and orders.hunger == Hunger()
    board.forget(Who(RoleName.ACTOR, 1))
    board.hungry(Hunger(4, 5))
    board.stop()
    orders = board.report(_report(Who(RoleName.ACTOR, 0)), -1)
    assert orders.actors == 2 and orders.stop and orders.hunger == Hunger(4, 5)


def test_only_the_learner_gets_the_summary_with_the_restarts(board: Board) -> None:
    board.restarts({"actor_restarts": 2.0})
    assert board.report(_report(Who(RoleName.ACTOR, 0), rate=3.0), -1).summary == {}
    summary = board.report(_report(LEARNER), -1).summary
    assert summary["actors"] == 1 and summary["actor_rate"] == 3 and summary["actor_restarts"] == 2


def test_rows_and_notes_are_shown_once(board: Board) -> None:
    board.row({"iteration": 1.0})
    board.note("hello")
    view = board.view()
    assert view.rows == ({"iteration": 1.0},) and view.notes == ("hello",)
    assert board.view().rows == () and board.view().notes == ()


def test_measures_are_added_averaged_or_the_worst_of_all() -> None:
    reports = [
        _report(Who(RoleName.ACTOR, 0), episodes_per_second=1.0, read_ms_mean=2.0, read_ms_p99=5.0),
        _report(Who(RoleName.ACTOR, 1), episodes_per_second=2.0, read_ms_mean=4.0, read_ms_p99=math.nan),
    ]
    summary = summarise(reports)
    assert summary == {
        "actors": 2.0,
        "actor_episodes_per_second": 3.0,
        "actor_read_ms_mean": 3.0,
        "actor_read_ms_p99": 5.0,
    }


def test_each_learner_host_has_actors_and_hunger_of_its_own(clock: Clock) -> None:
    board = Board(shards=2, caches=0, learners=2, report_seconds=1.0, clock=clock)
    for number in range(3):
        board.report(_report(Who(RoleName.ACTOR, number)), -1)
    board.hungry(Hunger(1, 5), 1)
    first, second = (board.report(_report(Who(RoleName.ACTOR, number)), -1) for number in range(2))
    assert (first.actors, first.hunger) == (2, Hunger()) and (second.actors, second.hunger) == (1, Hunger(1, 5))


def test_learner_hosts_are_told_where_they_meet(board: Board) -> None:
    second = Who(RoleName.LEARNER, 1)
    assert (str(LEARNER), str(second)) == ("learner", "learner 1")
    assert board.report(_report(second), -1).meeting == Meeting()
    asked = dataclasses.replace(_report(LEARNER), meeting=Meeting(2, "a:7"))
    assert board.report(asked, -1).meeting == board.report(_report(second), -1).meeting == Meeting(2, "a:7")
    board.forget(LEARNER)
    assert board.report(_report(second), -1).meeting == Meeting()
