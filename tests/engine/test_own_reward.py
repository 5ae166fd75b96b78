"""A user-defined reward, by its import path: in pools, in the Gymnasium environment and in training."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from placement.config import ConfigError, EnvConfig, PPOConfig, ReplayConfig, RuntimeConfig, TrainConfig
from placement.engine.costs import Costs
from placement.engine.pool import make_pool
from placement.env.gym_env import PlacementEnv
from placement.netlist.design import Design, Placement
from placement.runtimes import local
from tests.support.designs import four_macros
from tests.support.fakes import FakeAgent, FakeLearner

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OWN = "own_reward.wire_and_edges"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


def not_a_number(costs: Costs, design: Design, placement: Placement) -> float:
    return float("nan")


def paid(costs: np.ndarray, design: Design, placement: Placement) -> float:
    from own_reward import wire_and_edges  # type: ignore[import-not-found]

    return wire_and_edges(Costs(*costs.tolist()), design, placement)


@pytest.mark.parametrize("batch_size", [6, 2])
def test_a_pool_pays_what_the_function_says(batch_size: int) -> None:
    rewards = 0
    with make_pool(four_macros(), 6, batch_size=batch_size, config=EnvConfig(reward=OWN)) as pool:
        pool.async_reset()
        for _ in range(40):
            _, reward, terminated, _, info = pool.recv()
            for row in np.flatnonzero(terminated & ~info["dead_end"]):
                placement = pool.placement(int(info["env_id"][row]))
                assert reward[row] == np.float32(paid(info["costs"][row], pool.designs[0], placement))
                rewards += 1
            assert (reward[~terminated] == 0).all()
            pool.send(pool.sample_actions(info["env_id"]), info["env_id"])
    assert rewards > 3


def test_the_gymnasium_face_pays_it() -> None:
    env = PlacementEnv("toy6", config=EnvConfig(reward=OWN))
    _, info = env.reset(seed=0)
    ended = False
    while not ended:
        _, reward, ended, _, info = env.step(env.action_space.sample(info["action_mask"]))
    expected = paid(np.array(list(info["costs"].values())), env.design, env.placement)
    assert reward == np.float32(expected)


def test_training_is_paid_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "Agent", FakeAgent)
    monkeypatch.setattr(local, "Learner", FakeLearner)
    config = TrainConfig(
        design=("toy6",),
        run_dir=str(tmp_path / "run"),
        env=EnvConfig(reward=OWN, soft_placer="none"),
        ppo=PPOConfig(iterations=1, episodes_per_iteration=8, minibatch_size=16),
        replay=ReplayConfig(name="memory"),
        runtime=RuntimeConfig(envs_per_actor=4, evaluate_every=0),
    )
    local.run(config)
    (row,) = csv.DictReader((tmp_path / "run" / "metrics.csv").read_text(encoding="utf-8").splitlines())
    assert float(row["reward_mean"]) != pytest.approx(-float(row["cost_mean"]), abs=1e-3)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("mine", r"env\.reward='mine': must be cost or the import path of a function"),
        ("own_reward.gone", r"env\.reward='own_reward\.gone': cannot be imported"),
        ("no_such_module.reward", r"env\.reward='no_such_module\.reward': cannot be imported"),
        ("own_reward.__doc__", r"env\.reward='own_reward\.__doc__': must be a function"),
    ],
)
def test_what_cannot_be_a_reward_is_rejected_by_name(reward: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_pool(four_macros(), 1, config=EnvConfig(reward=reward))


def test_a_reward_that_is_not_finite_is_an_error() -> None:
    pool = make_pool(four_macros(), 1, config=EnvConfig(reward=f"{__name__}.not_a_number"))
    pool.reset()
    with pytest.raises(ValueError, match="returned nan for 'four_macros'"):
        for _ in range(4):
            pool.step(pool.sample_actions())


def test_cost_terms_and_a_reward_of_ones_own_are_not_mixed() -> None:
    with pytest.raises(ConfigError, match=r"env\.cost_terms=\['a\.so:1'\]: must be empty with env\.reward=a\.b"):
        EnvConfig(cost_terms=("a.so:1",), reward="a.b")
