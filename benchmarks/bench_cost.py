"""CPU time of one full evaluation of the proxy cost, compared with other evaluators.

    python benchmarks/bench_cost.py [DESIGN] [PLACEMENT.plc]

DESIGN is a name or a path; default: ariane133_ng45 if it is on PLACEMENT_PATH, else clustered120. The other figures
were measured on Ariane, so ratios are printed for that design only. Medians and minima of CPU time, one core.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time

from placement.engine.costs import proxy_cost
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import find, load

ARIANE = "ariane133_ng45"
OPEN_EVALUATOR = 13.0  # seconds per evaluation, MacroPlacement's Python evaluator
CLOSED_BINARY = 6e-3  # seconds per move, Circuit Training's binary
BAR = 0.3e-3  # maximum seconds of an evaluation of Ariane


def default_design() -> str:
    try:
        load(ARIANE)
    except DesignError:
        return "clustered120"
    return ARIANE


def seconds_per_evaluation(design: Design, placement: Placement, *, repeats: int = 30, calls: int = 40) -> list[float]:
    """Returns the CPU seconds per call in each of `repeats` runs of `calls` calls."""
    proxy_cost(design, placement)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(calls):
            proxy_cost(design, placement)
        times.append((time.process_time() - start) / calls)
    return times


def worst_golden_error(design: Design) -> float | None:
    """Returns the largest relative error over `golden/costs.json` beside the design's netlist; None without it."""
    golden = find(design.name).parent / "golden"
    if not (golden / "costs.json").exists():
        return None
    worst = 0.0
    for case in json.loads((golden / "costs.json").read_text()):
        canvas, placement = read_placement(golden / case["placement"], design.netlist)
        costs = proxy_cost(dataclasses.replace(design, canvas=canvas, initial=placement))
        for name in ("wirelength", "wirelength_cost", "density_cost", "congestion_cost"):
            worst = max(worst, abs(getattr(costs, name) / case[name] - 1))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", nargs="?", default=None)
    parser.add_argument("placement", nargs="?", default=None)
    arguments = parser.parse_args()
    design = load(arguments.design or default_design())
    placement = design.initial
    if arguments.placement is not None:
        _, placement = read_placement(arguments.placement, design.netlist)
    times = seconds_per_evaluation(design, placement)
    median, least = statistics.median(times), min(times)
    print(f"{design.name}: {design.netlist.num_nets} nets, {design.canvas.columns} × {design.canvas.rows} gcells")
    print(f"costs: {proxy_cost(design, placement)}")
    print(f"full evaluation: median {median * 1e6:.1f} µs, minimum {least * 1e6:.1f} µs of CPU time")
    worst = worst_golden_error(design)
    if worst is not None:
        print(f"largest relative error against the golden costs beside the netlist: {worst:.1e}")
    if design.name == ARIANE:
        print(f"open Python evaluator: {OPEN_EVALUATOR:.0f} s, {OPEN_EVALUATOR / median:,.0f} × this")
        print(f"closed binary, per move: {CLOSED_BINARY * 1e3:.0f} ms, {CLOSED_BINARY / median:.0f} × this")
        print(f"bar of {BAR * 1e3:.1f} ms: {'met' if median <= BAR else 'NOT met'}")


if __name__ == "__main__":
    main()
