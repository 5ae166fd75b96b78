"""Hydra sweeps: each job has its own process and run folder; a table of all jobs ends the sweep.

With any launcher of Hydra, a job starts the same command again with the job's overrides, so that no job inherits
another's memory, compilations or crash. It does so in the folder of the sweep's command, regardless of the launcher's
own folder. The same command resumes a stopped sweep without repeating complete runs.
"""

import csv
import json
import math
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig
from rich.console import Console
from rich.table import Table

from placement.cli.options import quoted
from placement.config import TrainConfig
from placement.netlist.files import write_whole
from placement.report.placement_metrics import make_table

PROGRAM = (sys.executable, "-m", "placement", "train")
STOP_SECONDS = 60.0  # time for an interrupted job to save its checkpoint
PLAIN_WIDTH = 160  # characters of the table if the output is not a terminal


def in_sweep() -> bool:
    """Whether Hydra runs this configuration as one job of a sweep."""
    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


def run_job(config: TrainConfig) -> float:
    """Runs the current job of a sweep, with its settings, in a new process; returns its best cost, NaN if it failed."""
    job = HydraConfig.get()
    overrides = [override for override in job.overrides.task if not override.startswith("run_dir=")]
    command = [*PROGRAM, *overrides]
    command.append(f"run_dir={quoted(config.run_dir)}")
    print(f"job {job.job.num}: {' '.join(overrides)} → {config.run_dir}", flush=True)
    home = Path(job.runtime.cwd)
    code = _run(command, home)
    row = {**_row(list(overrides), home / config.run_dir, code), "run_dir": config.run_dir}
    folder = home / job.sweep.dir
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / f"job-{job.job.num}.json", json.dumps(row))
    return row["best"] if row["best"] is not None else math.nan


def _run(command: list[str], folder: Path) -> int:
    """The exit code of a command run in a folder; Ctrl-C reaches it through the terminal, and it has time to save."""
    process = subprocess.Popen(command, cwd=folder)
    try:
        return process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=STOP_SECONDS)
        raise


def _row(overrides: list[str], run_dir: str | Path, code: int) -> dict[str, Any]:
    row: dict[str, Any] = {"overrides": overrides, "run_dir": str(run_dir), "code": code, "best": None, "mean": None}
    metrics = Path(run_dir) / "metrics.csv"
    rows = list(csv.DictReader(metrics.read_text().splitlines())) if code == 0 and metrics.exists() else []
    if rows:
        for name, column in (("best", "best_so_far"), ("mean", "cost_mean"), ("seconds", "seconds")):
            # It is empty if every episode was a dead end.
            row[name] = float(rows[-1][column]) if rows[-1][column] else None
        row["episodes"] = int(float(rows[-1]["episodes"]))
        found = Path(run_dir) / "best.json"
        if found.exists():  # The evaluation at the end comes after the last line.
            row["best"] = mean(one["cost"] for one in json.loads(found.read_text()).values())
    return row


class SweepTable(Callback):
    """Prints a line per job when a sweep has ended; exits with code 1 if any job failed."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Forgets the rows of an earlier sweep."""
        for path in Path(config.hydra.sweep.dir).glob("job-*.json"):
            path.unlink()

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        paths = Path(config.hydra.sweep.dir).glob("job-*.json")
        rows = [json.loads(path.read_text()) for path in sorted(paths, key=lambda path: int(path.stem.split("-")[1]))]
        if rows:
            console = Console()
            if not console.is_terminal:
                console.width = max(console.width, PLAIN_WIDTH)
            console.print(table(rows))
        if any(row["code"] for row in rows):
            raise SystemExit(1)


def table(rows: list[dict[str, Any]]) -> Table:
    """A table of the sweep's jobs, one line each."""
    cells = []
    for row in rows:
        job = " ".join(row["overrides"])
        if row["code"] or "episodes" not in row:
            cells.append([job, f"failed (exit code {row['code']})", "", "", "", row["run_dir"]])
            continue
        costs = ["–" if row[name] is None else f"{row[name]:.4f}" for name in ("best", "mean")]
        cells.append([job, *costs, str(row["episodes"]), f"{row['seconds']:.0f}", row["run_dir"]])
    columns = ("job", "best cost", "last mean", "episodes", "seconds", "run folder")
    return make_table(columns, cells, title="Sweep", left=("run folder",))
