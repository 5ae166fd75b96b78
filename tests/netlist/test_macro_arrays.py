"""Macros joined to arrays: the same wires, constraints and positions as the individual macros."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from placement.flat.problem import half_perimeter
from placement.netlist import export
from placement.netlist.builder import file_indices
from placement.netlist.constraints import Constraints, SnapGrid
from placement.netlist.constraints_file import orientation_names, orientation_set
from placement.netlist.design import NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign, MacroArray, read_flat, write_flat
from placement.netlist.formats.def_file import read_def
from placement.netlist.import_constraints import ConstraintSettings, constraints_of
from placement.netlist.importing import ImportSettings, import_flat
from placement.netlist.macro_arrays import ArraySetting, with_arrays
from placement.netlist.user_placement import read_def_placement
from tests.support.array_chip import MEMORIES, array_def, array_flat


@pytest.fixture
def flat(tmp_path: Path) -> FlatDesign:
    return array_flat(tmp_path)


def joined(flat: FlatDesign, *settings: ArraySetting, banks: bool = False) -> tuple[FlatDesign, Constraints]:
    return with_arrays(flat, constraints_of(flat)[0], settings, banks=banks)[:2]


def strewn(flat: FlatDesign, *, turned: bool = True, seed: int = 0) -> Placement:
    """Places everything at random, in random orientations."""
    draw, count = np.random.default_rng(seed), flat.netlist.num_nodes
    ports = flat.netlist.kind == NodeKind.PORT
    x, y = draw.random((2, count)) * 80 + 10
    orientation = draw.integers(0, 8 if turned else 1, count)
    return Placement(
        x=np.where(ports, flat.placement.x, x),
        y=np.where(ports, flat.placement.y, y),
        orientation=np.where(flat.netlist.kind == NodeKind.HARD, orientation, 0),
        placed=np.ones(count, dtype=np.bool_),
        fixed=ports,
    )


def taken_apart(design: FlatDesign, placement: Placement, flat: FlatDesign) -> Placement:
    """Converts a placement of the joined netlist to one of the file's own nodes."""
    of = {name: node for node, name in enumerate(flat.netlist.names)}
    x, y, orientation = np.zeros((3, flat.netlist.num_nodes))
    arrays = {array.node: array for array in design.arrays}
    for node, name in enumerate(design.netlist.names):
        at = float(placement.x[node]), float(placement.y[node])
        array = arrays.get(node)
        names = (name,) if array is None else array.names
        places = ([at[0]], [at[1]]) if array is None else array.members_at(*at, int(placement.orientation[node]))
        for member, member_x, member_y in zip(names, *places, strict=True):
            x[of[member]], y[of[member]] = member_x, member_y
            orientation[of[member]] = placement.orientation[node]
    return Placement(x=x, y=y, orientation=orientation, placed=np.ones(len(x)), fixed=flat.placement.fixed)


def test_an_array_by_hand() -> None:
    """Three memories of 10 × 6 side by side, 12 µm apart."""
    array = MacroArray(0, ("a", "b", "c"), ("a", "b", "c"), 10.0, 6.0, np.array([-12.0, 0, 12]), np.zeros(3))
    x, y = array.members_at(50.0, 20.0, Orientation.N)
    assert (x.tolist(), y.tolist()) == ([38, 50, 62], [20, 20, 20])
    x, y = array.members_at(50.0, 20.0, Orientation.S)
    assert (x.tolist(), y.tolist()) == ([62, 50, 38], [20, 20, 20])
    # W rotates counterclockwise: the right side becomes the upper side.
    x, y = array.members_at(50.0, 20.0, Orientation.W)
    assert (x.tolist(), y.tolist()) == ([50, 50, 50], [8, 20, 32])
    assert array.corners_at(50.0, 20.0, Orientation.W)[0].tolist() == [[47, 3], [53, 3], [53, 13], [47, 13]]
    with pytest.raises(DesignError, match="an array of 1 macros with 1 positions"):
        dataclasses.replace(array, names=("a",), written_names=("a",), dx=np.zeros(1), dy=np.zeros(1))


@pytest.mark.parametrize("orientation", list(Orientation))
def test_an_arrays_position_follows_from_its_macros(orientation: Orientation) -> None:
    array = MacroArray(
        0, tuple("abcde"), tuple("abcde"), 10.0, 6.0, np.array([-5.0, 5, -5, 5, -5]), np.array([-7.0, -7, 0, 0, 7])
    )
    x, y = array.members_at(31.5, 17.25, orientation)
    same = np.full(5, orientation)
    assert array.place_of(x, y, same, tolerance=1e-9) == (31.5, 17.25, orientation)
    assert array.place_of(x + 0.1 * (np.arange(5) == 2), y, same, tolerance=0.05) is None
    assert array.place_of(x, y - 0.1 * (np.arange(5) == 3), same, tolerance=0.05) is None
    assert array.place_of(x, y, np.where(np.arange(5) == 2, (orientation + 1) % 8, same), tolerance=1.0) is None


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_wires_are_as_long_as_those_of_the_macros(flat: FlatDesign, columns: int) -> None:
    """The half perimeters of the file's own netlist, an oracle without arrays."""
    design, _ = joined(flat, ArraySetting("block", ("bank*",), columns, (1.0, 2.0)), banks=True)
    assert [len(array.names) for array in design.arrays] == [4, 2]
    for seed in range(5):
        placement = strewn(design, seed=seed)
        expected = half_perimeter(flat.netlist, taken_apart(design, placement, flat))
        assert half_perimeter(design.netlist, placement) == pytest.approx(expected, rel=1e-12)


def test_macros_stand_side_by_side_and_none_overlap(flat: FlatDesign) -> None:
    design, _ = joined(flat, ArraySetting("block", ("bank*", "lone"), 2, (1.0, 2.0)))
    (array,) = design.arrays
    # Rows of two from the lower left: 10 + 1 µm in x, 6 + 2 µm in y; the fifth is alone above them.
    assert array.names == ("bank[0]", "bank[1]", "bank[2]", "bank[3]", "lone")
    assert array.dx.tolist() == [-5.5, 5.5, -5.5, 5.5, -5.5]
    assert array.dy.tolist() == [-8, -8, 0, 0, 8]
    assert (design.netlist.width[array.node], design.netlist.height[array.node]) == (21, 22)
    boxes = array.corners_at(0.0, 0.0, Orientation.N)
    assert (boxes.min(axis=(0, 1)).tolist(), boxes.max(axis=(0, 1)).tolist()) == ([-10.5, -11], [10.5, 11])


def test_banks_are_macros_whose_names_differ_in_their_last_number(flat: FlatDesign) -> None:
    design, constraints = joined(flat, banks=True)
    hard = [design.netlist.names[node] for node in design.netlist.hard]
    assert hard == ["bank[0..3]", "tag_9..10", "lone"]
    # Numbers are ordered by value: 9 before 10, although the file has them in reverse order.
    assert design.arrays[1].names == ("tag_9", "tag_10")
    # Four of 10 × 6 µm have the minimum half perimeter in two rows, two of them one above the other.
    assert [(np.unique(one.dx).size, np.unique(one.dy).size) for one in design.arrays] == [(2, 2), (1, 2)]
    assert [region.nodes.tolist() for region in constraints.regions] == [[1]]
    assert [region.nodes.tolist() for region in design.floorplan.regions] == [[1]]
    # Macros of a given array do not join a bank.
    design, _ = joined(flat, ArraySetting("pair", ("bank[1]", "bank[2]")), banks=True)
    assert sorted(design.netlist.names[array.node] for array in design.arrays) == ["bank[0..3]", "pair", "tag_9..10"]
    assert {array.names for array in design.arrays} == {
        ("bank[1]", "bank[2]"), ("bank[0]", "bank[3]"), ("tag_9", "tag_10"),
    }  # fmt: skip


def test_nothing_is_joined_by_default(flat: FlatDesign) -> None:
    constraints = constraints_of(flat)[0]
    assert with_arrays(flat, constraints, ()) == (flat, constraints, ())
    names = (*(f"m{letter}" for letter in "abcdefg"), *flat.netlist.names[len(MEMORIES) :])
    renamed = dataclasses.replace(flat, netlist=dataclasses.replace(flat.netlist, names=names))
    found, _, notices = with_arrays(renamed, constraints, (), banks=True)
    assert found is renamed
    assert notices == ("--banks: no macros of one size have names that differ in a number",)


def test_an_array_keeps_what_its_macros_must_keep_to(tmp_path: Path) -> None:
    flat = array_flat(tmp_path, halo="+ HALO 1000 3000 2000 500 ")
    constraints, _ = constraints_of(flat)
    upright = np.array(constraints.orientations)
    upright[flat.netlist.hard[1]] = orientation_set(["N", "S", "E"])
    constraints = dataclasses.replace(constraints, orientations=upright)
    design, kept, _ = with_arrays(flat, constraints, [ArraySetting("block", ("bank*",))])
    assert kept.halo[0].tolist() == [1, 3, 2, 0.5]  # as for the macro
    assert design.floorplan.halo.tolist() == [[1, 3, 2, 0.5]]
    assert orientation_names(int(kept.orientations[0])) == ["N", "S", "E"]
    # By default, the gaps fit the halos: 10 + 1 + 2, 6 + 3 + 0.5.
    assert (np.ptp(design.arrays[0].dx), np.ptp(design.arrays[0].dy)) == (13, 9.5)


def test_every_macro_lies_on_the_snapping_grid(flat: FlatDesign) -> None:
    constraints, _ = constraints_of(flat, ConstraintSettings(snap=SnapGrid(0.4, 0.7, 0.1, 0.2)))
    design, kept, _ = with_arrays(flat, constraints, [ArraySetting("block", ("bank*",), 2, (0.5, 0.5))])
    (array,) = design.arrays
    # 10.5 and 6.5 µm are rounded up to 27 · 0.4 and 10 · 0.7 µm.
    assert (np.ptp(array.dx), np.ptp(array.dy)) == pytest.approx((10.8, 7.0))
    # Rotation by 90° would exchange the pitches.
    assert orientation_names(int(kept.orientations[0])) == ["N", "FN", "S", "FS"]
    for orientation in (Orientation.N, Orientation.FN, Orientation.S, Orientation.FS):
        low = array.corners_at(0.0, 0.0, orientation)[:, 0] + [
            design.netlist.width[0] / 2,
            design.netlist.height[0] / 2,
        ]
        for axis, pitch in enumerate((0.4, 0.7)):
            np.testing.assert_allclose(low[:, axis] / pitch, np.round(low[:, axis] / pitch), atol=1e-9)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ([ArraySetting("a", ("nothing*",))], "array 'a': the netlist has no hard macro 'nothing\\*'"),
        ([ArraySetting("a", ("lone",))], "array 'a': lone matches one macro; must match two or more"),
        ([ArraySetting("a", ("bank*",)), ArraySetting("b", ("bank[0]", "lone"))], "'bank\\[0\\]' is also in array 'a'"),
        ([ArraySetting("a", ("tag*", "lone"))], "array 'a': some of its macros are in region 'low'"),
        ([ArraySetting("lone", ("bank*",))], "array 'lone': the netlist already has a node of that name"),
        (
            [ArraySetting("a", ("bank*",)), ArraySetting("a", ("tag*",))],
            "array 'a': the netlist already has a node of that",
        ),
    ],
)
def test_what_cannot_be_an_array_is_rejected(flat: FlatDesign, settings: list[ArraySetting], words: str) -> None:
    with pytest.raises(DesignError, match=words):
        joined(flat, *settings)


def test_macros_that_differ_or_are_fixed_are_rejected(flat: FlatDesign) -> None:
    with pytest.raises(DesignError, match="-1 columns; must be at least 1, or 0"):
        ArraySetting("a", ("bank*",), -1)
    with pytest.raises(DesignError, match=r"gaps of .* must be at least 0"):
        ArraySetting("a", ("bank*",), 0, (-1.0, 0.0))
    block = ArraySetting("a", ("bank*",))
    width = np.array(flat.netlist.width)
    width[1] = 11.0
    wider = dataclasses.replace(flat, netlist=dataclasses.replace(flat.netlist, width=width))
    with pytest.raises(DesignError, match=r"'bank\[1\]' of 11 × 6 µm has another master than 'bank\[0\]' of 10 × 6 µm"):
        joined(wider, block)
    # Banks omit it instead.
    assert joined(wider, banks=True)[0].arrays[0].names == ("bank[0]", "bank[2]", "bank[3]")
    fixed = np.array(flat.placement.fixed)
    fixed[2] = True
    fixed_flat = dataclasses.replace(flat, placement=dataclasses.replace(flat.placement, fixed=fixed))
    with pytest.raises(DesignError, match=r"'bank\[2\]' is fixed; --free-macros frees"):
        joined(fixed_flat, block)
    orientations = np.array(constraints_of(flat)[0].orientations)
    orientations[:2] = 1, 2
    with pytest.raises(DesignError, match="its macros have no allowed orientation in common"):
        with_arrays(flat, dataclasses.replace(constraints_of(flat)[0], orientations=orientations), [block])


def test_macros_that_stand_as_the_array_give_it_its_place(tmp_path: Path) -> None:
    """Two rows of two, mirrored left and right: bank[0] is on the right."""
    places = {
        MEMORIES[0]: "PLACED ( 30000 20000 ) FN", MEMORIES[1]: "PLACED ( 20000 20000 ) FN",
        MEMORIES[2]: "PLACED ( 30000 26000 ) FN", MEMORIES[3]: "PLACED ( 20000 26000 ) FN",
        "tag_9": "PLACED ( 50000 10000 ) N", "tag_10": "PLACED ( 70000 10000 ) N",
    }  # fmt: skip
    flat = array_flat(tmp_path, places)
    found, _, notices = with_arrays(flat, constraints_of(flat)[0], (), banks=True)
    there = found.placement
    assert (there.x[0], there.y[0], there.orientation[0]) == (30, 26, Orientation.FN)
    # The tags are not next to each other: their array is at their centre.
    assert (there.x[1], there.y[1], there.orientation[1]) == (65, 13, Orientation.N)
    assert there.placed[:3].tolist() == [True, True, False]
    assert notices == ("the macros of 1 arrays are not arranged as arrays in the files: each starts at their centre",)


def test_the_file_keeps_them(flat: FlatDesign, tmp_path: Path) -> None:
    design, _ = joined(flat, banks=True)
    write_flat(tmp_path / "flat.npz", design)
    again = read_flat(tmp_path / "flat.npz")
    for one, other in zip(again.arrays, design.arrays, strict=True):
        for field in dataclasses.fields(MacroArray):
            assert np.array_equal(getattr(one, field.name), getattr(other, field.name))
    with pytest.raises(DesignError, match="node number 3 represents an array but is not a hard macro"):
        dataclasses.replace(design, arrays=(dataclasses.replace(design.arrays[0], node=3),))


def test_pins_and_places_in_files_are_counted_as_for_any_netlist(flat: FlatDesign) -> None:
    netlist = joined(flat, banks=True)[0].netlist
    assert (np.diff(netlist.pin_node) >= 0).all()
    np.testing.assert_array_equal(netlist.file_index, file_indices(netlist.kind, netlist.pin_node))


@pytest.mark.parametrize("seed", range(8))
def test_an_export_takes_them_apart_and_a_def_joins_them(tmp_path: Path, seed: int) -> None:
    flat = array_flat(tmp_path)
    design, _ = joined(flat, banks=True)
    there = strewn(design, seed=seed)
    placement = dataclasses.replace(there, x=np.round(there.x), y=np.round(there.y))
    locations = export.macro_locations(design, design.netlist, placement)
    apart = taken_apart(design, placement, flat)
    expected = {place.name: place for place in export.macro_locations(flat, flat.netlist, apart)}
    assert {place.name: place for place in locations} == expected
    (tmp_path / "placed.def").write_bytes(export.def_bytes(read_def(tmp_path / "banks.def"), locations))
    again, _ = read_def_placement(tmp_path / "placed.def", design)
    hard = design.netlist.hard
    np.testing.assert_allclose(again.x[hard], placement.x[hard], atol=1e-9)
    np.testing.assert_allclose(again.y[hard], placement.y[hard], atol=1e-9)
    np.testing.assert_array_equal(again.orientation[hard], placement.orientation[hard])
    assert again.placed[hard].all() and not again.placed[design.cells].any()
    # Ports keep their positions.
    ports = design.netlist.ports
    np.testing.assert_array_equal(again.x[ports], design.placement.x[ports])


def test_a_def_with_another_arrangement_is_rejected(tmp_path: Path) -> None:
    design, _ = joined(array_flat(tmp_path), banks=True)
    places = {name: f"PLACED ( {10000 * number} 8000 ) N" for number, name in enumerate(MEMORIES)}
    (tmp_path / "other.def").write_text(array_def(places))
    with pytest.raises(DesignError, match=r"2 arrays whose macros are not arranged as at the import: bank"):
        read_def_placement(tmp_path / "other.def", design)
    # Unplaced macros are not an error here: the array is unplaced.
    (tmp_path / "none.def").write_text(array_def())
    found, _ = read_def_placement(tmp_path / "none.def", design)
    assert not found.placed[design.netlist.hard].any()


def standing(flat: FlatDesign, array: MacroArray, orientation: int, order: list[int], shaken: float = 0.0) -> Placement:
    """Puts the file's macros on the array's slots in an orientation and another order, each moved by `shaken` µm."""
    there = strewn(flat, turned=False)
    x, y = there.x.copy(), there.y.copy()
    of = {name: node for node, name in enumerate(flat.netlist.names)}
    slots = np.stack(array.members_at(50.0, 40.0, orientation), axis=1)
    slots += shaken * np.random.default_rng(1).uniform(-1, 1, slots.shape)
    for slot, member in enumerate(order):
        x[of[array.names[member]]], y[of[array.names[member]]] = slots[slot]
    return dataclasses.replace(there, x=x, y=y)


@pytest.mark.parametrize("orientation", [Orientation.N, Orientation.FN, Orientation.S])
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_macros_are_ordered_as_they_would_stand_by_themselves(flat: FlatDesign, columns: int, orientation: int) -> None:
    setting, kept = ArraySetting("block", ("bank*",), columns), constraints_of(flat)[0]
    array = with_arrays(flat, kept, (setting,))[0].arrays[0]
    order = [2, 0, 3, 1]
    places = standing(flat, array, orientation, order, shaken=2.0)
    found = with_arrays(flat, kept, (setting,), places=places)[0].arrays[0]
    assert sorted(found.names) == sorted(array.names)
    # The array may be mirrored afterwards, so some orientation puts every macro near its target.
    of = {name: node for node, name in enumerate(flat.netlist.names)}
    at = np.array([[places.x[of[name]], places.y[of[name]]] for name in found.names])
    at -= at.mean(axis=0)
    strays = [
        np.abs(np.stack(found.members_at(0.0, 0.0, turn), axis=1) - at).max()
        for turn in (Orientation.N, Orientation.FN, Orientation.FS, Orientation.S)
    ]
    assert min(strays) < 4.0
    assert found.names != array.names
    assert (found.dx == array.dx).all() and (found.dy == array.dy).all()


def test_the_order_is_no_worse_than_any_other(flat: FlatDesign) -> None:
    setting, kept = ArraySetting("block", ("bank*",), 2), constraints_of(flat)[0]
    places, of = strewn(flat, turned=False, seed=3), {name: node for node, name in enumerate(flat.netlist.names)}
    found = with_arrays(flat, kept, (setting,), places=places)[0].arrays[0]

    def distance(names: tuple[str, ...]) -> float:
        at = np.array([[places.x[of[name]], places.y[of[name]]] for name in names])
        at -= at.mean(axis=0)
        turns = (Orientation.N, Orientation.FN, Orientation.FS, Orientation.S)
        return min(float(((np.stack(found.members_at(0, 0, turn), axis=1) - at) ** 2).sum()) for turn in turns)

    assert distance(found.names) <= min(map(distance, itertools.permutations(found.names))) + 1e-9


def test_an_import_orders_macros_by_where_they_are_put(flat: FlatDesign) -> None:
    array = import_flat(flat, ImportSettings(banks=True)).flat.arrays[0]
    order = [2, 0, 3, 1]
    calls = []

    def place(given: FlatDesign, on_canvas: object) -> Placement:
        calls.append(given.netlist.num_nodes)
        return standing(flat, array, Orientation.N, order) if len(calls) == 1 else strewn(given)

    found = import_flat(flat, ImportSettings(banks=True), place=place)
    assert calls[0] == flat.netlist.num_nodes, "the macros by themselves"
    assert found.flat.arrays[0].names in {
        tuple(array.names[member] for member in names)
        for names in (order, order[1::-1] + order[:1:-1], order[2:] + order[:2], order[::-1])
    }
    assert not [notice for notice in found.notices if "order of their names" in notice]


def test_without_positions_the_order_is_that_of_the_names(flat: FlatDesign) -> None:
    def place(given: FlatDesign, on_canvas: object) -> Placement:
        raise DesignError("no room")

    for put, why in ((None, "cells and macros are not placed for the clustering"), (place, "no room")):
        found = import_flat(flat, ImportSettings(banks=True), place=put)
        assert found.flat.arrays[0].names == import_flat(flat, ImportSettings(banks=True)).flat.arrays[0].names
        assert f"the macros of arrays are in the order of their names: {why}" in found.notices


def test_macros_that_the_files_place_are_ordered_as_there(flat: FlatDesign) -> None:
    array = import_flat(flat, ImportSettings(banks=True)).flat.arrays[0]
    placed = dataclasses.replace(flat, placement=standing(flat, array, Orientation.N, [0, 1, 2, 3]))
    found = import_flat(placed, ImportSettings(banks=True))
    assert found.flat.arrays[0].names == array.names


def test_the_grid_is_that_of_the_macros_by_themselves(flat: FlatDesign) -> None:
    plain, arrays = import_flat(flat), import_flat(flat, ImportSettings(banks=True))
    assert arrays.design.canvas == plain.design.canvas
    assert len(arrays.design.netlist.hard) == 3
    assert [array.names for array in arrays.flat.arrays] == [tuple(f"bank[{n}]" for n in range(4)), ("tag_9", "tag_10")]
