"""How many episodes an actor begins with each version."""

from __future__ import annotations

import numpy as np
import pytest

from placement.distributed.cluster.messages import Hunger
from placement.distributed.cluster.throttle import Purse, Throttle
from placement.distributed.schedule import ScheduleClosed
from placement.modelcache.store import MemoryStore


def _begun(purse: Purse, count: int) -> int:
    groups = 0
    while purse.pay(count):
        groups += 1
    return groups * count


def test_in_lock_step_each_version_brings_one_share() -> None:
    purse = Purse(episodes_per_iteration=32, max_staleness=0)
    assert not purse.pay(8)
    for version in (5, 6, 7):
        purse.version(version, actors=2)
        assert _begun(purse, 8) == 16
        purse.version(version, actors=2)  # the same one again brings nothing
        assert not purse.pay(8)


def test_a_group_that_reaches_into_the_next_share_is_carried_over() -> None:
    purse = Purse(episodes_per_iteration=48, max_staleness=0)
    begun = []
    for version in range(4):
        purse.version(version, actors=2)
        begun.append(_begun(purse, 16))
    assert begun == [32, 16, 32, 16]  # 24 a version on average


def test_staleness_gives_one_share_ahead_and_no_more() -> None:
    purse = Purse(episodes_per_iteration=10, max_staleness=1)
    purse.version(0, actors=1)
    assert _begun(purse, 1) == 20
    purse.version(1, actors=1)
    assert _begun(purse, 1) == 10
    purse.version(900, actors=1)  # a learner that was restarted counts on from elsewhere
    assert _begun(purse, 1) == 20


def test_shares_grow_when_actors_die() -> None:
    purse = Purse(episodes_per_iteration=12, max_staleness=0)
    purse.version(0, actors=3)
    assert _begun(purse, 2) == 4
    purse.version(1, actors=2)
    assert _begun(purse, 2) == 6


def test_hunger_is_stilled_once() -> None:
    purse = Purse(episodes_per_iteration=8, max_staleness=0)
    purse.version(0, actors=2)
    assert _begun(purse, 4) == 4
    purse.hunger(Hunger(1, 3), actors=2)
    purse.hunger(Hunger(1, 3), actors=2)
    assert _begun(purse, 4) == 4
    purse.hunger(Hunger(2, 0), actors=2)
    assert not purse.pay(4)


def test_the_throttle_gives_leave_with_new_versions_and_ends_when_closed() -> None:
    store = MemoryStore()
    purse = Purse(episodes_per_iteration=4, max_staleness=0)
    throttle = Throttle(store, purse, actors=lambda: 1, hunger=Hunger)
    with pytest.raises(TimeoutError, match="publish parameters"):
        throttle.begin(4, timeout=0.0)
    store.publish(3, {"w": np.zeros(1)})
    assert throttle.begin(4, timeout=5).version == 3
    with pytest.raises(TimeoutError, match="after version 3"):
        throttle.begin(4, timeout=0.0)
    store.publish(4, {"w": np.zeros(1)})
    assert throttle.begin(4, timeout=5).version == 4
    throttle.close()
    with pytest.raises(ScheduleClosed):
        throttle.begin(4, timeout=5)


def test_without_a_purse_nothing_is_waited_for() -> None:
    store = MemoryStore()
    store.publish(0, {"w": np.zeros(1)})
    throttle = Throttle(store, None, actors=lambda: 1, hunger=Hunger)
    assert [throttle.begin(4, timeout=0).version for _ in range(10)] == [0] * 10
