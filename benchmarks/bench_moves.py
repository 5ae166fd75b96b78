"""Moves per CPU second of the incremental exact cost: all three terms of the cost after each move, one core.

    python benchmarks/bench_moves.py [DESIGN] [--moves N] [--accept SHARE] [--cost chip] [--anneal SECONDS]

DESIGN is a name or a path; default: ariane133_ng45 if it is on PLACEMENT_PATH, else clustered120. Of ten moves, four
put a hard macro and four a soft macro on a random gcell, one swaps two hard macros, one turns one. --accept is the
share of moves that is kept; the rest is undone. The public annealer's figure is for Ariane, so the ratio is printed for
it only. --anneal: also the moves of a search of this many CPU seconds after its starts: its own mix of moves at its own
acceptance, most of them rejected by a bound before their nets are rerouted.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from bench_cost import ARIANE, default_design

from placement.annealing.search import search
from placement.config import CostConfig
from placement.engine.costs import CostWeights, IncrementalCost, compute_costs
from placement.netlist.design import Design, NodeKind
from placement.netlist.load import load

PUBLIC_ANNEALER = 6_000  # moves per CPU second, MacroPlacement's C++ annealer
BAR = 40_000
REPEATS = 10


def native_rate(cost: IncrementalCost, moves: int, accept: float) -> float:
    """Returns moves per CPU second, median of `REPEATS` runs of a loop in C++."""
    rates = []
    for repeat in range(REPEATS):
        start = time.process_time()
        cost._native.random_walk(moves // REPEATS, repeat, accept)
        rates.append((moves // REPEATS) / (time.process_time() - start))
    return statistics.median(rates)


def python_rate(cost: IncrementalCost, design: Design, moves: int, accept: float) -> float:
    """Returns moves per CPU second of a Python loop over moves of hard and soft macros drawn beforehand."""
    generator = np.random.default_rng(0)
    canvas, kinds = design.canvas, design.netlist.kind
    macros = np.flatnonzero(np.isin(kinds, (NodeKind.HARD, NodeKind.SOFT)) & ~design.initial.fixed)
    by_kind = [macros[kinds[macros] == kind] for kind in (NodeKind.HARD, NodeKind.SOFT)]
    groups = [group for group in by_kind if len(group)]
    nodes = [int(generator.choice(groups[i % len(groups)])) for i in range(moves)]
    xs = ((generator.integers(0, canvas.columns, moves) + 0.5) * canvas.cell_width).tolist()
    ys = ((generator.integers(0, canvas.rows, moves) + 0.5) * canvas.cell_height).tolist()
    accepted = (generator.random(moves) < accept).tolist()
    start = time.process_time()
    for node, x, y, accept_it in zip(nodes, xs, ys, accepted, strict=True):
        cost.move(node, x, y)
        if accept_it:
            cost.commit()
        else:
            cost.undo()
    return moves / (time.process_time() - start)


def annealer_rates(design: Design, weights: CostWeights, seconds: float) -> tuple[float, float, float]:
    """Returns moves per CPU second of a search after its starts, and the shares of legal and of accepted moves."""
    found = search(design, seconds=seconds, weights=weights)
    first, last = found.history[0], found.history[-1]
    drawn, legal, accepted = (sum(tally[i] for tally in found.tallies.values()) for i in range(3))
    return (last.moves - first.moves) / (last.seconds - first.seconds), legal / drawn, accepted / drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", nargs="?", default=None)
    parser.add_argument("--moves", type=int, default=1_000_000)
    parser.add_argument("--accept", type=float, default=0.1, help="share of the moves that is kept")
    parser.add_argument("--cost", choices=("chip", "proxy"), default="proxy")
    parser.add_argument("--anneal", type=float, default=0.0, help="CPU seconds of a search")
    arguments = parser.parse_args()
    design = load(arguments.design or default_design())
    weights = CostConfig(name=arguments.cost).weights()
    cost = IncrementalCost(design, weights=weights)
    native = native_rate(cost, arguments.moves, arguments.accept)
    print(f"{design.name}: {design.netlist.num_nets} nets, {design.canvas.columns} × {design.canvas.rows} gcells")
    print(f"C++ loop: {native:,.0f} moves per CPU second ({1e6 / native:.2f} µs each)")
    python = python_rate(cost, design, arguments.moves // 20, arguments.accept)
    print(f"Python loop: {python:,.0f} moves per CPU second ({1e6 / python:.2f} µs each)")
    expected = compute_costs(design, cost.placement, weights=weights)
    difference = max(abs(a - b) for a, b in zip(cost.costs, expected, strict=True))
    print(f"after {arguments.moves + arguments.moves // 20:,} moves, difference from a full evaluation: {difference}")
    if arguments.anneal:
        rate, legal, accepted = annealer_rates(design, weights, arguments.anneal)
        print(f"search: {rate:,.0f} moves per CPU second, {legal:.0%} of them legal, {accepted:.1%} accepted")
    if design.name == ARIANE and arguments.cost == "proxy":
        print(f"public annealer: {PUBLIC_ANNEALER:,} moves per CPU second; this is {native / PUBLIC_ANNEALER:.0f} ×")
        print(f"bar of {BAR:,}: {'met' if native >= BAR else 'NOT met'}")


if __name__ == "__main__":
    main()
