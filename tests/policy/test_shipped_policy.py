"""The shipped policy places designs as when it was trained, whatever code has changed since."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from placement.config import PolicyConfig
from placement.engine.observation import Observation
from placement.engine.pool import make_pool
from placement.netlist.load import data_folder, load
from placement.policy.agent import Agent
from placement.training.run_folder import read_settings
from placement.training.trained_policy import read_newest

BASE = data_folder("policies") / "base"
# Recorded on 28 November 2026, after the placer whose result the policy sees began to add numbers in another order.
ACTIONS = {
    "toy6": [56, 7, 40, 60, 42, 63],
    "clustered40": [
        *(596, 362, 258, 254, 172, 69, 583, 480, 585, 535, 432, 434, 462, 567, 538, 430, 478, 581, 500, 420),
        *(364, 314, 396, 290, 260, 210, 136, 138, 502, 450, 92, 140, 40, 88, 116, 64, 169, 193, 251, 355),
    ],
}
LOG_PROBABILITY = {"toy6": -3.1040975, "clustered40": -10.2283102}
"""Total log-probability of all actions."""


@pytest.mark.parametrize("name", ["toy6", "clustered40"])
def test_base_places_a_design_as_it_always_did(name: str) -> None:
    trained = read_settings(BASE, key="checkpoint")
    policy: PolicyConfig = trained.policy
    params = read_newest(BASE, policy, key="checkpoint").values
    design = load(name).with_actions(trained.env.action_scale, off_grid=trained.env.off_grid)
    agent = Agent(policy, [design])
    embeddings = agent.embed(params)
    actions, log_probability = [], 0.0
    with make_pool(design, 1, config=trained.env) as pool:
        observation, _ = pool.reset()
        for _ in design.placing_order:
            decision = agent.act(params, embeddings, Observation(**observation), jax.random.key(0), greedy=True)
            actions.append(int(decision.actions[0]))
            log_probability += float(decision.log_probabilities[0])
            observation, *_ = pool.step(decision.actions)
    assert actions == ACTIONS[name]
    np.testing.assert_allclose(log_probability, LOG_PROBABILITY[name], rtol=1e-4)
