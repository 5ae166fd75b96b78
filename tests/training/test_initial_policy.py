"""Fine-tuning: a run begins with the parameters of another one, and rejects unsuitable ones."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from placement.config import ConfigError, PolicyConfig, PPOConfig, ReplayConfig, RuntimeConfig, TrainConfig
from placement.netlist.load import load
from placement.policy.agent import Agent
from placement.runtimes import local
from placement.runtimes.ray import driver
from placement.training.checkpoint import read_parameters
from placement.training.run_folder import CHECKPOINTS_NAME
from placement.training.trained_policy import parameter_shapes
from tests.support.fakes import Silent

# As in configs/test.yaml, so that the programs are compiled only once for these and the command line's tests.
POLICY = PolicyConfig(node_width=8, grid_width=8, rounds=1)
PPO = PPOConfig(iterations=1, episodes_per_iteration=8, epochs=1, minibatch_size=16)


def _config(folder: Path, design: str = "toy6", **changes: Any) -> TrainConfig:
    settings = {
        "design": (design,),
        "run_dir": str(folder),
        "policy": POLICY,
        "ppo": PPO,
        "replay": ReplayConfig(name="memory", timeout=180.0),
        "runtime": RuntimeConfig(envs_per_actor=4, evaluate_every=0),
    }
    return TrainConfig(**{**settings, **changes})


def _parameters(run: Path) -> tuple[Any, int]:
    return read_parameters(run, parameter_shapes(POLICY))


def _same(one: Any, other: Any) -> bool:
    """Compares up to the 1e-30 by which a learning rate of that size may change a zero."""
    return all(
        np.allclose(a, b, rtol=0, atol=1e-25) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


def _distance(one: Any, other: Any) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a run on a design of another size and grid than that on which it is continued."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    local.run(_config(folder, seed=3), progress=Silent())
    return folder


# With this learning rate, a run ends with its initial parameters.
STILL = dataclasses.replace(PPO, learning_rate=1e-30)


class Tuned(NamedTuple):
    """A run that began with another one's parameters, whose folder has been deleted; and its output."""

    config: TrainConfig
    iterations: int
    shown: Silent


@pytest.fixture(scope="module")
def tuned(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    folder, shown = tmp_path_factory.mktemp("tuned"), Silent()
    shutil.copytree(trained, folder / "before")
    config = _config(folder / "run", "planted20", ppo=STILL, initial_policy=str(folder / "before"))
    result = local.run(config, progress=shown)
    shutil.rmtree(folder / "before")
    return Tuned(config, result.iterations, shown)


def test_a_run_begins_with_what_another_learned(trained: Path, tuned: Tuned) -> None:
    assert any("starts with the parameters of iteration 1" in note for note in tuned.shown.notes)
    learned, iteration = _parameters(Path(tuned.config.run_dir))
    assert (tuned.iterations, iteration) == (1, 1)
    assert _same(learned, _parameters(trained)[0])
    fresh = Agent(POLICY, [load("planted20")]).init(tuned.config.seed)
    assert _distance(fresh, learned) > 0.01


def test_a_resumed_run_does_not_read_it_again(tuned: Tuned, tmp_path: Path) -> None:
    shutil.copytree(tuned.config.run_dir, tmp_path / "run")
    again, shown = dataclasses.replace(tuned.config, run_dir=str(tmp_path / "run")), Silent()
    longer = dataclasses.replace(again, ppo=dataclasses.replace(STILL, iterations=2))
    assert local.run(longer, progress=shown).iterations == 2
    assert not any("begins with" in note for note in shown.notes)
    with pytest.raises(ConfigError, match=r"initial_policy=None \(was "):
        local.run(dataclasses.replace(longer, initial_policy=None), progress=Silent())


def test_an_unusable_initial_policy_is_rejected_before_anything_is_written(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    shutil.copytree(trained, tmp_path / "without", ignore=lambda _, names: [n for n in names if n == CHECKPOINTS_NAME])
    shutil.copytree(trained, tmp_path / "damaged")
    for file in (tmp_path / "damaged" / CHECKPOINTS_NAME).rglob("*"):
        if file.is_file() and file.stat().st_size > 100:
            file.write_bytes(file.read_bytes()[:50])
    for name, message in (
        ("missing", "no such folder"),
        ("empty", "must be the folder of a training run: it has no config.yaml"),
        ("without", "no checkpoint"),
        ("damaged", "cannot be read"),
    ):
        with pytest.raises(ConfigError, match=message) as caught:
            local.run(_config(tmp_path / "new", initial_policy=str(tmp_path / name)), progress=Silent())
        assert str(caught.value).startswith("initial_policy=")
    other = PolicyConfig(node_width=16, grid_width=8, rounds=1)
    with pytest.raises(ConfigError, match=r"another network.*trained with policy\.node_width=8 instead of 16"):
        local.run(_config(tmp_path / "new", initial_policy=str(trained), policy=other), progress=Silent())
    assert not (tmp_path / "new").exists()


def test_on_ray_it_is_rejected_before_ray_starts(tmp_path: Path) -> None:
    runtime = RuntimeConfig(name="ray")
    config = _config(tmp_path / "new", initial_policy=str(tmp_path), runtime=runtime, replay=ReplayConfig())
    with pytest.raises(ConfigError, match=r"initial_policy=.*it has no config.yaml"):
        driver.run(config, progress=Silent())
    assert not (tmp_path / "new").exists()
