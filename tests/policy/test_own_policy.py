"""A user-defined policy network, by its import path: it trains, resumes and is identified by its checkpoint."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pytest

from placement.cli.options import hydra_words
from placement.cli.train import groups
from placement.config import ConfigError, EnvConfig, PolicyConfig, PPOConfig, ReplayConfig, RuntimeConfig, TrainConfig
from placement.policy.agent import Agent
from placement.runtimes import local
from placement.training.trained_policy import read_newest
from tests.support.designs import four_macros, random_design, square_canvas
from tests.support.observations import random_observation

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OWN = PolicyConfig(name="own_policy.WireFollower", node_width=4)
DESIGNS = [four_macros(), random_design(1, hard=9, soft=5, ports=4, nets=30, canvas=square_canvas(9, 7))]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


def config(folder: Path, **changed: object) -> TrainConfig:
    settings = TrainConfig(
        design=("toy6",),
        run_dir=str(folder),
        env=EnvConfig(soft_placer="none"),
        policy=OWN,
        ppo=PPOConfig(iterations=1, episodes_per_iteration=8, epochs=1, minibatch_size=16),
        replay=ReplayConfig(name="memory"),
        runtime=RuntimeConfig(envs_per_actor=4, evaluate_every=0),
    )
    return dataclasses.replace(settings, **changed)  # type: ignore[arg-type]


def test_it_draws_legal_actions_on_mixed_designs() -> None:
    agent, observation = Agent(OWN, DESIGNS), random_observation(DESIGNS, 0, 8)
    params = agent.init(0)
    decision = agent.act(params, agent.embed(params), observation, jax.random.key(0))
    assert observation.mask.reshape(8, -1)[np.arange(8), decision.actions].all()


def test_a_run_trains_it_resumes_and_keeps_its_parameters_apart(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    local.run(config(folder))
    longer = PPOConfig(iterations=2, episodes_per_iteration=8, epochs=1, minibatch_size=16)
    assert local.run(config(folder, ppo=longer)).iterations == 2
    found = read_newest(folder, OWN, key="checkpoint")
    assert set(found.values) == {"hidden", "weights"} and found.iteration == 2
    with pytest.raises(ConfigError, match=r"policy\.name='edge_gnn' \(was 'own_policy\.WireFollower'\)"):
        local.run(config(folder, policy=PolicyConfig(node_width=4)))
    with pytest.raises(ConfigError, match=r"policy\.name=own_policy\.WireFollower instead of edge_gnn"):
        read_newest(folder, PolicyConfig(node_width=4), key="checkpoint")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gnn", r"policy\.name='gnn': must be edge_gnn or the import path of a class"),
        ("own_policy.Gone", r"policy\.name='own_policy\.Gone': cannot be imported"),
    ],
)
def test_what_cannot_be_a_network_is_rejected_by_name(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Agent(PolicyConfig(name=name), DESIGNS)


def test_the_command_line_takes_its_import_path() -> None:
    words = hydra_words(["design=toy6", "policy=own_policy.WireFollower"], TrainConfig, groups(), ("design",))
    assert words == ["design=toy6", "policy.name=own_policy.WireFollower"]
