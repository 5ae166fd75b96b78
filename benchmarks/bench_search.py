"""The search: moves per CPU second with all bookkeeping, memory, and what each kind of moves brings (ablation).

    python benchmarks/bench_search.py [DESIGN] [--moves N] [--seeds N] [--ablation]

DESIGN is a name or a path; default: ariane133_ng45 where PLACEMENT_PATH has it, else clustered120. Without --ablation:
whole searches of N moves, with soft macros moved and without, by seed. With it: the mean cost after N moves when
something is left out, and its difference from the cost with everything.
"""

from __future__ import annotations

import argparse
import resource
import statistics

from bench_cost import default_design

from placement.annealing.config import MOVES, AnnealConfig, Budget
from placement.annealing.search import search
from placement.engine.costs import legality
from placement.netlist.design import Design
from placement.netlist.load import load

BAR = 30_000  # moves per CPU second
PUBLIC_ANNEALER = 6_000  # moves per CPU second, MacroPlacement's C++ annealer on Ariane


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rates(design: Design, moves: int, seeds: int) -> None:
    for soft_moves in (True, False):
        for seed in range(seeds):
            before = peak_megabytes()
            result = search(design, config=AnnealConfig(soft_moves=soft_moves), budget=Budget(moves=moves), seed=seed)
            rate = result.moves / result.seconds
            legal = legality(design, result.placement)
            print(
                f"{'hard and soft' if soft_moves else 'hard only':>13} seed {seed}: {result.costs.total:.4f} from "
                f"{result.start} in {result.seconds:.1f} CPU seconds, {rate:,.0f} moves per second "
                f"({rate / PUBLIC_ANNEALER:.0f} × the public annealer's), {legal.overlaps} overlaps, "
                f"{legal.outside} outside; peak memory {before:.0f} → {peak_megabytes():.0f} MB",
                flush=True,
            )
            print(f"{'':>13} bar of {BAR:,}: {'met' if rate >= BAR else 'NOT met'}")


def ablation(design: Design, moves: int, seeds: int) -> None:
    variants = {"everything": AnnealConfig()}
    variants |= {f"without {move}": AnnealConfig(without=(move,)) for move in MOVES}
    variants |= {
        "without all hard moves": AnnealConfig(without=tuple(move for move in MOVES if move.startswith("hard_"))),
        "fixed mix": AnnealConfig(adaptive_mix=False),
        "adaptive schedule": AnnealConfig(schedule="adaptive"),
        "starts at random": AnnealConfig(starts=("random",)),
        "starts greedily": AnnealConfig(starts=("greedy",)),
        "starts spirally": AnnealConfig(starts=("spiral",)),
        "no soft moves": AnnealConfig(soft_moves=False),
    }
    whole = 0.0
    for name, config in variants.items():
        found = [search(design, config=config, budget=Budget(moves=moves), seed=seed) for seed in range(seeds)]
        costs = [result.costs.total for result in found]
        mean = statistics.fmean(costs)
        whole = whole or mean
        seconds = statistics.fmean(result.seconds for result in found)
        seen = ", ".join(f"{cost:.4f}" for cost in costs)
        print(f"{name:>24}: {mean:.4f} ({mean - whole:+.4f}) in {seconds:.1f} CPU seconds; {seen}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", nargs="?", default=None)
    parser.add_argument("--moves", type=int, default=2_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ablation", action="store_true")
    arguments = parser.parse_args()
    design = load(arguments.design or default_design())
    print(f"{design.name}: {len(design.netlist.hard)} hard and {len(design.netlist.soft)} soft macros")
    (ablation if arguments.ablation else rates)(design, arguments.moves, arguments.seeds)


if __name__ == "__main__":
    main()
