"""The DEF reader: a file by hand, the connectivity of the `lefdef` package, rejections, and damaged files."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.netlist.design import Orientation
from placement.netlist.errors import DesignError
from placement.netlist.formats.def_file import DIRECTIONS, USES, DefFile, PlacementStatus, read_def
from tests.support.small_lef_def import DEF


def read(tmp_path: Path, text: str) -> DefFile:
    path = tmp_path / "chip.def"
    path.write_bytes(text.encode())
    return read_def(path)


def test_header_rows_and_tracks_by_hand(tmp_path: Path) -> None:
    file = read(tmp_path, DEF)
    assert (file.version, file.divider, file.design, file.units) == ("5.8", "/", "chip", 1000)
    assert file.die.tolist() == [[0, 0], [0, 40000], [50000, 40000], [50000, 20000], [60000, 20000], [60000, 0]]
    rows = file.rows
    assert (rows.names, rows.sites) == (["r0", "r1"], ["core"])
    assert (rows.x.tolist(), rows.y.tolist(), rows.count_x.tolist()) == ([2000, 2000], [4000, 6000], [100, 90])
    assert rows.orientation.tolist() == [Orientation.N, Orientation.FS]
    tracks = file.tracks
    found = [
        (tracks.layers[layer], is_x, start, count, step)
        for layer, is_x, start, count, step in zip(
            tracks.layer, tracks.is_x, tracks.start, tracks.count, tracks.step, strict=True
        )
    ]
    assert found == [("M2", 1, 100, 150, 400), ("M1", 1, 100, 150, 400), ("M1", 0, 50, 200, 200)]


def test_components_by_hand(tmp_path: Path) -> None:
    components = read(tmp_path, DEF).components
    assert components.written_names == [r"mem\[0\]/ram", r"mem\[1\]/ram", "u1", "u2", "u/v"]
    assert components.names == ["mem[0]/ram", "mem[1]/ram", "u1", "u2", "u/v"]
    assert [components.masters[master] for master in components.master] == ["RAM", "RAM", "INV", "INV", "INV"]
    status = PlacementStatus
    assert components.status.tolist() == [status.FIXED, status.PLACED, status.PLACED, status.UNPLACED, status.NONE]
    assert components.x.tolist() == [5000, 20000, 2000, 0, 0]
    assert components.y.tolist() == [8000, 8000, 4000, 0, 0]
    assert components.orientation.tolist() == [Orientation.FS, Orientation.E, 0, 0, 0]
    assert (components.halo_component.tolist(), components.halo.tolist()) == ([0], [[100, 200, 300, 400]])
    assert [components.regions[region] for region in components.region] == ["left"]
    assert components.region_component.tolist() == [2]
    entries = [DEF.encode()[begin:end] for begin, end in zip(components.begin, components.end, strict=True)]
    assert all(entry.startswith(b"- ") and entry.endswith(b";") for entry in entries)
    assert entries[3] == b"- u2 INV + UNPLACED ;"


def test_pins_by_hand(tmp_path: Path) -> None:
    pins = read(tmp_path, DEF).pins
    assert pins.names == ["in", "out", "clk", "q", "VDD"]
    assert [DIRECTIONS[code] for code in pins.direction] == ["INPUT", "OUTPUT", "INPUT", "OUTPUT", "INOUT"]
    assert [USES[code] for code in pins.use] == ["SIGNAL", "", "CLOCK", "", "POWER"]
    assert pins.special.tolist() == [0, 0, 0, 0, 1]
    # Of two ports, the first one is used.
    assert (pins.x[:2].tolist(), pins.y[:2].tolist()) == ([0, 100], [475, 200])
    assert pins.box[:2].tolist() == [[-70, 0, 70, 140], [0, 0, 10, 10]]
    assert pins.orientation[0] == Orientation.E
    assert pins.status.tolist() == [PlacementStatus.FIXED, PlacementStatus.PLACED, 0, 0, 0]


def test_areas_by_hand(tmp_path: Path) -> None:
    file = read(tmp_path, DEF)
    blockages = file.blockages
    assert blockages.layer.tolist() == [-1, -1, 0]
    assert (blockages.is_soft.tolist(), blockages.component.tolist()) == ([1, 0, 0], [-1, -1, 0])
    np.testing.assert_array_equal(blockages.partial, [np.nan, 40, np.nan])
    polygons = [
        blockages.points[begin:end].tolist()
        for begin, end in zip(blockages.polygon_start[:-1], blockages.polygon_start[1:], strict=True)
    ]
    assert blockages.start.tolist() == [0, 1, 3, 4]
    assert polygons[2] == [[0, 0], [0, 2000], [1000, 2000], [1000, 1000], [2000, 1000], [2000, 0]]
    areas = file.areas
    assert (areas.regions, areas.is_guide.tolist()) == (["left"], [0])
    assert areas.boxes.tolist() == [[0, 0, 30000, 20000], [40000, 0, 30000, 5000]]
    assert (areas.groups, areas.group_region, areas.patterns) == (["rams"], ["left"], ["mem*"])


def test_nets_by_hand(tmp_path: Path) -> None:
    file = read(tmp_path, DEF)
    nets = file.nets
    assert nets.names == ["in", "clk", "o", "q", "lone", "vss"]
    assert (nets.weight.tolist(), nets.start.tolist()) == ([1, 3, 1, 1, 1, 1], [0, 2, 5, 8, 10, 11, 13])
    assert [USES[use] for use in nets.use] == ["", "CLOCK", "", "", "", "GROUND"]
    joined = [
        (file.components.names[component], nets.pins[pin]) if component >= 0 else ("PIN", file.pins.names[pin])
        for component, pin in zip(nets.component, nets.pin, strict=True)
    ]
    assert joined[:5] == [("u1", "A"), ("PIN", "in"), ("PIN", "clk"), ("mem[0]/ram", "D[0]"), ("mem[1]/ram", "D[0]")]


def test_other_dividers_read_as_slashes(tmp_path: Path) -> None:
    other = DEF.replace('DIVIDERCHAR "/"', 'DIVIDERCHAR "|"').replace("]/ram", "]|ram").replace("u/v", r"u|v\|w")
    components = read(tmp_path, other).components
    assert components.names[0] == "mem[0]/ram"
    assert components.names[4] == "u/v|w"
    assert components.written_names[4] == r"u|v\|w"


def test_gzip_and_carriage_returns(tmp_path: Path) -> None:
    plain = read(tmp_path, DEF)
    path = tmp_path / "other.def.gz"
    path.write_bytes(gzip.compress(DEF.replace("\n", "\r\n").encode()))
    zipped = read_def(path)
    assert zipped.components.names == plain.components.names
    np.testing.assert_array_equal(zipped.nets.pin, plain.nets.pin)
    assert zipped.source.name == "other.def.gz"


def test_a_mark_at_the_beginning_is_passed(tmp_path: Path) -> None:
    path = tmp_path / "chip.def"
    path.write_bytes(b"\xef\xbb\xbf" + DEF.encode())
    file = read_def(path)
    assert file.components.names == read(tmp_path, DEF).components.names
    assert file.data == DEF.encode()


FAULTS = {
    "no END DESIGN": (DEF.replace("END DESIGN", ""), r":\d+: the file ends without 'END DESIGN'"),
    "cut in nets": (DEF[: DEF.index("- q ( mem")], r"expected 'END NETS', found the end of the file"),
    "cut in a net": (DEF[: DEF.index("( u2 A ) ;")], "appears to be truncated"),
    "cut in special nets": (
        DEF[: DEF.index("END SPECIALNETS")],
        "expected 'END SPECIALNETS', found the end of the file",
    ),
    "cut in a skipped section": (
        DEF[: DEF.index("DESIGN note")],
        r":6: the PROPERTYDEFINITIONS section .* has no 'END",
    ),
    "huge count": (DEF.replace("NETS 6 ;", "NETS 99999999999999 ;"), "out of range"),
    "same component": (DEF.replace("- u2 INV", "- u1 INV"), r":23: 1 duplicate component names: u1"),
    "unknown component": (
        DEF.replace("( u2 Y )", "( u9 Y )"),
        r"1 connections to .* not exist: component u9 in net lone",
    ),
    "no die and no rows": (re.sub("(DIEAREA|ROW).*;", "", DEF), "has no DIEAREA and no rows"),
    "zero units": (DEF.replace("MICRONS 1000", "MICRONS 0"), r":5: database units per micron must be above 0"),
    "odd orientation": (DEF.replace(") FS\n", ") R90\n"), r":19: orientation 'R90' must be one of N, FN"),
    "no number": (DEF.replace("( 5000 8000 )", "( 5000 y )"), r":19: expected y, a number, found 'y'"),
    "out of range": (DEF.replace("( 5000 8000 )", "( 5000 8000000000 )"), "8000000000 is out of range"),
    "infinite": (DEF.replace("( 5000 8000 )", "( inf 8000 )"), "expected x, a number, found 'inf'"),
    "negative halo": (DEF.replace("100 200 300", "-1 200 300"), "the widths of a halo must be at least 0"),
    "two statements in one": (DEF.replace("- u2 INV + UNPLACED ;", "- u2 INV + UNPLACED"), "has no ';'"),
    "no DEF": ("hello world ;", r":1: 'hello' is not a DEF statement"),
    "section of no DEF": (DEF.replace("- u1 INV", "u1 INV"), "expected '-' or 'END COMPONENTS'"),
    "empty": ("", "the file ends without"),
    "open string": ('VERSION "5.8 ;', "no closing quote"),
    "partial": (DEF.replace("PARTIAL 40", "PARTIAL 140"), "PARTIAL must be from 0 to 100"),
    "triangle of points": (DEF.replace("RECT ( 5 6 ) ( 7 8 )", "RECT ( 5 6 )"), "a RECT must have 2 points"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_rejected_with_line_and_reason(tmp_path: Path, name: str) -> None:
    text, reason = FAULTS[name]
    with pytest.raises(DesignError, match=reason) as rejection:
        read(tmp_path, text)
    assert str(rejection.value).startswith(str(tmp_path / "chip.def"))


def test_many_faults_are_counted_and_ten_are_named(tmp_path: Path) -> None:
    nets = "".join(f"- n{number} ( x{number} A ) ;\n" for number in range(25))
    text = DEF.replace("NETS 6 ;", "NETS 31 ;").replace("END NETS", nets + "END NETS")
    with pytest.raises(DesignError, match=r"25 connections.*component x0 in net n0.* and 15 more") as rejection:
        read(tmp_path, text)
    assert "x9 in net n9" in str(rejection.value)
    assert "x10" not in str(rejection.value)


HARMLESS = {
    "escapes": (DEF.replace("( u2 Y )", "( u\\2 Y )"), r"1 names that are declared with different escapes.*: u.2"),
    "net twice": (
        DEF.replace("- q ( mem", "- o ( mem"),
        ":53: 1 duplicate net names: all of these nets are kept: o",
    ),
    "pin twice": (DEF.replace("- q + NET", "- clk + NET"), ":33: 1 duplicate pin names: the first pin is used: clk"),
    "too few": (DEF.replace("COMPONENTS 5", "COMPONENTS 6"), "are read: COMPONENTS with 5, declared 6"),
    "too many": (DEF.replace("NETS 6", "NETS 2"), ":48: 1 sections whose number of entries differs"),
    "no shape": (DEF.replace("SOFT RECT ( 0 0 ) ( 1000 1000 )", "SOFT"), ":37: 1 blockages without a shape"),
    "no such pin": (DEF.replace("( PIN q )", "( PIN r )"), "1 ports in NETS that PINS does not declare .* r"),
    "wildcard": (DEF.replace("POWER + ROUTED", "SIGNAL + ROUTED"), r"components \(\*\).*: VDD in net VDD"),
    "tracks without step": (DEF.replace("STEP 400", "STEP 0"), "1 TRACKS whose count or step is not above 0 .*: X"),
    "no layer": (DEF.replace("NETS 6", "TRACKS X 5 DO 9 STEP 2 ;\nNETS 6"), "1 TRACKS without a LAYER.*: X"),
    "statement": (DEF.replace("NETS 6", "IOFOO a b ;\nNETS 6"), ":48: 1 statements that are unknown .*: IOFOO"),
    "section": (
        DEF.replace("NETS 6", "SCANCHAINS 1 ;\n- a + START u1 A ;\nEND SCANCHAINS\nFOO 1 ;\n- a b ;\nEND FOO\nNETS 6"),
        r":48: 2 statements that are unknown .*: SCANCHAINS, FOO \(line 51\)",
    ),
    "no space": (re.sub(" ;$", ";", DEF, flags=re.MULTILINE), r"^\S+: \d+ missing spaces before ';'"),
    "more": (DEF + "VERSION 5.8 ;", r":58: 1 words after END DESIGN are ignored: VERSION"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_ignored_content_is_a_notice(tmp_path: Path, name: str) -> None:
    text, notice = HARMLESS[name]
    found = [one for one in read(tmp_path, text).notices if "further locations" not in one]
    assert found and re.search(notice, found[0]), found


def joined(file: DefFile) -> dict[str, list[str]]:
    """Returns net → its connections."""
    nets = file.nets
    ends = [
        f"{file.components.names[component]} {nets.pins[pin]}" if component >= 0 else file.pins.names[pin]
        for component, pin in zip(nets.component, nets.pin, strict=True)
    ]
    return {name: ends[nets.start[net] : nets.start[net + 1]] for net, name in enumerate(nets.names)}


def test_pins_join_the_nets_that_they_name(tmp_path: Path) -> None:
    alone = DEF.replace("( PIN q )", "").replace("- in ( u1 A ) ( PIN in ) ;\n", "").replace("NETS 6", "NETS 5")
    nets = joined(read(tmp_path, alone))
    assert nets["q"] == ["mem[0]/ram Q", "q"]
    assert nets["in"] == ["in"]
    # Supplies are not nets.
    assert list(nets) == ["clk", "o", "q", "lone", "vss", "in"]


def test_further_places_of_a_pin_are_no_pins(tmp_path: Path) -> None:
    more = "- q.extra1 + NET q + DIRECTION OUTPUT ;\n- none.extra2 + NET none ;\n- q.extras + NET q ;\nEND PINS"
    text = DEF.replace("END PINS", more).replace("PINS 5", "PINS 8").replace("( PIN q )", "( PIN q ) ( PIN q.extra1 )")
    file = read(tmp_path, text)
    assert file.pins.names == ["in", "out", "clk", "q", "VDD", "none.extra2", "q.extras"]
    assert joined(file)["q"] == ["mem[0]/ram Q", "q", "q.extras"]
    (notice,) = file.notices
    assert notice.endswith(":30: 2 pins have further locations, which are ignored: out, q.extra1 (line 35)")


def test_special_nets_of_signals_are_nets(tmp_path: Path) -> None:
    special = "- q ( u1 Y ) + USE SIGNAL + ROUTED M1 100 + SHAPE STRIPE ( 0 0 ) ( 9 * ) ;\n- x ( u2 Y ) ( PIN out ) ;\n"
    text = DEF.replace("SPECIALNETS 1", "SPECIALNETS 3").replace("END SPECIALNETS", special + "END SPECIALNETS")
    file = read(tmp_path, text)
    nets = joined(file)
    # A net has the pins of both sections.
    assert nets["q"] == ["u1 Y", "mem[0]/ram Q", "q"]
    assert nets["x"] == ["u2 Y", "out"]
    assert "VDD" not in nets and len(file.notices) == 1
    assert USES[file.nets.use[file.nets.names.index("q")]] == "SIGNAL"


def test_bytes_that_are_not_text_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "chip.def"
    path.write_bytes(DEF.encode().replace(b"- u2 INV", b"- u\xff\xfe INV"))
    with pytest.raises(DesignError, match=r"is not UTF-8|does not exist|do not exist"):
        read_def(path)


def test_damaged_gzip_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "chip.def.gz"
    path.write_bytes(gzip.compress(DEF.encode())[:-40])
    with pytest.raises(DesignError, match="damaged gzip file"):
        read_def(path)


_WORDS = ["END", ";", "-", "+", "(", ")", "NETS", "-1e308", "99999999999", "PIN", '"', "PLACED", "*", "\x00", "é", "0"]


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_damage_brings_it_down(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    words = DEF.split(" ")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at : at + data.draw(st.integers(0, 3))] = data.draw(st.lists(st.sampled_from(_WORDS), max_size=3))
    path = tmp_path_factory.mktemp("def") / "chip.def"
    path.write_bytes(" ".join(words).encode())
    try:
        file = read_def(path)
    except DesignError as error:
        assert str(path) in str(error)
    else:
        assert len(file.components.names) == len(file.components.master)


@settings(max_examples=100, deadline=None)
@given(cut=st.integers(0, len(DEF) - 12))
def test_every_truncation_is_rejected(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("def") / "chip.def"
    path.write_bytes(DEF[:cut].encode())
    with pytest.raises(DesignError, match=r"chip\.def:\d+: "):
        read_def(path)


@pytest.mark.parametrize("name", ["riscv_asap7/riscv.def.gz", "ct_ariane_lefdef/ariane.def.gz"])
def test_the_same_as_lefdef_reads(tmp_path: Path, real: Callable[[str], Path], name: str) -> None:
    lefdef = pytest.importorskip("lefdef", reason="the oracle needs the package lefdef (extra lefdef)")
    plain = tmp_path / "plain.def"
    plain.write_bytes(gzip.decompress(real(name).read_bytes()))
    reader = lefdef.C_DefReader()  # keeps what it reads alive
    theirs = reader.read(str(plain))
    ours = read_def(real(name))
    components = [theirs.c_components[index] for index in range(theirs.c_num_components)]
    assert [component.c_id.decode() for component in components] == ours.components.written_names
    masters = [ours.components.masters[master] for master in ours.components.master]
    assert [component.c_name.decode() for component in components] == masters
    placed = ours.components.status >= PlacementStatus.PLACED
    assert np.array([component.c_x for component in components])[placed].tolist() == ours.components.x[placed].tolist()
    assert np.array([component.c_y for component in components])[placed].tolist() == ours.components.y[placed].tolist()
    pins = [theirs.c_pins[index] for index in range(theirs.c_num_pins)]
    assert [pin.c_name.decode() for pin in pins] == ours.pins.written_names
    assert [pin.c_direction.decode() for pin in pins] == [DIRECTIONS[code] for code in ours.pins.direction]
    assert theirs.c_num_rows == len(ours.rows.names)
    assert theirs.c_num_tracks_x + theirs.c_num_tracks_y == len(ours.tracks.layer)
    assert theirs.c_num_nets == len(ours.nets.names)
    names = [name.encode() for name in ours.components.written_names]
    pin_names = [name.encode() for name in ours.pins.written_names]
    masters_pins = [name.encode() for name in ours.nets.pins]
    start, component, pin = ours.nets.start.tolist(), ours.nets.component.tolist(), ours.nets.pin.tolist()
    for index in range(theirs.c_num_nets):
        net = theirs.c_nets[index]
        their_pins = [(net.c_instances[end], net.c_pins[end]) for end in range(net.c_num_pins)]
        our_pins = [
            (names[component[end]], masters_pins[pin[end]]) if component[end] >= 0 else (b"PIN", pin_names[pin[end]])
            for end in range(start[index], start[index + 1])
        ]
        assert their_pins == our_pins
        assert net.c_name.decode() == ours.nets.names[index]
