"""The pool under Stable-Baselines3, whose own checks and learner are used here; skipped if it is not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from placement.engine.pool import make_pool
from placement.netlist.design import Design
from tests.support.designs import four_macros

pytest.importorskip("sb3_contrib", reason="needs the extra sb3")

from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.monitor import Monitor

from placement.env.gym_env import PlacementEnv
from placement.env.sb3_env import PoolVecEnv

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/sb3_maskable_ppo.py"


@pytest.fixture
def design() -> Design:
    return four_macros()


def first_legal(masks: np.ndarray) -> np.ndarray:
    return masks.argmax(axis=1)


def test_an_episode_is_the_gymnasium_environments(design: Design) -> None:
    """At each step the same observation, reward and mask; then the next episode's first observation."""
    alone, envs = PlacementEnv(design), PoolVecEnv(make_pool(design, 3, num_threads=1))
    assert is_masking_supported(envs)
    shown, info = alone.reset()
    batch = envs.reset()
    first = {name: values.copy() for name, values in batch.items()}
    done = np.zeros(3, bool)
    while not done.any():
        masks = get_action_masks(envs)
        assert (masks == info["action_mask"]).all()
        for name in ("mask", "maps", "x", "y"):
            assert np.array_equal(batch[name][1], shown[name])
        action = first_legal(masks)
        shown, reward, ended, _, info = alone.step(action[0])
        batch, rewards, done, infos = envs.step(action)
        assert rewards == pytest.approx([reward] * 3) and (done == ended).all()
    assert infos[2]["costs"] == pytest.approx(info["costs"])
    assert infos[2]["episode"]["l"] == len(design.placing_order) and infos[2]["episode"]["r"] == pytest.approx(reward)
    assert np.array_equal(infos[2]["terminal_observation"]["x"], shown["x"])
    assert all(np.array_equal(batch[name], first[name]) for name in first)
    envs.close()


def test_environments_out_of_phase_are_reset_one_by_one(design: Design) -> None:
    envs = PoolVecEnv(make_pool(design, 2, num_threads=1))
    envs.reset()
    envs.pool.step(first_legal(envs.action_masks())[:1], [0])
    assert envs.pool.observe()[0]["step"].tolist() == [1, 0]
    lengths = []
    for _ in range(2 * len(design.placing_order)):
        masks = envs.pool.observe()[0]["mask"].reshape(2, -1)
        observation, _, done, infos = envs.step(first_legal(masks))
        assert (observation["step"][done] == 0).all() and observation["mask"].any(axis=(1, 2)).all()
        lengths += [info["episode"]["l"] for info in infos if info]
    assert lengths == [len(design.placing_order)] * 4
    envs.close()


def test_attributes_and_methods(design: Design) -> None:
    with pytest.raises(ValueError, match=r"batch_size=1: must be 2"):
        PoolVecEnv(make_pool(design, 2, batch_size=1))
    envs = PoolVecEnv(make_pool(design, 2, num_threads=1))
    assert envs.env_is_wrapped(Monitor) == [True, True]
    assert envs.get_attr("num_envs", [0]) == [2]
    with pytest.raises(AttributeError, match="render"):
        envs.env_method("render")
    with pytest.raises(AttributeError, match="have no attributes"):
        envs.set_attr("width", 3)
    envs.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_maskable_ppo_learns_on_toy6(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("sb3_maskable_ppo", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "sb3_maskable_ppo", module)
    spec.loader.exec_module(module)
    found = module.train("toy6", steps=10_000, threads=1)
    assert found.costs[-1] < 0.8 * found.costs[0]
