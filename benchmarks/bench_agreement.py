"""How well the costs rank placements of the macros as the flat check does.

    python benchmarks/bench_agreement.py place DESIGN OUT [--count 40] [--moves 200000] [--spacing 0] [--plc a.plc …]
    python benchmarks/bench_agreement.py check DESIGN OUT [--cold] [--growth 1.05]
    python benchmarks/bench_agreement.py rank DESIGN OUT [--soft-placer NAME] [--settle MOVES]

DESIGN is the folder of an imported or generated flat design (macro-placement generate flat). `place` makes legal
placements in OUT: random and greedy ones, and those of searches with several costs, weights and lengths. `check` places
all cells around each (each from its clusters' places, with --cold from the middle), spreads them and estimates the
routing, a line of OUT/checks.csv each.
`rank` prints Kendall's τ of each cost, and of its parts, with the flat wirelength and the routed estimate, over all
placements and over the quarter with the shortest wires. All three go on where they were stopped.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau

from placement.config import CostConfig
from placement.engine.costs import CostWeights, proxy_cost
from placement.engine.soft import place_soft_macros
from placement.flat.check import flat_check
from placement.flat.from_clusters import cells_in_clusters, core_of
from placement.flat.global_placement import PlacerSettings
from placement.flat.routable import spread_cells
from placement.flat.routing import RoutingResources, route_estimate
from placement.netlist.design import Design, Placement
from placement.netlist.flat_file import FLAT_NAME, read_flat
from placement.netlist.formats.plc import read_placement
from placement.netlist.importing import read_clusters
from placement.netlist.load import load
from placement.search.config import AnnealConfig, Budget
from placement.search.search import search
from placement.search.starts import Start, legal, make_starts
from placement.training.compilation import keep_compilations

_FIELDS = ("placement", "flat_wirelength", "density_overflow", "routed_wirelength", "overflow", "seconds")
# Cost, weights of wirelength, density and congestion, share of the moves.
_SEARCHES = [
    (name, weights, share)
    for share in (1.0, 0.1, 0.02)
    for name, weights in (
        ("proxy", (1.0, 0.5, 0.5)),
        ("proxy", (5.0, 0.5, 0.5)),
        ("proxy", (20.0, 0.5, 0.5)),
        ("proxy", (1.0, 0.0, 0.0)),
        ("proxy", (5.0, 0.0, 0.5)),
        ("proxy", (5.0, 1.0, 0.0)),
        ("chip", (1.0, 0.5, 0.5)),
        ("chip", (1.0, 0.1, 0.5)),
        ("chip", (1.0, 2.0, 0.0)),
    )
]


_CHIP = tuple(CostWeights(1.0, *weights, "chip") for weights in ((1.0, 1.0), (0.3, 0.3), (0.1, 0.3)))


class Recipe(NamedTuple):
    """How a placement comes about: one of the starts, or a search."""

    name: str
    start: str
    weights: CostWeights | None = None
    share: float = 0.0


def recipes(count: int) -> Iterator[Recipe]:
    """`count` of them: a fifth are starts, the others searches."""
    starts = [Recipe(f"{start}-{number}", start) for number in range(count) for start in ("random", "greedy", "packed")]
    yield from starts[: count // 5]
    for number in range(count - count // 5):
        cost, weights, share = _SEARCHES[number % len(_SEARCHES)]
        name = f"{cost}-{'-'.join(f'{weight:g}' for weight in weights)}-{share:g}-{number}"
        start = ("packed", "greedy")[number // len(_SEARCHES) % 2]
        yield Recipe(name, start, CostWeights(*weights, cost), share)


def make(design: Design, recipe: Recipe, moves: int, seed: int, spacing: float) -> Placement:
    config = AnnealConfig(starts=(recipe.start,), spacing=spacing)
    if recipe.weights is None:
        return make_starts(design, config, seed)[0].placement
    budget = Budget(moves=max(1000, round(moves * recipe.share)))
    return search(design, config=config, budget=budget, weights=recipe.weights, seed=seed).placement


def place(args: argparse.Namespace) -> None:
    design = load(str(args.design))
    for path in args.plc:
        config = AnnealConfig(spacing=args.spacing)
        placement = legal(design, read_placement(path, design.netlist, located=design.initial)[1], config)
        write(args.out / f"given-{path.stem}.npz", Start(path.stem, placement))
    for number, recipe in enumerate(recipes(args.count)):
        path = args.out / f"{recipe.name}.npz"
        if path.exists():
            continue
        begun = time.process_time()
        write(path, Start(recipe.name, make(design, recipe, args.moves, number, args.spacing)))
        print(f"{recipe.name}: {time.process_time() - begun:.1f} CPU-s", flush=True)


def write(path: Path, start: Start) -> None:
    one = start.placement
    np.savez(path, x=one.x, y=one.y, orientation=one.orientation)


def read(path: Path, design: Design) -> Placement:
    with np.load(path) as arrays:
        initial = design.initial
        placed = np.ones_like(initial.placed)
        return Placement(
            x=arrays["x"], y=arrays["y"], orientation=arrays["orientation"], placed=placed, fixed=initial.fixed
        )


def check(args: argparse.Namespace) -> None:
    keep_compilations()
    design, flat, cluster = load(str(args.design)), read_flat(args.design / FLAT_NAME), read_clusters(args.design)
    resources = RoutingResources.of(design.canvas)
    core, done = core_of(flat, design), set(checks(args.out))
    for path in sorted(args.out.glob("*.npz")):
        if path.stem in done:
            continue
        start = cells_in_clusters(flat, cluster, design.netlist, read(path, design))
        begin = None if args.cold else start
        found = flat_check(flat.netlist, start, core, settings=PlacerSettings(warm_growth=args.growth), start=begin)
        spread = spread_cells(flat.netlist, start, core, dense=found.wirelength)
        route = route_estimate(flat.netlist, spread.placement, core, resources)
        values = (found.wirelength, found.density_overflow, route.routed_wirelength, route.overflow, found.seconds)
        fresh = not (args.out / "checks.csv").exists()
        with (args.out / "checks.csv").open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            if fresh:
                writer.writerow(_FIELDS)
            writer.writerow((path.stem, *(f"{value:.8g}" for value in values)))
        print(path.stem, *(f"{value:.5g}" for value in values), flush=True)


def checks(folder: Path) -> dict[str, dict[str, float]]:
    """The lines of checks.csv by placement."""
    if not (folder / "checks.csv").exists():
        return {}
    with (folder / "checks.csv").open(encoding="utf-8") as file:
        return {row.pop("placement"): {key: float(value) for key, value in row.items()} for row in csv.DictReader(file)}


def rank(args: argparse.Namespace) -> None:
    design, found = load(str(args.design)), checks(args.out)
    truth = {key: np.array([row[key] for row in found.values()]) for key in ("flat_wirelength", "routed_wirelength")}
    placements = [read(args.out / f"{name}.npz", design) for name in found]
    if args.soft_placer:
        placements = [place_soft_macros(design, one, args.soft_placer) for one in placements]
    columns: dict[str, np.ndarray] = {}
    for weights in (CostConfig().weights(), *_CHIP):
        name = f"{weights.name} {weights.wirelength:g} {weights.density:g} {weights.congestion:g}"
        settled = [settle(design, one, weights, args.settle) if args.settle else one for one in placements]
        costs = [proxy_cost(design, one, weights=weights) for one in settled]
        columns[name] = np.array([cost.proxy_cost for cost in costs])
        for part in ("wirelength_cost", "density_cost", "congestion_cost"):
            columns[f"  {part}"] = np.array([getattr(cost, part) for cost in costs])
        _print_ranks(columns, truth)
        columns.clear()


def settle(design: Design, placement: Placement, weights: CostWeights, moves: int) -> Placement:
    """A placement with its soft macros placed for a cost, the hard ones where they stand."""
    placement = place_soft_macros(design, placement, "analytic")
    fixed = placement.fixed.copy()
    fixed[design.netlist.hard] = True
    held = dataclasses.replace(placement, fixed=fixed)
    return search(
        dataclasses.replace(design, initial=held),
        [Start("given", held)],
        config=AnnealConfig(hot=0.1),
        budget=Budget(moves=moves),
        weights=weights,
    ).placement


def _print_ranks(columns: dict[str, np.ndarray], truth: dict[str, np.ndarray]) -> None:
    """Kendall's tau of each column with each truth, over all placements and over the best quarter."""
    flat = truth["flat_wirelength"]
    best = np.argsort(flat)[: max(4, len(flat) // 4)]
    print(
        f"{len(flat)} placements, {min(flat):.4g} to {max(flat):.4g} µm; all: flat, routed; best quarter: flat, routed"
    )
    for name, values in columns.items():
        taus = [kendalltau(values[rows], truth[key][rows])[0] for rows in (slice(None), best) for key in truth]
        print(f"{name:24} {taus[0]:9.2f} {taus[1]:6.2f} {taus[2]:20.2f} {taus[3]:6.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run in (("place", place), ("check", check), ("rank", rank)):
        command = commands.add_parser(name)
        command.add_argument("design", type=Path)
        command.add_argument("out", type=Path)
        command.set_defaults(run=run)
        if name == "place":
            command.add_argument("--count", type=int, default=40)
            command.add_argument("--moves", type=int, default=200_000, help="of the longest searches")
            command.add_argument("--spacing", type=float, default=0.0, help="µm between macros")
            command.add_argument("--plc", type=Path, nargs="*", default=[])
        if name == "check":
            command.add_argument("--cold", action="store_true", help="cells begin in the middle of the core")
            command.add_argument("--growth", type=float, default=1.05, help="of the density's weight")
        if name == "rank":
            command.add_argument("--settle", type=int, default=0, help="moves of the soft macros for each cost first")
            command.add_argument("--soft-placer", help="places the soft macros anew first")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    args.run(args)


if __name__ == "__main__":
    main()
