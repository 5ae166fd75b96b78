"""What `search method=portfolio` is worth beside a search with the chip cost alone, at equal CPU time.

    python benchmarks/bench_portfolio.py OUT DESIGN … [--time 4] [--candidates 4] [--seeds 5] [--judge base --checks 3]

DESIGNs are folders of imported or generated flat designs (macro-placement generate flat OUT --varied true --seed 101).
The portfolio's command is timed, with loading, compiling and checks; then `search method=anneal` gets as many CPU
seconds for its moves, its loading not counted. All cells are placed around the macros of both, spread as routing needs
them, and the routing is estimated. A line of OUT/worth.csv each; what is there already is not done again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from bench_base_policy import add, lines, timed, worth
from rich.console import Console
from rich.table import Table
from scipy import stats

from placement.utils.compilation import keep_compilations

_PLACERS = ("portfolio", "chip")


def measure(design: Path, seed: int, args: argparse.Namespace) -> None:
    """Adds the lines of both placers."""
    file, seconds = args.out / "worth.csv", 0.0
    for placer in _PLACERS:
        done = {(row["design"], row["placer"], row["seed"]): float(row["seconds"]) for row in lines(file)}
        if (design.name, placer, str(seed)) in done:
            seconds = done[design.name, placer, str(seed)]
            continue
        if placer == "portfolio":
            words = ["method=portfolio", f"time={args.time:g}", f"candidates={args.candidates}"]
            words += [f"checks={args.checks}", f"judge={args.judge}"] if args.judge != "none" else []
        else:
            words = ["method=anneal", f"time={seconds:.1f}"]
        words = ["search", "plots=false", *words]
        path, seconds = timed(words, design, args.out / f"{design.name}-{placer}-{seed}", seed)
        values = worth(design, path)
        add(file, (design.name, placer, seed, *(f"{value:.8g}" for value in (*values, seconds))))
        lengths = f"{values[0]:,.0f} µm flat, {values[1]:,.0f} µm routed, overflow {values[2]:.2%}"
        print(f"{design.name}, {placer}, seed {seed}: {lengths}, {seconds:.1f} CPU-s", flush=True)


def show(rows: list[dict[str, Any]]) -> None:
    """Each design's mean difference of the routed wirelengths, with its 95% interval (Student's t over the seeds)."""
    table = Table("design", "seeds", "routed, %, 95%", "overflow, portfolio", "chip", "CPU-s, portfolio", "chip")
    for design in dict.fromkeys(row["design"] for row in rows):
        own = {(row["placer"], row["seed"]): row for row in rows if row["design"] == design}
        seeds = sorted({seed for _, seed in own if all((placer, seed) in own for placer in _PLACERS)})
        if not seeds:
            continue
        found = {
            key: np.array([[float(own[placer, seed][key]) for seed in seeds] for placer in _PLACERS])
            for key in ("routed_wirelength", "overflow", "seconds")
        }
        less = 100 * np.log(found["routed_wirelength"][0] / found["routed_wirelength"][1])
        error = (
            less.std(ddof=1) / np.sqrt(len(seeds)) * stats.t.ppf(0.975, len(seeds) - 1) if len(seeds) > 1 else np.nan
        )
        overflow, seconds = found["overflow"].mean(1), found["seconds"].mean(1)
        table.add_row(
            design,
            str(len(seeds)),
            f"{less.mean():+.1f} ± {error:.1f}",
            *(f"{share:.2%}" for share in overflow),
            *(f"{each:.0f}" for each in seconds),
        )
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("designs", type=Path, nargs="+")
    parser.add_argument("--time", type=float, default=4.0, help="CPU seconds of each of the portfolio's searches")
    parser.add_argument("--candidates", type=int, default=4)
    parser.add_argument("--judge", default="none", help="chooses the candidates that are checked; none: all are")
    parser.add_argument("--checks", type=int, default=3, help="of the candidates, where there is a judge")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    keep_compilations()
    for seed in range(args.seeds):
        for design in args.designs:
            measure(design, seed, args)
    show(lines(args.out / "worth.csv"))


if __name__ == "__main__":
    main()
