"""How well the costs rank placements of the macros as the flat check does.

    macro-placement judge data OUT --designs DESIGN --placements 40
    python benchmarks/bench_agreement.py OUT/DESIGN [MORE/DESIGN …] [--settle MOVES [--hot 1]] [--cost chip]

Prints Kendall's τ of each cost, and of its parts, with the flat wirelength and the routed estimate: over all
placements, and over the quarter of them that is shortest by the same measure. Placements of several data sets of one
design count together; what places the macros as another one does is left out.
Without `--settle` soft macros are as the samples have them, annealed for the chip cost.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from placement.annealing.settle import HOT, settle_soft_macros
from placement.config import CostConfig
from placement.engine.costs import CostWeights, compute_costs
from placement.engine.soft import place_soft_macros
from placement.judge.dataset import Sample, read_samples
from placement.netlist.design import Design

_PROXY = CostConfig().weights()
_CHIP = tuple(CostWeights(1.0, *weights, "chip") for weights in ((1.0, 1.0), (0.3, 0.3), (0.1, 0.3)))
_COSTS = {"all": (_PROXY, *_CHIP), "chip": _CHIP[:1], "proxy": (_PROXY,)}


def rank(args: argparse.Namespace) -> None:
    sets = [read_samples(folder) for folder in args.folders]
    design = sets[0][0]
    if any(other.netlist.names != design.netlist.names for other, _ in sets):
        raise SystemExit("the data sets are of different designs")
    samples = _unlike(design, [sample for _, some in sets for sample in some])
    truth = {
        key: np.array([getattr(sample.truth, key) for sample in samples])
        for key in ("flat_wirelength", "routed_wirelength")
    }
    placements = [sample.placement for sample in samples]
    if args.soft_placer:
        placements = [place_soft_macros(design, one, args.soft_placer) for one in placements]
    columns: dict[str, np.ndarray] = {}
    for weights in _COSTS[args.cost]:
        name = f"{weights.name} {weights.wirelength:g} {weights.density:g} {weights.congestion:g}"
        settled = [
            settle_soft_macros(design, one, weights=weights, moves=args.settle, hot=args.hot) if args.settle else one
            for one in placements
        ]
        costs = [compute_costs(design, one, weights=weights) for one in settled]
        columns[name] = np.array([cost.total for cost in costs])
        for part in ("wirelength_cost", "density_cost", "congestion_cost"):
            columns[f"  {part}"] = np.array([getattr(cost, part) for cost in costs])
        _print_ranks(columns, truth)
        columns.clear()


def _unlike(design: Design, samples: Sequence[Sample]) -> list[Sample]:
    """The first of those that place the hard macros alike."""
    hard = design.netlist.hard
    known: dict[bytes, Sample] = {}
    for sample in samples:
        places = np.stack((sample.placement.x[hard], sample.placement.y[hard]))
        known.setdefault(np.round(places, 3).tobytes(), sample)
    return list(known.values())


def _print_ranks(columns: dict[str, np.ndarray], truth: dict[str, np.ndarray]) -> None:
    """Kendall's tau of each column with each truth, over all placements and over the best quarter."""
    flat = truth["flat_wirelength"]
    quarter = max(4, len(flat) // 4)
    print(
        f"{len(flat)} placements, {min(flat):.4g} to {max(flat):.4g} µm; all: flat, routed; best quarter: flat, routed"
    )
    for name, values in columns.items():
        rows = [(key, slice(None)) for key in truth] + [(key, np.argsort(truth[key])[:quarter]) for key in truth]
        taus = [kendalltau(values[chosen], truth[key][chosen])[0] for key, chosen in rows]
        print(f"{name:24} {taus[0]:9.2f} {taus[1]:6.2f} {taus[2]:20.2f} {taus[3]:6.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--settle", type=int, default=0, help="moves of the soft macros for each cost first")
    parser.add_argument("--hot", type=float, default=HOT, help="their temperature at the beginning")
    parser.add_argument("--cost", choices=_COSTS, default="all", help="all: the chip cost with other weights, too")
    parser.add_argument("--soft-placer", help="places the soft macros anew first")
    rank(parser.parse_args())


if __name__ == "__main__":
    main()
