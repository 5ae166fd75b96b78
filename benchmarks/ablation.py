"""Ablation of the training recipe: the default and one change at a time, at equal time, with several seeds.

    python benchmarks/ablation.py [--design clustered40] [--minutes 0.75] [--seeds 3] [--only NAME …] [--out FOLDER]

Every run is its own `train.py` process with `runtime.minutes=…`: learning rate and entropy target fall over the same
time, whatever a change costs per step. A discarded run of one iteration compiles the programs before, and the clock
starts after JAX has started. Runs are sequential. Pin the command to the cores to compare on (`taskset -c 0 …`), and
keep those free. Finished runs are not repeated: the same command resumes.

Prints and writes (`ablation.md`, `.csv`, `.png`) for each change: the mean proxy cost of the sampled episodes over the
last tenth of the time, its difference from the default, the best placement, and the episodes; means and standard
deviations over the seeds.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placement.report import style
from placement.report.run_watch import read_metrics

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = "default"

VARIANTS: dict[str, tuple[str, ...]] = {
    DEFAULT: (),
    # Inputs of the policy
    "no location head": ("policy.location=false",),
    "no graph": ("policy.graph=false",),
    "initial bias to little wire": ("policy.wire_bias=2",),
    "initial bias to wire, edges, little whitespace": (
        "policy.wire_bias=2",
        "policy.edge_bias=2",
        "policy.whitespace_bias=6",
    ),
    # Learning
    "4 epochs on the same episodes": ("ppo.epochs=4",),
    "4 epochs, a third of the learning rate": ("ppo.epochs=4", "ppo.learning_rate=1e-3"),
    "learning rate / 3": ("ppo.learning_rate=1e-3",),
    "no entropy target": ("ppo.entropy_target=0",),
    "constant learning rate and least entropy bonus": ("ppo.final_fraction=1",),
    "entropy target × 1.5": ("ppo.entropy_target=3",),
    "all of the samples": ("ppo.sample_fraction=1",),
    "a quarter of the samples": ("ppo.sample_fraction=0.25",),
    "half the episodes per iteration": ("ppo.episodes_per_iteration=24",),
    "one version of staleness": ("runtime.max_staleness=1",),
}


class Outcome(NamedTuple):
    """Result of one run.

    Attributes:
        mean: proxy cost of the sampled episodes over the last tenth of the time.
        best: proxy cost of the best placement found.
        episodes: number of episodes learned from.
        seconds, costs: float64 [iterations], the curve.
    """

    mean: float
    best: float
    episodes: int
    seconds: np.ndarray
    costs: np.ndarray


def train(design: str, folder: Path, settings: tuple[str, ...]) -> None:
    """Runs train.py once; its output is written to `folder`.log."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    given = [f"design={design}", f"run_dir={folder}", "env.cost=proxy", *settings]
    command = [sys.executable, str(ROOT / "train.py"), *given]
    with folder.with_suffix(".log").open("w", encoding="utf-8") as log:
        done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: see {folder.with_suffix('.log')}")


def outcome(folder: Path, minutes: float, design: int = 0) -> Outcome:
    """Reads a run's metrics; of several designs, those of one."""
    columns = read_metrics(folder / "metrics.csv")
    seconds = columns["seconds"]
    costs = columns.get(f"design{design}_cost_mean", columns["cost_mean"])
    late = seconds >= 0.9 * 60 * minutes
    late[-1] = True
    best = float(np.nanmin(columns["best_so_far"]))
    return Outcome(float(np.nanmean(costs[late])), best, int(columns["episodes"][-1]), seconds, costs)


def run(name: str, seed: int, options: argparse.Namespace) -> Outcome:
    """Trains, unless the run is already finished."""
    slug = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)
    folder = options.out / slug / f"seed{seed}"
    done = folder.with_suffix(".done")
    if not done.is_file():
        common = ("ppo.iterations=1000000", "runtime.evaluate_every=0", "runtime.checkpoint_every=1000000")
        settings = (*common, *options.set, *VARIANTS[name], f"seed={seed}")
        if seed == 0:
            with tempfile.TemporaryDirectory() as scratch:
                train(options.design, Path(scratch) / "compile", (*settings, "ppo.iterations=1"))
        train(options.design, folder, (*settings, f"runtime.minutes={options.minutes}"))
        done.touch()
    return outcome(folder, options.minutes)


def spread(values: list[float]) -> str:
    deviation = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.4f}{deviation}"


def write(found: dict[str, list[Outcome]], options: argparse.Namespace) -> None:
    """Writes the table as text and CSV, and the curves as a plot."""
    lines = [
        "| change | mean, last tenth | against the default | best placement | episodes |",
        "|---|---:|---:|---:|---:|",
    ]
    whole = statistics.fmean(one.mean for one in found[DEFAULT]) if DEFAULT in found else float("nan")
    with (options.out / "ablation.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["change", "seed", "mean", "best", "episodes"])
        for name, outcomes in found.items():
            means = [one.mean for one in outcomes]
            best = [one.best for one in outcomes]
            episodes = statistics.fmean(one.episodes for one in outcomes)
            change = statistics.fmean(means) - whole
            lines.append(f"| {name} | {spread(means)} | {change:+.4f} | {spread(best)} | {episodes:,.0f} |")
            for seed, one in enumerate(outcomes):
                writer.writerow([name, seed, one.mean, one.best, one.episodes])
    (options.out / "ablation.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    style.save_figure(_figure(found, options), options.out / "ablation.png")


def _figure(found: dict[str, list[Outcome]], options: argparse.Namespace) -> style.Figure:
    """Draws a small panel per change, with the default in grey behind."""
    names = [name for name in found if name != DEFAULT] or [DEFAULT]
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure = style.new_figure(3.2 * columns, 2.2 * rows + 0.8)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    every = np.concatenate([one.costs for outcomes in found.values() for one in outcomes])
    for axes, name in zip(panels.flat, names, strict=False):
        for who, colour in ((DEFAULT, "0.7"), (name, "C0")):
            for one in found.get(who, []):
                axes.plot(one.seconds, one.costs, color=colour, linewidth=0.9)
        axes.set_title(name, fontsize=8, loc="left")
        axes.set_xlim(0, 60 * options.minutes)
        axes.set_ylim(np.nanmin(every), np.nanquantile(every, 0.98))
        style.dress(axes)
    for axes in list(panels.flat)[len(names) :]:
        axes.set_visible(False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / figure.get_figheight()))
    title = f"{options.design}: mean proxy cost of the sampled episodes over seconds; grey: the default"
    figure.text(0.01, 1 - 0.12 / figure.get_figheight(), title, fontsize=10, va="top")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", default="clustered40")
    parser.add_argument("--minutes", type=float, default=0.75)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=None, metavar="NAME", help="some of the changes")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings of every run")
    parser.add_argument("--out", type=Path, default=Path("runs/ablation"))
    options = parser.parse_args()
    names = list(VARIANTS) if options.only is None else [name for name in VARIANTS if name in options.only]
    unknown = set(options.only or ()) - set(VARIANTS)
    if unknown:
        parser.error(f"no such change: {', '.join(sorted(unknown))}; there are: {', '.join(VARIANTS)}")
    options.out = options.out.resolve()
    found: dict[str, list[Outcome]] = {}
    for seed in range(options.seeds):
        for name in names:
            result = run(name, seed, options)
            found.setdefault(name, []).append(result)
            print(
                f"seed {seed}, {name}: mean {result.mean:.4f}, best {result.best:.4f}, {result.episodes} episodes",
                flush=True,
            )
    write(found, options)
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
