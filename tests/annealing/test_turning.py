"""Groups of macros that turn: counted by hand, within the bound and the constraints."""

import dataclasses

import numpy as np

import placement
from placement import AnnealConfig
from placement.annealing.turning import turn_groups
from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs
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
    turned = turn_groups(design, design.initial, **arguments)
    assert (turned.x == design.initial.x).all()
    assert (turned.y == design.initial.y).all()
    each = turned.orientation[design.netlist.hard].reshape(-1, 4)
    assert (each == each[:, :1]).all()
    return [Orientation(int(turn)).name for turn in each[:, 0]]


def test_columns_turn_like_those_beside_them():
    design = block([Orientation.N, Orientation.N, Orientation.FN, Orientation.FN, Orientation.N])
    assert tidiness(design).alike == (31 - 8) / 31
    assert columns(design) == ["N"] * 5


def test_a_group_takes_the_orientation_that_costs_least_wire():
    """In N the pins are on the right, away from the port: FN saves 8 µm of wire per macro."""
    assert columns(block([Orientation.N, Orientation.FN, Orientation.N], pin=4.0)) == ["FN"] * 3


def test_the_cost_decides_whether_a_group_turns():
    design = block([Orientation.N, Orientation.FN], pin=4.0, fixed=[1])
    assert columns(design) == ["FN", "FN"]
    design = block([Orientation.N, Orientation.FN], pin=-4.0, fixed=[1])
    assert columns(design) == ["FN", "FN"]
    assert columns(design, weights=DEFAULT_WEIGHTS._replace(tidy=1e-9)) == ["N", "FN"]
    assert columns(design, most=compute_costs(design).total) == ["N", "FN"]


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


def test_turning_lowers_the_cost_until_no_group_can_lower_it():
    design = placement.load("clustered40")
    hard = design.netlist.hard
    orientation = design.initial.orientation.copy()
    orientation[hard] = np.random.default_rng(0).integers(0, 4, len(hard))
    start = dataclasses.replace(design.initial, orientation=orientation)
    start = placement.legalise(design, start)
    most = 1.002 * compute_costs(design, start).total
    arguments = {"weights": DEFAULT_WEIGHTS._replace(tidy=0.05), "config": AnnealConfig(), "most": most}
    turned = turn_groups(design, start, **arguments)
    assert tidiness(design, turned).alike > tidiness(design, start).alike
    assert compute_costs(design, turned).total <= most
    assert turn_groups(design, turned, **arguments) == turned
    assert turned == turn_groups(design, start, **arguments)
