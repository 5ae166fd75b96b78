"""The session: costs, undo and redo, faults, tools and steps compared with the engine and the oracles."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from placement.engine.costs import compute_costs, proxy_cost
from placement.netlist.design import NodeKind, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.faults import DragFaults, find_faults
from placement.report.view.edits import TURNS, edit
from placement.report.view.session import Recovery, Session
from tests.support import legality_oracle, oracle
from tests.support.constrained_designs import randomly_constrained
from tests.support.designs import four_macros, random_design, random_placement

SEEDS = range(12)


def session_of(seed: int) -> Session:
    design = random_design(seed)
    return Session(design, random_placement(design, seed + 100), name="random.plc")


def some_changes(session: Session, generator: np.random.Generator, count: int = 12) -> int:
    """Drags, turns, swaps, fixes and releases at random; returns the number of accepted changes."""
    netlist = session.design.netlist
    free = [node for node in [*netlist.hard, *netlist.soft] if not session.placement.fixed[node]]
    kept = 0
    for _ in range(count):
        movable = [int(node) for node in free if not session.placement.fixed[node]]
        node, kind = int(generator.choice(movable)), generator.integers(5)
        before = session.revision
        if kind <= 1:
            for _ in range(3):
                session.drag({node: tuple(generator.uniform(-5, 60, 2))})
            session.let_go() if kind == 0 else session.drop()
        elif kind == 2 and netlist.kind[node] == NodeKind.HARD:
            after = edit(session.design, session.placement, np.array([node]), "turn", str(generator.choice(TURNS)))
            session.change("turn", after)
        elif kind == 3 and len(movable) > 1:
            pair = generator.choice(movable, 2, replace=False)
            session.change("swap", edit(session.design, session.placement, pair, "swap", ""))
        elif len(movable) > 3:
            session.fix([node], fixed=True)
        kept += session.revision - before
    return kept


@pytest.mark.parametrize("seed", SEEDS)
def test_the_cost_is_the_full_evaluations_after_any_changes(seed: int) -> None:
    session, generator = session_of(seed), np.random.default_rng(seed)
    for _ in range(3):
        some_changes(session, generator, 5)
        assert session.costs == compute_costs(session.design, session.placement)
    expected = oracle.costs(session.design, session.placement)
    assert proxy_cost(session.design, session.placement).total == pytest.approx(expected.total, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_undo_goes_back_to_the_start_and_redo_to_the_end_bit_by_bit(seed: int) -> None:
    session, generator = session_of(seed), np.random.default_rng(seed)
    kept = some_changes(session, generator)
    end, costs = session.placement, session.costs
    assert len(session.steps) == kept > 0
    for left in range(kept - 1, -1, -1):
        assert session.undo() is not None
        assert len(session.steps) == left
    assert session.undo() is None
    assert session.placement == session.start
    assert session.costs == session.start_costs
    while session.redo() is not None:
        pass
    assert session.placement == end
    assert session.costs == costs


def test_a_new_step_forgets_what_was_undone_and_what_was_saved_there() -> None:
    session = Session(four_macros(), four_macros().initial, name="mine")
    node = session.design.netlist.names.index("large")
    session.drag({node: (20.0, 20.0)})
    session.drop()
    session.mark_saved()
    assert session.is_saved
    session.undo()
    assert not session.is_saved
    session.drag({node: (25.0, 20.0)})
    session.drop()
    assert not session.undone
    assert not session.is_saved
    session.undo()
    assert not session.is_saved  # undo and redo can no longer reach the saved state


def test_what_is_dragged_and_let_go_leaves_nothing_behind() -> None:
    session = Session(four_macros(), four_macros().initial, name="mine")
    node = session.design.netlist.names.index("large")
    costs = session.drag({node: (40.0, 40.0)})
    assert costs == compute_costs(
        session.design, session.placement.moved(np.array([node]), *np.array([[40.0], [40.0]]))
    )
    assert any("overlaps middle" in reason for reason in session.faults()[node])
    session.let_go()
    assert session.costs == session.start_costs
    assert session.placement == session.start
    assert not session.steps


def test_what_cannot_move_is_rejected_by_its_name_and_nothing_moves() -> None:
    design = four_macros()
    session = Session(design, design.initial, name="mine")
    names = design.netlist.names.index
    for node, message in (
        (names("left"), "'left': is a port"),
        (names("kept"), "'kept': is fixed; release it first"),
        (99, "node 99: the design has nodes 0 to 6"),
    ):
        with pytest.raises(DesignError, match=message):
            session.drag({names("large"): (1.0, 1.0), node: (1.0, 1.0)})
    with pytest.raises(DesignError, match="cannot be moved to"):
        session.drag({names("large"): (math.nan, 1.0)})
    assert session.costs == session.start_costs
    session.fix([names("kept")], fixed=False)
    session.drag({names("kept"): (30.0, 30.0)})
    session.drop()
    assert session.costs == compute_costs(design, session.placement)
    other = dataclasses.replace(session.placement, x=session.placement.x + 1.0)
    with pytest.raises(DesignError, match="only macros can be moved"):
        session.change("all", other)


@pytest.mark.parametrize("seed", range(60))
def test_faults_are_those_that_the_slow_oracle_finds(seed: int) -> None:
    design = randomly_constrained(random_design(seed, hard=6), seed)
    placement = random_placement(design, seed, on_grid=seed % 2 == 0)
    found = find_faults(design, placement)
    for node in design.netlist.hard.tolist():
        near = [
            other
            for other in design.netlist.hard.tolist()
            if other != node and legality_oracle.too_close(design, placement, node, other)
        ]
        near += [
            other
            for other in design.netlist.hard.tolist()
            if other != node and other not in near and legality_oracle.overlaps(design, placement, node, other)
        ]
        legal = legality_oracle.may_stand(design, placement, node) and not near
        assert (node not in found) == legal
        if len(near) < 3:
            reported = [reason for reason in found.get(node, []) if "overlaps" in reason or "their halos" in reason]
            assert len(reported) == len(near)


@pytest.mark.parametrize("orientation", list(Orientation))
@pytest.mark.parametrize(
    ("how", "moved"),
    [
        ("left", lambda dx, dy: (-dy, dx)),
        ("right", lambda dx, dy: (dy, -dx)),
        ("half", lambda dx, dy: (-dx, -dy)),
        ("mirror_x", lambda dx, dy: (-dx, dy)),
        ("mirror_y", lambda dx, dy: (dx, -dy)),
    ],
)
def test_turning_takes_the_pins_along(orientation: Orientation, how: str, moved: object) -> None:
    design = four_macros()
    node = design.netlist.names.index("middle")
    pin = int(np.flatnonzero(design.netlist.pin_node == node)[0])
    turns = design.initial.orientation.copy()
    turns[node] = orientation
    before = dataclasses.replace(design.initial, orientation=turns)
    after = edit(design, before, np.array([node]), "turn", how)

    def offset(placement: object) -> tuple[float, float]:
        x, y = oracle.pin_position(design.netlist, placement, pin)
        return x - float(before.x[node]), y - float(before.y[node])

    assert offset(after) == pytest.approx(moved(*offset(before)))


def test_align_and_distribute_by_hand() -> None:
    design = four_macros()
    nodes = np.array([design.netlist.names.index(name) for name in ("large", "middle", "small")])
    left = edit(design, design.initial, nodes, "align", "left")
    widths = [20.0, 10.0, 8.0]  # `small` is rotated by 90°
    assert [left.x[node] - width / 2 for node, width in zip(nodes, widths, strict=True)] == [5.0, 5.0, 5.0]
    top = edit(design, design.initial, nodes, "align", "top")
    assert [top.y[node] + height / 2 for node, height in zip(nodes, [10.0, 16.0, 6.0], strict=True)] == [43.0] * 3
    apart = edit(design, left.moved(nodes, np.array([10.0, 45.0, 22.0]), left.y[nodes]), nodes, "distribute", "x")
    # 0–20, then 8 wide, then 40–50: gaps of 6
    assert apart.x[nodes].tolist() == [10.0, 45.0, 30.0]
    cluster = np.array([design.netlist.names.index("cluster")])
    for chosen, what, how in (
        (nodes, "align", "up"),
        (nodes[:2], "distribute", "x"),
        (nodes, "distribute", "z"),
        (nodes, "swap", ""),
        (cluster, "turn", "left"),
        (nodes, "melt", ""),
    ):
        with pytest.raises(DesignError):
            edit(design, design.initial, chosen, what, how)


def test_unsaved_changes_come_back_to_the_same_placement_only(tmp_path: Path) -> None:
    session, recovery = session_of(4), Recovery(tmp_path / "state")
    some_changes(session, np.random.default_rng(4))
    recovery.keep(session)
    again = Session(session.design, session.start, name=session.name)
    assert recovery.bring_back(again)
    assert again.placement == session.placement
    assert not again.is_saved
    again.undo()
    assert again.placement == session.start
    node = int(session.steps[0].after.nodes[0])
    start = session.start.moved(np.array([node]), np.array([1.0]), np.array([2.0]))
    assert not recovery.bring_back(Session(session.design, start, name=session.name))
    session.mark_saved()
    recovery.keep(session)
    assert not recovery.bring_back(Session(session.design, session.start, name=session.name))


def test_damaged_changes_are_reported(tmp_path: Path) -> None:
    session, recovery = session_of(4), Recovery(tmp_path)
    some_changes(session, np.random.default_rng(4))
    recovery.keep(session)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(DesignError, match="not a valid state file"):
        recovery.bring_back(Session(session.design, session.start, name=session.name))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_faults_of_a_drag_are_those_of_the_whole_placement(seed: int) -> None:
    design = randomly_constrained(random_design(seed), seed)
    generator, placement = np.random.default_rng(seed), random_placement(design, seed + 100)
    nodes = generator.choice(design.netlist.hard, min(3, len(design.netlist.hard)), replace=False)
    drag = DragFaults(design, placement, set(nodes.tolist()))
    for _ in range(5):
        after = placement.moved(nodes, *generator.uniform(-5, 60, (2, len(nodes))))
        reported, expected = drag.find(after), find_faults(design, after)
        assert reported.keys() == expected.keys()
        for node, reasons in expected.items():
            assert len(reported[node]) == len(reasons)
            assert sorted(reported[node]) == sorted(reasons) or "more" in reasons[-1]
