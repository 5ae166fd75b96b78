"""Episode credits: how many episodes an actor begins with each version."""

from __future__ import annotations

import numpy as np
import pytest

from placement.modelcache.store import MemoryStore
from placement.runtimes.ray.episode_credits import CreditedSchedule, EpisodeCredits
from placement.runtimes.ray.messages import Shortfall
from placement.training.actor import ScheduleClosed


def _begun(credits: EpisodeCredits, count: int) -> int:
    groups = 0
    while credits.take(count):
        groups += 1
    return groups * count


def test_in_lock_step_each_version_brings_one_share() -> None:
    credits = EpisodeCredits(episodes_per_iteration=32, max_staleness=0)
    assert not credits.take(8)
    for version in (5, 6, 7):
        credits.version(version, actors=2)
        assert _begun(credits, 8) == 16
        credits.version(version, actors=2)  # a repeated version adds nothing
        assert not credits.take(8)


def test_a_group_that_reaches_into_the_next_share_is_carried_over() -> None:
    credits = EpisodeCredits(episodes_per_iteration=48, max_staleness=0)
    begun = []
    for version in range(4):
        credits.version(version, actors=2)
        begun.append(_begun(credits, 16))
    assert begun == [32, 16, 32, 16]  # 24 per version on average


def test_staleness_gives_one_share_ahead_and_no_more() -> None:
    credits = EpisodeCredits(episodes_per_iteration=10, max_staleness=1)
    credits.version(0, actors=1)
    assert _begun(credits, 1) == 20
    credits.version(1, actors=1)
    assert _begun(credits, 1) == 10
    credits.version(900, actors=1)  # a restarted learner continues with another number
    assert _begun(credits, 1) == 20


def test_shares_grow_when_actors_die() -> None:
    credits = EpisodeCredits(episodes_per_iteration=12, max_staleness=0)
    credits.version(0, actors=3)
    assert _begun(credits, 2) == 4
    credits.version(1, actors=2)
    assert _begun(credits, 2) == 6


def test_hunger_is_stilled_once() -> None:
    credits = EpisodeCredits(episodes_per_iteration=8, max_staleness=0)
    credits.version(0, actors=2)
    assert _begun(credits, 4) == 4
    credits.shortfall(Shortfall(1, 3), actors=2)
    credits.shortfall(Shortfall(1, 3), actors=2)
    assert _begun(credits, 4) == 4
    credits.shortfall(Shortfall(2, 0), actors=2)
    assert not credits.take(4)


def test_new_versions_grant_credits_and_ends_when_closed() -> None:
    store = MemoryStore()
    credits = EpisodeCredits(episodes_per_iteration=4, max_staleness=0)
    schedule = CreditedSchedule(store, credits, actors=lambda: 1, shortfall=Shortfall)
    with pytest.raises(TimeoutError, match="publish parameters"):
        schedule.begin(4, timeout=0.0)
    store.publish(3, {"w": np.zeros(1)})
    assert schedule.begin(4, timeout=5).version == 3
    with pytest.raises(TimeoutError, match="after version 3"):
        schedule.begin(4, timeout=0.0)
    store.publish(4, {"w": np.zeros(1)})
    assert schedule.begin(4, timeout=5).version == 4
    schedule.close()
    with pytest.raises(ScheduleClosed):
        schedule.begin(4, timeout=5)


def test_without_credits_nothing_is_waited_for() -> None:
    store = MemoryStore()
    store.publish(0, {"w": np.zeros(1)})
    schedule = CreditedSchedule(store, None, actors=lambda: 1, shortfall=Shortfall)
    assert [schedule.begin(4, timeout=0).version for _ in range(10)] == [0] * 10
