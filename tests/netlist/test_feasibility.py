"""Infeasible constraints are rejected with the macros' names; feasible ones are accepted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.netlist import feasibility
from placement.netlist.constraints import SnapGrid
from placement.netlist.design import Design, NodeKind, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import check_constraints, ready, turned_as_allowed
from placement.netlist.floorplan import Region
from tests.support import legality_oracle as oracle
from tests.support.constrained_designs import constrained, randomly_constrained
from tests.support.designs import Net, Node, build, random_design, random_placement, square_canvas


def chip(*macros: tuple[str, float, float], fixed: tuple[str, ...] = ()) -> Design:
    """Returns macros of these sides on a canvas of 40 × 40 µm, all in its middle, and a port at (0, 20)."""
    nodes = [Node("port", NodeKind.PORT, 0.0, 20.0)]
    nodes += [
        Node(name, NodeKind.HARD, 20.0, 20.0, width, height, fixed=name in fixed) for name, width, height in macros
    ]
    return build("chip", square_canvas(4, 4), nodes, [Net([("port", 0, 0), (macros[0][0], 0, 0)])])


def halos(design: Design, across: float, up: float) -> np.ndarray:
    halo = np.zeros((design.netlist.num_nodes, 2))
    halo[design.netlist.hard] = across, up
    return halo


def check_rejected(design: Design, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        check_constraints(design)


def test_a_region_that_is_too_narrow_for_a_macro() -> None:
    design = chip(("a", 10, 10), ("b", 4, 4))
    for width, works in ((10.0, True), (9.9, False)):
        region = Region("slot", np.array([[5.0, 0, 5 + width, 40]]), np.array([1, 2]))
        limited = constrained(design, regions=(region,))
        if works:
            assert check_constraints(limited) == ()
        else:
            check_rejected(
                limited,
                r"chip: constraints and fixed macros leave no legal position for macro 'a': each must be inside",
            )


def test_turning_may_help_if_it_is_allowed() -> None:
    design = chip(("a", 20, 5))
    region = Region("slot", np.array([[0.0, 0, 6, 40]]), np.array([1]))
    assert check_constraints(constrained(design, regions=(region,))) == ()
    upright = np.full(2, 0x0F)
    check_rejected(
        constrained(design, regions=(region,), orientations=upright), "leave no legal position for macro 'a'"
    )


def test_a_region_that_is_too_small_for_its_macros() -> None:
    design = chip(("a", 10, 10), ("b", 10, 10))
    region = Region("low", np.array([[0.0, 0, 20, 10]]), np.array([1, 2]))
    assert check_constraints(constrained(design, regions=(region,))) == ()
    # with halos of 1 each box needs 12 · 12, and may extend beyond the region by 1 on each side: 22 · 12
    words = r"region 'low' has space for 264\.0 µm² of macros and halos; macros 'a', 'b' need 288\.0 µm²"
    check_rejected(constrained(design, regions=(region,), halo=halos(design, 1, 1)), words)


def test_all_macros_together_need_too_much() -> None:
    design = chip(*((f"m{number}", 10.0, 10.0) for number in range(12)))
    assert check_constraints(constrained(design, port_keepout=0.1)) == ()
    check_rejected(
        constrained(design, halo=halos(design, 2, 2)),
        r"space for 1936\.0 µm² .* macros 'm0', .*'m9' and 2 more need 2352\.0 µm²",
    )
    check_rejected(
        constrained(design, blockages=np.array([[0.0, 0, 40, 11]])),
        r"the canvas has space for 1160\.0 µm² of macros and halos outside blockages and fixed macros",
    )


def test_blockages_fixed_macros_and_ports_leave_no_place() -> None:
    design = chip(("kept", 20, 20), ("a", 12, 12), fixed=("kept",))
    check_rejected(
        constrained(design, port_keepout=1e-3), "no legal position for macro 'a'"
    )  # 10 µm on each side of the fixed one
    small = chip(("kept", 20, 20), ("a", 10, 10), fixed=("kept",))
    assert check_constraints(constrained(small, port_keepout=9.0)) == ()
    check_rejected(constrained(small, halo=halos(small, 0.5, 0.5)), "no legal position for macro 'a'")
    check_rejected(constrained(small, grid=SnapGrid(7.0, 7.0, 1.0, 1.0)), "no legal position for macro 'a'")
    corners = np.array([[0.0, 0, 9, 9], [31, 0, 40, 9], [0, 31, 9, 40], [31, 31, 40, 40]])
    assert check_constraints(constrained(small, blockages=corners)) == ()


def test_rules_that_fixed_macros_break_are_reported() -> None:
    design = chip(("kept", 20, 20), ("a", 5, 5), fixed=("kept",))
    broken = constrained(
        design,
        blockages=np.array([[10.0, 10, 12, 12]]),
        regions=(Region("low", np.array([[0.0, 0, 40, 15]]), np.array([1])),),
        orientations=np.array([255, 1 << Orientation.FN, 255]),
        grid=SnapGrid(3.0, 0.0),
        port_keepout=11.0,
    )
    assert check_constraints(broken) == (
        "fixed macro 'kept': is on a blockage; is outside its region, or inside one that is reserved for others; "
        "is closer to a port than the keep-out of 11 µm; has orientation N; it may be FN; "
        "its lower left corner is off the grid of 3 × 0 µm",
    )


def test_fixed_macros_closer_than_their_halos_are_reported() -> None:
    nodes = [Node("port", NodeKind.PORT, 0.0, 20.0)]
    nodes += [
        Node(name, NodeKind.HARD, x, 20.0, 10.0, 10.0, fixed=name != "free")
        for name, x in (("a", 5.0), ("b", 16.0), ("c", 30.0), ("free", 20.0))
    ]
    design = build("chip", square_canvas(4, 4), nodes, [Net([("port", 0, 0), ("a", 0, 0)])])
    assert check_constraints(constrained(design, halo=halos(design, 0.5, 0.0))) == ()
    near = "fixed macro '{}': is closer to {} than their halos allow (1.2 × 0 µm)"
    assert check_constraints(constrained(design, halo=halos(design, 0.6, 0.0))) == (
        near.format("a", "b"),
        near.format("b", "a"),
    )
    abutting = dataclasses.replace(
        design, initial=design.initial.moved(np.array([2]), np.array([15.0]), np.array([20.0]))
    )
    assert check_constraints(constrained(abutting, port_keepout=0.01)) == (
        "fixed macro 'a': is closer to a port than the keep-out of 0.01 µm",
    )


def test_slivers_between_rectangles_of_a_region_are_none() -> None:
    design = chip(("a", 20, 20))
    region = Region("split", np.array([[0.0, 0, 20, 20], [20.0000005, 0, 40, 20]]), np.array([1]))
    assert check_constraints(constrained(design, regions=(region,))) == ()
    apart = Region("split", np.array([[0.0, 0, 20, 20], [20.01, 0, 40, 20]]), np.array([1]))
    wide = chip(("a", 21, 20))
    assert check_constraints(constrained(wide, regions=(region,))) == ()
    check_rejected(constrained(wide, regions=(apart,)), "leave no legal position for macro 'a'")


def test_macros_that_are_alike_share_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, bool]] = []
    has_place = feasibility._has_place

    def counted(design: Design, node: int, swapped: bool, halo: tuple[float, ...], grid: SnapGrid) -> bool:
        calls.append((node, swapped))
        return has_place(design, node, swapped, halo, grid)

    monkeypatch.setattr(feasibility, "_has_place", counted)
    design = chip(*((f"m{number}", 5.0, 6.0) for number in range(8)), ("other", 6.0, 5.0))
    blocked = constrained(design, blockages=np.array([[0.0, 0, 4, 4]]))
    check_constraints(blocked)
    assert len(calls) == 4  # two sizes, each in both directions
    check_constraints(blocked)
    assert len(calls) == 4


def test_macros_are_turned_as_they_may_be() -> None:
    design = chip(("kept", 4, 4), ("a", 5, 6), ("b", 5, 6), ("c", 5, 6), fixed=("kept",))
    allowed = np.array([255, 1 << Orientation.S, 1 << Orientation.E | 1 << Orientation.FS, 1 << Orientation.W, 255])
    turned = ready(constrained(design, orientations=allowed)).initial.orientation
    assert [Orientation(one).name for one in turned[1:]] == ["N", "FS", "W", "N"]
    assert ready(design) is design
    assert turned_as_allowed(design, design.initial) is design.initial


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_what_has_a_legal_placement_is_never_rejected(seed: int) -> None:
    """Places macros at random until the placement is legal; the constraints must then be accepted."""
    design = randomly_constrained(random_design(seed, hard=2, soft=0, canvas=square_canvas(6, 5)), seed)
    grid = design.constraints.grid
    for attempt in range(40):
        placement = random_placement(design, 100 * seed + attempt, spill=0.0)
        width, height = design.netlist.sides(placement.orientation)
        x, y = placement.x.copy(), placement.y.copy()
        free = design.placing_order
        if grid.pitch_x > 0:
            steps = np.round((x - width / 2 - grid.offset_x) / grid.pitch_x)[free]
            x[free] = grid.offset_x + steps * grid.pitch_x + width[free] / 2
        if grid.pitch_y > 0:
            steps = np.round((y - height / 2 - grid.offset_y) / grid.pitch_y)[free]
            y[free] = grid.offset_y + steps * grid.pitch_y + height[free] / 2
        if oracle.is_legal(design, dataclasses.replace(placement, x=x, y=y)):
            check_constraints(design)
            return


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_rejected_macro_has_no_position_on_a_fine_raster(seed: int) -> None:
    design = randomly_constrained(random_design(seed, hard=3, soft=0, canvas=square_canvas(6, 5)), seed)
    try:
        check_constraints(design)
    except DesignError as error:
        if "leave no legal position" not in str(error):
            return
        named = [node for node in design.placing_order.tolist() if repr(design.netlist.names[node]) in str(error)]
        fixed = design.netlist.hard[design.initial.fixed[design.netlist.hard]].tolist()
        for orientation in range(8):
            turned = dataclasses.replace(design.initial, orientation=np.full(len(design.initial.x), orientation))
            turned = dataclasses.replace(
                turned, orientation=np.where(design.initial.fixed, design.initial.orientation, orientation)
            )
            for x in np.linspace(0, design.canvas.width, 13):
                for y in np.linspace(0, design.canvas.height, 13):
                    there = turned.moved(np.array(named[:1]), np.array([x]), np.array([y]))
                    assert not oracle.may_stand(design, there, named[0]) or any(
                        oracle.too_close(design, there, named[0], other) for other in fixed
                    )
