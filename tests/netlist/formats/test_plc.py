"""The placement reader and writer: dialects, exact round trips, and rejections with file and line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.netlist.design import Canvas, Design, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.formats.protobuf import read_netlist, read_netlist_file
from tests.support.small_files import NETLIST, PLACEMENT

CANVAS = Canvas(20.5, 16.25, 5, 4, 10.5, 11.5, 5.5, 6.5, 2, 0.004)


@pytest.fixture(scope="module")
def netlist(tmp_path_factory: pytest.TempPathFactory) -> Netlist:
    path = tmp_path_factory.mktemp("netlist") / "netlist.pb.txt"
    path.write_text(NETLIST)
    return read_netlist(path)


def read(netlist: Netlist, tmp_path: Path, text: str) -> tuple[Canvas, Placement]:
    (tmp_path / "in.plc").write_bytes(text.encode("utf-8", "surrogatepass"))
    return read_placement(tmp_path / "in.plc", netlist)


def test_values_by_hand(netlist: Netlist, tmp_path: Path) -> None:
    canvas, placed = read(netlist, tmp_path, PLACEMENT)
    assert canvas == CANVAS
    assert placed.x.tolist() == [0.5, 10.1, 4.0]
    assert placed.y.tolist() == [2.0, 8.25, 4.0]
    assert placed.orientation.tolist() == [Orientation.N, Orientation.S, Orientation.N]
    assert placed.fixed.tolist() == [True, False, False]
    assert placed.placed.all()


DIALECTS = {
    "a key to a line": lambda text: text.replace("  Rows", "\n# Rows").replace("  Height", "\n# Height"),
    "all keys on a line": lambda text: text.replace("\n# Width", " Width").replace("\n# Smoothing", "  Smoothing"),
    "no spaces around colons": lambda text: text.replace(" : ", ":"),
    "tabs and wide spaces": lambda text: text.replace("# ", "#\t ").replace(" : ", "\t:   "),
    "no space after the mark": lambda text: text.replace("# ", "#"),
    "commas": lambda text: text.replace("  Rows", ", Rows").replace("  ver", ", ver"),
    "lower case": lambda text: text.lower().replace(" s 0", " S 0").replace(" n 0", " N 0"),
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "blank lines": lambda text: text.replace("\n", "\n\n"),
    "no line end": lambda text: text.rstrip("\n"),
    "rows in another order": lambda text: text.replace("0 0.5 2 - 1\n", "") + "0 0.5 2 - 1\n",
    "aligned columns": lambda text: text.replace("0 0.5 2 - 1", "   0      0.500   2.0000  -  1  "),
    "port with a flag of 0": lambda text: text.replace("2 - 1", "2 - 0"),
    "soft macro without orientation": lambda text: text.replace("4 4 N 0", "4 4 - 0"),
    "free text": lambda text: "# Width of pins : 3\n# This file : ./Width : 7\n# Rows\n#\n##\n" + text,
    "exponents": lambda text: text.replace("10.1", "1.01e1").replace("20.5", "2.05E+1"),
    "the same key again": lambda text: "# Width : 20.50\n" + text,
    "pictures": lambda text: "#  20|4|4| |4|4|\n#    -----\n# HARD_MACROs     :       133\n" + text,
    "smoothing with a fraction": lambda text: text.replace("factor : 2", "factor : 2.9"),
}


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_dialects_read_the_same(dialect: str, netlist: Netlist, tmp_path: Path) -> None:
    changed = DIALECTS[dialect](PLACEMENT)
    assert changed != PLACEMENT
    assert read(netlist, tmp_path, changed) == read(netlist, tmp_path, PLACEMENT)


def test_overlap_threshold_is_optional(netlist: Netlist, tmp_path: Path) -> None:
    canvas, _ = read(netlist, tmp_path, PLACEMENT.replace("# Overlap threshold : 0.004\n", ""))
    assert canvas == dataclasses.replace(CANVAS, overlap_threshold=0.0)


def test_located_orientation_is_kept_where_the_file_gives_none(tmp_path: Path) -> None:
    (tmp_path / "n.pb.txt").write_text(NETLIST)
    _, netlist, located, *_ = read_netlist_file(tmp_path / "n.pb.txt")
    (tmp_path / "in.plc").write_text(PLACEMENT.replace("8.25 S 0", "8.25 - 0"))
    _, placed = read_placement(tmp_path / "in.plc", netlist, located=located)
    assert placed.orientation[1] == Orientation.FN


def test_standard_cells_need_no_line(tmp_path: Path) -> None:
    cell = 'node { name: "c" attr { key: "type" value { placeholder: "STDCELL" } } attr { key: "width" value { f: 1 } }'
    cell += ' attr { key: "height" value { f: 1 } } attr { key: "x" value { f: 7 } } attr { key: "y" value { f: 8 } } }'
    (tmp_path / "n.pb.txt").write_text(NETLIST + cell)
    _, netlist, located, *_ = read_netlist_file(tmp_path / "n.pb.txt")
    assert netlist.kind[3] == NodeKind.CELL
    (tmp_path / "in.plc").write_text(PLACEMENT)
    _, without = read_placement(tmp_path / "in.plc", netlist)
    assert without.placed.tolist() == [True, True, True, False]
    canvas, placed = read_placement(tmp_path / "in.plc", netlist, located=located)
    assert placed.placed.all()
    assert (placed.x[3], placed.y[3]) == (7.0, 8.0)
    design = Design("d", netlist, canvas, placed)
    for kept in (placed, without):
        write_placement(tmp_path / "out.plc", design, kept)
        assert read_placement(tmp_path / "out.plc", netlist)[1] == kept


REFUSED = {
    # reason: (text to replace, replacement, reported line, words of the message)
    "unknown index": ("3 4 4 N 0", "9 4 4 N 0", 12, "node index '9' is not a port, macro or standard cell"),
    "index of a pin": ("3 4 4 N 0", "2 4 4 N 0", 12, "node index '2' is not a port"),
    "negative index": ("3 4 4 N 0", "-3 4 4 N 0", 12, "node index '-3'"),
    "index with a fraction": ("3 4 4 N 0", "3.0 4 4 N 0", 12, "node index '3.0'"),
    "huge index": ("3 4 4 N 0", 50 * "3" + " 4 4 N 0", 12, "is not a port"),
    "missing index": ("1 10.1 8.25 S 0\n", "", 11, "without lines for 1 nodes, the first being index 1 ('ram')"),
    "duplicate index": ("3 4 4 N 0", "1 4 4 N 0", 12, "node index 1 ('ram') was already placed on line 11"),
    "unknown orientation": ("8.25 S 0", "8.25 R90 0", 11, "orientation of node 1 is 'R90'; must be one of N, FN"),
    "NaN": ("10.1", "nan", 11, "x of node 1 is 'nan'; must be a finite number"),
    "infinite": ("8.25", "-inf", 11, "y of node 1 is '-inf'"),
    "no number": ("8.25", "8,25", 11, "y of node 1 is '8,25'"),
    "underscores": ("8.25", "8_2", 11, "y of node 1 is '8_2'"),
    "fixed flag": ("S 0", "S 2", 11, "fixed of node 1 is '2'; must be 0 or 1"),
    "too few fields": ("8.25 S 0", "8.25 S", 11, "found 4 fields"),
    "too many fields": ("8.25 S 0", "8.25 S 0 0", 11, "found 6 fields"),
    "no columns": ("Columns : 5  ", "", 12, "'Columns'"),
    "no width": ("# Width : 20.5  Height : 16.25\n", "", 11, "'Width', 'Height'"),
    "no routes": ("# Routes per micron, hor : 10.5  ver : 11.5\n", "", 11, "'Routes per micron, hor'"),
    "no macro routes": ("used by macros", "taken by macros", 12, "'Routes used by macros, ver'"),
    "no smoothing": ("# Smoothing factor : 2\n", "", 11, "'Smoothing factor'"),
    "columns with a fraction": ("Columns : 5", "Columns : 5.5", 2, "canvas columns is '5.5'; must be a whole number"),
    "no columns at all": ("Columns : 5", "Columns : 0", 2, "canvas columns: 0 must be an integer of at least 1"),
    "columns beyond int32": ("Columns : 5", f"Columns : {10**20}", 2, "canvas columns: 100000000000000000000 must be"),
    "rows beyond int32": ("Rows : 4", "Rows : 499999999999999999999", 2, "canvas rows: 5"),
    "smoothing beyond int32": ("factor : 2", f"factor : {2**31}", 6, "canvas smoothing: 2147483648 must be an integer"),
    "negative width": ("Width : 20.5", "Width : -20.5", 3, r"canvas width: -20.5 must be a number in [1e-09, 1e+09]"),
    "too fine a grid": ("Columns : 5", "Columns : 60000", 2, "a grid of 4 rows and 60000 columns is too fine"),
    "huge x": ("10.1", "1e300", 11, "x of node 1 is '1e300'; must be a finite number up to ±1e+09 µm"),
    "huge width": ("Width : 20.5", "Width : 1e300", 3, "canvas width: 1e+300 must be a number in [1e-09, 1e+09]"),
    "tiny routes": ("hor : 10.5", "hor : 1e-300", 4, "canvas routes_horizontal: 1e-300 must be a number"),
    "NaN height": ("Height : 16.25", "Height : NaN", 3, "canvas height is 'NaN'; must be a finite number"),
    "negative smoothing": ("factor : 2", "factor : -1", 6, "canvas smoothing: -1"),
    "negative routes": ("ver : 11.5", "ver : -11.5", 4, "canvas routes_vertical: -11.5"),
    "two widths": ("# Smoothing", "# Width : 30\n# Smoothing", 6, "canvas width is 30 here but 20.5 on line 3"),
}


@pytest.mark.parametrize("reason", list(REFUSED))
def test_rejection_names_file_line_and_reason(reason: str, netlist: Netlist, tmp_path: Path) -> None:
    old, new, line, words = REFUSED[reason]
    assert old in PLACEMENT
    with pytest.raises(DesignError) as caught:
        read(netlist, tmp_path, PLACEMENT.replace(old, new, 1))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'in.plc'}:{line}: ")
    assert words in message


@pytest.mark.parametrize("kept", range(0, len(PLACEMENT) - 5, 7))
def test_truncated_files_are_rejected(kept: int, netlist: Netlist, tmp_path: Path) -> None:
    with pytest.raises(DesignError, match=r"in\.plc:\d+: "):
        read(netlist, tmp_path, PLACEMENT[:kept])


def test_values_that_the_design_supplies_may_be_missing(netlist: Netlist, tmp_path: Path) -> None:
    canvas, located = read(netlist, tmp_path, PLACEMENT)
    lines = [line for line in PLACEMENT.splitlines() if line[:1] not in ("#", "0")]
    (tmp_path / "in.plc").write_text("\n".join(f"{line} # by hand" for line in lines))
    assert read_placement(tmp_path / "in.plc", netlist, located=located, canvas=canvas) == (canvas, located)
    with pytest.raises(DesignError, match="do not give the canvas's 'Columns'"):
        read_placement(tmp_path / "in.plc", netlist, located=located)


finite = st.floats(-1e9, 1e9)
positive = st.floats(min_value=100, max_value=1e9)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_written_files_read_back_equal(data: st.DataObject, netlist: Netlist, tmp_path: Path) -> None:
    """Bit by bit: positions to the last digit, orientations, fixed flags, and the canvas."""
    canvas = Canvas(
        *data.draw(st.tuples(positive, positive)),
        *data.draw(st.tuples(st.integers(1, 4096), st.integers(1, 4096))),
        *data.draw(st.tuples(*[st.floats(min_value=1e-9, max_value=1e9)] * 4)),
        smoothing=data.draw(st.integers(0, 9)),
        overlap_threshold=data.draw(st.floats(min_value=0, max_value=1e9)),
    )
    orientation = [0, *data.draw(st.tuples(st.integers(0, 7), st.integers(0, 7)))]
    placed = Placement(
        data.draw(st.tuples(finite, finite, finite)),
        data.draw(st.tuples(finite, finite, finite)),
        orientation,
        np.ones(3),
        [True, *data.draw(st.tuples(st.booleans(), st.booleans()))],
    )
    design = Design(data.draw(st.text(max_size=20)), netlist, canvas, placed)
    write_placement(tmp_path / "out.plc", design, placed, comments=["Proxy cost : 0.5", "two\nlines"])
    again_canvas, again = read_placement(tmp_path / "out.plc", netlist)
    assert again_canvas == canvas
    assert again == placed
    assert np.array_equal(np.signbit(again.x), np.signbit(placed.x))


def test_comments_are_written_and_may_not_be_keys(netlist: Netlist, tmp_path: Path) -> None:
    canvas, placed = read(netlist, tmp_path, PLACEMENT)
    design = Design("d", netlist, canvas, placed)
    write_placement(tmp_path / "out.plc", design, placed, comments=["Proxy cost : 0.5", "# Width of it"])
    text = (tmp_path / "out.plc").read_text()
    assert "\n# Proxy cost : 0.5\n# # Width of it\n" in text
    for comment in ("Width : 3", "fine\n## rows: 7"):
        with pytest.raises(DesignError, match="would be read as a canvas key"):
            write_placement(tmp_path / "other.plc", design, placed, comments=[comment])
    assert not (tmp_path / "other.plc").exists()


def test_files_are_written_whole_or_not_at_all(
    netlist: Netlist, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canvas, placed = read(netlist, tmp_path, PLACEMENT)
    design = Design("d", netlist, canvas, placed)
    target = tmp_path / "out.plc"
    target.write_text("before")
    unplaced = dataclasses.replace(placed, placed=[True, False, True])
    with pytest.raises(DesignError, match="'ram' is not placed"):
        write_placement(target, design, unplaced)

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("placement.netlist.files.os.fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_placement(target, design, placed)
    assert target.read_text() == "before"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.plc", "out.plc"]


_TOKENS = [
    *"#:\n\t -,;\x00µ",
    "nan",
    "inf",
    "1e999",
    "N",
    "FE",
    "-",
    "Width : 3",
    "# Rows : 0",
    "0 0 0 - 1",
    "٣",
    "1_0",
]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_fuzzed_files_are_read_or_rejected(data: st.DataObject, netlist: Netlist, tmp_path: Path) -> None:
    text = PLACEMENT
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.integers(0, len(text)))
        second = min(len(text), first + data.draw(st.integers(0, 30)))
        new = data.draw(st.one_of(st.just(""), st.sampled_from(_TOKENS), st.text(max_size=5)))
        text = text[:first] + new + text[second:]
    try:
        canvas, placed = read(netlist, tmp_path, text)
    except DesignError as error:
        assert str(error).startswith(str(tmp_path / "in.plc"))
    else:
        assert np.isfinite([canvas.width, canvas.height, *placed.x, *placed.y]).all()
        assert placed.placed.all()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=80))
def test_any_bytes_are_rejected(content: bytes, netlist: Netlist, tmp_path: Path) -> None:
    (tmp_path / "in.plc").write_bytes(content)
    with pytest.raises(DesignError, match=r"in\.plc"):
        read_placement(tmp_path / "in.plc", netlist)
