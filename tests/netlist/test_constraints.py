"""Constraints of a design: rejected values, their file, their mirror image."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.netlist.constraints import ALL_ORIENTATIONS, Constraints, SnapGrid
from placement.netlist.constraints_file import CONSTRAINTS_NAME, matching, read_constraints, write_constraints
from placement.netlist.design import TURN, Design, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.floorplan import Region
from placement.netlist.load import load, save
from placement.training.run_folder import fingerprint
from tests.support.designs import four_macros


def constrained(design: Design, **changes: object) -> Design:
    return dataclasses.replace(design, constraints=dataclasses.replace(design.constraints, **changes))


def node_of(design: Design, name: str) -> int:
    return design.netlist.names.index(name)


def full() -> Design:
    """Returns four macros with every kind of constraint."""
    design = four_macros()
    halo = np.zeros((design.netlist.num_nodes, 4))
    halo[node_of(design, "large")] = 1.5, 0.5, 1.5, 0.5
    orientations = np.full(design.netlist.num_nodes, ALL_ORIENTATIONS)
    orientations[node_of(design, "middle")] = 1 << Orientation.FN | 1 << Orientation.N
    region = Region("upper", np.array([[0.0, 20, 50, 50]]), np.array([node_of(design, "small")]), is_exclusive=True)
    return constrained(
        design,
        halo=halo,
        blockages=np.array([[40.0, 40, 50, 50]]),
        regions=(region,),
        orientations=orientations,
        grid=SnapGrid(0.5, 0.25, 0.125, 0.0),
        port_keepout=2.0,
    )


def same(left: Constraints, right: Constraints) -> bool:
    return left.as_bytes() == right.as_bytes()


def test_a_design_has_none_by_default() -> None:
    design = four_macros()
    assert not design.constraints.any
    assert design.constraints.halo.shape == (design.netlist.num_nodes, 4)
    assert design.constraints.as_bytes() == b""
    assert full().constraints.any


def test_halos_turn_with_their_node() -> None:
    constraints = full().constraints
    node = node_of(full(), "large")
    for orientation in Orientation:
        turned = constraints.turned_halo(np.full(len(constraints.halo), orientation))
        across, up = (0.5, 1.5) if orientation.swaps_sides else (1.5, 0.5)
        assert turned[node].tolist() == [across, up, across, up]


@pytest.mark.parametrize("orientation", Orientation)
def test_four_sides_turn_with_their_node(orientation: Orientation) -> None:
    """Compared with the turned corners of the macro with its halo."""
    sides = np.array([[1.0, 2.0, 3.0, 4.0]])
    constraints = dataclasses.replace(Constraints.none(1), halo=sides)
    turn = TURN[orientation].reshape(2, 2)
    corners = np.stack([turn @ (-5 - sides[0, :2]), turn @ (5 + sides[0, 2:])])
    left, bottom, right, top = constraints.turned_halo(np.array([orientation]))[0].tolist()
    assert [-5 - left, -5 - bottom] == corners.min(axis=0).tolist()
    assert [5 + right, 5 + top] == corners.max(axis=0).tolist()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"halo": np.full((7, 2), -1.0)}, r"halo -1\.0 of node number 0: must be at least 0 µm"),
        ({"halo": np.full((7, 2), np.nan)}, r"halo nan of node number 0"),
        ({"halo": np.zeros((3, 2))}, "3 halos and 7 sets of orientations"),
        ({"blockages": np.array([[1.0, 1, 1, 2]])}, r"blockages: the rectangle \[1\.0, 1\.0, 1\.0, 2\.0\] must be"),
        ({"blockages": np.array([[1.0, 1, np.inf, 2]])}, "blockages: the rectangle"),
        ({"port_keepout": -1.0}, r"port_keepout: -1\.0 must be at least 0 µm"),
        ({"port_keepout": np.nan}, "port_keepout: nan"),
        ({"spacing": -0.5}, r"spacing: -0\.5 must be at least 0 µm"),
        ({"regions": (Region("r", np.zeros((0, 4)), np.array([2])),)}, "region 'r' has no rectangle"),
        ({"regions": (Region("r", np.array([[0.0, 0, 9, 9]]), np.array([7])),)}, r"region 'r': every node must be in"),
        (
            {"regions": (Region("r", np.array([[0.0, 0, 9, 9]]), np.array([0])),)},
            "region 'r': 'left' is not a hard macro",
        ),
        ({"regions": (Region("r", np.array([[0.0, 0, 9, 9]]), np.array([2]), is_guide=True),)}, "is a guide"),
        ({"regions": (Region("r", np.array([[0.0, 0, 9, 9]]), np.array([2])),) * 2}, "region 'r' appears twice"),
        ({"orientations": np.zeros(7)}, "macro 'large' has no allowed orientation"),
    ],
)
def test_wrong_values_are_rejected(changes: dict[str, object], words: str) -> None:
    with pytest.raises(DesignError, match=words):
        constrained(four_macros(), **changes)


@pytest.mark.parametrize("field", ["pitch_x", "pitch_y", "offset_x", "offset_y"])
def test_a_grid_must_be_finite(field: str) -> None:
    with pytest.raises(DesignError, match=f"grid {field}: nan must be"):
        SnapGrid(**{field: float("nan")})
    with pytest.raises(DesignError, match="pitch_x: 1e-07 must be 0"):
        SnapGrid(pitch_x=1e-7)


def test_a_folder_keeps_them(tmp_path: Path) -> None:
    plain = load("toy6")
    halo = np.zeros((plain.netlist.num_nodes, 2))
    first, second = plain.netlist.hard[:2].tolist()
    halo[first] = 2.0, 3.0
    region = Region("low", np.array([[0.0, 0, 240, 120]]), np.array([second]))
    design = constrained(plain, halo=halo, regions=(region,), grid=SnapGrid(0.5, 0.5), port_keepout=1.0)
    save(tmp_path / "chip", design)
    again = load(tmp_path / "chip")
    assert again.netlist.names == design.netlist.names
    assert again.constraints.halo[first].tolist() == [2.0, 3.0, 2.0, 3.0]
    assert same(again.constraints, design.constraints)
    save(tmp_path / "chip", plain)
    assert not (tmp_path / "chip" / CONSTRAINTS_NAME).exists(), "a design without any leaves no old file"
    assert not load(tmp_path / "chip").constraints.any


def test_a_spacing_is_kept_and_is_no_constraint(tmp_path: Path) -> None:
    spaced = constrained(load("toy6"), spacing=1.25)
    assert not spaced.constraints.any
    assert spaced.constraints.as_bytes() != b""
    save(tmp_path / "chip", spaced)
    assert load(tmp_path / "chip").constraints.spacing == 1.25


def test_the_file_is_for_people(tmp_path: Path) -> None:
    design = full()
    path = tmp_path / CONSTRAINTS_NAME
    write_constraints(path, design.netlist, design.constraints)
    values = json.loads(path.read_text())
    assert values == {
        "form": 1,
        "halos": {"large": [1.5, 0.5]},
        "blockages": [[40, 40, 50, 50]],
        "regions": [{"name": "upper", "rectangles": [[0, 20, 50, 50]], "macros": ["small"], "exclusive": True}],
        "orientations": {"middle": ["N", "FN"]},
        "grid": {"pitch": [0.5, 0.25], "offset": [0.125, 0.0]},
        "port_keepout": 2.0,
    }
    assert same(read_constraints(path, design.netlist), design.constraints)
    path.write_text('{"halos": {"*": [1, 2], "s*l": [3, 4]}}')
    halo = read_constraints(path, design.netlist).halo
    assert halo[design.netlist.hard].tolist() == [[1, 2, 1, 2], [1, 2, 1, 2], [3, 4, 3, 4], [1, 2, 1, 2]]
    path.write_text('{"halos": {"large": [1, 2, 3, 4]}}')
    four = read_constraints(path, design.netlist)
    assert four.halo[node_of(design, "large")].tolist() == [1, 2, 3, 4]
    write_constraints(path, design.netlist, four)
    assert json.loads(path.read_text())["halos"] == {"large": [1, 2, 3, 4]}
    assert not halo[design.netlist.soft].any()


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_whatever_is_written_is_read_again(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    design = four_macros()
    length = st.floats(0, 1e9)
    hard = design.netlist.hard
    halo = np.zeros((design.netlist.num_nodes, 4))
    halo[hard] = [[data.draw(length) for _ in range(4)] for _ in hard]
    orientations = np.full(len(halo), ALL_ORIENTATIONS)
    orientations[hard] = [data.draw(st.integers(1, 255)) for _ in hard]
    boxes = st.lists(st.tuples(st.floats(0, 20), st.floats(0, 20), st.floats(21, 50), st.floats(21, 50)), max_size=3)
    constraints = Constraints(
        halo=halo,
        blockages=np.array(data.draw(boxes)).reshape(-1, 4),
        regions=tuple(
            Region(
                data.draw(st.text(min_size=1)) + str(number),
                np.array([corners]),
                np.unique(np.array(data.draw(st.lists(st.sampled_from(hard.tolist()))), dtype=np.int32)),
                is_exclusive=data.draw(st.booleans()),
            )
            for number, corners in enumerate(data.draw(boxes))
        ),
        orientations=orientations,
        grid=SnapGrid(data.draw(st.floats(1e-4, 10)), 0.0, data.draw(length), 0.0),
        port_keepout=data.draw(length),
    )
    path = tmp_path_factory.getbasetemp() / CONSTRAINTS_NAME
    write_constraints(path, design.netlist, constraints)
    assert same(read_constraints(path, design.netlist), constraints)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{\n oops}", r"json:2: not valid JSON"),
        ("[]", "must be an object of constraints"),
        ('{\n\n"halo": {}}', r"json:3: the file has the unknown key 'halo'; known keys are form, halos"),
        ('{"form": 2}', "form: 2 is unknown; this version reads form 1"),
        ('{"halos": {\n"lagre": [1, 1]}}', r"json:2: halos: the netlist has no hard macro 'lagre'"),
        ('{"halos": {"cluster": [1, 1]}}', "has no hard macro 'cluster'"),
        ('{"halos": {"x*": [1, 1]}}', r"has no hard macro 'x\*'"),
        ('{"halos": {"large": [1]}}', r"large: \[1\] must be two numbers"),
        ('{"halos": {"large": [1, NaN]}}', "must be finite and at least 0 µm"),
        ('{"halos": {"large": [1, -2]}}', "must be finite and at least 0 µm"),
        ('{"halos": {"large": ["a", 2]}}', "large: 'a' must be a number"),
        ('{"halos": [1]}', r"halos: \[1\] must be an object"),
        ('{"blockages": [[1, 2, 3]]}', r"blockages: \[1, 2, 3\] must be \[x_low"),
        ('{"blockages": [[1, 2, 1, 3]]}', "must be .* with a width and a height above 0"),
        ('{"blockages": [[1, 2, 1e999, 3]]}', "finite"),
        ('{"orientations": {"large": ["N", "Q"]}}', "must be at least one of N, FN, S"),
        ('{"orientations": {"large": []}}', "must be at least one of N, FN, S"),
        ('{"regions": [{"name": "a", "rectangles": [[0, 0, 1, 1]], "macros": ["b"]}]}', "region 'a': .* macro 'b'"),
        ('{"regions": [{"rectangles": [[0, 0, 1, 1]]}]}', "the name None must be a string"),
        ('{"regions": [{"name": "a"}]}', "region 'a' has no rectangle"),
        ('{"regions": [{"name": "a", "exclusive": 1}]}', "exclusive is 1; must be true or false"),
        ('{"grid": {"pitch": [1e-9, 0]}}', "grid pitch_x: 1e-09 must be 0"),
        ('{"grid": {"pitches": [1, 0]}}', "grid has the unknown key 'pitches'"),
        ('{"port_keepout": -1}', "port_keepout: -1.0 must be at least 0"),
        ('{"port_keepout": 1' + 400 * "0" + "}", "more than 300 digits"),
        (50_000 * "[", "lists are nested too deeply|not valid JSON"),
    ],
)
def test_a_wrong_file_is_rejected_in_words(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / CONSTRAINTS_NAME
    path.write_text(text)
    with pytest.raises(DesignError, match=words) as rejection:
        read_constraints(path, four_macros().netlist)
    assert str(rejection.value).startswith(str(path))


def test_only_the_star_is_special() -> None:
    names = {"mem[0]": 0, "mem[1]": 1, "memx": 2, "a.b": 3}
    assert matching(names, "mem[0]", "x") == [0]
    assert matching(names, "mem*", "x") == [0, 1, 2]
    assert matching(names, "*[*]", "x") == [0, 1]
    with pytest.raises(DesignError, match=r"x: the netlist has no hard macro 'a\?b'"):
        matching(names, "a?b", "x")
    assert matching(names, "a.*", "x") == [3]


def test_a_run_with_other_constraints_is_another_run() -> None:
    assert fingerprint(full()) != fingerprint(four_macros())
    assert fingerprint(full()) != fingerprint(constrained(full(), port_keepout=3.0))
    assert fingerprint(full()) == fingerprint(full())
