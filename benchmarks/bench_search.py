"""The search: cost, moves per CPU second with all bookkeeping, and memory of whole searches.

    python benchmarks/bench_search.py [DESIGN] [--moves N] [--seeds N] [--schedule adaptive] [--starts packed,spiral]

DESIGN is a name or a path; default: ariane133_ng45 if it is on PLACEMENT_PATH, else clustered120. Searches of N moves,
with soft macros moved and without, by seed.
"""

from __future__ import annotations

import argparse
import resource
from typing import Any

from bench_cost import default_design

from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.search import search
from placement.engine.costs import legality
from placement.netlist.design import Design
from placement.netlist.load import load

BAR = 30_000  # moves per CPU second
PUBLIC_ANNEALER = 6_000  # moves per CPU second, MacroPlacement's C++ annealer on Ariane


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rates(design: Design, settings: dict[str, Any], moves: int, seeds: int) -> None:
    for soft_moves in (True, False):
        for seed in range(seeds):
            before = peak_megabytes()
            config = AnnealConfig(soft_moves=soft_moves, **settings)
            result = search(design, config=config, moves=moves, seed=seed)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", nargs="?", default=None)
    parser.add_argument("--moves", type=int, default=2_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--schedule", default="geometric")
    parser.add_argument("--starts", default="packed,electrostatic")
    arguments = parser.parse_args()
    design = load(arguments.design or default_design())
    print(f"{design.name}: {len(design.netlist.hard)} hard and {len(design.netlist.soft)} soft macros")
    settings = {"schedule": arguments.schedule, "starts": tuple(arguments.starts.split(","))}
    rates(design, settings, arguments.moves, arguments.seeds)


if __name__ == "__main__":
    main()
