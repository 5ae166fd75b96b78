"""Quality of a policy's placements of unseen designs, compared with searches.

    python benchmarks/bench_base_policy.py OUT DESIGN … [--policy base] [--tuned 5] [--samples 64] [--search 10 70]

DESIGNs are folders of imported or generated flat designs (macro-placement generate flat OUT --varied true --seed 101).
Each is placed by the policy without any training (the cheapest of greedy, samples and their flips), or after `--tuned`
minutes of fine-tuning `base` on it alone, and by searches of `--search` CPU seconds with the chip cost and the same
seed. Then all cells are placed around the macros, spread for routing, and the routing is estimated. Each result is a
line of OUT/worth.csv; existing lines are not repeated.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from placement.annealing.finishing import anneal_for_full_evaluation
from placement.flat.flat_evaluator import FlatEvaluator
from placement.netlist.flat_design import FLAT_NAME, read_flat
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import load, read_clusters
from placement.utils.compilation import keep_compilations

_FIELDS = ("design", "placer", "seed", "flat_wirelength", "routed_wirelength", "overflow", "seconds")
_DEADLINE = 3600.0  # time limit of one placer in seconds


def placed(design: Path, out: Path, placer: str, args: argparse.Namespace) -> tuple[Path, float]:
    """Returns the placement's file, and the CPU seconds of the command, including compilation and loading."""
    if placer.startswith("search"):
        settings = ["search", "method=anneal", f"time={placer.removeprefix('search ')}", "plots=false"]
    elif args.tuned:
        run = out.parent / f"{out.name}-run"
        words = ["train", "preset=base", f"runtime.minutes={args.tuned:g}", "runtime.evaluate_every=0"]
        seconds = run_command([*words, f"design={design}", f"seed={args.seed}", f"run_dir={run}"])
        path, more = timed(
            ["sample", f"checkpoint={run}", f"samples={args.samples}", "plots=false"], design, out, args.seed
        )
        return path, seconds + more
    else:
        settings = ["sample", f"checkpoint={args.policy}", f"samples={args.samples}", "plots=false"]
    return timed(settings, design, out, args.seed)


def timed(words: list[str], design: Path, out: Path, seed: int) -> tuple[Path, float]:
    """Runs a command on a design; returns the placement's file, and the CPU seconds."""
    seconds = run_command([*words, f"design={design}", f"seed={seed}", f"out={out}"])
    return out / "placement.plc", seconds


def run_command(words: list[str]) -> float:
    """Runs a command to its end; returns its CPU seconds."""
    begun = children()
    finished = subprocess.run(
        [sys.executable, "-m", "placement", *words],
        capture_output=True,
        text=True,
        timeout=_DEADLINE,
        check=False,
    )
    if finished.returncode:
        raise SystemExit(f"{' '.join(words)}: {finished.stderr.strip()}")
    return children() - begun


def children() -> float:
    """Returns the CPU seconds of all child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def worth(folder: Path, path: Path) -> tuple[float, float, float]:
    """Returns flat and routed wirelength in µm, and the share of the demand over the tracks."""
    design, flat, cluster = load(str(folder)), read_flat(folder / FLAT_NAME), read_clusters(folder)
    placement = read_placement(path, design.netlist, located=design.initial)[1]
    found = FlatEvaluator(flat, cluster, design, anneal=anneal_for_full_evaluation).evaluate(placement)
    return found.dense.wirelength, found.route.routed_wirelength, found.route.overflow


def lines(path: Path) -> list[dict[str, Any]]:
    """Reads the lines of a worth.csv."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def add(path: Path, row: tuple[Any, ...]) -> None:
    """Appends a line to a worth.csv, with a header if it is the first."""
    fresh = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        if fresh:
            writer.writerow(_FIELDS)
        writer.writerow(row)


def show(rows: list[dict[str, Any]], placers: list[str]) -> None:
    """Prints routed wirelengths relative to the first placer's, and how often they are no longer."""
    table = Table("design", *(f"{name}, mm" for name in placers), title="routed wirelength (flat wirelength)")
    shorter = dict.fromkeys(placers[1:], 0)
    designs = dict.fromkeys(row["design"] for row in rows)
    for design in designs:
        own = {row["placer"]: row for row in rows if row["design"] == design}
        if any(name not in own for name in placers):
            continue
        routed = {name: float(own[name]["routed_wirelength"]) for name in placers}
        flat = {name: float(own[name]["flat_wirelength"]) for name in placers}
        table.add_row(design, *(f"{routed[name] / 1000:.1f} ({flat[name] / 1000:.1f})" for name in placers))
        for name in placers[1:]:
            shorter[name] += routed[placers[0]] <= routed[name]
    console = Console()
    console.print(table)
    for name, count in shorter.items():
        console.print(f"{placers[0]} no longer than {name}: {count} of {table.row_count}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("designs", type=Path, nargs="+")
    parser.add_argument("--policy", default="base", help="run folder, or the shipped policy's name")
    parser.add_argument("--label", help="of the policy in the table; default: its folder's name")
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument(
        "--tuned", type=float, default=0.0, help="minutes of training on the design, from the policy base"
    )
    parser.add_argument("--search", type=float, nargs="*", default=[10.0], help="CPU seconds of searches")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.tuned and args.policy != "base":
        parser.error(f"--tuned trains from base; --policy {args.policy} would say otherwise")
    args.out.mkdir(parents=True, exist_ok=True)
    keep_compilations()
    label = args.label or Path(args.policy).name + (f" tuned {args.tuned:g}" if args.tuned else "")
    placers, file = [label, *(f"search {seconds:g}" for seconds in args.search)], args.out / "worth.csv"
    for design in args.designs:
        for placer in placers:
            done = {(row["design"], row["placer"], row["seed"]) for row in lines(file)}
            if (design.name, placer, str(args.seed)) in done:
                continue
            path, seconds = placed(
                design, args.out / f"{design.name}-{placer}-{args.seed}".replace(" ", ""), placer, args
            )
            begun = time.process_time()
            values = worth(design, path)
            add(file, (design.name, placer, args.seed, *(f"{value:.8g}" for value in (*values, seconds))))
            lengths = f"{values[0]:,.0f} µm flat, {values[1]:,.0f} µm routed, overflow {values[2]:.2%}"
            took = f"{seconds:.1f} CPU-s; checked in {time.process_time() - begun:.1f} CPU-s"
            print(f"{design.name}, {placer}: {lengths}, {took}", flush=True)
    show([row for row in lines(file) if row["seed"] == str(args.seed)], placers)


if __name__ == "__main__":
    main()
