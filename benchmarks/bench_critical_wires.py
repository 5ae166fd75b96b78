"""Timing-driven cells with critical wires that are known in advance, compared with rounds of timing.

    python benchmarks/bench_critical_wires.py DESIGN … --out FOLDER

FOLDER contains the searches of `bench_timing_search.py`; the macros are those of its flow "wires". Around the same
macros, the cells are spread again with weights from the critical paths of

    rounds     their own cells, in two rounds, as the full evaluation does
    netlist    the netlist without wire delays
    other      the cells around another placement of the macros
    mean       the cells around each of the other placements in FOLDER (the mean of the weights)
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bench_timing_search import Bench, Values, interval, scaled, shortest

from placement.flat.critical_wires import CriticalWires
from placement.flat.flat_evaluator import Again
from placement.flat.global_placement import CellPlacement
from placement.flat.problem import half_perimeter
from placement.flat.timing import TimingEvaluator
from placement.netlist.design import Placement

MISSED = 0.075  # slack by which the worst path misses a clock, relative to its period
Weights = dict[tuple[int, int], float]


class KnownWires(Bench):
    """Places cells with weights that are known in advance."""

    def rows(self) -> list[Values]:
        """Returns wirelength and slack by source of the weights, for each search of the flow "wires"."""
        folder, prefix = self._given.out, f"{self.name}-"
        self._time_at(json.loads((folder / f"{prefix}clock.json").read_text())["scale"])
        stems = [one.name.removeprefix(prefix).removesuffix(".plc") for one in sorted(folder.glob(f"{prefix}*.plc"))]
        spread = {stem: self._evaluator.shorter_spread(self._searched(stem, 0, 0)[0]) for stem in stems}
        found = {stem: self._weights(self._timer, self._legal(cells)) for stem, (cells, _) in spread.items()}
        netlist = self._without_wires()
        rows, wires = [], [stem for stem in stems if stem.startswith("wires-")]
        for number, stem in enumerate(wires):
            cells, again = spread[stem]
            others = [found[one] for one in stems if one != stem]
            sources = {"netlist": netlist, "other": found[wires[(number + 1) % len(wires)]], "mean": mean(others)}
            results = {"none": self._legal(cells), "rounds": self._legal(self._evaluator.legal_rounds(cells, again)[0])}
            results |= {source: self._legal(self._again(again, weights)) for source, weights in sources.items()}
            rows.append({source: self._measured(placement) for source, placement in results.items()})
        return rows

    def _legal(self, cells: CellPlacement) -> Placement:
        legal = self._evaluator.legalised(cells)
        assert legal is not None, "the design has no rows"
        return legal.placement

    def _again(self, again: Again, weights: Weights) -> CellPlacement:
        critical = CriticalWires(self._timer)
        critical.weight |= weights
        return again(critical.netlist())

    def _measured(self, placement: Placement) -> Values:
        wirelength = half_perimeter(self._flat.netlist, placement)
        tns = self._timer.evaluate(placement, paths=0).tns
        return {"wirelength": wirelength, "tns": abs(tns) + 0.01 * shortest(self._timing)}

    @staticmethod
    def _weights(timer: TimingEvaluator, cells: Placement) -> Weights:
        critical = CriticalWires(timer)
        critical.add(cells)
        return critical.weight

    def _without_wires(self) -> Weights:
        """Returns the weights with all nodes at one point.

        The clock is scaled so that the worst path misses it by `MISSED`.
        """
        origin = np.zeros(self._flat.netlist.num_nodes)
        placed = np.ones_like(self._flat.placement.placed)
        point = dataclasses.replace(self._flat.placement, x=origin, y=origin, placed=placed)
        slack, period = self._timer.evaluate(point, paths=0).total.wns, shortest(self._timing)
        timing = scaled(self._timing, (period - slack) / (1 + MISSED) / period)
        return self._weights(TimingEvaluator(timing, self._flat), point)


def mean(weights: Sequence[Weights]) -> Weights:
    """Returns the mean weight of each wire."""
    wires = {wire for one in weights for wire in one}
    return {wire: sum(one.get(wire, 0.0) for one in weights) / len(weights) for wire in wires}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found = [KnownWires(name, given).rows() for name in given.designs]
    for source in ("rounds", "netlist", "other", "mean"):
        for key in ("wirelength", "tns"):
            changes = [np.log([row[source][key] / row["none"][key] for row in rows]) for rows in found]
            each = ", ".join(f"{np.expm1(one.mean()):+.1%}" for one in changes)
            print(f"{source:8s} {key:10s} {interval(changes)}; by design {each}")


if __name__ == "__main__":
    main()
