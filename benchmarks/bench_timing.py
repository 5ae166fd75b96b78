"""Static timing compared with OpenSTA: the slack of every endpoint, and CPU seconds.

    python benchmarks/bench_timing.py --verilog netlist.v.gz --lef *.lef.gz --def placed.def.gz --liberty *.lib.gz \
        --sdc design.sdc [--sta sta] [--keep FOLDER] [--random | --as-placed] [--plot FILE]

The DEF file holds the macros' positions. Cells are placed around them (`--random`: anywhere in the core; `--as-placed`:
as in the file). OpenSTA times the same placement, with the loads that it accepts (`placement.flat.opensta`). Printed
are the number of common endpoints, Kendall's τ of their slacks, the differences, and both totals.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import kendalltau

from placement.flat.global_placement import place_cells
from placement.flat.opensta import OpenSta
from placement.flat.problem import Core
from placement.flat.timing import TimingEstimate, TimingEvaluator
from placement.netlist.design import Placement
from placement.netlist.flat_design import FlatDesign
from placement.netlist.importing import ChipFiles, read_chip


def placed(flat: FlatDesign, *, is_random: bool) -> Placement:
    """Returns the design with all cells placed."""
    core = flat.floorplan.core
    box = Core(width=core.width, height=core.height, x=core.x_low, y=core.y_low)
    if not is_random:
        return place_cells(flat.netlist, flat.placement, box).placement
    draw = np.random.default_rng(0).random((2, len(flat.cells)))
    return flat.placement.moved(flat.cells, core.x_low + draw[0] * core.width, core.y_low + draw[1] * core.height)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in (("verilog", "+"), ("lef", "+"), ("liberty", "+"), ("def", None), ("sdc", None)):
        parser.add_argument(f"--{name}", nargs=count, required=True)
    parser.add_argument("--sta", default="sta")
    parser.add_argument("--keep")
    parser.add_argument("--plot")
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--as-placed", action="store_true")
    given = parser.parse_args(words)
    chip = read_chip(
        ChipFiles(lef=given.lef, def_=vars(given)["def"], verilog=given.verilog, liberty=given.liberty, sdc=given.sdc)
    )
    assert chip.timing is not None
    limited = TimingEvaluator(chip.timing, chip.flat)
    placement = chip.flat.placement if given.as_placed else placed(chip.flat, is_random=given.random)
    print(f"{chip.flat.name}: {len(chip.flat.cells):,} cells, {len(chip.timing.instance):,} pins; {chip.timing.wires}")
    estimate = limited.evaluate(placement)
    print(f"in the product: wns {estimate.wns:.1f} ps, tns {estimate.tns / 1000:.1f} ns, {estimate.seconds:.3f} CPU-s")
    judge = OpenSta(given.sta, chip.timing, chip.flat)
    found = judge.evaluate(placement, folder=Path(given.keep) if given.keep else None)
    ours, names = found.estimate, judge.pin_names()
    print(f"full pass: {ours.seconds:.3f} CPU-s; {len(ours.endpoint):,} endpoints")
    compare(ours.endpoint, ours.slack_at_end, names, found.slack)
    print(f"OpenSTA: {found.seconds:.1f} CPU-s, with reading")
    if given.plot:
        worst = limited.evaluate(placement, paths=5000)
        draw(
            Path(given.plot), chip.flat, placement, worst, ours, [found.slack.get(names[pin]) for pin in ours.endpoint]
        )


def draw(
    path: Path,
    flat: FlatDesign,
    placement: Placement,
    estimate: TimingEstimate,
    ours: TimingEstimate,
    theirs: Sequence[float | None],
) -> None:
    """Plots the worst paths over the macros, and our slacks against OpenSTA's (None: missing)."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    hard = flat.netlist.hard
    width, height = (sides[hard] for sides in flat.netlist.sides(placement.orientation))
    for x, y, across, up in zip(placement.x[hard], placement.y[hard], width, height, strict=True):
        left.add_patch(
            plt.Rectangle((x - across / 2, y - up / 2), across, up, facecolor="#dbe4ee", edgecolor="#8aa0b6")
        )
    kinds = dict.fromkeys(path.group for path in estimate.paths)
    for number, kind in enumerate(kinds):
        for one in [path for path in estimate.paths if path.group == kind][:10]:
            left.plot(one.x, one.y, color=f"C{number + 1}", linewidth=0.7, label=kind)
    handles, labels = left.get_legend_handles_labels()
    first = {label: handle for handle, label in zip(handles, labels, strict=True)}
    left.legend(first.values(), first.keys(), title="worst paths", loc="upper right", fontsize=8)
    left.set(aspect="equal", xlabel="µm", ylabel="µm")
    left.autoscale_view()
    known = np.array([value is not None for value in theirs])
    other = np.array([value for value in theirs if value is not None]) / 1000
    right.plot(other, ours.slack_at_end[known] / 1000, ",", color="C0")
    ends = [other.min(), other.max()]
    right.plot(ends, ends, color="0.6", linewidth=0.7)
    right.set(xlabel="slack by OpenSTA, ns", ylabel="slack by the estimate, ns")
    figure.savefig(path, dpi=110)


def compare(endpoint: np.ndarray, slack: np.ndarray, names: Sequence[str], theirs: dict[str, float]) -> None:
    """Prints the agreement of endpoints' slacks (ps)."""
    own = {names[pin]: float(value) for pin, value in zip(endpoint.tolist(), slack, strict=True)}
    common = sorted(own.keys() & theirs.keys())
    ours, other = (np.array([one[name] for name in common]) for one in (own, theirs))
    apart = np.abs(ours - other)
    print(
        f"endpoints: {len(own):,} ours, {len(theirs):,} OpenSTA's, {len(common):,} of both; τ "
        f"{kendalltau(ours, other).statistic:.4f}; difference median {np.median(apart):.2f} ps, 99% "
        f"{np.quantile(apart, 0.99):.2f}, most {apart.max():.2f} ps at {common[int(apart.argmax())]}"
    )
    for name, found in (("ours", ours), ("OpenSTA", other)):
        print(f"{name}: wns {min(found.min(), 0):.1f} ps, tns {found[found < 0].sum() / 1000:.1f} ns")
    for name, lost in (("ours", own.keys() - theirs.keys()), ("OpenSTA's", theirs.keys() - own.keys())):
        if lost:
            print(f"only {name}: {len(lost):,}, as {', '.join(sorted(lost)[:3])}")


if __name__ == "__main__":
    main()
