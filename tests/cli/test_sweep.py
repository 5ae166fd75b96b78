"""The sweep's table, from run folders as training leaves them."""

from __future__ import annotations

import json
import sys

from omegaconf import OmegaConf
from rich.console import Console

from placement.cli import sweep
from placement.config import TrainConfig

JOB = """
import pathlib, sys
folder = pathlib.Path(sys.argv[-1].removeprefix("run_dir="))
folder.mkdir(parents=True)
(folder / "metrics.csv").write_text("episodes,seconds,cost_mean,best_so_far\\n8,1.5,0.9,0.7\\n")
"""


def test_rows_come_from_the_metrics_of_each_run(tmp_path):
    (tmp_path / "metrics.csv").write_text(
        "iteration,episodes,seconds,cost_mean,best_so_far\n1,8,1.5,0.9,0.7\n2,16,3.0,0.8,0.7\n"
    )
    row = sweep._row(["design=toy6", "seed=1"], str(tmp_path), 0)
    assert (row["best"], row["mean"], row["episodes"], row["seconds"]) == (0.7, 0.8, 16, 3.0)
    (tmp_path / "best.json").write_text('{"toy6": {"cost": 0.5}, "other": {"cost": 0.7}}')
    row = sweep._row(["design=toy6", "seed=1"], str(tmp_path), 0)
    assert row["best"] == 0.6, "what the evaluation at the end found, the mean of several designs"
    (tmp_path / "dead").mkdir()
    (tmp_path / "dead" / "metrics.csv").write_text("iteration,episodes,seconds,cost_mean,best_so_far\n1,8,1.5,,\n")
    dead = sweep._row(["seed=3"], str(tmp_path / "dead"), 0)
    failed = sweep._row(["seed=2"], str(tmp_path), 2)
    console = Console(width=150, record=True)
    console.print(sweep.table([row, dead, failed]))
    text = console.export_text()
    assert "design=toy6 seed=1" in text and "0.6000" in text and "0.8000" in text
    assert "–" in text, "a run of dead ends only has no cost"
    assert "failed (exit code 2)" in text


def test_a_job_runs_where_the_sweep_was_started(tmp_path, monkeypatch):
    """Ray's processes on a cluster run in their own folders."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home, elsewhere):
        folder.mkdir()
    (home / "job.py").write_text(JOB)
    hydra = {
        "overrides": {"task": ["seed=1"]},
        "job": {"config_name": "config", "num": 3},
        "runtime": {"cwd": str(home)},
        "sweep": {"dir": "runs/sweeps"},
    }
    monkeypatch.setattr(sweep.HydraConfig, "get", staticmethod(lambda: OmegaConf.create(hydra)))
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sweep, "PROGRAM", (sys.executable, "job.py"))
    assert sweep.run_job(TrainConfig(design=["toy6"], run_dir="runs/one")) == 0.7
    row = json.loads((home / "runs" / "sweeps" / "job-3.json").read_text())
    assert row["run_dir"] == "runs/one" and row["code"] == 0
    assert not list(elsewhere.iterdir())
