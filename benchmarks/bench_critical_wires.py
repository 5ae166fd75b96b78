"""Timing-driven cells with critical wires that are known in advance, compared with rounds of timing.

    python benchmarks/bench_critical_wires.py DESIGN … --out FOLDER

FOLDER contains the searches of `bench_timing_search.py`. Around the macros of each, the cells are spread again with
weights from the critical paths of

    rounds     their own cells, in two rounds, as the full evaluation does
    netlist    the netlist without wire delays
    first      the netlist without wire delays, and in a second round also of the cells of the first
    other      the cells around another placement of the macros
    mean       the cells around each of the other placements in FOLDER (the mean of the weights)

The cells by wirelength and those of each round are compared as in the full evaluation.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bench_timing_search import Bench, Values, interval, shortest

from placement.flat.critical_wires import LATENESS, MARGIN, MOST_PATHS, MOST_WEIGHT, CriticalWires
from placement.flat.flat_evaluator import Again
from placement.flat.global_placement import CellPlacement
from placement.flat.problem import half_perimeter
from placement.netlist.design import Netlist, Placement
from placement.netlist.errors import DesignError

Weights = dict[tuple[int, int], float]


class KnownWires(Bench):
    """Places cells with weights that are known in advance."""

    def rows(self) -> list[Values]:
        """Returns wirelength and slack by source of the weights, for each search whose cells have negative slack."""
        folder, prefix = self._given.out, f"{self.name}-"
        self._time_at(json.loads((folder / f"{prefix}clock.json").read_text())["scale"])
        stems = [one.name.removeprefix(prefix).removesuffix(".plc") for one in sorted(folder.glob(f"{prefix}*.plc"))]
        spread = {stem: self._evaluator.shorter_spread(self._searched(stem, 0, 0)[0]) for stem in stems}
        legal = {stem: self._legal(cells) for stem, (cells, _) in spread.items()}
        found = {stem: self._critical(legal[stem]).weight for stem in stems}
        rows = []
        for number, stem in enumerate(stems):
            slack = self._timer.evaluate(legal[stem], paths=0)
            if slack.tns == 0:
                continue
            others = [found[one] for one in stems if one != stem]
            netlist = self._without_wires(slack.wns)
            sources = {
                "netlist": (netlist, 1), "first": (netlist, 2), "other": (found[stems[(number + 1) % len(stems)]], 1),
                "mean": (mean(others), 1),
            }  # fmt: skip
            results = {"none": legal[stem], "rounds": self._legal_round(*spread[stem])}
            results |= {source: self._kept_round(*spread[stem], *given) for source, given in sources.items()}
            rows.append({source: self._measured(placement) for source, placement in results.items()})
        return rows

    def _legal(self, cells: CellPlacement) -> Placement:
        legal = self._evaluator.legalised(cells)
        assert legal is not None, "the design has no rows"
        return legal.placement

    def _kept_round(self, cells: CellPlacement, again: Again, weights: Weights, rounds: int) -> Placement:
        """Returns the kept legal cells if the first round has these weights and the second adds those of its cells."""
        critical, begun = self._critical(), itertools.count()
        critical.weight |= weights

        def weighted(_: Netlist) -> CellPlacement:
            if next(begun) == rounds:
                raise DesignError("no further round")
            found = again(critical.netlist())
            critical.add(self._legal(found))
            return found

        return self._legal_round(cells, weighted)

    def _legal_round(self, cells: CellPlacement, again: Again) -> Placement:
        legal = self._evaluator.legal_rounds(cells, again)[1]
        assert legal is not None, "the design has no rows"
        return legal.placement

    def _measured(self, placement: Placement) -> Values:
        wirelength = half_perimeter(self._flat.netlist, placement)
        tns = self._timer.evaluate(placement, paths=0).tns
        return {"wirelength": wirelength, "tns": abs(tns) + 0.01 * shortest(self._timing)}

    def _critical(self, cells: Placement | None = None) -> CriticalWires:
        critical = CriticalWires(self._timer)
        if cells is not None:
            critical.add(cells)
        return critical

    def _without_wires(self, wns: float) -> Weights:
        """Returns the weights with all nodes at one point and all slacks shifted so that the worst is `wns`."""
        origin, weights = np.zeros(self._flat.netlist.num_nodes), Weights()
        placed = np.ones_like(self._flat.placement.placed)
        point = dataclasses.replace(self._flat.placement, x=origin, y=origin, placed=placed)
        paths = self._timer.path_wires(point, paths=MOST_PATHS)
        for slack, wires in paths:
            weight = max(0.0, (MARGIN - (slack - paths[0][0] + wns) / shortest(self._timing)) / LATENESS)
            for wire in map(tuple, wires.tolist() if weight else ()):
                weights[wire] = min(MOST_WEIGHT, weights.get(wire, 0.0) + weight)
        return weights


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
    for source in ("rounds", "netlist", "first", "other", "mean"):
        for key in ("wirelength", "tns"):
            changes = [np.log([row[source][key] / row["none"][key] for row in rows]) for rows in found]
            each = ", ".join(f"{np.expm1(one.mean()):+.1%}" for one in changes)
            print(f"{source:8s} {key:10s} {interval(changes)}; by design {each}")


if __name__ == "__main__":
    main()
