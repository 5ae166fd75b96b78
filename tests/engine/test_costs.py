"""The typed interface of the cost: accepted and rejected arguments, and the legality rule."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from placement.engine.costs import CostWeights, compute_costs, cost_maps, legality, proxy_cost
from placement.netlist.errors import DesignError
from tests.support.designs import four_macros, random_design, random_placement


def test_the_parts_sum_to_the_proxy_cost() -> None:
    design = four_macros()
    costs = compute_costs(design, weights=CostWeights(2.0, 3.0, 5.0))
    expected = 2 * costs.wirelength_cost + 3 * costs.density_cost + 5 * costs.congestion_cost
    assert costs.total == pytest.approx(expected, rel=1e-15)
    assert proxy_cost(design, design.initial) == proxy_cost(design)


def test_a_short_placement_is_rejected() -> None:
    with pytest.raises(DesignError, match=r"placement of 21 nodes .*'four_macros' of 7 nodes"):
        proxy_cost(four_macros(), random_design(0).initial)


@pytest.mark.parametrize("function", [proxy_cost, cost_maps, legality])
def test_an_unplaced_node_is_named(function) -> None:
    design = four_macros()
    placed = design.initial.placed.copy()
    placed[3] = False
    with pytest.raises(DesignError, match=r"node 'middle' \(number 3\) is not placed"):
        function(design, dataclasses.replace(design.initial, placed=placed))


def test_maps_have_the_grid_shape_and_hold_the_area() -> None:
    design = random_design(3)
    placement = random_placement(design, 1, spill=0.0)
    maps = cost_maps(design, placement)
    assert {each.shape for each in maps} == {(design.canvas.rows, design.canvas.columns)}
    cost = proxy_cost(design, placement)
    largest = design.canvas.rows * design.canvas.columns // 10
    top = np.sort(maps.density, axis=None)[::-1][:largest]
    assert cost.density_cost == pytest.approx(0.5 * top.mean(), rel=1e-12)
    both = np.sort(np.concatenate([maps.horizontal, maps.vertical]), axis=None)[::-1][:largest]
    assert cost.congestion_cost == pytest.approx(both.mean(), rel=1e-12)


def test_legality_counts_pairs_and_macros_outside() -> None:
    design = four_macros()
    assert legality(design) == (0, 0)
    names = design.netlist.names
    on_the_others = design.initial.moved(np.array([names.index("small")]), np.array([24.0]), np.array([18.0]))
    assert legality(design, on_the_others) == (1, 0)
    beyond = design.initial.moved(np.array([names.index("large")]), np.array([9.9]), np.array([15.0]))
    assert legality(design, beyond) == (0, 1)
    touching = design.initial.moved(np.array([names.index("large")]), np.array([10.0]), np.array([5.0]))
    assert legality(design, touching) == (0, 0)


def test_the_overlap_threshold_applies_to_both_directions_at_once() -> None:
    design = four_macros()
    design = dataclasses.replace(design, canvas=dataclasses.replace(design.canvas, overlap_threshold=1.0))
    kept = design.netlist.names.index("kept")  # 40 … 50 × 0 … 10
    large = np.array([design.netlist.names.index("large")])  # 20 × 10
    assert design.initial.fixed[kept]
    one_direction = design.initial.moved(large, np.array([30.9]), np.array([5.0]))
    assert legality(design, one_direction) == (0, 0)
    both = design.initial.moved(large, np.array([31.1]), np.array([5.0]))
    assert legality(design, both) == (1, 0)
