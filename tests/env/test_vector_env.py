"""The pool as a Gymnasium vector environment: spaces, automatic reset, equality with Gymnasium's own vectorisation."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from placement.engine.costs import compute_costs
from placement.engine.state import IllegalAction
from placement.env.gym_env import PlacementEnv
from placement.env.vector_env import PlacementVectorEnv
from tests.support.designs import four_macros, random_design, square_canvas


def other():
    return random_design(3, canvas=square_canvas(9, 7))


def test_spaces_hold_what_comes_and_goes() -> None:
    envs = PlacementVectorEnv([four_macros(), other()], 4, num_threads=2)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    observation, _ = envs.reset(seed=1)
    envs.action_space.seed(0)
    for _ in range(20):
        assert envs.observation_space.contains(observation)
        actions = envs.action_space.sample()
        assert envs.action_space.contains(actions)
        observation, reward, terminated, truncated, _ = envs.step(actions)
        assert [array.shape for array in (reward, terminated, truncated)] == [(4,)] * 3
    single = {name: array[1] for name, array in observation.items()}
    assert envs.single_observation_space.contains(single)
    envs.close()
    with pytest.raises(RuntimeError, match="closed"):
        envs.step(actions)


def test_it_steps_as_gymnasiums_own_vectorisation_does() -> None:
    design = four_macros()
    ours, theirs = PlacementVectorEnv(design, 3, num_threads=2), SyncVectorEnv([lambda: PlacementEnv(design)] * 3)
    left, right = ours.reset(seed=3), theirs.reset(seed=3)
    for turn in range(12):
        for name, array in right[0].items():
            assert np.array_equal(left[0][name], array), name
        assert np.array_equal(left[-1]["action_mask"], right[-1]["action_mask"])
        if turn:
            for a, b in zip(left[1:4], right[1:4], strict=True):
                assert np.array_equal(a, b.astype(a.dtype))
            assert ("costs" in left[-1]) == ("costs" in right[-1])
            for name, array in right[-1].get("costs", {}).items():
                assert np.array_equal(left[-1]["costs"][name], array), name
        actions = ours.action_space.sample()
        left, right = ours.step(actions), theirs.step(actions)
    ours.close(), theirs.close()


def test_results_are_the_callers() -> None:
    envs = PlacementVectorEnv(other(), 2, num_threads=1)
    first = envs.reset()[0]
    kept = {name: array.copy() for name, array in first.items()}
    for _ in range(5):
        envs.step(envs.action_space.sample())
    assert all(np.array_equal(first[name], kept[name]) for name in kept)
    envs.close()


def test_some_may_be_reset_alone() -> None:
    envs = PlacementVectorEnv(other(), 3, num_threads=1)
    envs.reset()
    envs.step(envs.action_space.sample())
    observation, info = envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert observation["step"].tolist() == [1, 0, 1] and info["elapsed_step"].tolist() == [1, 0, 1]
    for wrong in (np.array([False] * 3), np.array([True]), [True, False, False]):
        with pytest.raises(ValueError, match="reset_mask"):
            envs.reset(options={"reset_mask": wrong})
    envs.close()


def test_rejected_actions_leave_it_usable() -> None:
    envs = PlacementVectorEnv(four_macros(), 2, num_threads=1)
    envs.reset()
    for actions, error in (
        (np.array([12, 2**40]), IllegalAction),
        (np.array([12, -1]), IllegalAction),
        (np.array([12.0, 12.0]), TypeError),
        (np.array([12]), ValueError),
    ):
        with pytest.raises(error):
            envs.step(actions)
    assert envs.step(np.array([12, 12]))[0]["step"].tolist() == [1, 1]
    envs.close()


def test_it_can_be_created_by_id_and_wrapped() -> None:
    envs = gymnasium.make_vec("MacroPlacement-v0", num_envs=2, design=four_macros())
    assert isinstance(envs, PlacementVectorEnv)
    wrapped = RecordEpisodeStatistics(envs)
    wrapped.reset(seed=0)
    for _ in range(3):
        result = wrapped.step(envs.action_space.sample())
    assert result[2].all()
    expected = [-compute_costs(four_macros(), envs.unwrapped.pool.placement(env)).total for env in range(2)]
    np.testing.assert_allclose(result[4]["episode"]["r"], expected, rtol=1e-6)
    wrapped.close()


def test_gymnasiums_own_vectorisation_can_be_selected() -> None:
    envs = gymnasium.make_vec("MacroPlacement-v0", num_envs=2, vectorization_mode="sync", design="toy6")
    assert isinstance(envs, SyncVectorEnv)
    assert envs.reset(seed=0)[0]["step"].tolist() == [0, 0]
    envs.close()
