"""The bound on staleness, and named random splits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

from placement.training.actor import EpisodeSchedule, ScheduleClosed, Ticket
from placement.utils.seeds import SeedRole, role_key, role_seed

LONG = 90.0


@pytest.mark.parametrize(
    ("staleness", "iteration", "versions"),
    [
        (0, 0, [0, 0, 1, 1, 2, 2]),
        (1, 0, [0, 0, 0, 0, 1, 1]),
        (2, 0, [0, 0, 0, 0, 0, 0]),
        (0, 5, [5, 5, 6, 6, 7, 7]),
        (1, 5, [4, 4, 5, 5, 6, 6]),
    ],
)
def test_versions_needed(staleness: int, iteration: int, versions: list[int]) -> None:
    schedule = EpisodeSchedule(episodes_per_iteration=8, max_staleness=staleness, iteration=iteration)
    assert [_ticket(schedule, 4).version for _ in versions] == versions


def _ticket(schedule: EpisodeSchedule, count: int) -> Ticket:
    ticket = schedule.begin(count, timeout=LONG)
    schedule.finish(ticket)
    return ticket


def test_a_group_larger_than_an_iteration_never_waits_for_itself() -> None:
    schedule = EpisodeSchedule(episodes_per_iteration=2, max_staleness=0)
    assert [_ticket(schedule, 5).version for _ in range(3)] == [0, 2, 5]


def test_a_later_iteration_is_not_begun_before_the_earlier_one_is_written() -> None:
    schedule = EpisodeSchedule(episodes_per_iteration=8, max_staleness=1)
    slow, fast = (schedule.begin(4, timeout=LONG) for _ in range(2))
    assert slow == fast == (0, 0)
    schedule.finish(fast)
    with pytest.raises(TimeoutError, match=r"MainThread waited 0\.05 s for other actors.*iteration 0, .*iteration 1"):
        schedule.begin(4, timeout=0.05)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(schedule.begin, 4, timeout=LONG)
        schedule.finish(slow)
        assert waiting.result(LONG) == (1, 0)
        schedule.begin(4, timeout=LONG)
        waiting = threads.submit(schedule.begin, 4, timeout=LONG)
        schedule.close()
        with pytest.raises(ScheduleClosed):
            waiting.result(LONG)


def test_no_two_roles_draw_the_same() -> None:
    holders = [(role, index) for role in SeedRole for index in range(3)]
    for seed in (0, 1):
        keys = {tuple(np.asarray(jax.random.key_data(role_key(seed, *holder)))) for holder in holders}
        seeds = {role_seed(seed, *holder) for holder in holders}
        assert len(keys) == len(seeds) == len(holders)
    assert role_seed(0, SeedRole.ACTOR, 1) == role_seed(0, SeedRole.ACTOR, 1) != role_seed(1, SeedRole.ACTOR, 1)
