"""Macros that may overlap until all are placed: moved apart at the end, against the oracle and by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.config import ConfigError, EnvConfig
from placement.engine.pool import make_pool
from placement.engine.state import PlacementState
from placement.env.gym_env import PlacementEnv
from placement.netlist.constraints import SnapGrid
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.policy.order import as_played
from tests.engine.test_off_grid import assert_legal_and_rendered_alike, blocks, playable
from tests.support import legality_oracle as oracle
from tests.support.designs import random_design, square_canvas


def overlapping(*sizes: tuple[float, float], halo: float = 0.0, overlap: float = 1.0) -> Design:
    """Hard macros of these sides to be placed in this order on 4 × 4 cells of 10 µm; cells of overlap."""
    return dataclasses.replace(blocks(*sizes, halo=halo), overlap=overlap)


def played(state: PlacementState, seed: int) -> bool:
    """Places all macros on random cells; False at a dead end."""
    generator = np.random.default_rng(seed)
    while state.step < len(state.design.placing_order):
        cells = np.argwhere(state.mask())
        if not len(cells):
            return False
        row, column = cells[generator.integers(len(cells))]
        state.place(int(row), int(column))
    return True


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.3, 1.0, 2.0]))
def test_macros_are_legal_by_the_oracle_once_all_are_placed(seed: int, overlap: float) -> None:
    design = playable(seed)
    if design is None:
        return
    state = PlacementState(dataclasses.replace(design, overlap=overlap))
    if not played(state, seed):
        return
    centres, is_apart = state.centres(), state.is_apart
    state.undo()
    assert state.is_apart
    before, mask = state.centres(), state.mask()
    row, column = np.argwhere(mask)[0]
    state.place(int(row), int(column))
    state.undo()
    np.testing.assert_array_equal(state.centres(), before)
    np.testing.assert_array_equal(state.mask(), mask)
    state.reset()
    assert played(state, seed)
    np.testing.assert_array_equal(state.centres(), centres)
    if is_apart:
        placed = design.initial.moved(design.placing_order, centres[:, 0], centres[:, 1])
        assert oracle.is_legal(design, placed)


def test_random_episodes_find_room() -> None:
    found = []
    for seed in range(0, 120, 2):  # without constraints
        design = playable(seed)
        if design is None:
            continue
        state = PlacementState(dataclasses.replace(design, overlap=1.0))
        if played(state, seed):
            found.append(state.is_apart)
    assert len(found) >= 40
    assert np.mean(found) >= 0.95


def test_two_macros_move_apart_by_half_of_what_they_share() -> None:
    state = PlacementState(overlapping((14, 12), (14, 12)))
    state.place(1, 1)
    state.place(1, 2)
    np.testing.assert_allclose(state.centres(), [[13, 15], [27, 15]])
    state.undo()
    np.testing.assert_allclose(state.centres(), [[15, 15]])


def test_halos_are_kept_and_macros_that_are_apart_stay() -> None:
    state = PlacementState(overlapping((12, 6), (6, 6), (4, 4), halo=1.5))
    state.place(0, 1)
    state.place(0, 2)  # 12 apart are asked for, 10 are there
    state.place(3, 3)
    np.testing.assert_allclose(state.centres(), [[14, 5], [26, 5], [35, 35]])


def test_what_fills_a_row_goes_to_the_next() -> None:
    design = overlapping((16, 12), (16, 12), (16, 12))
    state = PlacementState(design)
    for column in (0, 1, 3):
        state.place(1, column)
    assert state.is_apart  # 48 µm are not in one row of 40
    centres = state.centres()
    assert oracle.is_legal(design, design.initial.moved(np.arange(3), centres[:, 0], centres[:, 1]))


def test_a_snapping_grid_is_kept() -> None:
    design = overlapping((12, 12), (12, 14))
    grid = SnapGrid(0.7, 0.3, 0.1, 0.2)
    design = dataclasses.replace(design, constraints=dataclasses.replace(design.constraints, grid=grid))
    state = PlacementState(design)
    state.place(1, 1)
    state.place(1, 2)
    corners = state.centres() - [[6, 6], [6, 7]]
    pitches = (corners - [0.1, 0.2]) / [0.7, 0.3]
    np.testing.assert_allclose(pitches, np.round(pitches), atol=1e-6)
    assert 12 <= corners[1, 0] - corners[0, 0] <= 12 + 3 * 0.7


def test_without_room_apart_the_episode_is_a_dead_end() -> None:
    design = overlapping((34, 34), (10, 10))
    config = EnvConfig(off_grid=True, overlap=1.0, dead_end_penalty=-3.0)
    env = PlacementEnv(design, config=config)
    observation, info = env.reset()
    rows, columns = observation["mask"].shape
    row, column = np.argwhere(info["action_mask"].reshape(rows, columns))[0]
    _, _, _, _, info = env.step(np.int64(row * columns + column))
    _, reward, terminated, _, info = env.step(np.int64(info["action_mask"].argmax()))
    assert terminated and reward == -3.0
    assert "costs" not in info
    assert info["reason"] == "all 2 macros were placed, but no room was found to move them apart"
    pool = env._pool
    again = make_pool(design, 1, config=config)
    again.restore(0, pool.snapshot(0))
    assert again.snapshot(0) == pool.snapshot(0)
    env.reset()


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_pool_episodes_are_legal_rendered_alike_and_restored(seed: int) -> None:
    config = EnvConfig(off_grid=True, action_scale=2, overlap=1.0)
    canvas = dataclasses.replace(square_canvas(7, 6), width=83.0)
    pool = make_pool(random_design(seed, canvas=canvas), 1, config=config, seed=seed)
    design = pool.designs[0]
    assert design.overlap == as_played(random_design(seed, canvas=canvas), config).overlap == 1.0
    placement, _ = assert_legal_and_rendered_alike(pool)
    other = make_pool(random_design(seed, canvas=canvas), 1, config=config)
    other.restore(0, pool.snapshot(0))
    np.testing.assert_array_equal(other.placement(0).x, placement.x)
    without = make_pool(random_design(seed, canvas=canvas), 1, config=dataclasses.replace(config, overlap=0.0))
    with pytest.raises(ValueError, match="another design"):
        without.restore(0, pool.snapshot(0))


def test_overlap_is_refused_on_the_grid_and_beyond_its_range() -> None:
    with pytest.raises(ConfigError, match=r"env\.overlap=1\.0: must be 0 unless env\.off_grid=true"):
        EnvConfig(overlap=1.0)
    with pytest.raises(ConfigError, match=r"env\.overlap"):
        EnvConfig(off_grid=True, overlap=-1.0)
    with pytest.raises(DesignError, match="0 unless off_grid"):
        dataclasses.replace(blocks((4, 4), off_grid=False), overlap=1.0)
