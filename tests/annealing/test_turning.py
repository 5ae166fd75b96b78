"""Turning of groups of macros: cases counted by hand, the bound and the constraints."""

import dataclasses
from unittest.mock import ANY

import numpy as np
import pytest

import placement
from placement import AnnealConfig
from placement.annealing.turning import turn_groups, turned_alike
from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs, legality
from placement.engine.tidiness import tidiness
from placement.netlist.design import NodeKind, Orientation
from tests.support.constrained_designs import constrained
from tests.support.designs import Net, Node, build, square_canvas

TIDY = DEFAULT_WEIGHTS._replace(tidy=1.0)
ANY_COST = np.inf


def block(orientations, *, pin=0.0, fixed=()):
    """Returns abutting columns of four macros of 20 × 20 µm, one per orientation, each macro with a net to a port."""
    nodes = [
        Node(f"m{column}_{row}", NodeKind.HARD, 50 + 20 * column, 50 + 20 * row, 20, 20, turn, column in fixed)
        for column, turn in enumerate(orientations)
        for row in range(4)
    ]
    port = Node("port", NodeKind.PORT, 0.0, 0.0)
    nets = [Net([("port", 0.0, 0.0), (node.name, pin, 0.0)]) for node in nodes]
    return build("block", square_canvas(20, 20), [*nodes, port], nets)


def columns(design, **options):
    """Returns the orientations of the columns after turning."""
    arguments = {"weights": TIDY, "config": AnnealConfig(), "most": ANY_COST} | options
    turned = turned_alike(design, design.initial, **arguments)
    assert (turned.x == design.initial.x).all()
    assert (turned.y == design.initial.y).all()
    each = turned.orientation[design.netlist.hard].reshape(-1, 4)
    assert (each == each[:, :1]).all()
    return [Orientation(int(turn)).name for turn in each[:, 0]]


def test_columns_take_the_orientation_of_their_neighbours():
    design = block([Orientation.N, Orientation.N, Orientation.FN, Orientation.FN, Orientation.N])
    assert tidiness(design).alike == (31 - 8) / 31
    assert columns(design) == ["N"] * 5


def test_a_group_takes_the_orientation_that_costs_least_wire():
    """In N the pins are on the right, away from the port: FN saves 8 µm of wire per macro."""
    assert columns(block([Orientation.N, Orientation.FN, Orientation.N], pin=4.0)) == ["FN"] * 3


def test_the_bound_decides_whether_a_group_turns():
    cheaper = block([Orientation.N, Orientation.FN], pin=4.0, fixed=[1])
    assert columns(cheaper, most=compute_costs(cheaper).total) == ["FN", "FN"]
    dearer = block([Orientation.N, Orientation.FN], pin=-4.0, fixed=[1])
    assert columns(dearer, most=compute_costs(dearer).total) == ["N", "FN"]
    assert columns(dearer) == ["FN", "FN"]


def test_the_turn_that_costs_least_per_pair_comes_first():
    """Each turn costs the same; that of the middle column makes twice as many pairs alike. The bound allows one."""
    names = [Orientation.N, Orientation.FN, Orientation.N, Orientation.S]
    design, turned = block(names, pin=4.0, fixed=[0, 2]), block([Orientation.N] * 4, pin=4.0)
    before, after = compute_costs(design).total, compute_costs(turned).total
    assert columns(design, most=before + 0.7 * (after - before)) == ["N", "N", "N", "S"]
    assert columns(design, most=after * (1 + 1e-9)) == ["N"] * 4


def test_a_group_with_a_fixed_macro_does_not_turn():
    assert columns(block([Orientation.N, Orientation.FN, Orientation.N], fixed=[0, 2])) == ["N"] * 3
    assert columns(block([Orientation.N, Orientation.FN], fixed=[0, 1])) == ["N", "FN"]


def test_no_group_turns_by_90_degrees_or_against_the_constraints():
    assert columns(block([Orientation.N, Orientation.E])) == ["N", "E"]
    design = block([Orientation.N, Orientation.FN])
    allowed = np.full(9, 0b11, dtype=np.uint8)
    allowed[:4], allowed[4:8] = 0b01, 0b10
    assert columns(constrained(design, orientations=allowed)) == ["N", "FN"]


def test_a_one_sided_halo_must_remain_free_after_the_turn():
    """Halos of 5 µm on the left in N: the right column abuts in FN, and would need a gap in N."""
    halo = np.zeros((9, 4))
    halo[:8, 0] = 5.0
    design = block([Orientation.N, Orientation.FN], fixed=[0])
    assert columns(design) == ["N", "N"]
    assert columns(constrained(design, halo=halo)) == ["N", "FN"]


@pytest.fixture(scope="module")
def found():
    """A design and a placement of it whose macros are in random orientations."""
    design = placement.load("clustered40")
    start = placement.search(design, config=AnnealConfig(starts=("packed",)), moves=3000, round_moves=1000).placement
    orientation, hard = start.orientation.copy(), design.netlist.hard
    orientation[hard] = np.random.default_rng(0).integers(0, 4, len(hard))
    return design, dataclasses.replace(start, orientation=orientation)


def test_turned_groups_cost_no_more_than_before(found):
    design, start = found
    arguments = {"weights": DEFAULT_WEIGHTS, "config": AnnealConfig(tidy=0.02), "moves": 4000, "seed": 1}
    turned = turn_groups(design, start, **arguments)
    assert turned.finished
    assert turned.moves <= 4000
    assert tidiness(design, turned.placement).alike > tidiness(design, start).alike
    assert compute_costs(design, turned.placement).total <= compute_costs(design, start).total
    assert legality(design, turned.placement) == (0, 0)
    assert turn_groups(design, start, **arguments).placement == turned.placement


def test_a_placement_does_not_change_if_annealing_cannot_lower_the_cost_again(found):
    """A single macro turns; no other macro could save the wire."""
    design = block([Orientation.N, Orientation.FN], pin=-4.0, fixed=[1])
    arguments = {"weights": DEFAULT_WEIGHTS, "config": AnnealConfig(tidy=1.0), "moves": 1}
    assert turn_groups(design, design.initial, **arguments) == (design.initial, ANY, 1, True)
    stopped = turn_groups(design, design.initial, **arguments, stopped=lambda: True)
    assert stopped == (design.initial, ANY, 0, False)
