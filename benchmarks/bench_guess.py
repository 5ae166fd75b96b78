"""What a nearly perfect guess of where the macros belong is worth to a search: the most that a learned one could be.

    python benchmarks/bench_guess.py DESIGN … [--cost chip] [--best 300] [--sigmas 0.25 0.5 1 2] [--seconds 2 5 10]

A long search (`--best` CPU seconds, of a seed of its own; `--kept FOLDER` keeps it) stands for what is known. Its hard
macros are blurred by a normal distribution of so many gcells on each axis and made legal; soft macros are placed anew,
for a guess would say nothing of them. Then a search refines that, as `search placement=FILE` does, for so many CPU
seconds, beside searches from their own starts in the same time. Neither the guess nor making it legal counts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from placement.annealing.finishing import anneal_soft_macros
from placement.annealing.legaliser import legalise
from placement.annealing.search import search
from placement.annealing.starts import Start
from placement.config import CostConfig
from placement.engine.costs import CostWeights
from placement.netlist.design import Design, Placement
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import load

OWN_SEED = 1000
"""Of the long search."""


def best_known(design: Design, weights: CostWeights, args: argparse.Namespace) -> Placement:
    """What the long search found, read where it was kept."""
    file = args.kept / f"{design.name}-{weights.name}-{args.best:g}.plc" if args.kept else None
    if file and file.exists():
        return read_placement(file, design.netlist, located=design.initial)[1]
    found = search(design, seconds=args.best, weights=weights, seed=OWN_SEED).placement
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_placement(file, design, found)
    return found


def guess(design: Design, best: Placement, sigma: float, weights: CostWeights, seed: int) -> Placement:
    """`best`, its macros blurred by `sigma` gcells and made legal, soft macros placed by the cost."""
    canvas, nodes = design.canvas, design.placing_order
    generator = np.random.default_rng([seed, int(1000 * sigma)])
    gcell = canvas.width / canvas.columns, canvas.height / canvas.rows
    at = [
        one[nodes] + generator.normal(0.0, sigma * side, len(nodes))
        for one, side in zip((best.x, best.y), gcell, strict=True)
    ]
    return anneal_soft_macros(design, legalise(design, best.moved(nodes, *at)), weights=weights, moves=10_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="+")
    parser.add_argument("--cost", choices=("chip", "proxy"), default="chip")
    parser.add_argument("--best", type=float, default=300.0, help="CPU seconds of the search that stands for the best")
    parser.add_argument("--kept", type=Path, help="where its placements are kept")
    parser.add_argument("--sigmas", type=float, nargs="+", default=[0.25, 0.5, 1.0, 2.0])
    parser.add_argument("--seconds", type=float, nargs="+", default=[2.0, 5.0, 10.0])
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    weights = CostConfig(name=args.cost).weights()
    for name in args.designs:
        design = load(name)
        best = best_known(design, weights, args)
        table = Table("CPU-s", "search alone", *(f"σ = {sigma:g}" for sigma in args.sigmas))
        table.title = f"{design.name}: {args.cost} cost, mean of {args.seeds} seeds"
        for seconds in args.seconds:
            row = []
            for sigma in (None, *args.sigmas):
                costs = []
                for seed in range(args.seeds):
                    starts = [Start("guess", guess(design, best, sigma, weights, seed))] if sigma is not None else []
                    found = search(
                        design,
                        starts,
                        seconds=seconds,
                        weights=weights,
                        seed=seed,
                    )
                    costs.append(found.costs.total)
                print(
                    f"{design.name}, {seconds:g} CPU-s, {sigma}: " + ", ".join(f"{cost:.5f}" for cost in costs),
                    flush=True,
                )
                row.append(f"{np.mean(costs):.4f}")
            table.add_row(f"{seconds:g}", *row)
        Console().print(table)


if __name__ == "__main__":
    main()
