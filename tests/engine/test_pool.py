"""The synchronous pool: episodes, automatic reset, replay, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from placement.config import EnvConfig
from placement.engine.actions import IllegalAction
from placement.engine.costs import legality, proxy_cost
from placement.engine.observation import Observation
from placement.engine.pool import EnvironmentPool, Step
from placement.netlist.design import Design
from placement.testing.designs import Net, Node, NodeKind, build, four_macros, random_design, square_canvas

NONE = EnvConfig(soft_placer="none")


def playable(seed: int, **sizes: int) -> Design:
    """A random design on a grid fine enough to be played."""
    return random_design(seed, canvas=square_canvas(9, 7), **sizes)


def random_actions(generator: np.random.Generator, mask: np.ndarray) -> np.ndarray:
    """int32 [B]: a legal action of each environment, 0 where there is none."""
    flat = mask.reshape(len(mask), -1)
    return np.array([generator.choice(np.flatnonzero(row)) if row.any() else 0 for row in flat], np.int32)


def copied(step: Step) -> Step:
    return Step(Observation(*(array.copy() for array in step.observation)), *(array.copy() for array in step[1:]))


def play(pool: EnvironmentPool, calls: int, seed: int = 0) -> tuple[Observation, list[np.ndarray], list[Step]]:
    """The first observation, the actions and the steps of `calls` random calls."""
    generator = np.random.default_rng(seed)
    observation = pool.reset()
    first = Observation(*(array.copy() for array in observation))
    actions, steps = [], []
    for _ in range(calls):
        actions.append(random_actions(generator, observation.mask))
        steps.append(copied(pool.step(actions[-1])))
    return first, actions, steps


def dead_ending() -> Design:
    """Two macros of which the second finds no room once the first is in the middle."""
    nodes = [
        Node("port", NodeKind.PORT, 0.0, 5.0),
        Node("wide", NodeKind.HARD, 15.0, 15.0, 20.0, 12.0),
        Node("tall", NodeKind.HARD, 15.0, 15.0, 8.0, 28.0),
    ]
    return build("dead_ending", square_canvas(3, 3), nodes, [Net([("port", 0, 0), ("wide", 0, 0), ("tall", 0, 0)])])


def test_the_reward_is_minus_the_exact_cost_of_the_placement() -> None:
    pool = EnvironmentPool([four_macros()], 3)
    steps = play(pool, 3)[2]
    assert [list(step.terminated) for step in steps] == [[False] * 3, [False] * 3, [True] * 3]
    assert all((step.reward == 0).all() and np.isnan(step.costs).all() for step in steps[:2])
    for env in range(3):
        placement = pool.placement(env)
        costs = proxy_cost(four_macros(), placement)
        assert steps[-1].costs[env].tolist() == list(costs)
        assert steps[-1].reward[env] == np.float32(-costs.proxy_cost)
        assert legality(four_macros(), placement) == (0, 0)


def test_the_call_after_the_end_begins_the_next_episode() -> None:
    pool = EnvironmentPool([four_macros()], 2)
    first, _, steps = play(pool, 3)
    assert steps[-1].observation.step.tolist() == [3, 3]
    assert not steps[-1].observation.mask.any()
    again = pool.step(np.array([-5, 10**6], np.int32))  # ignored, whatever they are
    assert again.elapsed_step.tolist() == [0, 0]
    assert not again.terminated.any() and not again.reward.any() and np.isnan(again.costs).all()
    for name in Observation._fields:
        assert np.array_equal(getattr(again.observation, name), getattr(first, name)), name


def test_a_dead_end_pays_the_penalty() -> None:
    pool = EnvironmentPool([dead_ending()], 1, env=EnvConfig(dead_end_penalty=-7.0))
    pool.reset()
    step = pool.step(np.array([4], np.int32))
    assert (step.terminated[0], step.dead_end[0], step.reward[0]) == (True, True, -7.0)
    assert np.isnan(step.costs).all()
    assert step.observation.step[0] == 1 and not step.observation.mask.any()
    with pytest.raises(RuntimeError, match="has not placed all macros of 'dead_ending'"):
        pool.placement(0)


def test_a_replay_shows_what_was_seen() -> None:
    designs = [four_macros(), playable(1), playable(2, hard=12)]
    pool = EnvironmentPool(designs, 6, env=NONE)
    first, actions, steps = play(pool, 20, seed=3)
    seen = [first, *(step.observation for step in steps)]
    lengths = np.array([int(np.argmax([step.terminated[env] for step in steps])) + 1 for env in range(6)], np.int32)
    assert all(steps[length - 1].terminated[env] for env, length in enumerate(lengths))
    rendered = pool.render_episodes(np.array(pool.design_of_env, np.int32), np.stack(actions, axis=1), lengths)
    for env, length in enumerate(lengths):
        for name in Observation._fields:
            array = getattr(rendered, name)[env]
            expected = np.stack([getattr(observation, name)[env] for observation in seen[:length]])
            assert np.array_equal(array[:length], expected), name
            assert not array[length:].any(), name


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        (np.zeros(2, np.int64), TypeError, "dtype int32, not int64"),
        ([0, 0], TypeError, "dtype int32, not list"),
        (np.zeros(3, np.int32), ValueError, r"shape \[3\], expected \[2\]"),
        (np.zeros((2, 1), np.int32), ValueError, r"shape \[2, 1\], expected \[2\]"),
        (
            np.array([12, 25], np.int32),
            IllegalAction,
            "environment 1: action 25 .row 5, column 0.*'large'.*no gcell",
        ),
        (np.array([12, -1], np.int32), IllegalAction, "environment 1: action -1"),
        (np.array([12, 20], np.int32), IllegalAction, "environment 1: .*'large'.*beyond the canvas of 50 × 50 µm"),
        (np.array([4, 12], np.int32), IllegalAction, "environment 0: .*beyond the canvas"),
        (np.array([3, 12], np.int32), IllegalAction, "environment 0: .*overlap macro 'kept'"),
    ],
)
def test_a_refused_call_changes_nothing(actions, error, message) -> None:
    pool = EnvironmentPool([four_macros()], 2)
    before = [array.copy() for array in pool.reset()]
    with pytest.raises(error, match=message):
        pool.step(actions)
    step = pool.step(np.array([12, 12], np.int32))
    assert step.observation.step.tolist() == [1, 1]
    assert all(np.array_equal(a, b) for a, b in zip(before, pool.reset(), strict=True))


def test_a_step_before_the_first_reset_is_refused() -> None:
    with pytest.raises(RuntimeError, match="reset"):
        EnvironmentPool([four_macros()], 1).step(np.zeros(1, np.int32))
