"""Soft macros annealed where the hard ones stand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from placement.engine.costs import CostWeights, proxy_cost
from placement.engine.soft import place_soft_macros
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from placement.search.settle import settle_soft_macros
from tests.support.designs import random_placement

CHIP = CostWeights(1.0, 1.0, 1.0, "chip")


def test_it_is_cheaper_and_moves_soft_macros_alone() -> None:
    design = load("clustered40")
    placement = random_placement(design, 3)
    settled = settle_soft_macros(design, placement, weights=CHIP, moves=20_000)
    others = np.setdiff1d(np.arange(design.netlist.num_nodes), design.netlist.soft)
    np.testing.assert_array_equal(settled.x[others], placement.x[others])
    np.testing.assert_array_equal(settled.y[others], placement.y[others])
    np.testing.assert_array_equal(settled.orientation, placement.orientation)
    np.testing.assert_array_equal(settled.fixed, placement.fixed)
    analytic = place_soft_macros(design, placement, "analytic")
    costs = [proxy_cost(design, one, weights=CHIP).proxy_cost for one in (settled, analytic)]
    assert costs[0] < 0.98 * costs[1]
    again = settle_soft_macros(design, placement, weights=CHIP, moves=20_000)
    np.testing.assert_array_equal(settled.x, again.x)


def test_rounds_that_cool_are_cheaper_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    design = load("clustered40")
    placement = random_placement(design, 3)
    settled = settle_soft_macros(design, placement, weights=CHIP, moves=20_000)
    monkeypatch.setattr("placement.search.settle._ROUNDS", 1)
    once = settle_soft_macros(design, placement, weights=CHIP, moves=20_000)
    costs = [proxy_cost(design, one, weights=CHIP).proxy_cost for one in (settled, once)]
    assert costs[0] < 0.99 * costs[1]


def test_soft_macros_begin_spread_around_the_macros_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(design: Design, placement: Placement) -> Placement:
        raise DesignError("no room")

    design = load("clustered40")
    placements = [random_placement(design, seed) for seed in (1, 2, 3)]

    def costs() -> np.ndarray:
        settled = [settle_soft_macros(design, one, weights=CHIP, moves=20_000) for one in placements]
        return np.array([proxy_cost(design, one, weights=CHIP).proxy_cost for one in settled])

    both = costs()
    monkeypatch.setattr("placement.search.settle.spread_clusters", no_room)
    alone = costs()
    assert np.all(both < 0.98 * alone)


def test_without_soft_macros_that_may_move_nothing_changes() -> None:
    design = load("toy6")
    placement = random_placement(design, 3)
    fixed = placement.fixed.copy()
    fixed[design.netlist.soft] = True
    held = dataclasses.replace(placement, fixed=fixed)
    assert settle_soft_macros(design, held, weights=CHIP) is held
