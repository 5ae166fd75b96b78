"""`train.py` as a person runs it: it trains, tells where everything is, resumes, sweeps, and refuses mistakes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from placement.engine.costs import legality, proxy_cost
from placement.netlist.load import load
from placement.netlist.plc import read_placement

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 240


def train(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("HYDRA_FULL_ERROR", None)
    command = [sys.executable, str(ROOT / "train.py"), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)


def rows(run_dir: Path) -> list[dict[str, str]]:
    with (run_dir / "metrics.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_trains_and_the_same_command_has_nothing_left_to_do(tmp_path):
    command = ("--config-name", "test", "run_dir=run", "replay.name=memory")
    result = train(*command, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    run_dir = tmp_path / "run"
    assert [row["iteration"] for row in rows(run_dir)] == ["1", "2", "3"]
    design = load("toy6")
    _, placement = read_placement(run_dir / "best.plc", design.netlist)
    best = json.loads((run_dir / "best.json").read_text())["toy6"]
    assert proxy_cost(design, placement).proxy_cost == pytest.approx(best["proxy_cost"], rel=1e-12)
    assert legality(design, placement) == (0, 0)
    for file in ("plots/training.png", "plots/placement.png", "report.html", "config.yaml", "versions.json"):
        assert (run_dir / file).stat().st_size > 0, file
    for said in ("best placement: run/best.plc", "plots: run/plots", "report: run/report.html"):
        assert said in result.stdout
    again = train(*command, folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "goes on after iteration 3" in again.stdout and len(rows(run_dir)) == 3


def test_a_sweep_runs_each_job_in_its_folder_and_ends_with_a_table(tmp_path):
    sweep = ("-m", "--config-name", "test", "design=toy6,nowhere", "ppo.iterations=1", "replay.name=memory")
    result = train(*sweep, folder=tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    (folder,) = (tmp_path / "runs" / "toy6").iterdir()
    assert len(rows(folder)) == 1
    assert "Sweep" in result.stdout and "design=toy6" in result.stdout
    assert "failed (exit code 2)" in result.stdout and "nowhere" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ppo.clip=0",), "train.py: ppo.clip=0.0: must be above 0"),
        (("ppo.epoch=1",), "train.py: Could not override 'ppo.epoch'"),
        (("design=nowhere",), "train.py: "),
        (("replay=disk",), "train.py: "),
    ],
)
def test_a_mistake_is_told_in_one_line(arguments, message, tmp_path):
    result = train(*arguments, folder=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith(message) and result.stderr.count("\n") == 1, result.stderr
    assert not (tmp_path / "runs").exists()


def test_without_reverb_it_imports_and_trains_and_says_so_in_one_line(tmp_path):
    blocked = (
        "import runpy, sys; sys.modules['reverb'] = sys.modules['tensorflow'] = None; "
        f"sys.argv = ['train.py', '--config-name', 'test', 'ppo.iterations=1', 'run_dir=run']; "
        f"runpy.run_path({str(ROOT / 'train.py')!r}, run_name='__main__')"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", blocked]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert result.returncode == 0, result.stderr
    assert len(rows(tmp_path / "run")) == 1
    assert (result.stdout + result.stderr).count("Reverb is not installed") == 1
