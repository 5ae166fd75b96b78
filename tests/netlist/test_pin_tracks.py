"""Snapping grids on which the pins of macros lie on the tracks of their layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from placement.annealing.legaliser import legalise
from placement.engine.costs import violations
from placement.netlist.constraints import Constraints
from placement.netlist.constraints_file import constraints_of as read_back
from placement.netlist.constraints_file import constraints_text
from placement.netlist.design import Orientation
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.formats.def_design import read_lef_def
from placement.netlist.import_constraints import ConstraintSettings, constraints_of
from placement.netlist.importing import ImportSettings, import_flat
from placement.netlist.pin_tracks import _both

LAYER = "LAYER {name}\n  TYPE ROUTING ;\n  DIRECTION {direction} ;\n  PITCH 0.2 ;\n  WIDTH 0.1 ;\nEND {name}\n"
PIN = "  PIN {name}\n    DIRECTION INPUT ;\n    USE {use} ;\n    PORT\n{shapes}    END\n  END {name}\n"
DEF = r"""VERSION 5.8 ;
DIVIDERCHAR "/" ;
BUSBITCHARS "[]" ;
DESIGN chip ;
UNITS DISTANCE MICRONS 1000 ;
DIEAREA ( 0 0 ) ( 60000 50000 ) ;
ROWS_HERE
TRACKS_HERE
COMPONENTS 2 ;
- a RAM + PLACED ( 9000 9000 ) N ;
- b RAM + PLACED ( 30000 20000 ) FN ;
END COMPONENTS
NETS 1 ;
- n ( a p0 ) ( b p0 ) ;
END NETS
END DESIGN
""".replace(
    "ROWS_HERE", "\n".join(f"ROW r{i} core 1010 {4020 + 2000 * i} N DO 116 BY 1 STEP 500 0 ;" for i in range(22))
)
Shape = tuple[str, float, float]  # layer, centre


def chip(folder: Path, pins: dict[str, list[Shape]], tracks: list[str], *, size: str = "10 BY 6") -> FlatDesign:
    """Returns two RAMs with pins of 0.1 × 0.1 µm; M1 and M3 prefer x, M2 and M4 y. A pin named V… is a power pin."""
    layers = "".join(
        LAYER.format(name=f"M{number}", direction="HORIZONTAL" if number % 2 else "VERTICAL") for number in (1, 2, 3, 4)
    )
    blocks = ""
    for name, shapes in pins.items():
        rects = "".join(
            f"      LAYER {layer} ;\n        RECT {x - 0.05:.4f} {y - 0.05:.4f} {x + 0.05:.4f} {y + 0.05:.4f} ;\n"
            for layer, x, y in shapes
        )
        blocks += PIN.format(name=name, use="POWER" if name.startswith("V") else "SIGNAL", shapes=rects)
    macro = f"MACRO RAM\n  CLASS BLOCK ;\n  SIZE {size} ;\n  SYMMETRY X Y R90 ;\n{blocks}END RAM\n"
    site = "SITE core\n  SIZE 0.5 BY 2 ;\n  CLASS CORE ;\nEND core\n"
    (folder / "a.lef").write_text(
        f"VERSION 5.8 ;\nUNITS\n  DATABASE MICRONS 1000 ;\nEND UNITS\nMANUFACTURINGGRID 0.005 ;\n{layers}{site}{macro}"
        "END LIBRARY\n"
    )
    (folder / "a.def").write_text(DEF.replace("TRACKS_HERE", "\n".join(f"TRACKS {one} ;" for one in tracks)))
    return read_lef_def([folder / "a.lef"], folder / "a.def", free_macros=False)[0]


def snapped(flat: FlatDesign) -> tuple[Constraints, list[str]]:
    found, notices = constraints_of(flat, ConstraintSettings(snap="tracks"))
    return found, [notice for notice in notices if "track" in notice]


def on_tracks(flat: FlatDesign, found: Constraints, shapes: list[Shape], turn: Orientation) -> np.ndarray:
    """Returns whether each shape is on a track at nine corners of the grid, bool [S, 9]; turns the macro by hand."""
    width, height = 10.0, 6.0
    turned = {
        "N": lambda x, y: (x, y), "S": lambda x, y: (width - x, height - y),
        "FN": lambda x, y: (width - x, y), "FS": lambda x, y: (x, height - y),
        "E": lambda x, y: (y, width - x), "W": lambda x, y: (height - y, x),
        "FE": lambda x, y: (height - y, width - x), "FW": lambda x, y: (y, x),
    }[turn.name]  # fmt: skip
    (own,) = found.macro_grids
    grid = own.grids[turn]
    result = []
    for layer, x, y in shapes:
        vertical = layer in ("M2", "M4")
        lines = [one for one in flat.floorplan.tracks if one.layer == layer and one.is_vertical == vertical]
        row = []
        for step in range(9):
            corner = (grid.offset_x + step * grid.pitch_x + 1.01, grid.offset_y + step * grid.pitch_y + 4.02)
            at = (corner[0] + turned(x, y)[0]) if vertical else (corner[1] + turned(x, y)[1])
            rest = [((at - one.start) / one.step) % 1.0 * one.step for one in lines]
            row.append(any(min(r, one.step - r) < 1e-6 for r, one in zip(rest, lines, strict=True)))
        result.append(row)
    return np.array(result)


def test_pins_of_two_layers_lie_on_the_tracks_of_each_in_every_orientation(tmp_path: Path) -> None:
    pins: dict[str, list[Shape]] = {
        "p0": [("M3", 0.1, 1.0)], "p1": [("M3", 9.9, 2.68)], "p2": [("M4", 3.0, 0.1)], "p3": [("M4", 4.12, 5.9)],
        "VDD": [("M3", 5.0, 3.333)],
    }  # fmt: skip
    flat = chip(tmp_path, pins, ["Y 30 DO 300 STEP 240 LAYER M3", "X 70 DO 300 STEP 280 LAYER M4"])
    found, notices = snapped(flat)
    assert notices[2:] == ["macros are snapped so that their pins lie on the tracks of M3, M4"]
    assert [notice[-16:] for notice in notices[:2]] == [" in E, FE, W, FW"] * 2  # where the others' distance decides
    signal = [shape for name, shapes in pins.items() if name != "VDD" for shape in shapes]
    for turn in (Orientation.N, Orientation.FN, Orientation.S, Orientation.FS):
        assert on_tracks(flat, found, signal, turn).all(), turn
    # by hand: in N the pins of M3 are 1.0 + 4.02 from the die's edge, tracks are at 0.03 + n · 0.24: 5.07 is the next
    # one
    assert found.macro_grids[0].grids[0].axes[1] == pytest.approx((0.24, 0.05))


@pytest.mark.parametrize("turn", list(Orientation))
def test_several_patterns_of_one_layer(tmp_path: Path, turn: Orientation) -> None:
    """Tracks at 0, 0.3, 1.0 and so on; pins 0.7 apart fit only at 0.3 → 1.0; the other axis's layer is ignored."""
    shapes: list[Shape] = [("M3", 2.0, 2.0), ("M3", 2.7, 2.7)]
    flat = chip(
        tmp_path, {f"p{i}": [shape] for i, shape in enumerate(shapes)},
        ["Y 0 DO 50 STEP 1000 LAYER M3", "Y 300 DO 50 STEP 1000 LAYER M3", "X 0 DO 90 STEP 500 LAYER M2"],
    )  # fmt: skip
    found, _ = snapped(flat)
    assert found.macro_grids[0].grids[turn].pitch_y == pytest.approx(1.0)
    assert on_tracks(flat, found, shapes, turn).all()


def test_patterns_that_interleave_make_one_finer_grid(tmp_path: Path) -> None:
    tracks = ["Y 0 DO 100 STEP 400 LAYER M3", "Y 200 DO 100 STEP 400 LAYER M3", "X 0 DO 90 STEP 500 LAYER M2"]
    found, _ = snapped(chip(tmp_path, {"p0": [("M3", 1, 1)]}, tracks))
    assert found.macro_grids[0].grids[0].pitch_y == pytest.approx(0.2)


def test_two_layers_of_one_axis_share_a_grid_or_the_smaller_gives_way(tmp_path: Path) -> None:
    tracks = ["Y 0 DO 300 STEP 200 LAYER M1", "Y 0 DO 200 STEP 300 LAYER M3", "X 0 DO 90 STEP 500 LAYER M2"]
    shapes: list[Shape] = [("M1", 1, 1.0), ("M1", 2, 2.0), ("M3", 3, 1.2)]
    flat = chip(tmp_path, {f"p{i}": [shape] for i, shape in enumerate(shapes)}, tracks)
    found, notices = snapped(flat)
    assert found.macro_grids[0].grids[0].pitch_y == pytest.approx(0.6)
    assert on_tracks(flat, found, shapes, Orientation.N).all() and len(notices) == 1
    shapes[2] = ("M3", 3, 1.25)  # 0.05 off all positions that M1 allows
    flat = chip(tmp_path, {f"p{i}": [shape] for i, shape in enumerate(shapes)}, tracks)
    found, notices = snapped(flat)
    assert on_tracks(flat, found, shapes[:2], Orientation.N).all()
    assert notices[0] == (
        "1 of 1 pins on M3 of 'RAM' (2 macros, first: 'a') cannot be on the tracks of their layer together with the "
        "others in N, FN, S, FS"
    )
    assert notices[1] == "macros are snapped so that their pins lie on the tracks of M1"


def test_pins_that_differ_are_counted_and_layers_without_tracks_named(tmp_path: Path) -> None:
    tracks = ["Y 0 DO 300 STEP 200 LAYER M1", "X 0 DO 90 STEP 500 LAYER M2"]
    pins: dict[str, list[Shape]] = {
        "p0": [("M1", 1, 1.0)], "p1": [("M1", 1, 1.4)], "p2": [("M1", 1, 1.51)], "p3": [("M3", 1, 2)],
        "p4": [("M1", 1, 3.33), ("M1", 1, 3.4)],
    }  # fmt: skip
    _, notices = snapped(chip(tmp_path, pins, tracks))
    assert notices[0].startswith("1 of 4 pins on M1 of 'RAM'")  # one of two shapes is sufficient
    assert notices[1] == "1 pins on M3 of 'RAM' are on no track: the floorplan has no tracks on M3"


def test_a_floorplan_without_tracks_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match="snap=tracks: the floorplan has no tracks"):
        snapped(chip(tmp_path, {"p0": [("M1", 1, 1)]}, []))


def test_pins_between_database_units_are_on_tracks_within_half_of_one(tmp_path: Path) -> None:
    tracks = ["Y 0 DO 300 STEP 200 LAYER M1", "X 0 DO 90 STEP 500 LAYER M2"]
    found, notices = snapped(chip(tmp_path, {"p0": [("M1", 1, 1.0005)]}, tracks))
    assert notices == ["macros are snapped so that their pins lie on the tracks of M1"]
    pitch, offset = found.macro_grids[0].grids[0].axes[1]
    assert (pitch, offset * 1000) == (0.2, pytest.approx(round(offset * 1000), abs=1e-6))


def test_legalised_macros_have_their_pins_on_tracks(tmp_path: Path) -> None:
    shapes: list[Shape] = [("M3", 0.1, 1.0), ("M4", 3.0, 0.1)]
    flat = chip(
        tmp_path, {f"p{i}": [shape] for i, shape in enumerate(shapes)},
        ["Y 30 DO 300 STEP 240 LAYER M3", "X 70 DO 300 STEP 280 LAYER M4"],
    )  # fmt: skip
    imported = import_flat(flat, ImportSettings(columns=4, rows=4, constraints=ConstraintSettings(snap="tracks")))
    design = imported.design
    assert violations(design, design.initial).grid == 2
    legal = legalise(design, design.initial)
    assert not any(violations(design, legal))
    moved = np.hypot(legal.x - design.initial.x, legal.y - design.initial.y)[design.netlist.hard]
    assert moved.max() <= np.hypot(0.14, 0.12) + 1e-9  # half a pitch on each axis
    text = constraints_text(design.netlist, design.constraints)
    assert read_back("c.json", text, design.netlist).as_bytes() == design.constraints.as_bytes()


def test_wrong_grids_are_rejected(tmp_path: Path) -> None:
    flat = chip(tmp_path, {"p0": [("M3", 1, 1)]}, ["Y 30 DO 300 STEP 240 LAYER M3", "X 70 DO 300 STEP 280 LAYER M4"])
    for own, words in (
        ('{"macros": ["c"], "grids": {}}', "no hard macro 'c'"),
        ('{"macros": ["a"], "grids": {"N": {}}}', "must have the keys N, FN, S"),
        ('{"macros": ["a"], "grid": {}}', "unknown key 'grid'"),
    ):
        with pytest.raises(DesignError, match=words):
            read_back("c.json", f'{{"macro_grids": [{own}]}}', flat.netlist)


def test_numbers_that_leave_two_rests() -> None:
    for m, n in ((4, 6), (5, 7), (1, 3), (12, 8), (9, 9)):
        for a in range(m):
            for b in range(n):
                want = {k for k in range(m * n) if k % m == a and k % n == b}
                found = _both((a, m), (b, n))
                assert want == (set() if found is None else {k for k in range(m * n) if k % found[1] == found[0]})
