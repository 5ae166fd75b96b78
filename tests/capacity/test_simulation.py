"""The discrete-event model compared with results computed by hand, and the planning command."""

from __future__ import annotations

import pytest

from placement.capacity import plan
from placement.capacity.plan import Fleet, simulate
from placement.capacity.simulation import CallbackThreads, Clock, Process, QueuedLink, SharedLink, TransferCosts

SHARED = TransferCosts(write_chunks=10)  # episodes share a link


def _ends(link: SharedLink | QueuedLink, clock: Clock, transfers: list[tuple[float, float]]) -> list[float]:
    """Returns the end times of transfers (begin, megabytes)."""
    ends = [0.0] * len(transfers)

    def one(number: int, begin: float, megabytes: float) -> Process:
        yield begin
        yield link.send(megabytes)
        ends[number] = clock.now

    for number, (begin, megabytes) in enumerate(transfers):
        clock.start(one(number, begin, megabytes))
    clock.run(1e9)
    return ends


def test_transfers_share_a_link_equally() -> None:
    clock = Clock()
    link = SharedLink(clock, 8.0)  # 1 MB/s
    # Alone for a second, then with one other, then with two: shares of 1, 1/2, 1/3.
    assert _ends(link, clock, [(0, 3), (1, 1), (2, 2)]) == pytest.approx([5.5, 3.5, 6.0])


def test_chunks_pass_a_queue_in_order() -> None:
    clock = Clock()
    whole = QueuedLink(clock, 8.0, TransferCosts())  # 1 MB/s, and each transfer is one chunk
    assert _ends(whole, clock, [(0, 3), (1, 1), (2, 2)]) == pytest.approx([3.0, 4.0, 6.0])
    clock = Clock()
    chunked = QueuedLink(clock, 8.0, TransferCosts(write_chunks=3))  # A, A, B, C, A, B, C, B, C
    assert _ends(chunked, clock, [(0, 3), (1.5, 1), (1.7, 2)]) == pytest.approx([4.0, 16 / 3, 6.0])


def test_small_chunks_are_equal_shares() -> None:
    clock = Clock()
    link = QueuedLink(clock, 8.0, TransferCosts(write_chunks=50))
    assert _ends(link, clock, [(0, 2), (1, 2), (6, 2), (6, 2)]) == pytest.approx([3.0, 4.0, 10.0, 10.0], abs=0.1)


def test_a_burst_passes_at_once_and_fills_again_while_the_link_is_idle() -> None:
    clock = Clock()
    link = QueuedLink(clock, 8.0, TransferCosts(), burst=1.0)
    assert _ends(link, clock, [(0, 1.5), (0.6, 0.5), (10, 2)]) == pytest.approx([0.5, 1.0, 11.0])


def test_goodput_slows_a_link() -> None:
    clock = Clock()
    assert _ends(SharedLink(clock, 8.0, goodput=0.5), clock, [(0, 1)]) == pytest.approx([2.0])


def test_further_transfers_slow_a_link_as_much_as_crowding_says() -> None:
    clock = Clock()
    link = QueuedLink(clock, 8.0, TransferCosts(write_crowding=0.25))
    # The first starts alone; with two more, a transfer takes 1 + 0.25 · 2² times as long.
    assert _ends(link, clock, [(0, 1), (0.1, 1), (0.2, 1)]) == pytest.approx([1.0, 2.25, 3.25])
    clock = Clock()
    link = QueuedLink(clock, 8.0, TransferCosts(write_crowding=0.25))
    assert _ends(link, clock, [(0, 1), (0, 1), (0, 1), (0, 1)]) == pytest.approx([1.0, 3.0, 4.25, 5.25])


def test_a_confirmation_waits_for_threads_that_sleep_after_a_second_without_an_event() -> None:
    clock = Clock()
    threads, link, ends = CallbackThreads(clock), QueuedLink(clock, 8.0, TransferCosts()), []

    def writer(begins: list[tuple[float, float]]) -> Process:
        for begin, megabytes in begins:
            yield begin - clock.now
            yield from threads.write(0.01, link.send(megabytes))
            ends.append(clock.now)

    # Asleep from 1.0 to 1.1; awake after half a second; asleep 1.0 to 1.1 and 2.1 to 2.2 after the last event. A
    # transfer that takes longer than the sleep is not delayed.
    clock.start(writer([(1.05, 0.0), (1.6, 0.0), (2.63, 0.0), (4.86, 0.0), (6.0, 0.0), (7.05, 0.5)]))
    clock.run(1e9)
    assert ends == pytest.approx([1.1, 1.61, 2.71, 4.91, 6.01, 7.56])


def test_a_fleet_on_links_without_limit_is_as_fast_as_its_learner_and_actors() -> None:
    quick = Fleet(actors=8, megabits=1e9, round_seconds=10.0, learn_seconds=20.0)
    found = simulate(quick, TransferCosts())
    assert found.iteration == pytest.approx(20.0, rel=1e-3) and found.idle < 1e-3
    slow = Fleet(actors=8, megabits=1e9, round_seconds=20.0, learn_seconds=5.0, max_staleness=0)
    found = simulate(slow, TransferCosts())  # cycles: the slowest of eight rounds, then learning
    assert 25.0 < found.iteration < 27.0
    assert found.idle == pytest.approx(1 - 5.0 / found.iteration)


def test_the_seed_decides_all() -> None:
    fleet = Fleet(actors=16, episode_mb=1.0, megabits=100.0)
    assert (
        simulate(fleet, TransferCosts(), seed=3)
        == simulate(fleet, TransferCosts(), seed=3)
        != simulate(fleet, TransferCosts(), seed=4)
    )


def test_the_plan_is_as_good_as_plenty_and_no_larger_than_needed() -> None:
    config = plan.PlanConfig(actors=64, model_mb=100.0, episode_mb=10.0, megabits=1000.0)
    fleet, found = plan.recommend(config, costs=SHARED)
    assert fleet.caches >= 1 and fleet.shards >= 2
    plenty = simulate(config.fleet(caches=16, shards=16), SHARED, iterations=plan.ITERATIONS).iteration
    assert found.iteration <= plenty * (1 + plan.SLACK)
    fewer = config.fleet(caches=fleet.caches, shards=fleet.shards // 2)
    assert simulate(fewer, SHARED, iterations=plan.ITERATIONS).iteration > plenty * (1 + plan.SLACK)


def test_small_runs_need_nothing() -> None:
    fleet, _ = plan.recommend(plan.PlanConfig(actors=2, model_mb=1.0))
    assert (fleet.caches, fleet.shards) == (0, 1)


def test_what_is_given_is_kept() -> None:
    fleet, _ = plan.recommend(plan.PlanConfig(actors=8, caches=3, shards=2))
    assert (fleet.caches, fleet.shards) == (3, 2)
