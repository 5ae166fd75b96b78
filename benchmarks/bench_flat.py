"""Full evaluations of placements of an imported design: wirelengths, CPU seconds, memory; compared with coloquinte.

    python benchmarks/bench_flat.py DESIGN placement.plc other.def … [--published published.csv]

Printed for each placement: routed, legal and flat wirelength (µm), the share of the wires above capacity; the CPU
seconds of the whole evaluation, of the spread cells (with the clusters that they begin in) and of the dense ones; the
placer's iterations in both and their mean milliseconds. If coloquinte is installed, it places the cells, too, neither
spread nor legalised. With --published (a CSV with the columns placer and routed_wirelength_um), Kendall's τ with the
routed wirelength of a commercial flow.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
from pathlib import Path

from rich.console import Console
from scipy.stats import kendalltau

from placement.annealing.finishing import anneal_for_full_evaluation
from placement.benchmark.coloquinte_judge import coloquinte_scores, is_installed
from placement.evaluation.full_evaluation import read_flat_of
from placement.evaluation.placements import load_placements
from placement.flat.flat_evaluator import FlatEvaluation, FlatEvaluator
from placement.netlist.load import find, load
from placement.report.placement_metrics import make_table

COLUMNS = ("placement", "routed", "legal", "flat", "overflow", "CPU-s", "spread", "dense", "iterations", "ms each")


def row(name: str, found: FlatEvaluation, seconds: float) -> list[str]:
    """Returns one line of the table."""
    spread, dense, route = found.spread, found.dense, found.route
    legal = found.legal.wirelength if found.legal else spread.wirelength
    wires = [f"{one:,.0f}" for one in (route.routed_wirelength, legal, dense.wirelength)]
    times = [f"{one:.1f}" for one in (seconds, spread.seconds, dense.seconds)]
    each = 1000 * dense.seconds / dense.iterations
    return [name, *wires, f"{route.overflow:.2%}", *times, f"{spread.iterations} + {dense.iterations}", f"{each:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design")
    parser.add_argument("placements", nargs="+")
    parser.add_argument("--published", type=Path)
    given = parser.parse_args()
    design, (flat, cluster) = load(given.design), read_flat_of(given.design)
    evaluator = FlatEvaluator(flat, cluster, design, anneal=anneal_for_full_evaluation)
    table, routed, columns = [], {}, list(COLUMNS)
    if is_installed():
        columns += ["coloquinte, µm", "overflow"]
    for name, placement in load_placements(given.placements, given.design, design).items():
        begun = time.process_time()
        found = evaluator.evaluate(placement)
        table.append(row(name, found, time.process_time() - begun))
        routed[name] = found.route.routed_wirelength
        if is_installed():
            theirs = coloquinte_scores(find(given.design).parent, design, placement)
            table[-1] += [f"{theirs['coloquinte_wirelength']:,.0f}", f"{theirs['coloquinte_overflow']:.2%}"]
    Console(width=160).print(make_table(columns, table))
    print(f"{len(flat.cells):,} cells; {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB at most")
    if given.published:
        with given.published.open(encoding="utf-8") as file:
            known = {line["placer"]: float(line["routed_wirelength_um"]) for line in csv.DictReader(file)}
        pairs = [(length, known[name.split(".")[0]]) for name, length in routed.items()]
        print(f"Kendall's τ with the published routed wirelength: {kendalltau(*zip(*pairs, strict=True))[0]:.2f}")


if __name__ == "__main__":
    main()
