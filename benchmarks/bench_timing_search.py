"""The flow with timing compared with the flow by wirelength at equal CPU time, by wirelength and negative slack.

    python benchmarks/bench_timing_search.py DESIGN … --out FOLDER [--seconds 40] [--candidates 2] [--sta sta]

The designs were imported with Liberty and SDC files. Flows of the same total CPU time, each with several seeds:

    wires         a search of `--seconds`, cells placed by wirelength
    timing        a shorter search, timing-driven cells
    candidates    several short searches, timing-driven cells around each, choice by wirelength and slack

"same macros" judges the macros of `wires` with timing-driven cells, which takes longer.

The evaluation of the first result of `wires` sets the lengths of the other searches, and its cells set the clock: they
miss it by `--missed`. Each search and its judgement are files in FOLDER, from which the same command resumes.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from placement.annealing.finishing import anneal_for_full_evaluation
from placement.annealing.search import search
from placement.config import CostConfig
from placement.evaluation.full_evaluation import SETTINGS, PlacedCells, read_flat_of
from placement.evaluation.mixed_size_start import wire_beyond_tracks
from placement.evaluation.searching import Candidate, ranked
from placement.flat.correspondence import core_of
from placement.flat.flat_evaluator import FlatEvaluator
from placement.flat.global_placement import CellPlacement
from placement.flat.legalisation import LegalCells
from placement.flat.opensta import OpenSta
from placement.flat.routing import RoutingResources, route_estimate
from placement.flat.timing import TimingEvaluator
from placement.netlist.design import Placement
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import find, load
from placement.netlist.timing_netlist import TimingNetlist, read_timing

WIRES, DRIVEN = "by wirelength", "timing-driven"
FLOOR = 0.01  # added to negative slacks in ratios, in clock periods: the slack of a flow may be 0
ROWS = ("wires", "same macros", "timing", "candidates")
PAIRS = [*((row, "wires") for row in ROWS[1:]), ("candidates", "timing")]
CHANGES = (("flat_wirelength", "wirelength"), ("tns", "tns"), ("opensta", "tns, OpenSTA"))
Values = dict[str, Any]


class Bench:
    """Searches and judges one design."""

    def __init__(self, name: str, given: argparse.Namespace) -> None:
        begun = time.process_time()
        self.name, self._given = Path(name).name, given
        self._design = load(name)
        self._flat, self._cluster = read_flat_of(name)
        self._imported = self._timing = read_timing(find(name).parent)
        self._loading = time.process_time() - begun

    def run(self) -> dict[str, list[Values]]:
        """Returns the figures of each of `ROWS`, one per seed; without candidates if there is no time for them."""
        given = self._given
        first = self._searched("wires-0", given.seconds, 0)
        self._time_at(1.0)
        self._time_at(self._kept("clock", lambda: {"scale": self._scale(first[0])})["scale"])
        took = self._judged("wires-0", given.seconds, 0, WIRES)["took"]
        # The command `search candidates=N` evaluates the chosen candidate once more.
        evaluation = took[WIRES] + took[DRIVEN]
        each = (given.seconds + took[WIRES] - evaluation * (given.candidates + 1)) / max(1, given.candidates)
        rows: dict[str, list[Values]] = {row: [] for row in ROWS}
        for seed in range(given.seeds):
            rows["wires"].append(self._judged(f"wires-{seed}", given.seconds, seed, WIRES))
            rows["same macros"].append(self._judged(f"wires-{seed}", given.seconds, seed, DRIVEN))
            rows["timing"].append(self._judged(f"timing-{seed}", given.seconds - took[DRIVEN], seed, DRIVEN))
            if given.candidates and each > 0:
                numbers = range(seed * given.candidates, (seed + 1) * given.candidates)
                short = [self._judged(f"short-{one}", each, one, DRIVEN) for one in numbers]
                rows["candidates"].append(self._chosen(short))
        for one in (one for row in rows.values() for one in row):
            one["floor"] = FLOOR * shortest(self._timing)
        return rows

    def _kept(self, stem: str, compute: Callable[[], Values]) -> Values:
        """Returns values from the folder, computed if there are none."""
        path = self._given.out / f"{self.name}-{stem}.json"
        if not path.is_file():
            write_whole(path, json.dumps(compute()) + "\n")
        known: Values = json.loads(path.read_text())
        return known

    def _searched(self, stem: str, seconds: float, seed: int) -> tuple[Placement, Values]:
        placed = self._given.out / f"{self.name}-{stem}.plc"

        def compute() -> Values:
            begun = time.process_time()
            found = search(self._design, seconds=seconds, seed=seed, weights=CostConfig().weights())
            took = time.process_time() - begun
            write_placement(placed, self._design, found.placement)
            return {"start": found.start, "cost": found.costs.total, "moves": found.moves, "search": took}

        known = self._kept(f"{stem}.search", compute)
        return read_placement(placed, self._design.netlist, located=self._design.initial)[1], known

    def _time_at(self, scale: float) -> None:
        """Scales the imported clocks."""
        self._timing = scaled(self._imported, scale)
        self._timer = TimingEvaluator(self._timing, self._flat)
        self._evaluator = FlatEvaluator(
            self._flat, self._cluster, self._design, anneal=anneal_for_full_evaluation, settings=SETTINGS,
            timing=self._timer,
        )  # fmt: skip

    def _cells(self, placement: Placement) -> tuple[dict[str, tuple[CellPlacement, int]], dict[str, float]]:
        """Returns the legal cells around a placement's macros (and the number without a place), and CPU seconds.

        The seconds of timing-driven cells are those beyond the cells by wirelength.
        """
        begun = time.process_time()
        spread, again = self._evaluator.shorter_spread(placement)
        legal = self._evaluator.legalised(spread)
        assert legal is not None, "the design has no rows"
        placed = time.process_time()
        rounds = self._evaluator.legal_rounds(spread, again)
        took = {WIRES: placed - begun, DRIVEN: time.process_time() - placed - legal.seconds}
        return {WIRES: self._on_rows(spread, legal), DRIVEN: self._on_rows(*rounds)}, took

    @staticmethod
    def _on_rows(cells: CellPlacement, legal: LegalCells | None) -> tuple[CellPlacement, int]:
        assert legal is not None
        return cells._replace(placement=legal.placement, wirelength=legal.wirelength), legal.without_place

    def _judged(self, stem: str, seconds: float, seed: int, kind: str) -> Values:
        """Returns a search's figures with one kind of cells, by the names of `Candidate` and others."""
        placement, searched = self._searched(stem, seconds, seed)

        def compute() -> Values:
            cells, took = self._cells(placement)
            kinds = (WIRES, DRIVEN) if stem.startswith("wires") else (DRIVEN,)
            return {kind: self._figures(*cells[kind]) for kind in kinds} | {"took": took}

        found = self._kept(f"{stem}.figures", compute)
        took = found["took"]
        evaluation = took[WIRES] + (took[DRIVEN] if kind == DRIVEN else 0)
        return {
            **searched, **found[kind], "number": seed, "took": took, "evaluation": evaluation,
            "total": self._loading + searched["search"] + evaluation,
        }  # fmt: skip

    def _figures(self, cells: CellPlacement, without_place: int) -> Values:
        slack = self._timer.evaluate(cells.placement, paths=0)
        resources, core = RoutingResources.of(self._design.canvas), core_of(self._flat, self._design)
        found = {
            "flat_wirelength": cells.wirelength, "wns": slack.wns, "tns": slack.tns, "failing": slack.total.failing,
            "spread": cells.converged, "without_place": without_place,
            "beyond_tracks": wire_beyond_tracks(self._design, PlacedCells(self._flat, self._cluster, cells)),
            "overflow": route_estimate(self._flat.netlist, cells.placement, core, resources).overflow,
        }  # fmt: skip
        if self._given.sta and self._timing.files:
            timing = with_scaled_sdc(self._timing, self._imported, self._given.out / f"{self.name}.sdc")
            found["opensta"] = OpenSta(self._given.sta, timing, self._flat).evaluate(cells.placement).total.tns
        return found

    def _chosen(self, found: Sequence[Values]) -> Values:
        """Returns the figures of the candidate that `search candidates=N timing=W` keeps, and the time of all."""
        candidates = [
            Candidate(
                seconds=one["search"], placement=self._design.initial,
                **{key: one[key] for key in Candidate._fields if key not in ("seconds", "placement")},
            )
            for one in found
        ]  # fmt: skip
        best = ranked(candidates, self._given.timing)[0].number
        chosen = next(one for one in found if one["number"] == best)
        spent = sum(one["search"] + one["evaluation"] for one in found) + chosen["evaluation"]
        return chosen | {"total": self._loading + spent}

    def _scale(self, placement: Placement) -> float:
        """Bisects for the scale of the clocks at which cells by wirelength miss the shortest one as requested."""
        legal = self._evaluator.legalised(self._evaluator.shorter_spread(placement)[0])
        assert legal is not None, "the design has no rows"
        low, high = 0.05, 20.0
        while high / low > 1.001:
            middle = (low * high) ** 0.5
            timing = scaled(self._imported, middle)
            slack = TimingEvaluator(timing, self._flat).evaluate(legal.placement, paths=0).total.wns
            missed = slack < -self._given.missed * shortest(timing)
            low, high = (middle, high) if missed else (low, middle)
        return high


def shortest(timing: TimingNetlist) -> float:
    """Returns the shortest clock period in ps."""
    return min(clock.period for clock in timing.constraints.clocks)


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


def changes(rows: dict[str, list[Values]], row: str, base: str, key: str) -> np.ndarray:
    """Returns the logarithm of the ratio of a figure between two rows, for each seed that has it."""
    both = [(one, other) for one, other in zip(rows[row], rows[base], strict=False) if key in one and key in other]
    values = np.array([[one[key], other[key], 0 if key == "flat_wirelength" else one["floor"]] for one, other in both])
    values = np.abs(values.reshape(-1, 3))
    return np.log((values[:, 0] + values[:, 2]) / (values[:, 1] + values[:, 2]))


def interval(logarithms: Sequence[np.ndarray]) -> str:
    """Returns the geometric mean of ratios as a change in percent, with Student's 95% interval.

    Args:
        logarithms: of each design, one for each seed. The designs count alike and are given: the interval covers the
            scatter of the seeds, whose variance is pooled.
    """
    each = [one for one in logarithms if len(one)]
    if not each:
        return "-"
    mean, freedom = np.mean([one.mean() for one in each]), sum(len(one) - 1 for one in each)
    text = f"{np.expm1(mean):+.1%}"
    if freedom:
        variance = sum(((one - one.mean()) ** 2).sum() for one in each) / freedom
        error = stats.t.ppf(0.975, freedom) * np.sqrt(variance * sum(1 / len(one) for one in each)) / len(each)
        text += f" ({np.expm1(mean - error):+.1%} to {np.expm1(mean + error):+.1%})"
    return text


def print_rows(name: str, rows: dict[str, list[Values]]) -> None:
    """Prints the means over the seeds."""
    print(f"\n{name:16s} wirelength  wns, ps      tns, ps  failing  overflow  no place  CPU-s  tns, OpenSTA")
    keys = ("flat_wirelength", "wns", "tns", "failing", "overflow", "without_place", "total", "opensta")
    for row, found in rows.items():
        if found:
            mean = [np.mean([one.get(key, np.nan) for one in found]) for key in keys]
            print("{:14s} {:12,.0f} {:8,.0f} {:12,.0f} {:8.1f} {:9.3%} {:9.1f} {:6.0f} {:13,.0f}".format(row, *mean))


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="+")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--candidates", type=int, default=2)
    parser.add_argument("--timing", type=float, default=0.07)
    parser.add_argument("--missed", type=float, default=0.075)
    parser.add_argument("--sta")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(words)
    given.out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, list[Values]]] = []
    for name in given.designs:
        found.append(Bench(name, given).run())
        print_rows(Path(name).name, found[-1])
        for row, base in PAIRS:
            each = (f"{title} {interval([changes(found[-1], row, base, key)])}" for key, title in CHANGES)
            print(f"{row} / {base}: {', '.join(each)}", flush=True)
    print("\nmeans of the designs")
    for row, base in PAIRS:
        for key, title in CHANGES:
            print(f"{row} / {base}: {title} {interval([changes(rows, row, base, key) for rows in found])}")


if __name__ == "__main__":
    main()
