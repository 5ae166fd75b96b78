"""An extracted policy: it acts as the run did, and the project's own is found by its name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from placement.config import ConfigError, PolicyConfig, PPOConfig, ReplayConfig, RuntimeConfig, TrainConfig
from placement.runtimes import local
from placement.training.checkpoint import read_parameters
from placement.training.run_folder import read_settings
from placement.training.trained_policy import (
    parameter_shapes,
    policy_folder,
    read_newest,
    shipped_policies,
)
from tests.support.fakes import Silent

# As in configs/test.yaml, so that the programs are compiled only once for these and the command line's tests.
POLICY = PolicyConfig(node_width=8, grid_width=8, rounds=1)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    config = TrainConfig(
        design=("toy6",),
        run_dir=str(folder),
        policy=POLICY,
        ppo=PPOConfig(iterations=1, episodes_per_iteration=8, epochs=1, minibatch_size=16),
        replay=ReplayConfig(name="memory", timeout=180.0),
        runtime=RuntimeConfig(envs_per_actor=4, evaluate_every=0),
    )
    local.run(config, progress=Silent())
    return folder


def kept_by_example(run: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples/keep_policy.py"), str(run), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_what_is_kept_is_the_newest_parameters_and_the_settings(trained: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done = kept_by_example(trained, kept)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{kept}: the policy after iteration 1\n"
    shapes = parameter_shapes(POLICY)
    (before, step), (after, same) = read_parameters(trained, shapes), read_parameters(kept, shapes)
    assert step == same == 1
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(one, other)
    assert read_settings(kept, key="checkpoint") == read_settings(trained, key="checkpoint")
    size, whole = (
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) for folder in (kept, trained)
    )
    assert size < whole / 2
    assert not [path for path in kept.rglob("*") if path.is_file() and str(kept).encode() in path.read_bytes()]


def test_existing_files_are_not_replaced(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    for run, folder, reason in (
        (trained, tmp_path, "is not empty"),
        (tmp_path, tmp_path / "new", "must be the folder of a training run"),
    ):
        done = kept_by_example(run, folder)
        assert done.returncode == 1 and reason in done.stderr, done.stderr
    assert not (tmp_path / "new").exists()


def test_a_name_means_the_policy_that_comes_with_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shipped_policies() == ["base"]
    monkeypatch.chdir(tmp_path)
    found = policy_folder("base", key="checkpoint")
    trained = read_settings(found, key="checkpoint")
    assert read_newest(found, trained.policy, key="checkpoint").iteration > 0
    assert sum(path.stat().st_size for path in found.rglob("*") if path.is_file()) < 10e6
    Path("base").mkdir()  # a folder of the user takes precedence
    assert policy_folder("base", key="checkpoint") == Path("base")
    for missing in ("bass", "runs/base"):
        with pytest.raises(ConfigError, match=r"initial_policy=.*comes with the project \(base\): no such folder"):
            policy_folder(missing, key="initial_policy")
