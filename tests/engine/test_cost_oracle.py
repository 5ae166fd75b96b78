"""Random designs and placements: the engine's cost and maps compared with the slow oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.engine.costs import CostWeights, compute_costs, cost_maps, proxy_cost
from placement.netlist.design import Design, Placement
from tests.support import oracle
from tests.support.designs import four_macros, random_design, random_placement


def assert_agrees(design: Design, placement: Placement) -> None:
    weights = CostWeights(1.0, 0.7, 0.3)
    expected = oracle.costs(design, placement, weights[:3])
    assert compute_costs(design, placement, weights=weights) == pytest.approx(expected, rel=1e-11, abs=1e-13)
    for found, wanted in zip(cost_maps(design, placement), oracle.maps(design, placement), strict=True):
        np.testing.assert_allclose(found, np.array(wanted), rtol=1e-11, atol=1e-12)


def test_a_small_design_by_hand() -> None:
    assert_agrees(four_macros(), four_macros().initial)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(design_seed=st.integers(0, 10**6), seed=st.integers(0, 10**6), on_grid=st.booleans())
def test_random_designs(design_seed: int, seed: int, on_grid: bool) -> None:
    design = random_design(design_seed)
    assert_agrees(design, random_placement(design, seed, on_grid=on_grid))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10**6),
    hard=st.integers(0, 12),
    soft=st.integers(0, 12),
    ports=st.integers(0, 4),
    nets=st.integers(0, 120),
)
def test_designs_with_little_of_something(seed: int, hard: int, soft: int, ports: int, nets: int) -> None:
    design = random_design(seed, hard=hard, soft=soft, ports=ports, cells=1, nets=nets)
    assert_agrees(design, random_placement(design, seed, spill=0.4))


def test_one_evaluation_leaves_no_trace_in_the_next() -> None:
    design = random_design(7)
    first, second = random_placement(design, 1), random_placement(design, 2)
    costs = proxy_cost(design, first)
    assert proxy_cost(design, second) != costs
    assert proxy_cost(design, first) == costs
