"""The incremental cost is bit-identical to the full evaluation after any moves, undos and commits."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.engine.costs import Costs, CostWeights, IncrementalCost, compute_costs
from placement.netlist.design import Design, NodeKind, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from tests.support import oracle
from tests.support.designs import Net, Node, build, four_macros, random_design, random_placement, square_canvas

WEIGHTS = CostWeights(1.0, 0.7, 0.3)


def movable(design: Design, *kinds: NodeKind) -> list[int]:
    kind, fixed = design.netlist.kind, design.initial.fixed
    return [node for node in range(design.netlist.num_nodes) if kind[node] in kinds and not fixed[node]]


def assert_exact(cost: IncrementalCost, design: Design, costs: Costs) -> None:
    assert cost.costs == costs
    assert costs == compute_costs(design, cost.placement, weights=WEIGHTS)


def random_step(cost: IncrementalCost, design: Design, generator: np.random.Generator) -> Costs:
    """Makes one random move, swap or turn; half of the moves go to the middle of a gcell, some to the old position."""
    canvas = design.canvas
    hard = movable(design, NodeKind.HARD)
    macros = movable(design, NodeKind.HARD, NodeKind.SOFT)
    what = generator.choice(["move", "nudge", "swap", "orient"])
    if what == "swap" and len(macros) > 1:
        return cost.swap(*(int(node) for node in generator.choice(macros, 2, replace=False)))
    if what == "orient" and hard:
        return cost.orient(int(generator.choice(hard)), Orientation(int(generator.integers(8))))
    node = int(generator.choice(macros))
    if what == "nudge":  # often within the gcell
        here = cost.placement
        return cost.move(node, *(float(at + generator.normal()) for at in (here.x[node], here.y[node])))
    if generator.random() < 0.5:
        column, row = generator.integers(canvas.columns), generator.integers(canvas.rows)
        return cost.move(node, (column + 0.5) * canvas.cell_width, (row + 0.5) * canvas.cell_height)
    x, y = generator.uniform(-0.1, 1.1, 2) * (canvas.width, canvas.height)
    return cost.move(node, float(x), float(y))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(design_seed=st.integers(0, 10**6), seed=st.integers(0, 10**6), actions=st.lists(st.integers(0, 9), max_size=25))
def test_any_sequence_of_moves_undos_and_commits(design_seed: int, seed: int, actions: list[int]) -> None:
    design = random_design(design_seed)
    generator = np.random.default_rng(seed)
    cost = IncrementalCost(design, random_placement(design, seed), weights=WEIGHTS)
    before = [cost.placement]
    for action in actions:
        if action < 6:
            costs = random_step(cost, design, generator)
            before.append(cost.placement)
            assert_exact(cost, design, costs)
        elif action < 9 and len(before) > 1:
            costs = cost.undo()
            before.pop()
            assert cost.placement == before[-1]
            assert_exact(cost, design, costs)
        else:
            cost.commit()
            before = before[-1:]
    expected = oracle.costs(design, cost.placement, WEIGHTS[:3])
    assert cost.costs == pytest.approx(expected, rel=1e-11, abs=1e-13)


def test_a_million_moves_leave_no_trace() -> None:
    design = random_design(12, hard=5, soft=5, nets=25, canvas=square_canvas(6, 5, smoothing=1))
    cost = IncrementalCost(design, weights=WEIGHTS)
    accepted = cost._native.random_walk(1_000_000, 3, 0.3)
    assert 295_000 < accepted < 305_000
    assert cost.placement != design.initial
    assert_exact(cost, design, cost.costs)


@pytest.mark.parametrize(("name", "smoothing"), [("clustered40", 0), ("clustered120", 2)])
def test_many_moves_on_a_shipped_design(name: str, smoothing: int) -> None:
    design = load(name)
    design = dataclasses.replace(design, canvas=dataclasses.replace(design.canvas, smoothing=smoothing))
    cost = IncrementalCost(design, weights=WEIGHTS)
    cost._native.random_walk(20_000, 1, 0.5)
    assert_exact(cost, design, cost.costs)


def test_many_moves_on_ariane(ariane_folder: Path) -> None:
    design = load(ariane_folder)
    cost = IncrementalCost(design, weights=WEIGHTS)
    cost._native.random_walk(50_000, 1, 0.5)
    assert_exact(cost, design, cost.costs)


def test_undone_moves_change_nothing() -> None:
    design = random_design(5)
    cost = IncrementalCost(design)
    costs = cost.costs
    assert cost._native.random_walk(500, 9, 0.0) == 0
    assert cost.costs == costs
    assert cost.placement == design.initial


@pytest.mark.parametrize("name", ["proxy", "chip"])
@pytest.mark.parametrize("away", [-1e9, -1e6, 1e6, 1e9])
def test_a_macro_far_off_the_canvas_covers_nothing(name: Literal["proxy", "chip"], away: float) -> None:
    # The distance in gcells exceeds 32-bit integers.
    design = dataclasses.replace(four_macros(), canvas=square_canvas(200, 200, cell=0.4))
    weights = CostWeights(1.0, 0.7, 0.3, name)
    cost = IncrementalCost(design, weights=weights)
    node = movable(design, NodeKind.HARD)[0]
    # Its position along the other axis affects only wires.
    assert cost.move(node, away, 10.0).density_cost == cost.move(node, away, design.canvas.height / 2).density_cost
    cost.undo()
    assert cost.move(node, 10.0, away).density_cost == cost.move(node, design.canvas.width / 2, away).density_cost


def test_a_walk_is_the_same_for_the_same_seed() -> None:
    design = random_design(5)
    costs = []
    for seed in (1, 1, 2):
        cost = IncrementalCost(design)
        cost._native.random_walk(300, seed, 0.5)
        costs.append(cost.costs)
    assert costs[0] == costs[1] != costs[2]


def test_a_move_by_hand() -> None:
    nodes = [Node("macro", NodeKind.HARD, 25, 25, 4, 2), Node("port", NodeKind.PORT, 0, 25)]
    design = build("one", square_canvas(), nodes, [Net([("macro", 2, 1), ("port", 0, 0)], 3.0)])
    cost = IncrementalCost(design)
    assert cost.costs.wirelength == 3 * (27 + 1)
    assert cost.move(0, 35, 15).wirelength == 3 * (37 + 9)
    assert cost.orient(0, Orientation.S).wirelength == 3 * (33 + 11)
    assert cost.undo().wirelength == 3 * (37 + 9)
    assert cost.undo().wirelength == 3 * (27 + 1)
    with pytest.raises(IndexError, match="nothing to undo"):
        cost.undo()
    cost.move(0, 35, 15)
    cost.commit()
    with pytest.raises(IndexError, match="nothing to undo"):
        cost.undo()
    assert cost.placement.x[0] == 35


def test_what_cannot_move_is_rejected_and_changes_nothing() -> None:
    design = four_macros()
    cost = IncrementalCost(design)
    number = {name: node for node, name in enumerate(design.netlist.names)}
    rejected = [
        (lambda: cost.move(99, 1.0, 1.0), "node 99: design 'four_macros' has nodes 0 to 6"),
        (lambda: cost.move(-1, 1.0, 1.0), "node -1: "),
        (lambda: cost.move(number["left"], 1.0, 1.0), "'left' .*cannot move, it is a port"),
        (lambda: cost.move(number["kept"], 1.0, 1.0), "'kept' .*cannot move, it is fixed"),
        (lambda: cost.swap(number["large"], number["kept"]), "'kept' .*cannot move, it is fixed"),
        (lambda: cost.swap(number["large"], number["large"]), "'large' .*with itself"),
        (lambda: cost.orient(number["cluster"], Orientation.S), "'cluster' .*is a soft macro"),
        (lambda: cost.orient(number["large"], 8), r"'large' .*orientation 8 must be in \[0, 8\)"),
        (
            lambda: cost.move(number["large"], float("nan"), 1.0),
            r"'large' .*\(nan, 1.0\); both must be in ±1e\+09",
        ),
    ]
    for call, message in rejected:
        with pytest.raises(DesignError, match=message):
            call()
    assert cost.placement == design.initial
    assert cost.costs == compute_costs(design)


def test_a_standard_cell_stays() -> None:
    design = build("cells", square_canvas(), [Node("cell", NodeKind.CELL, 5, 5)], [])
    with pytest.raises(DesignError, match="it is a cell, not a macro"):
        IncrementalCost(design).move(0, 1.0, 1.0)


def test_an_unplaced_node_is_named() -> None:
    design = four_macros()
    placed = np.arange(7) != 2
    with pytest.raises(DesignError, match=r"'large' \(number 2\) is not placed"):
        IncrementalCost(design, dataclasses.replace(design.initial, placed=placed))
