"""A search that sees timing beside one that sees wires alone, at equal time: wirelength, overflow and negative slack.

    python benchmarks/bench_timing_search.py DESIGN… [--seconds 60] [--seeds 3] [--timing 0.1] [--quick] --out FOLDER

The designs were imported with Liberty and SDC files, with a clock at which the first search fails by some percent; the
worst path and its share of the period are printed. Cells are placed by the full evaluation, which sees no weights, for
both (`--quick`: spread from the middle of the core alone, at a third of the time), legalised and timed. CPU seconds of
a search count everything until its placement is there. Each result is kept in FOLDER: the same command resumes.
`--sta sta`: OpenSTA times the same cells, wires and loads.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from placement.annealing.finishing import anneal_for_full_evaluation
from placement.annealing.search import Watch, search
from placement.config import CostConfig
from placement.evaluation.settings import SearchConfig
from placement.evaluation.timing_search import search_with_timing
from placement.flat.flat_evaluator import FlatEvaluator
from placement.flat.opensta import OpenSta
from placement.flat.timing import TimingEvaluator
from placement.netlist.design import Placement
from placement.netlist.files import write_whole
from placement.netlist.flat_design import FlatDesign, read_flat
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import clusters_or_none, find, load
from placement.netlist.timing_netlist import TimingNetlist, read_timing


def searched(design_name: str, timing: float, seed: int, given: argparse.Namespace) -> tuple[Placement, dict[str, Any]]:
    """A search's placement, and what it took."""
    design, begun = load(design_name), time.process_time()
    if not timing:
        placement = search(design, seconds=given.seconds, seed=seed, weights=CostConfig().weights()).placement
        return placement, {"seconds": time.process_time() - begun, "rounds": []}
    config = SearchConfig(design=design_name, timing=timing, time=given.seconds, seed=seed)
    found = search_with_timing(design, [], config, watch=Watch())
    assert found is not None
    rounds = [one._asdict() for one in found.rounds]
    return found.result.placement, {"seconds": time.process_time() - begun, "rounds": rounds, "chosen": found.chosen}


def judged(name: str, placement: Placement, given: argparse.Namespace) -> dict[str, Any]:
    """The figures of a placement with its cells placed and legalised."""
    folder, design = find(name).parent, load(name)
    flat = read_flat(folder)
    evaluator = FlatEvaluator(flat, clusters_or_none(folder, flat), design, anneal=anneal_for_full_evaluation)
    figures: dict[str, Any] = {}
    if given.quick:
        legal = evaluator.legalised(evaluator.spread(placement))
    else:
        found = evaluator.evaluate(placement)
        legal, figures["overflow"] = found.legal, found.route.overflow
    assert legal is not None, "the floorplan has no rows"
    figures |= {"wirelength": legal.wirelength, "without_place": legal.without_place}
    timing = read_timing(folder)
    estimate = TimingEvaluator(timing, flat).evaluate(legal.placement)
    figures |= {"wns": estimate.wns, "tns": estimate.tns, "failing": estimate.total.failing}
    figures["period"] = max(clock.period for clock in timing.constraints.clocks)
    if given.sta:
        figures |= by_sta(given.sta, timing, flat, legal.placement)
    return figures


def by_sta(sta: str, timing: TimingNetlist, flat: FlatDesign, placement: Placement) -> dict[str, float]:
    """OpenSTA's negative slacks, ps, and ours at the same loads."""
    found = OpenSta(sta, timing, flat).evaluate(placement)
    return {"sta_wns": found.total.wns, "sta_tns": found.total.tns, "unlimited_tns": found.estimate.tns}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="+")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--timing", type=float, default=0.1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sta")
    given = parser.parse_args(words)
    given.out.mkdir(parents=True, exist_ok=True)
    rows: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for name in given.designs:
        for seed in range(given.seeds):
            for timing in (0.0, given.timing):
                rows.setdefault((name, timing), []).append(one_run(name, timing, seed, given))
    print("design                seen     wirelength    wns, ps      tns, ps  failing  search, CPU-s  (medians)")
    for (name, timing), runs in rows.items():
        middle = {
            key: float(np.median([run[key] for run in runs])) for key in runs[0] if key not in ("rounds", "chosen")
        }
        print(
            f"{Path(name).name:20s} {'timing' if timing else 'wires ':8s} {middle['wirelength']:12,.0f} "
            f"{middle['wns']:10,.0f} {middle['tns']:12,.0f} {middle['failing']:8,.0f} {middle['seconds']:14.1f}"
            f"  worst path {-middle['wns'] / middle['period']:.1%} late"
        )
    for name in given.designs:
        pairs = list(zip(rows[name, 0.0], rows[name, given.timing], strict=True))
        for key, what in (("tns", "negative slack"), ("wirelength", "wirelength")):
            ratio = [after[key] / before[key] - 1 if before[key] else 0.0 for before, after in pairs]
            print(f"{Path(name).name}: {what} {np.mean(ratio):+.1%} ({min(ratio):+.1%} to {max(ratio):+.1%})")


def one_run(name: str, timing: float, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """The figures of one search, from the folder if they are there."""
    stem = f"{Path(name).name}-{given.seconds:g}-{seed}-{timing:g}"
    kept, plc, search_record = (given.out / f"{stem}.{kind}" for kind in ("json", "plc", "search.json"))
    if kept.is_file():
        known: dict[str, Any] = json.loads(kept.read_text())
        return known
    design = load(name)
    if not search_record.is_file():
        placement, took = searched(name, timing, seed, given)
        write_placement(plc, design, placement, comments=[f"bench_timing_search, timing {timing:g}, seed {seed}"])
        write_whole(search_record, json.dumps(took))
    placement = read_placement(plc, design.netlist, located=design.initial)[1]
    figures = judged(name, placement, given) | json.loads(search_record.read_text())
    figures["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    write_whole(kept, json.dumps(figures, indent=1) + "\n")
    print(f"{stem}: wns {figures['wns']:.0f}, tns {figures['tns']:.0f}, wirelength {figures['wirelength']:.0f}")
    return figures


if __name__ == "__main__":
    main()
