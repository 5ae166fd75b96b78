"""Exports: the user's DEF with the macros' entries changed only, scripts, tables; and the round trip, bit for bit."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from placement.api import import_design
from placement.netlist import export
from placement.netlist.design import Orientation
from placement.netlist.errors import DesignError
from placement.netlist.export import MacroLocation
from placement.netlist.flat_design import FlatDesign
from placement.netlist.formats.def_design import flat_design_of
from placement.netlist.formats.def_file import PlacementStatus, read_def
from placement.netlist.formats.lef import read_lefs
from placement.netlist.formats.protobuf_design import read_protobuf_def
from placement.netlist.importing import ImportSettings
from placement.netlist.load import load
from placement.netlist.user_placement import read_def_placement
from tests.support.array_chip import array_flat
from tests.support.small_lef_def import DEF, LEF

PLACED = ("CMP", "CT_AC", "CT_Scratch", "Human", "RePlAce", "SA")


@pytest.fixture
def chip(tmp_path: Path) -> FlatDesign:
    (tmp_path / "cells.lef").write_text(LEF)
    (tmp_path / "chip.def").write_text(DEF)
    return flat_design_of(read_def(tmp_path / "chip.def"), read_lefs([tmp_path / "cells.lef"])[0])


def moved(chip: FlatDesign) -> list[MacroLocation]:
    """The first memory at (3, 4) µm turned W, the second at (20.005, 30) µm, N."""
    placement, hard = chip.placement, chip.netlist.hard
    x, y, orientation = placement.x.copy(), placement.y.copy(), placement.orientation.copy()
    x[hard], y[hard] = [3 + 3, 20.005 + 5], [4 + 5, 30 + 3]
    orientation[hard] = [Orientation.W, Orientation.N]
    return export.macro_locations(chip, chip.netlist, dataclasses.replace(placement, x=x, y=y, orientation=orientation))


def test_locations_are_lower_left_corners_of_turned_boxes(chip: FlatDesign) -> None:
    first, second = moved(chip)
    assert (first.x, first.y, first.orientation) == (3000, 4000, Orientation.W)
    assert (second.x, second.y, second.master) == (20005, 30000, "RAM")
    assert (first.name, first.written_name) == ("mem[0]/ram", r"mem\[0\]/ram")


def test_def_changes_the_macros_entries_and_nothing_else(tmp_path: Path, chip: FlatDesign) -> None:
    written = export.def_bytes(read_def(tmp_path / "chip.def"), moved(chip)).decode()
    expected = DEF.replace("+ FIXED ( 5000 8000 ) FS", "+ FIXED ( 3000 4000 ) W").replace(
        "+ PLACED ( 20000 8000 ) E", "+ FIXED ( 20005 30000 ) N"
    )
    assert written == expected


def test_fixed_macros_that_stand_as_before_are_left_out(chip: FlatDesign) -> None:
    placement = chip.placement
    assert placement.fixed[chip.netlist.hard].tolist() == [True, False]
    there = export.macro_locations(chip, chip.netlist, placement)
    assert export.without_fixed(chip, there) == there[1:]
    # Fixed, but somewhere else now.
    assert export.without_fixed(chip, moved(chip)) == moved(chip)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (b"- m RAM ;", b"- m RAM + FIXED ( 1 -2 ) S ;"),
        (b"- m RAM\n ;", b"- m RAM + FIXED ( 1 -2 ) S\n ;"),
        (b"- m RAM + UNPLACED + WEIGHT 1 ;", b"- m RAM + FIXED ( 1 -2 ) S + WEIGHT 1 ;"),
        (b'- m RAM + PROPERTY p "+ PLACED ( 9" ;', b'- m RAM + FIXED ( 1 -2 ) S + PROPERTY p "+ PLACED ( 9" ;'),
        (b"- m RAM + SOURCE DIST\n + COVER ( 7 8 ) FN ;", b"- m RAM + SOURCE DIST\n + FIXED ( 1 -2 ) S ;"),
    ],
)
def test_entries_of_every_form(tmp_path: Path, entry: bytes, expected: bytes) -> None:
    head = b"UNITS DISTANCE MICRONS 1000 ; DIEAREA ( 0 0 ) ( 9 9 ) ; COMPONENTS 1 ;\n"
    (tmp_path / "one.def").write_bytes(head + entry + b"\nEND COMPONENTS END DESIGN\n")
    location = MacroLocation("m", "m", "RAM", 1, -2, Orientation.S)
    written = export.def_bytes(read_def(tmp_path / "one.def"), [location])
    assert written == head + expected + b"\nEND COMPONENTS END DESIGN\n"
    # What it wrote reads back as what it meant.
    (tmp_path / "two.def").write_bytes(written)
    components = read_def(tmp_path / "two.def").components
    assert (components.x[0], components.y[0], components.status[0]) == (1, -2, PlacementStatus.FIXED)


def test_scripts_by_hand(chip: FlatDesign) -> None:
    units = chip.floorplan.units
    assert export.innovus_tcl(moved(chip), units) == (
        "placeInstance {mem[0]/ram} 3 4 R90 -fixed\nplaceInstance {mem[1]/ram} 20.005 30 R0 -fixed\n"
    )
    assert export.icc2_tcl(moved(chip)[1:], units) == (
        "set_cell_location -coordinates {20.005 30} -orientation R0 -fixed [get_cells {mem[1]/ram}]\n"
    )
    assert export.openroad_tcl(moved(chip), units).splitlines() == [
        r"set inst [[ord::get_db_block] findInst {mem\[0\]/ram}]",
        "$inst setOrient R90",
        "$inst setLocation 3000 4000",
        "$inst setPlacementStatus FIRM",
        r"place_macro -macro_name {mem\[1\]/ram} -location {20.005 30} -orientation R0 -exact",
    ]
    assert export.csv_text(moved(chip), units) == (
        "name,master,x,y,orientation\nmem[0]/ram,RAM,3,4,W\nmem[1]/ram,RAM,20.005,30,N\n"
    )


@pytest.mark.parametrize("name", [r"a\[0\]/b", "plain", "a[0]", "a{b", "a}b", "back\\", "$x[y]", 'q"uote', "a b", "{}"])
def test_tcl_takes_every_name_as_it_stands(name: str) -> None:
    tkinter = pytest.importorskip("tkinter", reason="this Python has no Tcl to check with")
    interpreter = tkinter.Tcl()
    assert interpreter.eval(f"set taken {export.tcl_word(name)}") == name


def test_positions_file_changes_the_macros_lines_only() -> None:
    text = "UCLA pl 1.0\n# note\na 1 2 : N\nmac 5 6 : FS\nb 3 4 : N /FIXED\n"
    location = MacroLocation("mac", "mac", "", 7, 8, Orientation.FN)
    assert export.bookshelf_pl(text, [location], 1.0) == text.replace("mac 5 6 : FS", "mac\t7\t8\t: FN /FIXED")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_positions_file_keeps_its_line_breaks(ending: str) -> None:
    """Read as bytes, with or without a break behind the last line; what is added stands on lines of its own."""
    text = ending.join(("UCLA pl 1.0", "mac 5 6 : FS", "b 3 4 : N /FIXED"))
    places = [MacroLocation(name, name, "", 7, 8, Orientation.FN) for name in ("mac", "new")]
    changed = text.replace("mac 5 6 : FS", "mac\t7\t8\t: FN /FIXED")
    assert export.bookshelf_pl(text, places[:1], 1.0) == changed
    added = f"{changed}{ending}new\t7\t8\t: FN /FIXED{ending}"
    assert export.bookshelf_pl(text, places, 1.0) == added
    assert export.bookshelf_pl(text + ending, places, 1.0) == added


def test_another_designs_macros_are_refused(tmp_path: Path, chip: FlatDesign) -> None:
    (tmp_path / "other.def").write_text(DEF.replace(r"mem\[1\]", "mem1"))
    with pytest.raises(DesignError, match=r"1 macros that are no components of it: mem\\\[1\\\]/ram"):
        export.def_bytes(read_def(tmp_path / "other.def"), moved(chip))
    placed = chip.placement.placed.copy()
    placed[chip.netlist.hard[1]] = False
    with pytest.raises(DesignError, match=r"1 macros are not placed, the first being 'mem\[1\]/ram'"):
        export.macro_locations(chip, chip.netlist, dataclasses.replace(chip.placement, placed=placed))


@pytest.mark.slow
def test_published_placements_come_back_bit_for_bit(tmp_path: Path, real: Callable[[str], Path]) -> None:
    floorplan = real("ariane133_ng45_68/floorplan.def.gz")
    design, _ = read_protobuf_def(real("ariane133_ng45_flat/netlist.pb.txt.gz"), floorplan)
    empty = read_def(floorplan)
    for name in PLACED:
        path = real(f"ariane133_ng45_68/placed/{name}.def.gz")
        theirs = read_def(path)
        locations = export.macro_locations(design, design.netlist, read_def_placement(path, design))
        (tmp_path / f"{name}.def").write_bytes(export.def_bytes(empty, locations))
        ours = read_def(tmp_path / f"{name}.def")
        order = [ours.components.names.index(component) for component in theirs.components.names]
        np.testing.assert_array_equal(ours.components.x[order], theirs.components.x)
        np.testing.assert_array_equal(ours.components.y[order], theirs.components.y)
        np.testing.assert_array_equal(ours.components.orientation[order], theirs.components.orientation)
        assert (ours.components.status == PlacementStatus.FIXED).all()
        # Apart from the 133 macros' lines, the file is the floorplan's.
        kept = set(empty.data.split(b"\n")) - set(ours.data.split(b"\n"))
        assert len(kept) == 133


def test_a_format_by_import_path_as_the_page_shows_it(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    example = (root / "examples/json_format.py").read_text().partition('"""\n\n')[2]
    assert example in (root / "docs/how-to/add-a-format.md").read_text()
    array_flat(tmp_path, {"lone": "FIXED ( 50000 60000 ) FS"})
    out = tmp_path / "chip"
    design = import_design(lef=[tmp_path / "banks.lef"], def_file=tmp_path / "banks.def", out=out)
    exported = export.export_placement(design, design.initial, out, form="examples.json_format.JSON")
    found = json.loads(exported.data)
    assert exported.macros == len(found) == 7
    assert found["lone"] == [50.0, 60.0, "FS"]
    for wrong in ("gds", "examples.json_format.NONE", "examples.none.JSON", "json.dumps"):
        with pytest.raises(DesignError, match=f"format='{wrong}'"):
            export.export_format(wrong)


def test_every_format_of_the_table_is_written(tmp_path: Path) -> None:
    array_flat(tmp_path, {"lone": "FIXED ( 50000 60000 ) FS"})
    out = tmp_path / "chip"
    design = import_design(lef=[tmp_path / "banks.lef"], def_file=tmp_path / "banks.def", out=out)
    for form, kind in export.FORMATS.items():
        if form == "bookshelf":
            with pytest.raises(DesignError, match="was not imported from a Bookshelf design"):
                export.export_placement(design, design.initial, out, form=form)
            continue
        exported = export.export_placement(design, design.initial, out, form=form)
        fixed = int(design.initial.fixed[design.netlist.hard].sum())
        assert exported.macros == len(design.netlist.hard) - fixed * kind.changes_only
        assert exported.data
    toy = load("toy6")
    assert export.export_placement(toy, toy.initial, out, form="plc").macros == 6


def test_an_import_returns_what_load_reads(tmp_path: Path) -> None:
    array_flat(tmp_path, {"lone": "FIXED ( 50000 60000 ) FS"})
    files = {"lef": [tmp_path / "banks.lef"], "def_file": tmp_path / "banks.def"}
    kept = import_design(**files)
    written = import_design(**files, out=tmp_path / "out")
    assert kept.netlist.names == written.netlist.names and kept.initial == written.initial
    assert kept.canvas == written.canvas
    with pytest.raises(DesignError, match="not empty"):
        import_design(**files, out=tmp_path / "out")
    with pytest.raises(DesignError, match="no netlist is given"):
        import_design()
    freed = import_design(**files, free_macros=True, settings=ImportSettings(columns=12, rows=10))
    assert not freed.initial.fixed[freed.netlist.hard].any() and (freed.canvas.columns, freed.canvas.rows) == (12, 10)
