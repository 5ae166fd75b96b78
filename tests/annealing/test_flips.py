from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from placement.annealing.flips import flip_macros
from placement.engine.costs import CostWeights, compute_costs, legality
from placement.netlist.design import Orientation
from placement.netlist.load import load


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
