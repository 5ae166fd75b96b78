"""The Gymnasium environment: Gymnasium's own checks, determinism, info, errors, and equality with the pool."""

from __future__ import annotations

import dataclasses

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from placement.config import EnvConfig
from placement.engine.costs import Costs, compute_costs, legality
from placement.engine.pool import make_pool
from placement.engine.state import PlacementState
from placement.env.gym_env import PlacementEnv
from placement.netlist.constraints import SnapGrid
from placement.netlist.design import Orientation
from tests.support.constrained_designs import constrained
from tests.support.designs import Net, Node, NodeKind, build, four_macros, random_design, square_canvas


def playable(seed: int):
    return random_design(seed, canvas=square_canvas(9, 7))


def play(env: PlacementEnv, seed: int) -> list:
    """Plays one episode of sampled actions; returns all results."""
    observation, info = env.reset(seed=seed)
    env.action_space.seed(seed)
    seen: list = [(observation, info)]
    terminated = False
    while not terminated:
        action = env.action_space.sample()
        result = env.step(action)
        terminated = result[2]
        seen.append((action, *result))
    return seen


def assert_same(a, b) -> None:
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            assert_same(left, right)
    else:
        assert np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype


@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
def test_gymnasium_finds_nothing_to_say(render_mode) -> None:
    for _ in range(5):  # the checker's first step is not seeded
        check_env(PlacementEnv(four_macros(), render_mode=render_mode))
    check_env(PlacementEnv(playable(4), config=EnvConfig(soft_placer="none"), render_mode=render_mode))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("identity", ["MacroPlacement-v0", "placement:MacroPlacement-v0"])
def test_it_can_be_created_by_id(identity) -> None:
    env = gymnasium.make(identity, design="toy6", render_mode="rgb_array")
    check_env(env.unwrapped)
    _, info = env.reset(seed=1)  # through the wrappers of `make`, which check every step
    ended = False
    while not ended:
        _, _, ended, _, info = env.step(env.action_space.sample(info["action_mask"]))
    assert env.spec is not None and env.spec.kwargs["design"] == "toy6"
    env.close()


def test_the_same_seed_gives_the_same_episode_bit_by_bit() -> None:
    assert_same(play(PlacementEnv(playable(1)), 5), play(PlacementEnv(playable(1)), 5))


def test_the_end_tells_the_cost_and_its_parts() -> None:
    env = PlacementEnv(four_macros())
    seen = play(env, 0)
    assert [step[2] for step in seen[1:-1]] == [0.0, 0.0]
    assert all("costs" not in step[5] for step in seen[1:-1])
    costs = compute_costs(env.design, env.placement)
    assert seen[-1][5]["costs"] == dict(zip(Costs._fields, costs, strict=True))
    assert seen[-1][2] == np.float32(-costs.total)
    assert legality(env.design, env.placement) == (0, 0)


def test_the_placement_grows_macro_by_macro() -> None:
    env = PlacementEnv(four_macros())
    env.reset()
    order = env.design.placing_order
    soft = env.design.netlist.soft
    assert not env.placement.placed[order].any() and not env.placement.placed[soft].any()
    env.step(12)
    placement = env.placement
    assert placement.placed[order].tolist() == [True, False, False]
    assert (placement.x[order[0]], placement.y[order[0]]) == (25.0, 25.0)
    assert placement.placed[env.design.initial.fixed].all()


def test_macros_are_turned_as_they_may_be() -> None:
    design = four_macros()
    only_s = np.full(design.netlist.num_nodes, 1 << Orientation.S)
    env = PlacementEnv(constrained(design, orientations=only_s))
    movable = env.design.placing_order
    env.reset()
    assert (env.placement.orientation[movable] == Orientation.S).all()


@pytest.mark.parametrize("pitch", [9000.0, 1.1e-4])
def test_a_growing_placement_is_on_the_engines_grid_lines(pitch: float) -> None:
    """On a coarse grid macros leave the gcell's column; on a fine one a large canvas exceeds float32's precision."""
    plain = four_macros()
    large = dataclasses.replace(plain, canvas=dataclasses.replace(plain.canvas, width=40_000.0, height=40_000.0))
    design = constrained(large, grid=SnapGrid(pitch, pitch, 0.3 * pitch, 0.0))
    env, state = PlacementEnv(design), PlacementState(design)
    _, info = env.reset()
    for step in range(len(design.placing_order)):
        legal = np.flatnonzero(info["action_mask"])
        action = int(legal[len(legal) // 2])
        _, _, ended, _, info = env.step(action)
        state.place(*divmod(action, design.canvas.columns))
        nodes = design.placing_order[: step + 1]
        found = np.stack([env.placement.x[nodes], env.placement.y[nodes]], axis=1)
        np.testing.assert_allclose(found, state.centres(), rtol=0, atol=1e-9)
        if ended:
            break


def test_an_illegal_action_names_macro_gcell_and_reason() -> None:
    env = PlacementEnv(four_macros())
    env.reset()
    with pytest.raises(ValueError, match=r"action 20 \(row 4, column 0\) for macro 'large'.*beyond the canvas"):
        env.step(20)
    with pytest.raises(ValueError, match=r"action 25: must be in \[0, 25\)"):
        env.step(25)
    with pytest.raises(TypeError):
        env.step(1.5)  # type: ignore[arg-type]
    assert env.step(12)[0]["step"] == 1
    with pytest.raises(ValueError, match=r"for macro 'middle'.*overlap macro 'large'"):
        env.step(12)


def test_a_dead_end_says_why() -> None:
    nodes = [
        Node("port", NodeKind.PORT, 0.0, 5.0),
        Node("wide", NodeKind.HARD, 15.0, 15.0, 20.0, 12.0),
        Node("tall", NodeKind.HARD, 15.0, 15.0, 8.0, 28.0),
    ]
    design = build("dead_ending", square_canvas(3, 3), nodes, [Net([("port", 0, 0), ("wide", 0, 0)])])
    env = PlacementEnv(design, config=EnvConfig(dead_end_penalty=-2.5))
    env.reset()
    observation, reward, terminated, truncated, info = env.step(4)
    assert (reward, terminated, truncated) == (-2.5, True, False)
    assert info["reason"] == "macro 'tall' has no legal gcell left; 1 of 2 macros were placed"
    assert not observation["mask"].any() and not info["action_mask"].any()
    with pytest.raises(RuntimeError, match="ended"):
        env.step(4)


def test_a_pool_of_padded_designs_equals_single_environments() -> None:
    designs = [four_macros(), playable(3), random_design(8, hard=3, canvas=square_canvas(4, 11))]
    pool = make_pool(designs, 3)
    envs = [PlacementEnv(design) for design in designs]
    generator = np.random.default_rng(0)
    observation, _ = pool.reset()
    singles = [env.reset()[0] for env in envs]
    ended = [False] * 3
    for _ in range(30):
        for index, env in enumerate(envs):
            assert_padded(observation, index, singles[index])
            if ended[index]:
                singles[index], ended[index] = env.reset()[0], None
        legal = observation["mask"].reshape(3, -1)
        actions = np.array([generator.choice(np.flatnonzero(row)) if row.any() else 0 for row in legal], np.int32)
        observation, reward, terminated, _, info = pool.step(actions)
        for index, env in enumerate(envs):
            if ended[index] is None:
                assert info["elapsed_step"][index] == 0 and reward[index] == 0
                ended[index] = False
                continue
            row, column = divmod(int(actions[index]), pool.spec.columns)
            result = env.step(row * env.design.canvas.columns + column)
            singles[index], ended[index] = result[0], result[2]
            assert result[1] == reward[index] and result[2] == terminated[index]


def assert_padded(observation: dict, index: int, single: dict) -> None:
    """Checks that one row of a padded batch equals a single environment's observation and is zero beyond it."""
    rows, columns = single["mask"].shape
    for name in ("mask", "maps"):
        array = observation[name][index]
        assert np.array_equal(array[..., :rows, :columns], single[name])
        assert not array[..., rows:, :].any() and not array[..., columns:].any()
    for name in ("x", "y"):
        array = observation[name][index]
        assert np.array_equal(array[: len(single[name])], single[name]) and not array[len(single[name]) :].any()
    assert observation["step"][index] == single["step"]


@pytest.mark.parametrize("seed", range(3))
def test_partial_placements_off_the_grid_are_where_the_engine_put_them(seed: int) -> None:
    """A macro that abuts others is not at its cell's centre; positions during the episode are the final ones."""
    canvas = dataclasses.replace(square_canvas(7, 6), width=83.0)
    env = PlacementEnv(random_design(seed, canvas=canvas), config=EnvConfig(off_grid=True, action_scale=2))
    _, info = env.reset(seed=seed)
    partial, ended = [], False
    generator = np.random.default_rng(seed)
    while not ended and info["action_mask"].any():
        _, _, ended, _, info = env.step(int(generator.choice(np.flatnonzero(info["action_mask"]))))
        partial.append(env.placement)
    order, grid, moved = env.design.placing_order, env.design.action_canvas, 0
    for step, before in enumerate(partial, start=1):
        nodes = order[:step]
        assert np.array_equal(before.x[nodes], partial[-1].x[nodes])
        assert np.array_equal(before.y[nodes], partial[-1].y[nodes])
        assert before.placed[nodes].all() and not before.placed[order[step:]].any()
        moved += int((np.abs(before.x[nodes] / grid.cell_width % 1 - 0.5) > 1e-6).sum())
    assert moved, "no macro left its cell's centre, so that this test would not see a wrong position"


def test_spaces_are_shown_in_a_line() -> None:
    env, envs = PlacementEnv(playable(1)), gymnasium.make_vec("MacroPlacement-v0", num_envs=2, design="toy6")
    for shown in (repr(env.observation_space), repr(envs.observation_space), repr(envs.single_observation_space)):
        assert "\n" not in shown and len(shown) < 400
    envs.close()
