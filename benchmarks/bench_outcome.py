"""Quality of macro placements of an imported design, by an independent placer and by the full evaluation.

    python benchmarks/bench_outcome.py DESIGN placed.plc flow.def … [--published published.csv] [--no-check]

For each placement coloquinte places all standard cells around the macros, with no halo. Printed: the half perimeters of
the nets of 2 to 3,000 pins, the share of their demand over the tracks (of horizontal wires, of vertical ones), and the
mean demand over capacity of the fullest 5% of the gcells; then the results of `evaluate full=true`. Demand is a net's
half perimeter times 0.55 + 0.05 for each pin (1 at least, 4 at most), spread over its box on 128 × 128 gcells; capacity
is the canvas's tracks, or --tracks, less what macros block, or --blocked. With --published (a CSV with the columns
placer and routed_wirelength_um), Kendall's τ of each figure with the routed wirelength of the placer a file is named
after. Needs `pip install coloquinte`.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

from placement.benchmark.coloquinte_judge import coloquinte_placement
from placement.evaluation.full_evaluation import FullEvaluator, read_flat_of
from placement.evaluation.placements import load_placements
from placement.flat.correspondence import core_of, macros_on_flat
from placement.flat.problem import Core, counted_nets, pin_offsets
from placement.netlist.design import Canvas, Netlist, Placement
from placement.netlist.load import load

_GRID = 128  # gcells across and up
_FULLEST = 0.05


class Outside(NamedTuple):
    """Results of the independent placer.

    Attributes:
        flat_wirelength: µm.
        over_horizontal, over_vertical: shares of the demand over the tracks.
        fullest: mean demand over capacity of the fullest gcells.
        seconds: CPU seconds of the placer alone.
    """

    flat_wirelength: float
    over_horizontal: float
    over_vertical: float
    fullest: float
    seconds: float


def outside(netlist: Netlist, macros: Placement, core: Core, tracks: np.ndarray, blocked: np.ndarray) -> Outside:
    """Evaluates fixed macros with coloquinte; `tracks`, and the `blocked` part of them, are those of `tracks_of`."""
    placed, seconds = coloquinte_placement(netlist, macros, core)
    dx, dy = pin_offsets(netlist, placed.orientation)
    sides = []
    for at, offset, corner in ((placed.x, dx, core.x), (placed.y, dy, core.y)):
        pins = (at[netlist.pin_node] + offset - corner)[netlist.net_pins]
        starts = netlist.net_start[:-1]
        sides.append((np.minimum.reduceat(pins, starts), np.maximum.reduceat(pins, starts)))
    size = core.width / _GRID, core.height / _GRID
    first, end = zip(*(_gcells(*side, step) for side, step in zip(sides, size, strict=True)), strict=True)
    counted, degree = counted_nets(netlist), np.diff(netlist.net_start)
    tree = counted * np.clip(0.55 + 0.05 * degree, 1, 4)
    gcells = (end[0] - first[0]) * (end[1] - first[1]) * size[0] * size[1]
    covered = _covered(netlist, macros, core)
    over, fullest = [], []
    for (low, high), track, block in zip(sides, tracks, blocked, strict=True):
        demand = _spread(tree * (high - low) / gcells, first, end)
        room = track - block * covered
        over.append(float(np.maximum(demand - room, 0).sum() / demand.sum()))
        fullest.append((demand / room).ravel())
    ranked = np.sort(np.concatenate(fullest))
    length = sum(float((high - low)[counted].sum()) for low, high in sides)
    return Outside(length, over[0], over[1], float(ranked[-int(_FULLEST * len(ranked)) :].mean()), seconds)


def _gcells(low: np.ndarray, high: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns the first gcell of each interval, and the one after its last."""
    first, last = (np.clip((edge / step).astype(int), 0, _GRID - 1) for edge in (low, high))
    return first, last + 1


def _spread(amount: np.ndarray, first: tuple[np.ndarray, ...], end: tuple[np.ndarray, ...]) -> np.ndarray:
    """Returns the sum of boxes of gcells, each with `amount` everywhere, [128, 128]."""
    steps = np.zeros((_GRID + 1, _GRID + 1))
    for i, j, sign in ((first[0], first[1], 1), (end[0], end[1], 1), (first[0], end[1], -1), (end[0], first[1], -1)):
        np.add.at(steps, (i, j), sign * amount)
    return steps.cumsum(0).cumsum(1)[:_GRID, :_GRID]


def _covered(netlist: Netlist, macros: Placement, core: Core) -> np.ndarray:
    """Returns the share of each gcell under macros, [128, 128]."""
    hard, edge, shares = netlist.hard, np.arange(_GRID), []
    for at, side, corner, whole in (
        (macros.x, netlist.width, core.x, core.width),
        (macros.y, netlist.height, core.y, core.height),
    ):
        step = whole / _GRID
        low, high = ((at - corner + sign * side / 2)[hard, None] / step for sign in (-1, 1))
        shares.append(np.clip(np.minimum(edge + 1, high) - np.maximum(edge, low), 0, None))
    return np.minimum(shares[0].T @ shares[1], 1)


def tracks_of(canvas: Canvas) -> tuple[np.ndarray, np.ndarray]:
    """Returns the canvas's tracks per µm, horizontal and vertical, and those that a macro blocks."""
    return (
        np.array([canvas.routes_horizontal, canvas.routes_vertical]),
        np.array([canvas.macro_routes_horizontal, canvas.macro_routes_vertical]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", help="folder of an imported design")
    parser.add_argument("placements", nargs="+", help=".plc and DEF files")
    parser.add_argument("--tracks", type=float, nargs=2, help="per µm, horizontal and vertical")
    parser.add_argument("--blocked", type=float, nargs=2, help="of these under a macro")
    parser.add_argument("--published", type=Path)
    parser.add_argument("--no-check", action="store_true", help="without our own flat check")
    args = parser.parse_args()
    design = load(args.design)
    flat, _ = read_flat_of(args.design)
    placements = load_placements(args.placements, args.design, design)
    core, own = core_of(flat, design), tracks_of(design.canvas)
    tracks = np.array(args.tracks) if args.tracks else own[0]
    blocked = np.array(args.blocked) if args.blocked else own[1]
    evaluator = None if args.no_check else FullEvaluator(args.design, design)
    heads = ["coloquinte, m", "over across, up", "fullest 5%", "CPU-s"]
    heads += ["flat, m", "routed, m", "overflow", "CPU-s"] if evaluator else []
    table, figures = Table("placement", *heads), []
    for name, placement in placements.items():
        found = outside(flat.netlist, macros_on_flat(flat, design.netlist, placement), core, tracks, blocked)
        cells = [f"{found.flat_wirelength / 1e6:.3f}", f"{found.over_horizontal:.2%}, {found.over_vertical:.2%}"]
        cells += [f"{found.fullest:.3f}", f"{found.seconds:.0f}"]
        row = {"coloquinte": found.flat_wirelength}
        if evaluator:
            begun = time.process_time()
            check = evaluator.evaluate(placement).metrics
            cells += [f"{check.flat_wirelength / 1e6:.3f}", f"{check.routed_wirelength / 1e6:.3f}"]
            cells += [f"{check.overflow:.2%}", f"{time.process_time() - begun:.0f}"]
            row |= {"flat": check.flat_wirelength, "routed": check.routed_wirelength}
        print(name, *cells, sep=" | ", flush=True)
        table.add_row(name, *cells)
        figures.append(row)
    Console().print(table)
    if args.published:
        with args.published.open(encoding="utf-8") as file:
            known = {line["placer"]: float(line["routed_wirelength_um"]) for line in csv.DictReader(file)}
        measured = [known[Path(name).name.split(".")[0]] for name in placements]
        for key in figures[0]:
            tau = kendalltau([row[key] for row in figures], measured)[0]
            print(f"{key}: Kendall's τ with the published routed wirelength {tau:.2f}")


if __name__ == "__main__":
    main()
