"""Plots the training curves of a sweep over seeds: their mean with its 95% interval; and writes each curve as JSON.

    python examples/plot_seeds.py [runs/sweeps] [--column greedy_cost] [--out seeds.png]

Reads the `job-<number>.json` of `macro-placement train -m seed=0,1,2`, and each job's `metrics.csv`. Jobs that differ
only in their seed form one line. `seeds.json` lists the jobs; `curve` is as in a benchmark's results, points of
(seconds, cost), here of wall-clock time.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from placement.benchmark.aggregates import Interval, bootstrap


def jobs(folder: Path, column: str) -> list[dict[str, Any]]:
    """Returns the sweep's successful jobs, in order, each with the rows in which the column has a value."""
    found = []
    for path in sorted(folder.glob("job-*.json"), key=lambda path: int(path.stem.split("-")[1])):
        job = json.loads(path.read_text(encoding="utf-8"))
        if job["code"]:
            continue
        with (Path(job["run_dir"]) / "metrics.csv").open(encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row.get(column)]
        settings = dict(override.partition("=")[::2] for override in job["overrides"])
        found.append(
            {
                "seed": int(settings.pop("seed", 0)),
                "settings": settings,
                "run_dir": job["run_dir"],
                "metric": column,
                "iterations": [int(row["iteration"]) for row in rows],
                "curve": [[float(row["seconds"]), float(row[column])] for row in rows],
            }
        )
    return found


def intervals(group: list[dict[str, Any]]) -> dict[int, Interval]:
    """Returns, by iteration, the mean over the jobs with its bootstrap interval, where all jobs have a value."""
    values = [dict(zip(job["iterations"], np.array(job["curve"])[:, 1], strict=True)) for job in group]
    shared = sorted(set.intersection(*map(set, values)))
    return {
        iteration: bootstrap(lambda sample: sample[0].mean(axis=-1), [np.array([one[iteration] for one in values])])
        for iteration in shared
    }


def groups(found: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Groups the jobs that differ only in their seed by their common settings."""
    result: dict[str, list[dict[str, Any]]] = {}
    for job in found:
        name = " ".join(f"{key}={value}" for key, value in sorted(job["settings"].items()))
        result.setdefault(name or "default settings", []).append(job)
    return result


def main() -> None:
    """Writes the plot and the JSON beside it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("runs/sweeps"))
    parser.add_argument("--column", default="greedy_cost")
    parser.add_argument("--out", type=Path, default=Path("seeds.png"))
    arguments = parser.parse_args()
    found = [job for job in jobs(arguments.folder, arguments.column) if job["curve"]]
    if not found:
        parser.error(f"{arguments.folder}: no job that ended well has a value of {arguments.column}")
    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    for name, group in groups(found).items():
        points = intervals(group)
        if not points:
            print(f"{name}: no iteration in which all seeds have a value")
            continue
        value, low, high = np.array(list(points.values())).T
        axes.plot(list(points), value, label=f"{name}, {len(group)} seeds")
        axes.fill_between(list(points), low, high, alpha=0.2)
    axes.set(xlabel="iteration", ylabel=arguments.column.replace("_", " "))
    axes.legend(frameon=False)
    figure.savefig(arguments.out, dpi=120)
    arguments.out.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"plot: {arguments.out}\ncurves: {arguments.out.with_suffix('.json')}")


if __name__ == "__main__":
    main()
