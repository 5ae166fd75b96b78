"""The one-file learners in examples/, each for a second on `toy6`; skipped if their library is not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import placement

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the libraries
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# The required modules of each example.
NEEDS = {"cleanrl_ppo": ("torch",), "torchrl_ppo": ("torch", "torchrl"), "rllib_ppo": ("torch", "ray.rllib")}


@pytest.fixture(params=NEEDS)
def example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    for name in NEEDS[request.param]:
        pytest.importorskip(name, reason=f"examples/{request.param}.py needs {name}", exc_type=ImportError)
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # which the example also sets: removed afterwards
    spec = importlib.util.spec_from_file_location(request.param, EXAMPLES / f"{request.param}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, request.param, module)
    spec.loader.exec_module(module)
    return module


def test_it_learns_from_whole_legal_episodes(example) -> None:
    found = example.train("toy6", envs=4, seconds=0.5)
    steps, costs = (np.array(values) for values in zip(*found, strict=True))
    design = placement.load("toy6")
    _, best = placement.read_placement(placement.netlist.load.find("toy6").parent / "optimum.plc", design.netlist)
    least = placement.cost(design, best, cost=placement.CostWeights(density=0.0, congestion=0.0, name="chip")).total
    assert (np.diff(steps, prepend=0) > 0).all()
    assert np.isfinite(costs).all() and (costs >= 0.5 * least).all() and (costs < 2).all()


def test_pufferlib_steps_the_environment_through_its_emulation() -> None:
    vector = pytest.importorskip("pufferlib.vector", reason="needs PufferLib", exc_type=ImportError)
    emulation = importlib.import_module("pufferlib.emulation")
    creator = {"env_creator": placement.PlacementEnv, "env_args": ["toy6"]}
    envs = vector.make(emulation.GymnasiumPufferEnv, env_kwargs=creator, backend=vector.Serial, num_envs=3)
    alone, rewards = placement.PlacementEnv("toy6"), [0.0]
    expected, _ = alone.reset()
    envs.async_reset(0)
    for step in range(7):
        flat, reward, ended, *_ = envs.recv()
        shown = flat.view(envs.driver_env.obs_dtype)[:, 0]
        assert all((shown[name] == values).all() for name, values in expected.items())
        assert (reward == np.float32(rewards[-1])).all() and (ended == (step == 6)).all()
        actions = shown["mask"].reshape(3, -1).argmax(axis=1)  # the first legal cell
        envs.send(actions)
        if step < 6:
            expected, last, *_ = alone.step(actions[0])
            rewards.append(last)
    begun, reward, *_ = envs.recv()  # the action after the end is ignored
    assert (begun.view(envs.driver_env.obs_dtype)["step"] == 0).all() and (reward == 0).all() and rewards[-1] < 0
    envs.close()
