"""NaN in training: detected and reported, and no bad state is saved."""

from __future__ import annotations

import pickle
from collections.abc import Container
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from placement.config import PPOConfig, ReplayConfig, RuntimeConfig, TrainConfig
from placement.runtimes import local
from placement.runtimes.ray import driver
from placement.runtimes.ray.coordinator import RoleName, Who
from placement.training import learner_loop
from placement.training.checkpoint import Checkpoints
from placement.training.learner_loop import Diverged
from placement.training.run_folder import CHECKPOINTS_NAME
from tests.support.fakes import FakeAgent, FakeLearner, Silent


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "Agent", FakeAgent)
    monkeypatch.setattr(local, "Learner", FakeLearner)
    monkeypatch.setattr(local, "keep_compilations", lambda: None)
    monkeypatch.setattr(learner_loop, "MAX_SKIPPED_STEPS", 5)


def _config(folder: Path, **ppo: Any) -> TrainConfig:
    return TrainConfig(
        design=("toy6",),
        run_dir=str(folder),
        ppo=PPOConfig(**{"iterations": 9, "episodes_per_iteration": 8, **ppo}),
        replay=ReplayConfig(name="memory", timeout=180.0),
        runtime=RuntimeConfig(envs_per_actor=8, checkpoint_every=1, evaluate_every=0),
    )


def _skips(iterations: Container[int]) -> type[FakeLearner]:
    """Returns a learner that skips both of its gradient steps in these iterations (from 0), and none in others."""

    class Skipping(FakeLearner):
        def learn(self, episodes: Any, *, iteration: int, elapsed: float = 0.0) -> dict[str, float]:
            skipped = 2.0 * (iteration in iterations)
            return super().learn(episodes, iteration=iteration) | {
                "skipped_steps": skipped,
                "gradient_steps": 2.0 - skipped,
            }

    return Skipping


def _steps(folder: Path) -> list[int]:
    checkpoints = Checkpoints(folder / CHECKPOINTS_NAME, read_only=True)
    try:
        return checkpoints.steps()
    finally:
        checkpoints.close()


def test_too_many_skipped_steps_end_the_run_at_the_last_good_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "Learner", _skips(range(3, 9)))
    with pytest.raises(Diverged) as caught:
        local.run(_config(tmp_path), progress=Silent())
    message = str(caught.value)
    assert "6 gradient steps in a row were skipped" in message
    assert f"the last good one: {tmp_path}/checkpoints/3." in message
    assert f"run_dir={tmp_path} and a lower ppo.learning_rate (it was 0.003)" in message
    assert _steps(tmp_path)[-1] == 3
    monkeypatch.setattr(local, "Learner", FakeLearner)
    assert local.run(_config(tmp_path, learning_rate=1e-4), progress=Silent()).iterations == 9


def test_fewer_skipped_steps_in_a_row_are_tolerated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "Learner", _skips([1, 2, 4, 5, 7]))
    assert local.run(_config(tmp_path), progress=Silent()).iterations == 9
    assert _steps(tmp_path)[-1] == 9


def test_parameters_that_give_nan_are_never_published_or_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[int] = []

    class Breaking(FakeAgent):
        def act(self, params: Any, *args: Any, **options: Any) -> Any:
            played.append(int(params["version"]))
            decision = super().act(params, *args, **options)
            nan = np.full_like(decision.log_probabilities, np.nan)
            return decision._replace(log_probabilities=nan) if params["version"] >= 4 else decision

    monkeypatch.setattr(local, "Agent", Breaking)
    with pytest.raises(Diverged, match="iteration 4 made the network's outputs not finite") as caught:
        local.run(_config(tmp_path), progress=Silent())
    assert f"{tmp_path}/checkpoints/3." in str(caught.value)
    assert _steps(tmp_path)[-1] == 3
    assert played.count(4) == 1, "only the learner checked"


def test_on_ray_the_learners_message_is_reported_unchanged() -> None:
    cause = Diverged("training has broken down")
    assert driver._failure(Who(RoleName.LEARNER, 0), SimpleNamespace(cause=cause)) is cause
    assert str(pickle.loads(pickle.dumps(cause))) == str(cause)  # noqa: S301  as Ray does
