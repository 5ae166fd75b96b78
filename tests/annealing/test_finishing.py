"""Hard macros flipped in place, and soft macros annealed around them."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from placement.annealing.finishing import anneal_soft_macros, flip_macros
from placement.engine.costs import CostWeights, compute_costs, legality
from placement.engine.soft import place_soft_macros
from placement.netlist.design import Design, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from tests.support.designs import random_placement

CHIP = CostWeights(1.0, 1.0, 1.0, "chip")


def test_it_is_cheaper_and_moves_soft_macros_alone() -> None:
    design = load("clustered40")
    placement = random_placement(design, 3)
    settled = anneal_soft_macros(design, placement, weights=CHIP, moves=20_000)
    others = np.setdiff1d(np.arange(design.netlist.num_nodes), design.netlist.soft)
    np.testing.assert_array_equal(settled.x[others], placement.x[others])
    np.testing.assert_array_equal(settled.y[others], placement.y[others])
    np.testing.assert_array_equal(settled.orientation, placement.orientation)
    np.testing.assert_array_equal(settled.fixed, placement.fixed)
    analytic = place_soft_macros(design, placement, "analytic")
    costs = [compute_costs(design, one, weights=CHIP).total for one in (settled, analytic)]
    assert costs[0] < 0.98 * costs[1]
    again = anneal_soft_macros(design, placement, weights=CHIP, moves=20_000)
    np.testing.assert_array_equal(settled.x, again.x)


def test_rounds_that_cool_are_cheaper_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    design = load("clustered40")
    placement = random_placement(design, 3)
    settled = anneal_soft_macros(design, placement, weights=CHIP, moves=20_000)
    monkeypatch.setattr("placement.annealing.finishing._ROUNDS", 1)
    once = anneal_soft_macros(design, placement, weights=CHIP, moves=20_000)
    costs = [compute_costs(design, one, weights=CHIP).total for one in (settled, once)]
    assert costs[0] < 0.99 * costs[1]


def test_soft_macros_begin_spread_around_the_macros_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(design: Design, placement: Placement) -> Placement:
        raise DesignError("no room")

    design = load("clustered40")
    placements = [random_placement(design, seed) for seed in (1, 2, 3)]

    def costs() -> np.ndarray:
        settled = [anneal_soft_macros(design, one, weights=CHIP, moves=20_000) for one in placements]
        return np.array([compute_costs(design, one, weights=CHIP).total for one in settled])

    both = costs()
    monkeypatch.setattr("placement.annealing.finishing.spread_clusters", no_room)
    alone = costs()
    assert np.all(both < 0.98 * alone)


def test_without_soft_macros_that_may_move_nothing_changes() -> None:
    design = load("toy6")
    placement = random_placement(design, 3)
    fixed = placement.fixed.copy()
    fixed[design.netlist.soft] = True
    held = dataclasses.replace(placement, fixed=fixed)
    assert anneal_soft_macros(design, held, weights=CHIP) is held


def turned(placement, orientation):
    return dataclasses.replace(placement, orientation=np.asarray(orientation, np.int8))


def with_random_mirrors(design, seed=0):
    orientation = design.initial.orientation.copy()
    movable = design.placing_order
    orientation[movable] = np.random.default_rng(seed).integers(0, 4, len(movable))
    return turned(design.initial, orientation)


@pytest.mark.parametrize("name", ["clustered40", "clustered120"])
def test_flips_are_cheaper_and_move_nothing(name):
    design = load(name)
    start = with_random_mirrors(design)
    before = compute_costs(design, start)
    found = flip_macros(design, start)
    assert found.costs == compute_costs(design, found.placement)
    assert found.costs.total < before.total
    assert found.flipped == (found.placement.orientation != start.orientation).sum() > 0
    for field in ("x", "y", "fixed", "placed"):
        assert np.array_equal(getattr(found.placement, field), getattr(start, field)), field
    assert legality(design, found.placement) == legality(design, start)


def test_no_single_flip_is_better_than_what_was_found():
    design = load("clustered40")
    found = flip_macros(design, with_random_mirrors(design, seed=1))
    assert found.sweeps > 1
    for node, mirror in itertools.product(design.placing_order, (1, 2, 3)):
        orientation = found.placement.orientation.copy()
        orientation[node] ^= mirror
        other = compute_costs(design, turned(found.placement, orientation))
        assert other.total > found.costs.total - 1e-11
    again = flip_macros(design, found.placement)
    assert (again.placement is found.placement, again.flipped, again.sweeps) == (True, 0, 1)


def test_sides_are_kept_and_fixed_macros_stay():
    design = load("clustered40")
    orientation = design.initial.orientation.copy()
    first, second, third = design.placing_order[:3]
    orientation[first], orientation[second] = Orientation.E, Orientation.FW
    fixed = design.initial.fixed.copy()
    fixed[third] = True
    initial = dataclasses.replace(turned(design.initial, orientation), fixed=fixed)
    held = dataclasses.replace(design, initial=initial)
    found = flip_macros(held, initial).placement.orientation
    assert (found >= Orientation.E).tolist() == (orientation >= Orientation.E).tolist()
    assert found[third] == orientation[third]
    others = np.setdiff1d(np.arange(len(found)), design.placing_order)
    assert np.array_equal(found[others], orientation[others])


def test_the_weights_decide_and_a_design_whose_pins_are_at_centres_is_left_alone():
    planted = load("planted20")
    found = flip_macros(planted, with_random_mirrors(planted))
    assert (found.flipped, found.sweeps) == (0, 1)
    design = load("clustered40")
    wire = flip_macros(design, design.initial, weights=CostWeights(1.0, 0.0, 0.0))
    assert wire.costs.total == wire.costs.wirelength_cost < compute_costs(design).wirelength_cost
