"""Timing-driven cells and the choice among candidates, judged by wirelength, overflow and negative slack.

    python benchmarks/bench_timing_search.py DESIGN --out FOLDER [--seconds 40] [--candidates 4] [--sta sta]

The design was imported with Liberty and SDC files. One search takes `--seconds`; the periods are then scaled so that
cells placed around its macros by wirelength miss the clock by `--missed`. The candidates share the same CPU seconds for
their searches and for placing and timing their cells. All are judged by the legalised cells of the full evaluation,
both wirelength-driven and timing-driven; also from other seeds, and with `--sta` by OpenSTA. Results are stored in
FOLDER: the same command resumes.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from placement.annealing.finishing import anneal_for_full_evaluation, anneal_soft_macros
from placement.annealing.search import search
from placement.config import CostConfig
from placement.evaluation.full_evaluation import SETTINGS, PlacedCells, read_flat_of
from placement.evaluation.mixed_size_start import wire_beyond_tracks
from placement.evaluation.searching import Candidate, ranked
from placement.flat.correspondence import core_of
from placement.flat.flat_evaluator import FlatEvaluator
from placement.flat.global_placement import CellPlacement
from placement.flat.opensta import OpenSta
from placement.flat.routing import RoutingResources, route_estimate
from placement.flat.timing import TimingEvaluator
from placement.netlist.design import Design, Placement
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import find, load
from placement.netlist.timing_netlist import TimingNetlist, read_timing

COLUMNS = (
    "design       group  search          cells           wirelength  wns, ps      tns, ps  failing  overflow  CPU-s  "
    "other seeds: tns  OpenSTA: tns"
)
WIRES, DRIVEN = "wires alone", "timing-driven"


class Judge:
    """The full evaluation of one design at one clock.

    Args:
        name: the folder of the design.
        design: the clustered one.
        timing: at the clock.
        seed: of the cells and of the clusters in which they begin.
    """

    def __init__(self, name: str, design: Design, timing: TimingNetlist, *, seed: int = 0) -> None:
        self._design, (self.flat, self.cluster) = design, read_flat_of(name)
        self.timer = TimingEvaluator(timing, self.flat)
        anneal = functools.partial(anneal_soft_macros, moves=100_000, initial_temperature=1.0, seed=seed)
        self.evaluator = FlatEvaluator(
            self.flat, self.cluster, design, anneal=anneal if seed else anneal_for_full_evaluation,
            settings=dataclasses.replace(SETTINGS, seed=seed), timing=self.timer,
        )  # fmt: skip

    def cells(self, placement: Placement) -> dict[str, tuple[CellPlacement, int]]:
        """Returns the legalised cells around a placement's macros, and the number of those without a place."""
        spread, again = self.evaluator.shorter_spread(placement)
        return {WIRES: self._legal(spread), DRIVEN: self._legal(self.evaluator.timing_driven(spread, again))}

    def _legal(self, cells: CellPlacement) -> tuple[CellPlacement, int]:
        legal = self.evaluator.legalised(cells)
        assert legal is not None, "the design has no rows"
        return cells._replace(placement=legal.placement, wirelength=legal.wirelength), legal.without_place

    def figures(self, cells: CellPlacement, without_place: int) -> dict[str, Any]:
        """Returns figures of the cells by the names of `Candidate`, and their overflow."""
        slack = self.timer.evaluate(cells.placement, paths=0)
        resources, core = RoutingResources.of(self._design.canvas), core_of(self.flat, self._design)
        return {
            "flat_wirelength": cells.wirelength, "wns": slack.wns, "tns": slack.tns, "failing": slack.total.failing,
            "spread": cells.converged, "without_place": without_place,
            "beyond_tracks": wire_beyond_tracks(self._design, PlacedCells(self.flat, self.cluster, cells)),
            "overflow": route_estimate(self.flat.netlist, cells.placement, core, resources).overflow,
        }  # fmt: skip


class Bench:
    """Searches and judges one design."""

    def __init__(self, name: str, given: argparse.Namespace) -> None:
        begun = time.process_time()
        self.name, self._folder, self._given = Path(name).name, name, given
        self._out: Path = given.out
        self.design = load(name)
        self._imported = self._timing = read_timing(find(name).parent)
        self._judge = Judge(name, self.design, self._timing)
        self._loading = time.process_time() - begun

    def group(self, number: int) -> None:
        """Prints a group's results: one search, and the candidate that wires and slack choose."""
        given = self._given
        long = self._result(f"{given.seconds:g}s-{number}", given.seconds, number, is_first=True)
        self._print(number, "one", long, long["search"])
        if not given.candidates:
            return
        each = (given.seconds - self._loading) / given.candidates - long["evaluation"]
        seeds = range((number + 1) * given.candidates, (number + 2) * given.candidates)
        found = [self._result(f"{given.seconds:g}s-{number}-{seed}", each, seed) for seed in seeds]
        candidates = [self._candidate(seed, one) for seed, one in zip(seeds, found, strict=True)]
        spent = self._loading + sum(one["search"] + one["evaluation"] for one in found)
        best = ranked(candidates, given.timing)[0].number
        self._print(number, f"best of {given.candidates}", found[list(seeds).index(best)], spent)

    def _result(self, stem: str, seconds: float, seed: int, *, is_first: bool = False) -> dict[str, Any]:
        """Returns a search's figures, from the folder if they exist; the first search of a design sets its clock."""
        path, placed = self._out / f"{self.name}-{stem}.json", self._out / f"{self.name}-{stem}.plc"
        if not path.is_file():
            begun = time.process_time()
            found = search(self.design, seconds=seconds, seed=seed, weights=CostConfig().weights())
            searched = time.process_time()
            write_placement(placed, self.design, found.placement)
            if is_first:
                self._set_clock(found.placement)
            ready = time.process_time()
            cells = self._judge.cells(found.placement)
            judged = {kind: self._judge.figures(*one) for kind, one in cells.items()}
            took = {"search": searched - begun, "evaluation": time.process_time() - ready}
            if self._given.sta:
                timing = with_scaled_sdc(self._timing, self._imported, self._out / f"{self.name}.sdc")
                opensta = OpenSta(self._given.sta, timing, self._judge.flat)
                for kind, (one, _) in cells.items():
                    judged[kind]["opensta"] = opensta.evaluate(one.placement).total.tns
            kept = {"start": found.start, "cost": found.costs.total, "moves": found.moves, **took, **judged}
            write_whole(path, json.dumps(kept) + "\n")
        elif is_first:
            self._set_clock(self.design.initial)
        known: dict[str, Any] = json.loads(path.read_text()) | {"placement": placed}
        return known

    def _candidate(self, number: int, one: dict[str, Any]) -> Candidate:
        figures = {key: value for key, value in one[DRIVEN].items() if key not in ("overflow", "opensta")}
        searched = {key: one[key] for key in ("start", "cost", "moves")}
        return Candidate(number, seconds=one["search"], placement=self.design.initial, **searched, **figures)

    def _set_clock(self, placement: Placement) -> None:
        """Scales the clocks so that cells placed by wirelength miss them by the requested share."""
        path = self._out / f"{self.name}.clock.json"
        if not path.is_file():
            scale = self._scale(self._judge.evaluator.shorter_spread(placement)[0].placement)
            write_whole(path, json.dumps({"scale": scale}) + "\n")
        scale = json.loads(path.read_text())["scale"]
        self._timing = scaled(self._imported, scale)
        self._judge = Judge(self._folder, self.design, self._timing)

    def _scale(self, cells: Placement) -> float:
        """Bisects for the scale of the clocks at which these cells miss the shortest one by the requested share."""
        low, high = 0.05, 20.0
        while high / low > 1.001:
            middle = (low * high) ** 0.5
            timing = scaled(self._imported, middle)
            slack = TimingEvaluator(timing, self._judge.flat).evaluate(cells, paths=0).total.wns
            missed = slack < -self._given.missed * min(clock.period for clock in timing.constraints.clocks)
            low, high = (middle, high) if missed else (low, middle)
        return high

    def _print(self, group: int, what: str, one: dict[str, Any], seconds: float) -> None:
        again = self._again(one["placement"])
        for kind in (WIRES, DRIVEN):
            found = one[kind]
            print(
                f"{self.name:10s} {group:7d}  {what:15s} {kind:13s} {found['flat_wirelength']:12,.0f} "
                f"{found['wns']:8,.0f} {found['tns']:12,.0f} {found['failing']:8,} {found['overflow']:9.3%} "
                f"{seconds:6.0f}{again[kind]:18,.0f} {found.get('opensta', 0.0):13,.0f}",
                flush=True,
            )

    def _again(self, placed: Path) -> dict[str, float]:
        """Returns the negative slack of a placement's cells from other seeds."""
        path = placed.with_suffix(".again.json")
        if not path.is_file():
            placement = read_placement(placed, self.design.netlist, located=self.design.initial)[1]
            other = Judge(self._folder, self.design, self._timing, seed=1)
            kept = {kind: other.figures(*cells)["tns"] for kind, cells in other.cells(placement).items()}
            write_whole(path, json.dumps(kept) + "\n")
        known: dict[str, float] = json.loads(path.read_text())
        return known


def scaled(timing: TimingNetlist, scale: float) -> TimingNetlist:
    """Returns the netlist with clocks of `scale` times the period."""
    clocks = tuple(
        dataclasses.replace(one, period=one.period * scale, rise=one.rise * scale, fall=one.fall * scale)
        for one in timing.constraints.clocks
    )
    return dataclasses.replace(timing, constraints=dataclasses.replace(timing.constraints, clocks=clocks))


def with_scaled_sdc(timing: TimingNetlist, imported: TimingNetlist, path: Path) -> TimingNetlist:
    """Returns the netlist with an SDC file, written to `path`, whose periods (numbers or variables) are scaled."""
    scale = timing.constraints.clocks[0].period / imported.constraints.clocks[0].period
    [sdc] = [one for one in timing.files if one.kind == "sdc"]
    text = Path(sdc.path).read_text()
    for period in set(re.findall(r"-period\s+(\S+)", text)):
        before = rf"(set\s+{re.escape(period[1:])}\s+)" if period.startswith("$") else r"(-period\s+)"
        text = re.sub(before + r"([\d.]+)", lambda found: f"{found[1]}{float(found[2]) * scale:.6g}", text)
    path.write_text(text)
    file = dataclasses.replace(sdc, path=str(path.absolute()), sha256=hashlib.sha256(text.encode()).hexdigest())
    return dataclasses.replace(timing, files=tuple(file if one.kind == "sdc" else one for one in timing.files))


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="+")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--candidates", type=int, default=4)
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--timing", type=float, default=0.07)
    parser.add_argument("--missed", type=float, default=0.075)
    parser.add_argument("--sta")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(words)
    given.out.mkdir(parents=True, exist_ok=True)
    print(COLUMNS)
    for name in given.designs:
        bench = Bench(name, given)
        for number in range(given.groups):
            bench.group(number)


if __name__ == "__main__":
    main()
