"""Prints a table and draws a plot of a sweep: each job's best cost over each swept setting.

    python examples/plot_sweep.py [runs/sweeps] [--out sweep.png]

Reads the `job-<number>.json` of `macro-placement train -m`, with any sweeper.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter


class Job(NamedTuple):
    """A successful job.

    Attributes:
        number: its number in the sweep.
        settings: the swept numbers, by key.
        best: its best proxy cost.
    """

    number: int
    settings: dict[str, float]
    best: float


def jobs(folder: Path) -> list[Job]:
    """Returns the sweep's jobs in order, without failed ones."""
    found = []
    for path in folder.glob("job-*.json"):
        row = json.loads(path.read_text(encoding="utf-8"))
        if row["best"] is not None:
            pairs = [override.split("=", 1) for override in row["overrides"]]
            settings = {key: float(value) for key, value in pairs if _is_number(value)}
            found.append(Job(int(path.stem.split("-")[1]), settings, row["best"]))
    return sorted(found)


def varied(found: list[Job]) -> list[str]:
    """Returns the settings with more than one value."""
    keys = {key for job in found for key in job.settings}
    return sorted(key for key in keys if len({job.settings.get(key) for job in found}) > 1)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def draw(found: list[Job], keys: list[str], path: Path) -> None:
    """Draws a panel per setting; later jobs have lighter points."""
    figure, panels = plt.subplots(1, len(keys), figsize=(3.2 * len(keys), 3), sharey=True, layout="constrained")
    for panel, key in zip([panels] if len(keys) == 1 else panels, keys, strict=True):
        shown = [job for job in found if key in job.settings]
        values = [job.settings[key] for job in shown]
        panel.scatter(values, [job.best for job in shown], c=[job.number for job in shown])
        panel.set(xlabel=key, xscale="log" if min(values) > 0 and max(values) > 10 * min(values) else "linear")
        panel.xaxis.set_minor_formatter(NullFormatter())
    figure.axes[0].set_ylabel("best proxy cost")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Prints the table, best job first, and draws the plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("runs/sweeps"))
    parser.add_argument("--out", type=Path, default=Path("sweep.png"))
    arguments = parser.parse_args()
    found = jobs(arguments.folder)
    keys = varied(found)
    if not keys:
        parser.error(f"{arguments.folder}: no two jobs that ended well with different numbers")
    print("  ".join(["   job", "     best", *(f"{key:>24}" for key in keys)]))
    for job in sorted(found, key=lambda job: job.best):
        print("  ".join([f"{job.number:6d}", f"{job.best:9.4f}", *(f"{job.settings[key]:24.6g}" for key in keys)]))
    draw(found, keys, arguments.out)
    print(f"plot: {arguments.out}")


if __name__ == "__main__":
    main()
