"""Static timing beside OpenSTA: the slack of every endpoint, and CPU seconds.

    python benchmarks/bench_timing.py --verilog netlist.v.gz --lef *.lef.gz --def placed.def.gz --liberty *.lib.gz \
        --sdc design.sdc [--sta sta] [--keep FOLDER] [--random | --as-placed] [--plot FILE]

The DEF file has the macros' places. Cells are placed around them (`--random`: anywhere in the core; `--as-placed`:
where the file has them). OpenSTA reads the
same netlist, libraries and constraints, our wires' delays as SDF and the loads of our nets. It cannot take a load below
that of a net's pins: here no driver's load is limited, as it is in the product where a net would be buffered. Printed
are the endpoints that both have, Kendall's τ of their slacks, the differences, and both totals.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import kendalltau

from placement.flat.global_placement import place_cells
from placement.flat.problem import Core
from placement.flat.timing import TimingEstimate, TimingEvaluator
from placement.netlist.design import Placement
from placement.netlist.files import unpacked_bytes
from placement.netlist.flat_design import FlatDesign
from placement.netlist.importing import ChipFiles, read_chip
from placement.netlist.timing_netlist import TimingNetlist

UNLIMITED = 1e9
"""fF."""
_END = re.compile(r"^(\S+) \(.*\)\s+(-?[\d.]+)\s+(-?[\d.]+)\s+(-?[\d.]+)(?: \((?:MET|VIOLATED)\))?$")


def placed(flat: FlatDesign, *, is_random: bool) -> Placement:
    """The design with all cells placed."""
    core = flat.floorplan.core
    box = Core(width=core.width, height=core.height, x=core.x_low, y=core.y_low)
    if not is_random:
        return place_cells(flat.netlist, flat.placement, box).placement
    draw = np.random.default_rng(0).random((2, len(flat.cells)))
    return flat.placement.moved(flat.cells, core.x_low + draw[0] * core.width, core.y_low + draw[1] * core.height)


def escaped(name: str, *, bits: bool) -> str:
    """The name of a pin or port as SDF (`bits`: a bit of a bus has plain brackets) and as patterns of Tcl need it."""
    cell, divider, pin = name.rpartition("/")
    return re.sub(r"([][])", r"\\\1", cell) + divider + (pin if bits else re.sub(r"([][])", r"\\\1", pin))


def sdf(names: Sequence[str], driver: np.ndarray, wire: np.ndarray, unit: str) -> Iterator[str]:
    """Lines of an SDF file with the delay (ps) of each wire."""
    yield f'(DELAYFILE (SDFVERSION "3.0") (DIVIDER /) (TIMESCALE {unit})\n'
    yield '(CELL (CELLTYPE "top") (INSTANCE) (DELAY (ABSOLUTE\n'
    for pin in np.flatnonzero(driver >= 0).tolist():
        delay = f"({wire[pin]:.3f}::{wire[pin]:.3f})"
        ends = f"{escaped(names[driver[pin]], bits=True)} {escaped(names[pin], bits=True)}"
        yield f"(INTERCONNECT {ends} {delay} {delay})\n"
    yield "))))\n"


def loads(
    names: Sequence[str], timing: TimingNetlist, net_driver: np.ndarray, load: np.ndarray, unit: float
) -> Iterator[str]:
    """Tcl that gives each net that a cell drives its load (fF)."""
    for net, pin in enumerate(net_driver.tolist()):
        if pin >= 0 and timing.instance[pin] >= 0:
            yield (
                f"set_load -subtract_pin_load {load[net] / unit:.6g} "
                f"[get_nets -of_objects [get_pins {{{escaped(names[pin], bits=False)}}}]]\n"
            )


def run_sta(folder: Path, sta: str, libraries: Sequence[Path], sdc: str, top: str) -> tuple[dict[str, float], float]:
    """The slack of each endpoint in the library's time unit, and OpenSTA's CPU seconds."""
    script = [f"read_liberty {path}" for path in libraries]
    script += ["read_verilog netlist.v", f"link_design {top}", f"read_sdc {sdc}", "source loads.tcl"]
    script += ["read_sdf -unescaped_dividers wires.sdf"]
    script += ["report_checks -path_delay max -format end -digits 5 -group_count 10000000 -no_line_splits > ends.txt"]
    (folder / "run.tcl").write_text("\n".join([*script, "exit", ""]))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with (folder / "sta.log").open("w") as log:
        subprocess.run(
            [sta, "-no_splash", "-exit", "run.tcl"], cwd=folder, stdout=log, stderr=log, timeout=1800, check=True
        )
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    ends: dict[str, float] = {}
    for line in (folder / "ends.txt").read_text().splitlines():
        found = _END.match(line)
        if found:
            ends[found[1]] = min(float(found[4]), ends.get(found[1], np.inf))
    return ends, seconds


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
        ChipFiles(
            lef=given.lef, def_file=vars(given)["def"], verilog=given.verilog, liberty=given.liberty, sdc=given.sdc
        )
    )
    assert chip.timing is not None
    limited = TimingEvaluator(chip.timing, chip.flat)
    placement = chip.flat.placement if given.as_placed else placed(chip.flat, is_random=given.random)
    print(f"{chip.flat.name}: {len(chip.flat.cells):,} cells, {len(chip.timing.instance):,} pins; {chip.timing.wires}")
    estimate = limited.evaluate(placement)
    print(f"in the product: wns {estimate.wns:.1f} ps, tns {estimate.tns / 1000:.1f} ns, {estimate.seconds:.3f} CPU-s")
    timing = dataclasses.replace(
        chip.timing,
        wires=dataclasses.replace(chip.timing.wires, most_load=UNLIMITED),
        library=dataclasses.replace(
            chip.timing.library, max_capacitance=np.zeros_like(chip.timing.library.max_capacitance)
        ),
    )
    evaluator = TimingEvaluator(timing, chip.flat)
    begun = time.process_time()
    ours = evaluator.evaluate(placement)
    print(f"full pass: {time.process_time() - begun:.3f} CPU-s; {len(ours.endpoint):,} endpoints")
    delays = evaluator.delays(placement)
    names = [timing.pin_name(pin, chip.flat) for pin in range(len(timing.instance))]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(given.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        libraries = []
        for path in given.liberty:
            libraries.append(folder / Path(path).name.removesuffix(".gz"))
            libraries[-1].write_bytes(unpacked_bytes(path))
        (folder / "netlist.v").write_bytes(b"\n".join(map(unpacked_bytes, given.verilog)))
        text = libraries[0].read_text(errors="replace")
        time_unit = re.search(r'time_unit\s*:\s*"?1(\wS|\ws)', text)
        load_unit = re.search(r'capacitive_load_unit\s*\(\s*[\d.]+\s*,\s*"?([pf])', text)
        assert time_unit is not None and load_unit is not None
        with (folder / "wires.sdf").open("w") as file:
            file.writelines(sdf(names, evaluator.facts["driver"], delays["wire"], "1ps"))
        with (folder / "loads.tcl").open("w") as file:
            load = np.maximum(delays["load_rise"], delays["load_fall"])
            file.writelines(
                loads(names, timing, evaluator.facts["net_driver"], load, 1000.0 if load_unit[1] == "p" else 1.0)
            )
        theirs, seconds = run_sta(folder, given.sta, libraries, str(Path(given.sdc).resolve()), chip.flat.name)
    unit = 1000.0 if time_unit[1] == "ns" else 1.0
    compare(ours.endpoint, ours.slack_at_end, names, {name: slack * unit for name, slack in theirs.items()})
    print(f"OpenSTA: {seconds:.1f} CPU-s, with reading")
    if given.plot:
        in_ps = {name: slack * unit for name, slack in theirs.items()}
        worst = limited.evaluate(placement, paths=5000)
        draw(Path(given.plot), chip.flat, placement, worst, ours, [in_ps.get(names[pin]) for pin in ours.endpoint])


def draw(
    path: Path,
    flat: FlatDesign,
    placement: Placement,
    estimate: TimingEstimate,
    ours: TimingEstimate,
    theirs: Sequence[float | None],
) -> None:
    """Writes a picture: the worst paths over the macros, and our slacks beside OpenSTA's (None: it has none)."""
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
    """Prints how the slacks (ps) of endpoints agree."""
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
