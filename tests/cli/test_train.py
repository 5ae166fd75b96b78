"""`train.py` from the user's perspective: it trains, reports its output files, resumes, sweeps, and rejects
mistakes.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs, legality
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import load
from tests.support.command import run_here

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 480


def train(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return run_here("train.py", *arguments, folder=folder)


def alone(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs Python with `words` in its own process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("HYDRA_FULL_ERROR", None)
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)


def rows(run_dir: Path) -> list[dict[str, str]]:
    with (run_dir / "metrics.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


COMMAND = ("preset=test", "run_dir=run")
WITHOUT_REVERB = f"""
import runpy, sys
sys.modules["reverb"] = sys.modules["tensorflow"] = None
sys.argv = ["train.py", *{COMMAND}]
runpy.run_path({str(ROOT / "train.py")!r}, run_name="__main__")
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Returns the folder in which `train.py` ran in a process without Reverb, and its output."""
    folder = tmp_path_factory.mktemp("trained")
    return folder, alone("-c", WITHOUT_REVERB, folder=folder)


def test_trains_and_the_same_command_has_nothing_left_to_do(trained):
    folder, result = trained
    assert result.returncode == 0, result.stderr
    run_dir = folder / "run"
    assert [row["iteration"] for row in rows(run_dir)] == ["1", "2", "3"]
    design = load("toy6")
    _, placement = read_placement(run_dir / "best.plc", design.netlist)
    best = json.loads((run_dir / "best.json").read_text())["toy6"]
    cost = compute_costs(design, placement, weights=DEFAULT_WEIGHTS).total
    assert cost == pytest.approx(best["cost"], rel=1e-12)
    assert legality(design, placement) == (0, 0)
    for file in ("plots/training.png", "plots/placement.png", "report.html", "config.yaml", "versions.json"):
        assert (run_dir / file).stat().st_size > 0, file
    assert f"(chip cost {cost:.4f})" in result.stdout
    for line in ("best placement: run/best.plc", "plots: run/plots", "report: run/report.html"):
        assert line in result.stdout
    again = train(*COMMAND, folder=folder)
    assert again.returncode == 0, again.stderr
    assert "complete: 3 iterations; nothing to do" in again.stdout and len(rows(run_dir)) == 3


def test_evaluate_gives_a_runs_cost_without_a_flag(trained):
    folder, _ = trained
    best = json.loads((folder / "run" / "best.json").read_text())["toy6"]
    result = run_here("macro-placement", "evaluate", "toy6", "run/best.plc", "--json", folder=folder)
    found = json.loads(result.stdout.splitlines()[-1])
    assert (found["cost_name"], found["cost"]) == (best["cost_name"], pytest.approx(best["cost"], rel=1e-12))


def test_without_reverb_it_imports_and_trains_with_one_line_about_it(trained):
    _, result = trained
    assert (result.stdout + result.stderr).count("Reverb is not installed") == 1


def test_the_accelerator_set_up_trains_on_every_device_there_is(tmp_path):
    """Eight virtual devices here."""
    small = ("runtime.envs_per_actor=4", "ppo.iterations=1", "runtime.evaluate_every=0")
    command = ("preset=test", "runtime=accelerator", "replay=memory", "run_dir=run", *small)
    result = train(*command, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert [row["iteration"] for row in rows(tmp_path / "run")] == ["1"]
    assert float(rows(tmp_path / "run")[-1]["episodes"]) == 8


def test_a_sweep_runs_each_job_in_its_folder_and_ends_with_a_table(tmp_path):
    sweep = ("-m", "preset=test", "design=toy6,nowhere", "ppo.iterations=1", "replay.name=memory")
    result = alone(str(ROOT / "train.py"), *sweep, folder=tmp_path)  # its jobs write to the working directory
    assert result.returncode == 1, result.stdout + result.stderr
    (folder,) = (tmp_path / "runs" / "toy6").iterdir()
    assert len(rows(folder)) == 1
    assert "Sweep" in result.stdout and "design=toy6" in result.stdout
    assert "failed (exit code 2)" in result.stdout and "nowhere" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ppo.clip=0",), "train: ppo.clip=0.0: must be above 0"),
        (
            ("ppo.epoch=1",),
            "train: unknown setting 'ppo.epoch'. Did you mean 'ppo.epochs'? (--help",
        ),
        (("off_grid=true",), "train: unknown setting 'off_grid'. Did you mean 'env.off_grid'?"),
        (("env.cost.name=foo",), "train: env.cost.name='foo': must be proxy or chip"),
        (
            ("env.soft_placer=foo",),
            "train: env.soft_placer='foo': must be one of force_directed, analytic",
        ),
        (("design=nowhere",), "train: no design 'nowhere'"),
        (("replay=disk",), "train: replay.name='disk': must be auto, reverb or memory"),
        (("policy=foo",), "train: policy.name='foo': must be edge_gnn"),
        (("runtime=foo",), "train: runtime='foo': must be one of accelerator, local, ray"),
        (("preset=foo",), "train: preset='foo': must be one of ariane, base, generalise, test"),
        (("--design", "nowhere"), "train: no design 'nowhere'"),
        (("nowhere",), "train: no design 'nowhere'"),
        (("runtime.shards=3",), "train: runtime.shards=3: must be left at 1 without runtime=ray"),
    ],
)
def test_a_mistake_is_reported_in_one_line(arguments, message, tmp_path):
    result = train(*arguments, folder=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith(f"macro-placement {message}") and result.stderr.count("\n") == 1, result.stderr
    assert not (tmp_path / "runs").exists()


def test_a_run_is_fine_tuned_on_a_larger_design(trained, tmp_path):
    (tmp_path / "first").symlink_to(trained[0] / "run")
    small = ("preset=test", "replay.name=memory", "ppo.iterations=1")
    tuned = train(*small, "design=planted20", "initial_policy=first", "run_dir=second", folder=tmp_path)
    assert tuned.returncode == 0, tuned.stderr
    assert "starts with the parameters of iteration 3 of the run in first" in tuned.stdout
    for arguments, message in (
        (("initial_policy=first", "policy.node_width=16"), "policy.node_width=8 instead of 16: give the same"),
        (("initial_policy=nowhere",), "initial_policy='nowhere': must be the folder of a training run"),
        (("ppo.minibatch_size=7",), "ppo.minibatch_size=7: must be divisible by the 8 devices"),
    ):
        rejected = train(*small, *arguments, "run_dir=third", folder=tmp_path)
        assert rejected.returncode == 2, rejected.stderr
        assert message in rejected.stderr and rejected.stderr.count("\n") == 1, rejected.stderr


def test_training_that_breaks_down_is_reported_without_a_traceback(tmp_path):
    absurd = ("ppo.learning_rate=1e30", "ppo.iterations=9", "run_dir=run", "replay.name=memory")
    result = train("preset=test", *absurd, folder=tmp_path)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1, result.stderr
    assert "train: training has broken down: iteration 1 made the network's outputs not finite" in result.stderr
    assert "run/checkpoints/0" in result.stderr and "lower ppo.learning_rate (it was 1e+30)" in result.stderr
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["0"]
