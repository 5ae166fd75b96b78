"""Candidates among which slack decides beside one search, at equal CPU time: wirelength and negative slack.

    python benchmarks/bench_timing_search.py DESIGN… --out FOLDER [--seconds 8] [--candidates 4] [--groups 2]

The designs were imported with Liberty and SDC files, with a clock that the search misses by some percent. Of each group
the candidates have `--seconds` of search each; one search has the time that they and their evaluations took. All are
judged by the cells of the full evaluation, legalised; `--timing` is that of `search`. Results are kept in FOLDER: the
same command resumes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from placement.annealing.search import search
from placement.config import CostConfig
from placement.evaluation.full_evaluation import FullEvaluator
from placement.evaluation.mixed_size_start import wire_beyond_tracks
from placement.evaluation.searching import Candidate, ranked
from placement.evaluation.timing_evaluation import PlacementTimer
from placement.netlist.design import Design
from placement.netlist.files import write_whole
from placement.netlist.load import load

COLUMNS = "design           group  result            wirelength    wns, ps      tns, ps  failing  CPU-s"


class Bench:
    """Searches and judges one design."""

    def __init__(self, name: str, out: Path) -> None:
        self.name, self._out = Path(name).name, out
        self.design: Design = load(name)
        self._evaluator, self._timer = FullEvaluator(name, self.design), PlacementTimer(name, self.design)

    def run(self, seconds: float, seed: int) -> tuple[Candidate, float]:
        """A search's result, and the CPU seconds that it and its evaluation took; from the folder if it is there."""
        path = self._out / f"{self.name}-{seconds:.3g}-{seed}.json"
        if not path.is_file():
            begun = time.process_time()
            found = search(self.design, seconds=seconds, seed=seed, weights=CostConfig().weights())
            cells, without_place = self._evaluator.legal(found.placement)
            slack = self._timer.evaluate(found.placement, cells=cells.placement, paths=0)
            kept: dict[str, Any] = {
                "number": seed, "start": found.start, "cost": found.costs.total, "seconds": found.seconds,
                "moves": found.moves, "flat_wirelength": cells.result.wirelength, "spread": cells.result.converged,
                "without_place": without_place, "beyond_tracks": wire_beyond_tracks(self.design, cells),
                "wns": slack.wns, "tns": slack.tns, "failing": slack.total.failing,
            }  # fmt: skip
            write_whole(path, json.dumps({"candidate": kept, "took": time.process_time() - begun}) + "\n")
        known = json.loads(path.read_text())
        return Candidate(**known["candidate"], placement=self.design.initial), known["took"]

    def group(self, number: int, given: argparse.Namespace) -> None:
        """Prints a group's results: one long search, and the candidate chosen without and with slack."""
        seeds = range(number * given.candidates, (number + 1) * given.candidates)
        found, took = zip(*(self.run(given.seconds, seed) for seed in seeds), strict=True)
        long, spent = self.run(sum(took), number)
        rows = {
            "one search": (long, spent),
            "shortest wires": (ranked(found)[0], sum(took)),
            "with slack": (ranked(found, given.timing)[0], sum(took)),
        }
        for what, (one, seconds) in rows.items():
            print(
                f"{self.name:16s} {number:5d}  {what:15s} {one.flat_wirelength:12,.0f} {one.wns:10,.0f} "
                f"{one.tns:12,.0f} {one.failing:8,} {seconds:6.0f}",
                flush=True,
            )


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="+")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--candidates", type=int, default=4)
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--timing", type=float, default=0.07)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(words)
    given.out.mkdir(parents=True, exist_ok=True)
    print(COLUMNS)
    for name in given.designs:
        bench = Bench(name, given.out)
        for number in range(given.groups):
            bench.group(number, given)


if __name__ == "__main__":
    main()
