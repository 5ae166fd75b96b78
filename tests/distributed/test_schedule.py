"""The bound on staleness, and named random splits."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from placement.distributed.schedule import EpisodeSchedule
from placement.distributed.seeds import Role, role_key, role_seed


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
    assert [schedule.take(4) for _ in versions] == versions


def test_a_group_larger_than_an_iteration_never_waits_for_itself() -> None:
    schedule = EpisodeSchedule(episodes_per_iteration=2, max_staleness=0)
    assert [schedule.take(5) for _ in range(3)] == [0, 2, 5]


def test_no_two_roles_draw_the_same() -> None:
    holders = [(role, index) for role in Role for index in range(3)]
    for seed in (0, 1):
        keys = {tuple(np.asarray(jax.random.key_data(role_key(seed, *holder)))) for holder in holders}
        seeds = {role_seed(seed, *holder) for holder in holders}
        assert len(keys) == len(seeds) == len(holders)
    assert role_seed(0, Role.ACTOR, 1) == role_seed(0, Role.ACTOR, 1) != role_seed(1, Role.ACTOR, 1)
