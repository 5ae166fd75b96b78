"""Exports: the user's DEF with only the macros' entries changed, scripts, tables; and bit-exact round trips."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from placement.annealing.search import search
from placement.api import import_design
from placement.netlist import export
from placement.netlist.design import NodeKind, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.export import MacroLocation
from placement.netlist.flat_design import FlatDesign, read_flat
from placement.netlist.formats.def_design import flat_design_of
from placement.netlist.formats.def_file import PlacementStatus, read_def
from placement.netlist.formats.lef import read_lefs
from placement.netlist.formats.protobuf_design import read_protobuf_def
from placement.netlist.geometry import Rectangle
from placement.netlist.import_constraints import ConstraintSettings
from placement.netlist.importing import ImportSettings
from placement.netlist.load import load
from placement.netlist.user_placement import read_def_placement
from tests.interop.chips import Chip
from tests.support.array_chip import array_flat
from tests.support.small_lef_def import DEF, LEF

PLACED = ("CMP", "CT_AC", "CT_Scratch", "Human", "RePlAce", "SA")


@pytest.fixture
def chip(tmp_path: Path) -> FlatDesign:
    (tmp_path / "cells.lef").write_text(LEF)
    (tmp_path / "chip.def").write_text(DEF)
    return flat_design_of(read_def(tmp_path / "chip.def"), read_lefs([tmp_path / "cells.lef"])[0])


def moved(chip: FlatDesign) -> list[MacroLocation]:
    """Returns the first memory at (3, 4) µm in W, the second at (20.005, 30) µm in N."""
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


def test_fixed_macros_that_have_not_moved_are_omitted(chip: FlatDesign) -> None:
    placement = chip.placement
    assert placement.fixed[chip.netlist.hard].tolist() == [True, False]
    there = export.macro_locations(chip, chip.netlist, placement)
    assert export.without_fixed(chip, there) == there[1:]
    # Fixed, but at another position now.
    assert export.without_fixed(chip, moved(chip)) == moved(chip)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (b"- m RAM ;", b"- m RAM + FIXED ( 1 -2 ) S ;"),
        (b"- m RAM + UNPLACED ( 7 8 ) FN ;", b"- m RAM + FIXED ( 1 -2 ) S ;"),
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
    # The written file is read back with the same meaning.
    (tmp_path / "two.def").write_bytes(written)
    components = read_def(tmp_path / "two.def").components
    assert (components.x[0], components.y[0], components.status[0]) == (1, -2, PlacementStatus.FIXED)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (b"- m RAM ;", b"- m RAM + FIXED ( 1 -2 ) S + HALO 1 2 3 4 ;"),
        (b"- m RAM + HALO 9 9 9 9 + UNPLACED ;", b"- m RAM + FIXED ( 1 -2 ) S + HALO 1 2 3 4 ;"),
        (b"- m RAM + HALO ( 9 9 ) ( 9 9 ) + UNPLACED ;", b"- m RAM + FIXED ( 1 -2 ) S + HALO 1 2 3 4 ;"),
        (b"- m RAM + HALO ( 1 2 ) ( 3 4 ) ;", b"- m RAM + FIXED ( 1 -2 ) S + HALO ( 1 2 ) ( 3 4 ) ;"),
        (b"- m RAM + HALO SOFT 9 9 9 9 ;", b"- m RAM + FIXED ( 1 -2 ) S + HALO 1 2 3 4 ;"),
        (b"- m RAM + HALO SOFT 1 2 3 4 ;", b"- m RAM + FIXED ( 1 -2 ) S + HALO SOFT 1 2 3 4 ;"),
    ],
)
def test_a_halo_that_the_file_does_not_have_is_written(tmp_path: Path, entry: bytes, expected: bytes) -> None:
    head = b"UNITS DISTANCE MICRONS 1000 ; DIEAREA ( 0 0 ) ( 9 9 ) ; COMPONENTS 1 ;\n"
    location = MacroLocation("m", "m", "RAM", 1, -2, Orientation.S, halo=(1, 2, 3, 4))
    (tmp_path / "one.def").write_bytes(head + entry + b"\nEND COMPONENTS END DESIGN\n")
    written = export.def_bytes(read_def(tmp_path / "one.def"), [location])
    assert written == head + expected + b"\nEND COMPONENTS END DESIGN\n"
    (tmp_path / "two.def").write_bytes(written)
    assert read_def(tmp_path / "two.def").components.halo.tolist() == [[1, 2, 3, 4]]
    # Without a halo, the file's halo is removed; a macro that is added to a file has a halo entry.
    none = export.def_bytes(read_def(tmp_path / "two.def"), [dataclasses.replace(location, halo=(0, 0, 0, 0))])
    assert b"HALO" not in none and b"+ FIXED ( 1 -2 ) S" in none
    (tmp_path / "bare.def").write_bytes(
        head.replace(b"COMPONENTS 1", b"COMPONENTS 0") + b"END COMPONENTS\nEND DESIGN\n"
    )
    assert b"- m RAM + FIXED ( 1 -2 ) S + HALO 1 2 3 4 ;" in export.def_bytes(
        read_def(tmp_path / "bare.def"), [location]
    )


def test_halos_of_the_import_reach_the_exported_file(tmp_path: Path) -> None:
    """The file has them as in orientation N, whatever the macro's own is, rounded to database units."""
    chip = Chip(macros={"m0": "RAM + HALO 100 200 300 400", "m1": "RAM + HALO 5 6 7 8"})
    lef, text = chip.write(tmp_path)
    settings = ImportSettings(constraints=ConstraintSettings(halos={"m1": (1.0, 0.5, 0.25, 2.0)}))
    design = import_design(lef=[lef], def_=text, out=tmp_path / "out", settings=settings)
    placement = search(design, moves=300, round_moves=100).placement
    data = export.export_placement(design, placement, tmp_path / "out", form="def").data.decode()
    assert re.search(r"- m0 RAM .*\+ HALO 100 200 300 400", data) and re.search(
        r"- m1 RAM .*\+ HALO 1000 500 250 2000", data
    )
    assert data.count("HALO") == 2


def test_scripts_by_hand(chip: FlatDesign) -> None:
    units, halo = chip.floorplan.units, [(1.0, 2.5, 9.0, 14.0)]
    assert export.innovus_tcl(moved(chip), units, blockages=halo, cut=(2.0, 1.5)) == (
        "# Written for Innovus 21.1, legacy commands.\n"
        "placeInstance {mem[0]/ram} 3 4 R90 -fixed\nplaceInstance {mem[1]/ram} 20.005 30 R0 -fixed\n"
        "createPlaceBlockage -type hard -box 1 2.5 9 14\ncutRow\n"
    )
    assert export.icc2_tcl(moved(chip)[1:], units, blockages=halo) == (
        "# Written for IC Compiler II, R-2020.09 or later.\n"
        "set_cell_location -coordinates {20.005 30} -orientation R0 -fixed [get_cells {mem[1]/ram}]\n"
        "create_placement_blockage -type hard -boundary {{1 2.5} {9 14}}\n"
    )
    assert export.openroad_tcl(moved(chip), units, blockages=halo, cut=(2.0, 1.5)).splitlines() == [
        "# Written for OpenROAD, a build of 2025 or later.",
        r"set inst [[ord::get_db_block] findInst {mem\[0\]/ram}]",
        "$inst setPlacementStatus NONE",
        "$inst setOrient R90",
        r"set inst [[ord::get_db_block] findInst {mem\[1\]/ram}]",
        "$inst setPlacementStatus NONE",
        "$inst setOrient R0",
        r"set inst [[ord::get_db_block] findInst {mem\[0\]/ram}]",
        "$inst setLocation 3000 4000",
        "$inst setPlacementStatus FIRM",
        r"place_macro -macro_name {mem\[1\]/ram} -location {20.005 30} -orientation R0 -exact",
        "create_blockage -region {1 2.5 9 14}",
        "cut_rows -halo_width_x 2 -halo_width_y 1.5",
    ]
    assert export.csv_text(moved(chip), units) == (
        "name,master,x,y,orientation\nmem[0]/ram,RAM,3,4,W\nmem[1]/ram,RAM,20.005,30,N\n"
    )


def test_openroad_meets_no_macro_that_is_placed(chip: FlatDesign) -> None:
    """A model of the database: firm macros cannot be moved, and `place_macro` rejects overlaps and placed macros."""
    tkinter = pytest.importorskip("tkinter", reason="this Python has no Tcl to check with")
    interpreter = tkinter.Tcl()
    interpreter.eval(r"""
        array set status {{mem\[0\]/ram} FIRM {mem\[1\]/ram} PLACED}
        namespace eval ord {proc get_db_block {} {return block}}
        proc block {find name} {interp alias {} inst:$name {} call $name; return inst:$name}
        proc call {name what args} {
            global status
            if {$what eq "setPlacementStatus"} {set status($name) [lindex $args 0]; return}
            if {$status($name) in {FIRM LOCKED}} {error "ODB-0359: $name is $status($name)"}
        }
        proc place_macro {args} {
            global status
            set name [dict get [lrange $args 0 end-1] -macro_name]
            if {$status($name) ne "NONE"} {error "MPL-0041: $name overlaps with itself"}
            set status($name) LOCKED
        }
    """)
    script = export.openroad_tcl(moved(chip), chip.floorplan.units)
    interpreter.eval(script)
    assert [interpreter.getvar(rf"status(mem\[{one}\]/ram)") for one in (0, 1)] == ["FIRM", "LOCKED"]
    interpreter.eval(script)  # again, in the same session
    without = "\n".join(line for line in script.splitlines() if not line.endswith("NONE"))
    with pytest.raises(tkinter.TclError, match="ODB-0359"):
        interpreter.eval(without)


@pytest.mark.parametrize("name", [r"a\[0\]/b", "plain", "a[0]", "a{b", "a}b", "back\\", "$x[y]", 'q"uote', "a b", "{}"])
def test_tcl_accepts_every_name_unchanged(name: str) -> None:
    tkinter = pytest.importorskip("tkinter", reason="this Python has no Tcl to check with")
    interpreter = tkinter.Tcl()
    assert interpreter.eval(f"set taken {export.tcl_word(name)}") == name


def test_positions_file_changes_the_macros_lines_only() -> None:
    text = "UCLA pl 1.0\n# note\na 1 2 : N\nmac 5 6 : FS\nb 3 4 : N /FIXED\n"
    location = MacroLocation("mac", "mac", "", 7, 8, Orientation.FN)
    assert export.bookshelf_pl(text, [location], 1.0) == text.replace("mac 5 6 : FS", "mac\t7\t8\t: FN /FIXED")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_positions_file_keeps_its_line_breaks(ending: str) -> None:
    """Read as bytes, with or without a newline after the last line; added entries are on their own lines."""
    text = ending.join(("UCLA pl 1.0", "mac 5 6 : FS", "b 3 4 : N /FIXED"))
    places = [MacroLocation(name, name, "", 7, 8, Orientation.FN) for name in ("mac", "new")]
    changed = text.replace("mac 5 6 : FS", "mac\t7\t8\t: FN /FIXED")
    assert export.bookshelf_pl(text, places[:1], 1.0) == changed
    added = f"{changed}{ending}new\t7\t8\t: FN /FIXED{ending}"
    assert export.bookshelf_pl(text, places, 1.0) == added
    assert export.bookshelf_pl(text + ending, places, 1.0) == added


def test_macros_of_another_design_are_rejected(tmp_path: Path, chip: FlatDesign) -> None:
    (tmp_path / "other.def").write_text(DEF.replace(r"mem\[1\]", "mem1"))
    unknown = [dataclasses.replace(location, master="") for location in moved(chip)]
    with pytest.raises(DesignError, match=r"1 macros that are not components .* are unknown: mem\\\[1\\\]/ram"):
        export.def_bytes(read_def(tmp_path / "other.def"), unknown)
    placed = chip.placement.placed.copy()
    placed[chip.netlist.hard[1]] = False
    with pytest.raises(DesignError, match=r"1 macros are not placed, the first being 'mem\[1\]/ram'"):
        export.macro_locations(chip, chip.netlist, dataclasses.replace(chip.placement, placed=placed))


def test_published_placements_come_back_bit_for_bit(tmp_path: Path, real: Callable[[str], Path]) -> None:
    floorplan = real("ariane133_ng45_68/floorplan.def.gz")
    design, _ = read_protobuf_def(real("ariane133_ng45_flat/netlist.pb.txt.gz"), floorplan)
    empty = read_def(floorplan)
    for name in PLACED:
        path = real(f"ariane133_ng45_68/placed/{name}.def.gz")
        theirs = read_def(path)
        locations = export.macro_locations(design, design.netlist, read_def_placement(path, design)[0])
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
    design = import_design(lef=[tmp_path / "banks.lef"], def_=tmp_path / "banks.def", out=out)
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
    design = import_design(lef=[tmp_path / "banks.lef"], def_=tmp_path / "banks.def", out=out)
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


def test_blockages_and_rows_are_written_on_request(tmp_path: Path) -> None:
    array_flat(tmp_path, {"lone": "FIXED ( 50000 60000 ) FS"})
    files = {"lef": [tmp_path / "banks.lef"], "def_": tmp_path / "banks.def"}
    core = import_design(**files, out=tmp_path / "bare") and read_flat(tmp_path / "bare").floorplan.core
    box = Rectangle(core.x_low + 1, core.y_low + 2, core.x_low + 4, core.y_low + 5)
    limits = ConstraintSettings(halo=(2.0, 1.0), blockages=(box,))
    out = tmp_path / "chip"
    design = import_design(**files, out=out, settings=ImportSettings(constraints=limits))
    text = export.export_placement(design, design.initial, out, form="openroad", blockages=True, cut_rows=True).data
    lines = text.decode().splitlines()
    regions = [line for line in lines if line.startswith("create_blockage")]
    assert regions[-1] == (f"create_blockage -region {{{box.x_low:g} {box.y_low:g} {box.x_high:g} {box.y_high:g}}}")
    assert len(regions) == len(design.netlist.hard) + 1
    lone = design.netlist.names.index("lone")
    width, height = float(design.netlist.width[lone]), float(design.netlist.height[lone])
    assert f"create_blockage -region {{48 59 {52 + width:g} {61 + height:g}}}" in regions
    assert lines[-1] == "cut_rows -halo_width_x 2 -halo_width_y 1"
    with pytest.raises(DesignError, match="blockages=true: format=def cannot express it; formats that can: openroad"):
        export.export_placement(design, design.initial, out, form="def", blockages=True)


def test_fixed_cells_beneath_macros_are_reported(chip: FlatDesign) -> None:
    cell = int(np.flatnonzero((chip.netlist.kind == NodeKind.CELL) & chip.placement.placed)[0])
    macro = chip.netlist.hard[1:]
    on_it = chip.placement.moved(macro, chip.placement.x[[cell]], chip.placement.y[[cell]])
    away = chip.placement.moved(macro, np.array([500.0]), np.array([500.0]))
    assert not export.cells_beneath(chip, chip.netlist, on_it)  # the cell can move
    fixed = chip.placement.fixed.copy()
    fixed[cell] = True
    chip = dataclasses.replace(chip, placement=dataclasses.replace(chip.placement, fixed=fixed))
    (note,) = export.cells_beneath(chip, chip.netlist, on_it)
    master = chip.master_names[chip.master[cell]]
    first = f"first: {chip.netlist.names[cell]!r}; masters: {master}"
    assert note.startswith(f"1 fixed standard cells lie beneath macros ({first})")
    assert not export.cells_beneath(chip, chip.netlist, away)


def test_an_import_returns_what_load_reads(tmp_path: Path) -> None:
    array_flat(tmp_path, {"lone": "FIXED ( 50000 60000 ) FS"})
    files = {"lef": [tmp_path / "banks.lef"], "def_": tmp_path / "banks.def"}
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


def test_macros_on_coarse_units_are_rounded_apart(tmp_path: Path) -> None:
    files = {
        "aux": "RowBasedPlacement : d.nodes d.nets d.pl d.scl",
        "nodes": "m 21 30\nk 21 30\na 4 10\n",
        "nets": "NetDegree : 3\n m O\n k I\n a I\n",
        "pl": "m 0 0 : N\nk 40 0 : N\na 80 0 : N\n",
        "scl": "CoreRow Horizontal\n Coordinate : 0\n Height : 10\n SubrowOrigin : 0 NumSites : 100\nEnd\n"
        + "CoreRow Horizontal\n Coordinate : 30\n Height : 10\n SubrowOrigin : 0 NumSites : 100\nEnd\n",
    }
    for suffix, text in files.items():
        (tmp_path / f"d.{suffix}").write_text(text)
    design = import_design(bookshelf=tmp_path / "d.aux", out=tmp_path / "out")
    x, hard = design.initial.x.copy(), design.netlist.hard
    # Side by side, with the corners at 1.5 and 22.5.
    x[hard] = 1.5 + 10.5, 22.5 + 10.5
    placement = dataclasses.replace(design.initial, x=x)
    exported = export.export_placement(design, placement, tmp_path / "out", form="bookshelf")
    assert exported.data.decode().splitlines()[:2] == ["m\t2\t0\t: N /FIXED", "k\t23\t0\t: N /FIXED"]
    assert exported.notes == ("2 macros are moved to whole units of your files (1 µm)",)
