"""Beam search with a real network of random parameters."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from placement.config import EnvConfig, PolicyConfig
from placement.engine.costs import compute_costs, legality
from placement.engine.pool import make_pool
from placement.evaluation import beam
from placement.evaluation.beam import BRANCHES, BeamSearch
from placement.netlist.load import load
from placement.policy.agent import Agent
from placement.training.evaluator import Evaluator
from placement.training.trained_run import parameter_shapes

POLICY = PolicyConfig(node_width=8, grid_width=8, rounds=1)


@pytest.fixture(scope="module")
def agent() -> Agent:
    return Agent(POLICY, [load("toy6")])


@pytest.fixture(scope="module")
def parameters():
    generator = np.random.default_rng(3)
    return jax.tree.map(lambda leaf: generator.normal(0, 0.2, leaf.shape).astype(leaf.dtype), parameter_shapes(POLICY))


def _search(agent: Agent, parameters, width: int, value_weight: float = 1.0):
    return BeamSearch(agent, load("toy6"), env=EnvConfig(), width=width, value_weight=value_weight).search(parameters)


def test_it_ends_with_different_whole_placements_at_their_exact_costs(agent, parameters):
    design = load("toy6")
    found = _search(agent, parameters, 4)
    assert len(found) == 4 * BRANCHES == len({one.actions for one in found})
    pool = make_pool(design, 1)
    for one in found:
        assert not one.dead_end and not one.greedy
        assert legality(design, one.placement) == (0, 0)
        assert compute_costs(design, one.placement) == one.costs
        pool.reset()
        for action in one.actions:
            pool.step(np.array([action], np.int32))
        assert pool.placement(0) == one.placement, "the actions lead there"
    assert [one.actions for one in _search(agent, parameters, 4)] == [one.actions for one in found]


def test_a_beam_of_one_without_the_value_is_greedy(agent, parameters):
    greedy = Evaluator(agent, [load("toy6")], env=EnvConfig()).evaluate(parameters, jax.random.key(0))[0]
    found = _search(agent, parameters, 1, value_weight=0.0)
    assert len(found) == BRANCHES
    assert found[0].actions == greedy.actions
    assert found[1].actions[:-1] == greedy.actions[:-1]


def test_the_value_decides_what_is_kept(agent, parameters):
    by_value = {one.actions for one in _search(agent, parameters, 3, value_weight=1e6)}
    assert by_value != {one.actions for one in _search(agent, parameters, 3, value_weight=0.0)}


def test_a_dead_end_of_all_is_told(agent, parameters, monkeypatch):
    def dead(pool, continued):
        return np.ones(len(continued), bool), np.full((len(continued), 5), np.nan)

    monkeypatch.setattr(beam, "_step", dead)
    (found,) = _search(agent, parameters, 2)
    assert (found.dead_end, found.costs, found.placement) == (True, None, None)
