"""Legalisation of perturbed placements: CPU seconds, displacement, and cases without a legal placement found.

    python benchmarks/bench_legaliser.py [DESIGN …] [--sigma 60] [--dense 100] [--exact 100]

By default, clustered designs of 250, 500 and 1,000 macros with legal placements are generated. Their macros are
perturbed by a normal distribution. `--dense` counts the failures on canvases that are cut into pieces and filled to
85%, after the pieces are perturbed. `--exact` counts, of random floorplans of at most 12 macros with fixed macros,
blockages, fences and halos at 50% to 95% utilisation, in how many an exact solver (CP-SAT, if the package ortools is
installed) finds a legal placement and the legaliser does not.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.exact_placement import exists, solver_name
from placement.annealing.legaliser import NoLegalPlacement, boxes_of, legalise
from placement.netlist.design import Design, Placement
from placement.netlist.generators.clustered import clustered
from placement.netlist.load import load
from tests.support.dense import constrained_design, dense_design, strewn

SIZES = (250, 500, 1000)
SOFT_FOR_EACH = 6
UTILISATIONS, STEP, MOST = (0.5, 0.6, 0.7, 0.8, 0.9), 0.1, 0.95
SOLVER_SECONDS = 20.0
"""Time limit for each case in seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="*")
    parser.add_argument("--sigma", type=float, default=60.0, help="µm")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dense", type=int, default=0, metavar="CASES", help="of each size and spread")
    parser.add_argument("--exact", type=int, default=0, metavar="CASES", help="of each range of utilisation")
    arguments = parser.parse_args()
    if arguments.exact:
        compare_with_exact(arguments.exact)
        return
    if arguments.dense:
        count_dense(arguments.dense)
        return
    designs = [load(name) for name in arguments.designs] or [made(macros) for macros in SIZES]
    for design in designs:
        seconds, moved = legalised(design, strewn(design, arguments.sigma, seed=arguments.seed))
        found = "no room" if moved is None else f"{moved:,.0f} µm moved"
        print(f"{design.name}: {len(design.placing_order)} macros, {seconds:.2f} CPU-s, {found}", flush=True)


def made(macros: int) -> Design:
    """Generates a design with this many macros."""
    return clustered(seed=0, hard=macros, soft=SOFT_FOR_EACH * macros, ports=120, name=f"clustered{macros}")


def legalised(design: Design, placement: Placement) -> tuple[float, float | None]:
    """Returns CPU seconds, and the total displacement of the macros in µm; None if no legal placement was found."""
    begun = time.process_time()
    try:
        legal = legalise(design, placement)
    except NoLegalPlacement:
        return time.process_time() - begun, None
    seconds, nodes = time.process_time() - begun, design.placing_order
    return seconds, float((np.abs(legal.x - placement.x) + np.abs(legal.y - placement.y))[nodes].sum())


def count_dense(cases: int) -> None:
    """Prints the number of dense cases without a legal placement found."""
    for macros in (10, 25, 60):
        for sigma in (30.0, 100.0):
            designs = [dense_design(seed, macros=macros) for seed in range(cases)]
            told = [legalised(design, strewn(design, sigma, seed=at)) for at, design in enumerate(designs)]
            lost = sum(moved is None for _, moved in told)
            seconds = sum(seconds for seconds, _ in told) / cases
            print(f"{macros} macros strewn by {sigma:g} µm: no room in {lost} of {cases}, {seconds:.2f} CPU-s each")


def compare_with_exact(cases: int) -> None:
    """Prints, by utilisation, the number of cases in which a legal placement exists and is found."""
    for low in UTILISATIONS:
        possible = unknown = 0
        lost = []
        for seed in range(cases):
            design = constrained_design(
                seed, utilization=low + np.random.default_rng(seed).uniform(0, min(STEP, MOST - low))
            )
            start = strewn(design, 300.0, seed=seed)
            feasible: bool | None = True
            if legalised(design, start)[1] is None:
                boxes = boxes_of(design, start, spacing=0.0)
                feasible = exists(boxes, seconds=SOLVER_SECONDS)
                lost += [seed] if feasible else []
            possible, unknown = possible + bool(feasible), unknown + (feasible is None)
        share = f"{low:.0%} to {min(low + STEP, MOST):.0%}"
        print(
            f"{share}: {possible} of {cases} cases have a legal placement by {solver_name()} ({unknown} open in "
            f"{SOLVER_SECONDS:g} s), of which the legaliser misses {len(lost)} {lost or ''}",
            flush=True,
        )


if __name__ == "__main__":
    main()
