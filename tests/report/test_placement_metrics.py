from __future__ import annotations

import dataclasses
import io
import json

import numpy as np
import pytest
from rich.console import Console

from placement.engine.costs import CostWeights, compute_costs, legality, violations
from placement.netlist.constraints import SnapGrid
from placement.netlist.errors import DesignError
from placement.report.placement_metrics import VIOLATION_KEYS, json_line, measure, metrics_table
from tests.support.constrained_designs import constrained
from tests.support.designs import four_macros, random_design, random_placement

JSON_KEYS = (
    "cost_name", "cost", "wirelength", "wirelength_cost", "density_cost", "congestion_cost", "overlaps", "outside",
    "tidiness",
)  # fmt: skip


def _printed(table: object) -> str:
    stream = io.StringIO()
    Console(file=stream, width=100).print(table)
    return stream.getvalue()


def test_metrics_are_those_of_the_engine():
    design = random_design(4)
    placement = random_placement(design, 1)
    weights = CostWeights(2.0, 0.25, 1.5)
    metrics = measure(design, placement, weights=weights)
    assert metrics.costs == compute_costs(design, placement, weights=weights)
    assert metrics.legality == legality(design, placement)


def test_utilization_is_area_over_canvas_area():
    # Hard 200 + 160 + 48 + 100, soft 144, canvas 50 × 50.
    text = _printed(metrics_table(measure(four_macros()), "four"))
    assert "26.1%" in text and "hard macros 20.3%" in text
    assert "4 + 1" in text and "2 ports" in text


def test_json_line_reads_back_equal():
    metrics = measure(random_design(7))
    values = json.loads(json_line(metrics))
    assert tuple(values) == JSON_KEYS
    numbers = ("chip", metrics.costs.total, *metrics.costs[:4], *metrics.legality, metrics.tidiness._asdict())
    assert tuple(values.values()) == numbers
    assert "\n" not in json_line(metrics)


def test_table_tells_the_numbers():
    design = four_macros()
    metrics = measure(design)
    text = _printed(metrics_table(metrics, "four"))
    for expected in (
        f"{metrics.costs.total:.6f}",
        f"{metrics.costs.wirelength:,.1f}",
        "5 × 5",
        "50 × 50",
        "26.1%",
    ):
        assert expected in text
    assert "weight 1" in text


def test_incomplete_placement_is_rejected():
    design = four_macros()
    placed = design.initial.placed.copy()
    placed[3] = False
    with pytest.raises(DesignError, match="middle"):
        measure(design, dataclasses.replace(design.initial, placed=placed))


def test_faults_are_counted():
    design = four_macros()
    on_top = design.initial.moved(np.array([3, 4]), np.array([15.0, 60.0]), np.array([15.0, 60.0]))
    metrics = measure(design, on_top)
    assert metrics.legality == (1, 1)


def test_violations_are_reported_if_there_are_constraints():
    design = four_macros()
    assert set(json.loads(json_line(measure(design)))) == set(JSON_KEYS)
    assert "halos" not in _printed(metrics_table(measure(design), "four"))
    # "small" covers (11, 32) to (19, 38), "kept" (40, 0) to (50, 10)
    blocked = constrained(design, blockages=np.array([[0.0, 30, 12, 40]]), grid=SnapGrid(10.0, 0.0), port_keepout=0.5)
    metrics = measure(blocked)
    assert metrics.violations == violations(blocked)
    values = json.loads(json_line(metrics))
    assert tuple(values) == (*JSON_KEYS, *VIOLATION_KEYS)
    assert values["blockage_violations"] == 1
    assert values["grid_violations"] == 2  # large begins at 5 and small at 11; middle at 30 and kept at 40 fit
    assert values["halo_violations"] == values["port_keepout_violations"] == values["region_violations"] == 0
    text = _printed(metrics_table(metrics, "four"))
    for words in ("hard macros on blockages", "hard macros off the snapping grid", "closer than their halos"):
        assert words in text
