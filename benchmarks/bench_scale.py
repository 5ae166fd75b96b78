"""Growth of times and memory with the design: a table, a log-log plot, and the exponents.

    python benchmarks/bench_scale.py OUT [--sizes 60 120 250 500 1000] [--search 10 70] [--cost chip] [--rounds 5]

Designs of `--sizes` hard macros and six times as many soft macros are generated. Each is measured in its own process on
one core, in CPU seconds: reading its files, a full cost, a move of the incremental cost, a step of an environment
without the episode's end, the soft placers, the legaliser (macros perturbed by 60 µm), an episode; then the peak
memory, and the cost of a search after `--search` CPU seconds. Written to OUT: scale.csv, scale.md, scale.png. The
exponent of a row is the slope of the line through the logarithms over that of the number of macros. On a shared
machine, a busy minute distorts it: `--rounds` measures all sizes repeatedly in turn, and the least time of each figure
counts. Searches run in the first round only.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from bench_step import episode

from placement.annealing.legaliser import legalise
from placement.annealing.search import search
from placement.config import CostConfig, EnvConfig
from placement.engine.costs import CostWeights, IncrementalCost, compute_costs
from placement.engine.pool import make_pool
from placement.engine.soft import place_soft_macros
from placement.engine.state import EpisodeRenderer
from placement.netlist.design import Design
from placement.netlist.formats.plc import write_placement
from placement.netlist.formats.protobuf import write_netlist
from placement.netlist.generators.clustered import clustered
from placement.netlist.load import load
from tests.support.dense import strewn

SIZES = (60, 120, 250, 500, 1000)
SOFT_FOR_EACH = 6
LEAST_SECONDS = 0.5
"""Minimum CPU seconds for which a short measurement is repeated."""
TIMES = ("read", "full cost", "move", "step", "analytic_fast", "force_directed", "legalise", "episode")
"""Rows that have an exponent."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="hard macros")
    parser.add_argument("--search", type=float, nargs="*", default=(10.0, 70.0), help="CPU seconds, rising")
    parser.add_argument("--cost", choices=("chip", "proxy"), default="chip")
    parser.add_argument("--rounds", type=int, default=1, help="times that all sizes are measured; the least counts")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments.one, arguments.search, arguments.cost)))
        return
    if arguments.rounds < 1:
        parser.error("--rounds is 1 at least")
    rows: dict[int, dict[str, float]] = {}
    for number in range(arguments.rounds):
        for size in arguments.sizes:
            words = [str(arguments.out), "--one", str(size), "--cost", arguments.cost, "--search"]
            words += map(str, arguments.search if number == 0 else [])
            ran = subprocess.run([sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True, check=True)
            row = json.loads(ran.stdout.splitlines()[-1])
            print(" · ".join(f"{name} {value:.3g}" for name, value in row.items()), flush=True)
            row |= {name: min(row[name], rows[size][name]) for name in TIMES if size in rows}
            rows[size] = rows.get(size, {}) | row
    write(arguments.out, list(rows.values()))


def measured(macros: int, search_seconds: list[float], cost_name: str) -> dict[str, float]:
    """Returns all figures of one size."""
    made = clustered(seed=0, hard=macros, soft=SOFT_FOR_EACH * macros, ports=120, name=f"clustered{macros}")
    weights = CostConfig(name=cost_name).weights()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_netlist(folder / "netlist.pb.txt", made.netlist)
        write_placement(folder / "initial.plc", made, made.initial)
        row: dict[str, float] = {"macros": macros, "read": seconds_of(lambda: load(str(folder)))}
        design = load(str(folder))
    row |= {"nodes": design.netlist.num_nodes, "nets": design.netlist.num_nets, "gcells": _gcells(design)}
    row["full cost"] = seconds_of(lambda: compute_costs(design, weights=weights))
    row["move"] = move_seconds(design, weights)
    row["step"] = step_seconds(design)
    for placer in ("analytic_fast", "force_directed"):
        row[placer] = seconds_of(lambda placer=placer: place_soft_macros(design, design.initial, placer))
    spread = strewn(design, 60.0, seed=0)
    row["legalise"] = seconds_of(lambda: legalise(design, spread), least=0.0)
    row["episode"] = episode_seconds(design, cost_name)
    row["peak memory, MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for seconds in search_seconds:
        found = search(design, seconds=seconds, weights=weights)
        row[f"cost after {seconds:g} CPU-s"] = found.costs.total
    return row


def seconds_of(call: Callable[[], Any], *, least: float = LEAST_SECONDS) -> float:
    """Returns the mean CPU seconds of calls for `least` seconds, after a first call; `least` 0: of that one."""
    if least > 0:
        call()
    begun, calls = time.process_time(), 0
    while not calls or time.process_time() - begun < least:
        call()
        calls += 1
    return (time.process_time() - begun) / calls


def move_seconds(design: Design, weights: CostWeights) -> float:
    """Returns the CPU seconds of a move of a random walk in C++, one in ten accepted."""
    cost, moves, seed = IncrementalCost(design, weights=weights), 2000, iter(range(10**9))
    return seconds_of(lambda: cost._native.random_walk(moves, next(seed), 0.1)) / moves


def step_seconds(design: Design) -> float:
    """Returns the CPU seconds of a step with its observation, inside the engine."""
    actions = episode(design, 0)[None]
    renderer = EpisodeRenderer([design])
    out = renderer.arrays(*actions.shape)
    return seconds_of(lambda: renderer.render([0], actions, [actions.size], out=out)) / actions.size


def episode_seconds(design: Design, cost_name: str) -> float:
    """Returns the CPU seconds of an episode of the pool on one thread, including soft macros and cost."""
    pool = make_pool(design, 1, num_threads=1, config=EnvConfig(cost=CostConfig(name=cost_name)))
    actions = episode(design, 0)

    def play() -> None:
        pool.reset()
        for action in actions:
            pool.step([action])

    return seconds_of(play)


def _gcells(design: Design) -> int:
    return design.canvas.rows * design.canvas.columns


def exponent(rows: list[dict[str, float]], name: str) -> float:
    """Returns the exponent of the power law in the number of macros that best fits a row."""
    x, y = (np.log([row[key] for row in rows]) for key in ("macros", name))
    return float(np.polyfit(x, y, 1)[0])


def write(out: Path, rows: list[dict[str, float]]) -> None:
    """Writes the table and the plot."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / "scale.csv").open("w", newline="") as stream:
        table = csv.DictWriter(stream, rows[0])
        table.writeheader()
        table.writerows(rows)
    slopes = {name: exponent(rows, name) for name in (*TIMES, "peak memory, MiB")} if len(rows) > 1 else {}
    sizes = " | ".join(f"{row['macros']:,.0f} macros" for row in rows)
    lines = [f"| | {sizes} | exponent |", "|---" * (len(rows) + 2) + "|"]
    for name in rows[0]:
        if name != "macros":
            slope = f"{slopes[name]:.2f}" if name in slopes else ""
            figures = " | ".join(shown(name, row[name]) for row in rows)
            lines.append(f"| {name} | {figures} | {slope} |")
    (out / "scale.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    draw(out / "scale.png", rows, slopes)


def shown(name: str, value: float) -> str:
    """Formats a figure with its unit."""
    if name in TIMES:
        unit = next((unit for unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if value >= unit[0]), (1e-6, "µs"))
        return f"{value / unit[0]:.3g} {unit[1]}"
    return f"{value:.4f}" if name.startswith("cost after") else f"{value:,.0f}"


def draw(path: Path, rows: list[dict[str, float]], slopes: dict[str, float]) -> None:
    """Plots times over macros on logarithmic axes."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    sizes = [row["macros"] for row in rows]
    for name, marker in zip(TIMES, "os^vD<>p", strict=True):
        label = f"{name} ({slopes[name]:.2f})" if name in slopes else name
        axes.loglog(sizes, [row[name] for row in rows], marker=marker, label=label)
    axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes], minor=False)
    axes.minorticks_off()
    axes.set(xlabel="hard macros (six times as many soft macros)", ylabel="CPU seconds")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(title="(exponent)", loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.savefig(path, dpi=120)
    assert math.isfinite(sum(slopes.values()))


if __name__ == "__main__":
    main()
