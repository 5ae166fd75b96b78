"""An action grid finer than the gcells: episodes as on a finer canvas, costs as on the design's own."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from placement.config import EnvConfig
from placement.engine.costs import compute_costs
from placement.engine.observation import Observation
from placement.engine.pool import make_pool
from placement.engine.state import EpisodeRenderer, PlacementState
from placement.env.gym_env import PlacementEnv
from placement.netlist.design import Design, Orientation
from placement.netlist.errors import DesignError
from placement.policy.inputs import graph_inputs
from tests.support.designs import random_design

SCALE = 3


def _finer(design: Design) -> Design:
    canvas = design.canvas
    finer = dataclasses.replace(canvas, columns=SCALE * canvas.columns, rows=SCALE * canvas.rows)
    return dataclasses.replace(design, canvas=finer)


@pytest.mark.parametrize("seed", range(4))
def test_an_episode_is_that_of_a_finer_canvas_at_the_cost_of_the_own(seed: int) -> None:
    design = random_design(seed)
    scaled = make_pool(design, 1, config=EnvConfig(action_scale=SCALE), seed=seed)
    finer = make_pool(_finer(design), 1, config=EnvConfig(), seed=seed)
    assert (scaled.spec.rows, scaled.spec.columns) == (finer.spec.rows, finer.spec.columns)
    here, there = scaled.reset()[0], finer.reset()[0]
    actions, ended, info = [], False, {}
    while not ended:
        for name in Observation._fields:
            np.testing.assert_array_equal(here[name], there[name], name)
        action = finer.sample_actions()
        actions.append(int(action[0]))
        here, _, terminated, _, info = scaled.step(action)
        there = finer.step(action)[0]
        ended = bool(terminated[0])
    assert not info["dead_end"][0]
    np.testing.assert_array_equal(scaled.placement(0).x[design.netlist.hard], finer.placement(0).x[design.netlist.hard])
    assert tuple(info["costs"][0]) == pytest.approx(compute_costs(design, scaled.placement(0)), rel=1e-12)
    assert info["rows"][0] == SCALE * design.canvas.rows
    renderer = EpisodeRenderer(scaled.designs)
    played = renderer.render([0], [actions], [len(actions)])
    again = EpisodeRenderer([_finer(design)]).render([0], [actions], [len(actions)])
    for name in Observation._fields:
        np.testing.assert_array_equal(getattr(played, name), getattr(again, name), name)
    with pytest.raises(ValueError, match="snapshot"):
        make_pool(design, 1).restore(0, scaled.snapshot(0))


def test_what_is_not_placed_yet_is_shown_where_the_engine_puts_it() -> None:
    design = random_design(1)
    env = PlacementEnv(design, config=EnvConfig(action_scale=SCALE))
    observation, info = env.reset()
    action = int(np.flatnonzero(info["action_mask"])[-1])
    observation = env.step(action)[0]
    macro = design.placing_order[0]
    assert env.placement.x[macro] == pytest.approx(observation["x"][0] * design.canvas.width, rel=1e-6)
    assert env.placement.y[macro] == pytest.approx(observation["y"][0] * design.canvas.height, rel=1e-6)


def test_state_and_policy_count_the_finer_grid() -> None:
    design = random_design(2).with_actions(SCALE)
    cells = (SCALE * design.canvas.rows, SCALE * design.canvas.columns)
    assert PlacementState(design).mask().shape == cells
    assert tuple(graph_inputs(design).grid) == cells
    assert design.with_actions(SCALE) is design


def test_a_grid_that_is_too_fine_is_rejected() -> None:
    with pytest.raises(DesignError, match="action_scale: -1"):
        random_design(0).with_actions(-1)
    with pytest.raises(DesignError, match="too fine"):
        random_design(0).with_actions(100_000)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("cells_across", "scale"), [(0.95, 2), (0.7, 3), (0.1, 4), (1.5, 1), (4.0, 1)])
def test_each_design_may_have_the_scale_that_its_macros_need(cells_across: float, scale: int, turned: bool) -> None:
    drawn = random_design(0)
    orientation = np.full(drawn.netlist.num_nodes, Orientation.E if turned else Orientation.N)
    drawn = dataclasses.replace(drawn, initial=dataclasses.replace(drawn.initial, orientation=orientation))
    many = dataclasses.replace(drawn.canvas, columns=40, rows=50)
    design = dataclasses.replace(drawn, canvas=many)
    netlist, canvas = design.netlist, design.canvas
    macros = design.placing_order
    halo = np.zeros((netlist.num_nodes, 2))
    halo[macros] = 0.1 * canvas.width / canvas.columns
    width, height = netlist.width.copy(), netlist.height.copy()
    width[macros] = (cells_across - 0.2) * canvas.width / canvas.columns if cells_across > 0.2 else 1e-3
    height[macros] = 5 * canvas.height / canvas.rows
    if turned:  # the same in its current orientation
        width, height, halo = height, width, halo[:, ::-1]
    constraints = dataclasses.replace(design.constraints, halo=halo)
    made = dataclasses.replace(
        design, netlist=dataclasses.replace(netlist, width=width, height=height), constraints=constraints
    )
    assert made.with_actions(0).action_scale == scale
    assert made.with_actions(0).action_canvas.columns == scale * canvas.columns
    assert make_pool(made, 1, config=EnvConfig(action_scale=0)).spec.columns == scale * canvas.columns
