"""The best placement: tracked, written, saved, restored."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path

import numpy as np
import pytest

from placement.engine.costs import Costs, compute_costs
from placement.netlist.design import Placement
from placement.netlist.formats.plc import read_placement
from placement.report.run_watch import MOST_KEPT, best_placements
from placement.training.best import BestTracker
from tests.support.designs import random_design, random_placement

DESIGNS = [random_design(seed) for seed in (1, 2)]


def _report(tracker: BestTracker, index: int, seed: int, origin: str = "test") -> tuple[Costs, Placement, bool]:
    design = DESIGNS[index]
    placement = random_placement(design, seed)
    costs = compute_costs(design, placement)
    return costs, placement, tracker.report(index, costs, placement, origin=origin)


def test_the_cheapest_is_kept() -> None:
    tracker = BestTracker(DESIGNS)
    assert tracker.limit(0) == math.inf and math.isnan(tracker.mean_cost())
    reports = [_report(tracker, 0, seed) for seed in range(6)]
    costs = [costs.total for costs, _, _ in reports]
    assert [taken for _, _, taken in reports] == [cost < min([math.inf, *costs[:n]]) for n, cost in enumerate(costs)]
    best = tracker.best(0)
    assert best is not None and best.costs.total == tracker.limit(0) == min(costs)
    assert best.placement == reports[int(np.argmin(costs))][1]
    assert tracker.best(1) is None


def test_files_hold_the_best_and_are_written_when_it_changes(tmp_path: Path) -> None:
    tracker = BestTracker(DESIGNS[:1])
    costs, placement, _ = _report(tracker, 0, 0, origin="actor 3, episode 17")
    tracker.write(tmp_path, iteration=1)
    _, read = read_placement(tmp_path / "best.plc", DESIGNS[0].netlist)
    assert read == placement
    content = json.loads((tmp_path / "best.json").read_text())
    assert content[DESIGNS[0].name]["cost"] == costs.total
    assert content[DESIGNS[0].name]["file"] == "best.plc"
    assert content[DESIGNS[0].name]["origin"] == "actor 3, episode 17"
    (tmp_path / "best.plc").unlink()
    tracker.write(tmp_path, iteration=1)
    assert not (tmp_path / "best.plc").exists(), "written though nothing had changed"


def test_several_designs_have_a_file_each(tmp_path: Path) -> None:
    tracker = BestTracker(DESIGNS)
    for index in range(2):
        _report(tracker, index, 0)
    tracker.write(tmp_path, iteration=1)
    assert len({tracker.file_name(index) for index in range(2)}) == 2
    assert all((tmp_path / tracker.file_name(index)).exists() for index in range(2))
    assert tracker.mean_cost() == pytest.approx((tracker.limit(0) + tracker.limit(1)) / 2)


def test_arrays_bring_it_back() -> None:
    tracker, other = BestTracker(DESIGNS), BestTracker(DESIGNS)
    _, placement, _ = _report(tracker, 1, 0, origin="here")
    other.restore(tracker.arrays(), tracker.origins())
    assert other.best(0) is None
    assert other.best(1) == tracker.best(1)
    assert other.best(1).placement == placement and other.best(1).origin == "here"


def test_shapes_of_the_arrays_do_not_depend_on_what_was_found() -> None:
    tracker, empty = BestTracker(DESIGNS), BestTracker(DESIGNS)
    _report(tracker, 0, 0)
    for index in ("0", "1"):
        for name, array in tracker.arrays()[index].items():
            assert (array.shape, array.dtype) == (empty.arrays()[index][name].shape, empty.arrays()[index][name].dtype)


def test_files_newer_than_the_checkpoint_are_taken_back(tmp_path: Path) -> None:
    tracker = BestTracker(DESIGNS[:1])
    costs, placement, _ = _report(tracker, 0, 0)
    tracker.write(tmp_path, iteration=1)
    resumed = BestTracker(DESIGNS[:1])
    resumed.recover(tmp_path)
    assert resumed.best(0).placement == placement
    assert resumed.best(0).costs == costs


def test_a_damaged_file_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "best.plc").write_text("nonsense\n")
    tracker = BestTracker(DESIGNS[:1])
    with caplog.at_level(logging.WARNING):
        tracker.recover(tmp_path)
    assert tracker.best(0) is None
    assert "best.plc" in caplog.text


def test_what_was_best_over_the_iterations_is_kept_and_thinned(tmp_path: Path) -> None:
    tracker = BestTracker(DESIGNS)
    design, placement = DESIGNS[0], random_placement(DESIGNS[0], 0)
    costs = compute_costs(design, placement)
    written = MOST_KEPT + 1
    for iteration in range(written):
        tracker.report(0, costs._replace(total=100.0 - iteration), placement, origin="test")
        tracker.write(tmp_path, iteration=iteration)
        tracker.write(tmp_path, iteration=iteration + 1000)  # nothing is better: nothing is written
    kept = best_placements(tmp_path, tracker.file_name(0))
    assert [iteration for iteration, _ in kept] == [*range(0, written, 2)]
    assert read_placement(kept[-1][1], design.netlist)[1] == placement
    assert best_placements(tmp_path, tracker.file_name(1)) == []
