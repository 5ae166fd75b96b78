"""What making a strewn placement legal takes: CPU seconds, displacement, and cases in which no room is found.

    python benchmarks/bench_legaliser.py [DESIGN …] [--sigma 60] [--dense 100]

Without designs, clustered ones of 250, 500 and 1,000 macros are generated, whose own placements are legal. Their macros
are strewn by a normal distribution. `--dense` counts, of canvases that are cut into pieces and filled to 85%, in how
many no room is found once the pieces are strewn.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from placement.annealing.legaliser import NoLegalPlacement, legalise
from placement.netlist.design import Design, Placement
from placement.netlist.generators.clustered import clustered
from placement.netlist.load import load
from tests.support.dense import dense_design, strewn

SIZES = (250, 500, 1000)
SOFT_FOR_EACH = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="*")
    parser.add_argument("--sigma", type=float, default=60.0, help="µm")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dense", type=int, default=0, metavar="CASES", help="of each size and spread")
    arguments = parser.parse_args()
    if arguments.dense:
        count_dense(arguments.dense)
        return
    designs = [load(name) for name in arguments.designs] or [made(macros) for macros in SIZES]
    for design in designs:
        seconds, moved = legalised(design, strewn(design, arguments.sigma, seed=arguments.seed))
        found = "no room" if moved is None else f"{moved:,.0f} µm moved"
        print(f"{design.name}: {len(design.placing_order)} macros, {seconds:.2f} CPU-s, {found}", flush=True)


def made(macros: int) -> Design:
    """A generated design of so many macros."""
    return clustered(seed=0, hard=macros, soft=SOFT_FOR_EACH * macros, ports=120, name=f"clustered{macros}")


def legalised(design: Design, placement: Placement) -> tuple[float, float | None]:
    """CPU seconds, and how far the macros went, summed, µm; None where no room was found."""
    begun = time.process_time()
    try:
        legal = legalise(design, placement)
    except NoLegalPlacement:
        return time.process_time() - begun, None
    seconds, nodes = time.process_time() - begun, design.placing_order
    return seconds, float((np.abs(legal.x - placement.x) + np.abs(legal.y - placement.y))[nodes].sum())


def count_dense(cases: int) -> None:
    """Prints in how many dense cases no room is found."""
    for macros in (10, 25, 60):
        for sigma in (30.0, 100.0):
            designs = [dense_design(seed, macros=macros) for seed in range(cases)]
            told = [legalised(design, strewn(design, sigma, seed=at)) for at, design in enumerate(designs)]
            lost = sum(moved is None for _, moved in told)
            seconds = sum(seconds for seconds, _ in told) / cases
            print(f"{macros} macros strewn by {sigma:g} µm: no room in {lost} of {cases}, {seconds:.2f} CPU-s each")


if __name__ == "__main__":
    main()
