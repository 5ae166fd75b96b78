"""Flat designs from flat protobufs: both readers agree, also with the clustered reader; names are matched."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.netlist import _native
from placement.netlist.design import Canvas, Netlist, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.export import def_bytes, macro_locations
from placement.netlist.formats import protobuf as flat_protobuf
from placement.netlist.formats.def_file import read_def
from placement.netlist.formats.protobuf import read_netlist
from placement.netlist.formats.protobuf_design import read_protobuf_canvas, read_protobuf_def

CANVAS = Canvas(
    width=40.0, height=30.0, columns=4, rows=3, routes_horizontal=10.0, routes_vertical=10.0,
    macro_routes_horizontal=5.0, macro_routes_vertical=5.0,
)  # fmt: skip


def node(name: str, kind: str, inputs: str = "", **attributes: float | str) -> str:
    """Returns one node as written by Circuit Training's tools."""
    lines = ["node {", f'  name: "{name}"', *(f'  input: "{sink}"' for sink in inputs.split())]
    for key, value in {"type": kind, **attributes}.items():
        text = f'placeholder: "{value}"' if isinstance(value, str) else f"f: {value}"
        lines += ["  attr {", f'    key: "{key}"', "    value {", f"      {text}", "    }", "  }"]
    return "\n".join([*lines, "}\n"])


FLAT = "".join(
    (
        "# FP bbox: {0 0 40 30}\n",
        node("in", "port", "u1 m[0]/a", x=0.0, y=5.0),
        node("m[0]", "macro", width=8.0, height=6.0, x=10.0, y=10.0, orientation="FS", ref_name="RAM"),
        node("m[0]/a", "macro_pin", macro_name="m[0]", x_offset=-4.0, y_offset=1.5),
        node("m[0]/q", "macro_pin", "u2", macro_name="m[0]", x_offset=4.0, y_offset=0.0),
        node("u1", "stdcell", "u2 out", width=1.0, height=2.0, x=20.0, y=11.0, ref_name="INV"),
        node("u2", "stdcell", width=1.5, height=2.0, x=22.0, y=13.0, ref_name="BUF"),
        node("out", "port", x=40.0, y=15.0),
    )
)
DEF = r"""VERSION 5.8 ;
DIVIDERCHAR "/" ;
DESIGN chip ;
UNITS DISTANCE MICRONS 1000 ;
DIEAREA ( 0 0 ) ( 40000 30000 ) ;
ROW a core 1000 1000 N DO 76 BY 1 STEP 500 0 ;
ROW b core 1000 3000 FS DO 76 BY 1 STEP 500 0 ;
TRACKS Y 100 DO 290 STEP 100 LAYER metal1 ;
TRACKS Y 100 DO 290 STEP 100 LAYER metal3 ;
TRACKS X 100 DO 390 STEP 200 LAYER metal2 ;
COMPONENTS 1 ;
- m\[0\] RAM + PLACED ( 2000 3000 ) N ;
END COMPONENTS
PINS 2 ;
- in + NET in + DIRECTION INPUT + FIXED ( 0 7000 ) N ;
- out + NET out + DIRECTION OUTPUT + FIXED ( 40000 9000 ) N ;
END PINS
END DESIGN
"""


def write(tmp_path: Path, text: str = FLAT, floorplan: str = DEF) -> tuple[Path, Path]:
    (tmp_path / "flat.pb.txt").write_text(text)
    (tmp_path / "plan.def").write_text(floorplan)
    return tmp_path / "flat.pb.txt", tmp_path / "plan.def"


def test_ports_without_positions_are_spread_on_the_canvas(tmp_path: Path) -> None:
    text = FLAT.replace(node("out", "port", x=40.0, y=15.0), node("out", "port", side="RIGHT"))
    design = read_protobuf_canvas(write(tmp_path, text)[0], CANVAS)
    ports = design.netlist.ports
    at = list(zip(design.placement.x[ports].tolist(), design.placement.y[ports].tolist(), strict=True))
    assert at[0] == (0, 5) and (at[1][0] in (0, 40) or at[1][1] in (0, 30))
    assert "1 of 2 ports have no position: they are spread evenly on the edges of the die" in design.notices


def assert_equal(first: Netlist, second: Netlist) -> None:
    for field in dataclasses.fields(Netlist):
        one, other = getattr(first, field.name), getattr(second, field.name)
        assert one == other if isinstance(one, tuple) else np.array_equal(one, other), field.name


# The same text in forms that only the full grammar reads.
FORMS: dict[str, Callable[[str], str]] = {
    "as written": lambda text: text,
    "one line": lambda text: text.split("\n", 1)[1].replace("\n", " "),
    "angle brackets": lambda text: text.replace("{0", "(0").replace("30}", "30)").replace("{", "<").replace("}", ">"),
    "single quotes": lambda text: text.replace('"', "'"),
    "in pieces": lambda text: text.replace('"u2"', "\"u\" '2'"),
    "escapes": lambda text: text.replace('"u2"', r'"\1652"'),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_netlist_as_the_clustered_reader(tmp_path: Path, form: str) -> None:
    path, _ = write(tmp_path, FORMS[form](FLAT))
    is_plain = _native.read_plain_protobuf(path.read_bytes()) is not None
    assert is_plain == (form in ("as written", "one line"))
    assert_equal(read_protobuf_canvas(path, CANVAS).netlist, read_netlist(write(tmp_path, FLAT)[0]))


def test_floorplan_of_a_def_file(tmp_path: Path) -> None:
    design, _ = read_protobuf_def(*write(tmp_path))
    netlist, placement = design.netlist, design.placement
    assert netlist.names == ("in", "m[0]", "u1", "u2", "out")
    # Macros and ports have the DEF file's positions, cells the protobuf's.
    assert placement.x.tolist() == [0, 6, 20, 22, 40]
    assert placement.y.tolist() == [7, 6, 11, 13, 9]
    assert placement.orientation[1] == Orientation.N
    assert design.written_names == {1: r"m\[0\]"}
    assert (design.floorplan.core.x_low, design.floorplan.core.y_high) == (1, 5)
    assert [design.master_names[index] for index in design.master[1:4]] == ["RAM", "INV", "BUF"]
    assert any("site 'core' is in no LEF file" in notice for notice in design.notices)


def test_cells_placed_on_a_larger_die_are_scaled(tmp_path: Path) -> None:
    text = FLAT.replace("f: 22.0", "f: 80.0").replace("f: 40.0", "f: 160.0")
    design, _ = read_protobuf_def(*write(tmp_path, text))
    assert design.placement.x[2:4].tolist() == [20 / 4, 80 / 4]
    assert any("cell positions are scaled to the die" in notice for notice in design.notices)


FAULTS = {
    "no such sink": (
        FLAT.replace('input: "u2"', 'input: "u9"', 1),
        DEF,
        r"flat\.pb\.txt:\d+: 1 nets to nodes that do not exist: m\[0\]/q drives u9",
    ),
    "duplicate": (FLAT.replace('name: "u2"', 'name: "u1"'), DEF, "1 duplicate node names: u1"),
    "no such macro": (
        FLAT.replace('placeholder: "m[0]"', 'placeholder: "m[1]"', 1),
        DEF,
        r"1 pins on macros that do not exist: m\[0\]/a on m\[1\]",
    ),
    "on a cell": (
        FLAT.replace('placeholder: "m[0]"', 'placeholder: "u1"', 1),
        DEF,
        r"1 pins on nodes that are not macros: m\[0\]/a",
    ),
    "zero size": (FLAT.replace("f: 8.0", "f: 0.0"), DEF, r"1 macros whose width is not above 0: m\[0\]"),
    "no size": (FLAT.replace('key: "height"', 'key: "depth"'), DEF, "3 nodes without a height: m"),
    "no type": (FLAT.replace('"stdcell"', '"cell"', 1), DEF, r"must be one of macro, macro_pin"),
    "cut": (FLAT[: FLAT.rindex("}")], DEF, "appears to be truncated"),
    "nonsense": ("hello", DEF, r"flat\.pb\.txt:1: "),
    "not a number": (FLAT.replace("f: 8.0", "f: nan"), DEF, "must be a finite number"),
    "another macro": (FLAT, DEF.replace(r"m\[0\]", r"m\[1\]"), r"1 macros that are not in the protobuf: m\[1\]"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_rejected(tmp_path: Path, name: str) -> None:
    text, floorplan, reason = FAULTS[name]
    with pytest.raises(DesignError, match=reason):
        read_protobuf_def(*write(tmp_path, text, floorplan))


WITHOUT_COMPONENTS = DEF[: DEF.index("COMPONENTS 1")] + DEF[DEF.index("END COMPONENTS\n") + len("END COMPONENTS\n") :]
TAP = "COMPONENTS 1 ;\n- TAP_0 TAP + FIXED ( 0 0 ) N ;\nEND COMPONENTS\n"


@pytest.mark.parametrize("components", ["", TAP])
def test_a_floorplan_without_macros_leaves_them_unplaced(tmp_path: Path, components: str) -> None:
    floorplan = WITHOUT_COMPONENTS.replace("PINS 2", f"{components}PINS 2")
    design, data = read_protobuf_def(*write(tmp_path, FLAT, floorplan))
    assert data == floorplan.encode()
    assert design.placement.placed[design.netlist.hard].tolist() == [False]
    assert design.placement.placed[design.cells].all()
    expected = "1 macros of the protobuf are not in the DEF file and are unplaced: m[0]"
    assert any(notice.endswith(expected) for notice in design.notices)
    assert any("are not in the protobuf are ignored: TAP_0" in notice for notice in design.notices) == bool(components)
    # The export adds them in the file's notation.
    placement = dataclasses.replace(design.placement, x=np.full(5, 8.0), y=np.full(5, 9.0), placed=np.ones(5, bool))
    locations = macro_locations(design, design.netlist, placement)
    (tmp_path / "out.def").write_bytes(def_bytes(read_def(tmp_path / "plan.def"), locations))
    assert read_def(tmp_path / "out.def").components.written_names == [*(["TAP_0"] if components else []), r"m\[0\]"]
    again = read_protobuf_def(tmp_path / "flat.pb.txt", tmp_path / "out.def")[0]
    assert again.placement.x[again.netlist.hard].tolist() == [8]


def test_a_floorplan_with_some_of_the_macros_and_ports(tmp_path: Path) -> None:
    two = FLAT + node("m[1]", "macro", width=8.0, height=6.0, ref_name="RAM")
    design, _ = read_protobuf_def(*write(tmp_path, two, DEF.replace("- out + NET", "- oud + NET")))
    hard = design.netlist.hard
    assert design.placement.placed[hard].tolist() == [True, False] and len(design.netlist.ports) == 2
    assert any(notice.endswith("1 ports of the protobuf are not in the DEF file: out") for notice in design.notices)
    placement = dataclasses.replace(design.placement, placed=np.ones(6, bool))
    locations = macro_locations(design, design.netlist, placement)
    for text in (DEF, DEF.replace("\n", " ")):
        (tmp_path / "plan.def").write_text(text)
        (tmp_path / "out.def").write_bytes(def_bytes(read_def(tmp_path / "plan.def"), locations))
        components = read_def(tmp_path / "out.def").components
        assert components.written_names == [r"m\[0\]", r"m\[1\]"] and components.x.tolist() == [2000, -4000]


def test_a_floorplan_without_pins_spreads_the_ports(tmp_path: Path) -> None:
    begin, end = DEF.index("PINS 2"), DEF.index("END PINS\n") + len("END PINS\n")
    design, _ = read_protobuf_def(*write(tmp_path, FLAT, DEF[:begin] + DEF[end:]))
    netlist, placement, die = design.netlist, design.placement, design.floorplan.die
    ports = netlist.ports
    assert len(ports) and placement.placed[ports].all()
    on_edge = np.isin(placement.x[ports], (die.x_low, die.x_high)) | np.isin(
        placement.y[ports], (die.y_low, die.y_high)
    )
    assert on_edge.all()
    assert any("2 ports of the protobuf are not in the DEF file: in, out" in notice for notice in design.notices)


_WORDS = ("{", "}", '"', "node", "name:", "1e999", "-", "0x1F", "017", "é", "#", "attr", "f:")


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_damage_reads_the_same_both_ways(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever the native reader accepts, the full grammar accepts with the same result."""
    words = FLAT.split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.lists(st.sampled_from(_WORDS), max_size=2)
        )  # fmt: skip
    path = tmp_path_factory.mktemp("pb") / "flat.pb.txt"
    path.write_bytes(" ".join(words).encode())
    plain = _native.read_plain_protobuf(path.read_bytes())
    if plain is None or plain["findings"]:
        return
    full = flat_protobuf.columns_of_text(path, path.read_bytes())
    for key in ("names", "masters"):
        assert plain[key] == full[key]
    for key in ("type", "width", "x", "weight", "orientation", "macro", "start", "sinks"):
        np.testing.assert_array_equal(plain[key], full[key])


def test_real_files_match(real: Callable[[str], Path]) -> None:
    design, _ = read_protobuf_def(
        real("ariane133_ng45_flat/netlist.pb.txt.gz"), real("ariane133_ng45_68/floorplan.def.gz")
    )
    netlist = design.netlist
    assert (len(netlist.hard), len(design.cells), len(netlist.ports)) == (133, 88411, 495)
    core = design.floorplan.core
    assert (core.x_low, core.y_low) == (5.13, 5.04)
    assert (round(core.width, 6), round(core.height, 6)) == (1347.1, 1346.8)
    assert not design.placement.placed[netlist.hard].any()
