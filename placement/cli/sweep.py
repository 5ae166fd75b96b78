"""Hydra sweeps: each job in a process and a run folder of its own, and a table of all of them at the end.

Whatever launcher Hydra uses, a job starts `train.py` anew with the job's overrides, so that no job inherits another's
memory, compilations or crash. A sweep that was stopped goes on with the same command: complete runs are not repeated.
"""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig
from rich.console import Console
from rich.table import Table

from placement.config import TrainConfig

STOP_SECONDS = 60.0  # that an interrupted job may take to save its checkpoint
PLAIN_WIDTH = 160  # characters of the table where the output is no terminal


def in_sweep() -> bool:
    """Whether Hydra runs this configuration as one job of a sweep."""
    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


def run_job(config: TrainConfig) -> float:
    """Runs the current sweep job as `train.py` in a new process; returns its best proxy cost, NaN if it failed."""
    job = HydraConfig.get()
    overrides = [override for override in job.overrides.task if not override.startswith("run_dir=")]
    command = [sys.executable, sys.argv[0], "--config-name", str(job.job.config_name), *overrides]
    command.append(f"run_dir={_quoted(config.run_dir)}")
    print(f"job {job.job.num}: {' '.join(overrides)} → {config.run_dir}", flush=True)
    code = _run(command)
    row = _row(list(overrides), config.run_dir, code)
    _write(Path(job.sweep.dir) / f"job-{job.job.num}.json", row)
    return row["best"] if row["best"] is not None else math.nan


def _quoted(value: str) -> str:
    """`value` as a Hydra override's quoted string."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _run(command: list[str]) -> int:
    """The command's exit code; Ctrl-C reaches it through the terminal and is given time to save."""
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=STOP_SECONDS)
        raise


def _row(overrides: list[str], run_dir: str, code: int) -> dict[str, Any]:
    """What the table shows of a job, read from its run folder."""
    row: dict[str, Any] = {"overrides": overrides, "run_dir": run_dir, "code": code, "best": None, "mean": None}
    metrics = Path(run_dir) / "metrics.csv"
    if code == 0 and metrics.exists():
        with metrics.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        if rows:
            row["best"] = _number(rows[-1]["best_so_far"])
            row["mean"] = _number(rows[-1]["proxy_cost_mean"])
            row["episodes"] = int(float(rows[-1]["episodes"]))
            row["seconds"] = float(rows[-1]["seconds"])
    return row


def _number(text: str) -> float | None:
    """A field of `metrics.csv`; None where it is empty, as where every episode was a dead end."""
    return float(text) if text else None


def _write(path: Path, row: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(row))
    os.replace(temporary, path)


class SweepTable(Callback):
    """Prints a line per job when a sweep has ended; ends with exit code 1 if any job failed."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Forgets the rows of an earlier sweep."""
        for path in Path(config.hydra.sweep.dir).glob("job-*.json"):
            path.unlink()

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Prints the table."""
        paths = Path(config.hydra.sweep.dir).glob("job-*.json")
        rows = [json.loads(path.read_text()) for path in sorted(paths, key=lambda path: int(path.stem.split("-")[1]))]
        if rows:
            console = Console()
            if not console.is_terminal:
                console.width = max(console.width, PLAIN_WIDTH)  # a file has room
            console.print(table(rows))
        if any(row["code"] for row in rows):
            raise SystemExit(1)


def table(rows: list[dict[str, Any]]) -> Table:
    """The sweep's jobs as a rich table, one line each."""
    result = Table(title="Sweep", title_justify="left")
    for column in ("job", "best proxy cost", "last mean", "episodes", "seconds", "run folder"):
        result.add_column(column, justify="left" if column in ("job", "run folder") else "right", overflow="fold")
    for row in rows:
        job = " ".join(row["overrides"])
        if row["code"] or "episodes" not in row:
            result.add_row(job, f"failed (exit code {row['code']})", "", "", "", row["run_dir"])
            continue
        costs = ["–" if row[name] is None else f"{row[name]:.4f}" for name in ("best", "mean")]
        result.add_row(job, *costs, str(row["episodes"]), f"{row['seconds']:.0f}", row["run_dir"])
    return result
