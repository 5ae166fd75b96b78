"""Constraints from LEF and DEF, and additional ones given by the user."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from placement.netlist.constraints import SnapGrid
from placement.netlist.constraints_file import orientation_names
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.formats.def_design import read_lef_def
from placement.netlist.geometry import Rectangle
from placement.netlist.import_constraints import (
    ConstraintSettings,
    RegionSetting,
    constraints_of,
    symmetric_orientations,
    writable_pitch,
)
from placement.netlist.importing import ImportSettings, import_flat, write_design
from placement.netlist.load import load

LEF = """\
VERSION 5.8 ;
UNITS
  DATABASE MICRONS 1000 ;
END UNITS
MANUFACTURINGGRID 0.005 ;
LAYER M1
  TYPE ROUTING ;
  DIRECTION HORIZONTAL ;
  PITCH 0.2 ;
  WIDTH 0.1 ;
END M1
LAYER M2
  TYPE ROUTING ;
  DIRECTION VERTICAL ;
  PITCH 0.4 ;
  WIDTH 0.2 ;
END M2
SITE core
  SIZE 0.5 BY 2 ;
  CLASS CORE ;
END core
MACRO RAM
  CLASS BLOCK ;
  ORIGIN 0 0 ;
  SIZE 10 BY 6 ;
  SYMMETRY X Y ;
  PIN Q
    DIRECTION OUTPUT ;
    PORT
      LAYER M2 ;
        RECT 8 3 9 4 ;
    END
  END Q
END RAM
MACRO INV
  CLASS CORE ;
  SIZE 1 BY 2 ;
  SITE core ;
  PIN A
    DIRECTION INPUT ;
    PORT
      LAYER M1 ;
        RECT 0.1 0.9 0.3 1.1 ;
    END
  END A
END INV
END LIBRARY
"""

DEF = r"""VERSION 5.8 ;
DIVIDERCHAR "/" ;
BUSBITCHARS "[]" ;
DESIGN chip ;
UNITS DISTANCE MICRONS 1000 ;
DIEAREA ( 0 0 ) ( 60000 50000 ) ;
ROWS_HERE
TRACKS X 100 DO 150 STEP 400 LAYER M2 ;
TRACKS X 70 DO 150 STEP 200 LAYER M1 ;
TRACKS Y 50 DO 200 STEP 200 LAYER M1 ;
REGIONS 4 ;
- low ( 0 0 ) ( 60000 14000 ) ;
- fence ( 40000 20000 ) ( 60000 50000 ) + TYPE FENCE ;
- wish ( 0 0 ) ( 10000 10000 ) + TYPE GUIDE ;
- cells ( 0 0 ) ( 10000 10000 ) ;
END REGIONS
COMPONENTS 4 ;
- mem\[0\] RAM + UNPLACED + HALO 1000 2000 3000 500 ;
- mem\[1\] RAM + PLACED ( 20000 8000 ) N ;
- u1 INV + PLACED ( 2000 4000 ) N ;
- u2 INV + PLACED ( 3000 4000 ) N ;
END COMPONENTS
PINS 1 ;
- q + NET n + DIRECTION OUTPUT + LAYER M2 ( 0 0 ) ( 10 10 ) + PLACED ( 0 30000 ) N ;
END PINS
BLOCKAGES 4 ;
- PLACEMENT RECT ( 0 40000 ) ( 10000 50000 ) ;
- PLACEMENT + SOFT RECT ( 0 0 ) ( 1000 1000 ) ;
- PLACEMENT + PARTIAL 40 RECT ( 3000 3000 ) ( 4000 4000 ) ;
- LAYER M1 RECT ( 0 0 ) ( 5000 5000 ) ;
END BLOCKAGES
GROUPS 4 ;
- a mem\[0\] + REGION low ;
- b mem\[1\] + REGION wish ;
- c u1 + REGION cells ;
- d mem\[1\] + REGION fence ;
END GROUPS
NETS 2 ;
- n ( mem\[0\] Q ) ( u1 A ) ( PIN q ) ;
- m ( mem\[1\] Q ) ( u2 A ) ;
END NETS
END DESIGN
""".replace(
    "ROWS_HERE", "\n".join(f"ROW r{i} core 1000 {4000 + 2000 * i} N DO 116 BY 1 STEP 500 0 ;" for i in range(22))
)


@pytest.fixture
def flat(tmp_path: Path) -> FlatDesign:
    """Returns two memories on a core from (1, 4) to (59, 48) µm."""
    (tmp_path / "chip.lef").write_text(LEF)
    (tmp_path / "chip.def").write_text(DEF)
    return read_lef_def([tmp_path / "chip.lef"], tmp_path / "chip.def")[0]


def test_constraints_of_the_files(flat: FlatDesign) -> None:
    core = flat.floorplan.core
    assert (core.x_low, core.y_low, core.x_high, core.y_high) == (1, 4, 59, 48)
    found, notices = constraints_of(flat)
    first, second = flat.netlist.hard
    assert found.halo[[first, second]].tolist() == [[1, 2, 3, 0.5], [0, 0, 0, 0]]
    assert found.blockages.tolist() == [[0, 36, 9, 44]], "from the core's corner, and cut at its edge"
    regions = {region.name: region for region in found.regions}
    assert set(regions) == {"low", "fence"}
    assert regions["low"].rectangles.tolist() == [[0, 0, 58, 10]]
    assert regions["low"].nodes.tolist() == [first] and not regions["low"].is_exclusive
    assert regions["fence"].nodes.tolist() == [second] and regions["fence"].is_exclusive
    assert orientation_names(int(found.orientations[first])) == ["N", "FN", "S", "FS"]
    assert found.grid == SnapGrid(0.005, 0.005)
    all_notices = " ".join(notices)
    for words in (
        "1 routing blockages",
        "1 soft placement blockages do not apply to macros; a full evaluation places no cells there",
        "1 partial placement blockages do not apply to macros; a full evaluation lets cells cover 40% of them",
        "'cells' is ignored: no macro",
    ):
        assert words in all_notices


def test_halos_on_the_sides_with_pins(flat: FlatDesign) -> None:
    """The memory's only connected pin is 1.5 µm from its right edge and farther from the others."""
    found, notices = constraints_of(flat, ConstraintSettings(halo=(1, 2, 3, 4), halo_pins=True))
    assert found.halo[flat.netlist.hard].tolist() == [[0, 0, 3, 0]] * 2
    assert "halos are kept only on sides with pins; 0 macros have none" in notices


def test_macros_without_symmetry_are_reported(tmp_path: Path) -> None:
    (tmp_path / "chip.lef").write_text(LEF.replace("  SYMMETRY X Y ;\n", ""))
    (tmp_path / "chip.def").write_text(DEF)
    design = read_lef_def([tmp_path / "chip.lef"], tmp_path / "chip.def")[0]
    found, notices = constraints_of(design)
    assert [orientation_names(int(found.orientations[node])) for node in design.netlist.hard] == [["N"], ["N"]]
    message = "1 masters of macros (first: 'RAM') have no SYMMETRY in LEF: they keep orientation N, "
    assert message + "unless --any-orientation is given" in notices
    assert not any(
        "SYMMETRY" in notice for notice in constraints_of(design, ConstraintSettings(any_orientation=True))[1]
    )


def test_macros_that_may_be_rotated_are_reported(tmp_path: Path) -> None:
    (tmp_path / "chip.lef").write_text(LEF.replace("SYMMETRY X Y ;\n", "SYMMETRY X Y R90 ;\n"))
    (tmp_path / "chip.def").write_text(DEF)
    design = read_lef_def([tmp_path / "chip.lef"], tmp_path / "chip.def")[0]
    message = "macros may be rotated by 90° (SYMMETRY R90): a search does so only with anneal.rotate=true"
    assert f"2 {message}" in constraints_of(design)[1]
    fixed = design.placement.fixed.copy()
    fixed[design.netlist.hard[0]] = True
    held = dataclasses.replace(design, placement=dataclasses.replace(design.placement, fixed=fixed))
    assert f"1 {message}" in constraints_of(held)[1]


def test_a_blockage_of_a_fixed_macro_stays_at_the_macro(tmp_path: Path) -> None:
    # 2 µm around the second memory, 10 × 6 µm at (20, 8): once it is placed, and once it is fixed.
    more = r"- PLACEMENT + COMPONENT mem\[1\] RECT ( 18000 6000 ) ( 32000 16000 ) ;" + "\nEND BLOCKAGES"
    text = DEF.replace("BLOCKAGES 4", "BLOCKAGES 5").replace("END BLOCKAGES", more)
    (tmp_path / "chip.lef").write_text(LEF)
    found = {}
    for status in ("PLACED", "FIXED"):
        (tmp_path / "chip.def").write_text(text.replace("PLACED ( 20000 8000 )", f"{status} ( 20000 8000 )"))
        found[status] = constraints_of(read_lef_def([tmp_path / "chip.lef"], tmp_path / "chip.def")[0])
    placed, notices = found["PLACED"]
    assert placed.blockages.tolist() == [[0, 36, 9, 44]]
    assert "1 placement blockages of components are ignored: they move with the component" in notices
    fixed, notices = found["FIXED"]
    around = fixed.blockages[1:]
    assert not any("of components" in notice for notice in notices)
    assert (around[:, :2].min(axis=0).tolist(), around[:, 2:].max(axis=0).tolist()) == ([17, 2], [31, 12])
    assert ((around[:, 2] - around[:, 0]) * (around[:, 3] - around[:, 1])).sum() == pytest.approx(14 * 10 - 10 * 6)
    assert not ((around[:, 0] < 29) & (around[:, 2] > 19) & (around[:, 1] < 10) & (around[:, 3] > 4)).any()


@pytest.mark.parametrize(
    ("units", "grid", "pitch"),
    [(1000, 0.005, 0.005), (100, 0.005, 0.01), (200, 0.005, 0.005), (1000, 0.00025, 0.001), (2000, 0.003, 0.003),
     (1000, 0.0025, 0.005), (4000, 0.0, 0.0)],
)  # fmt: skip
def test_the_snapping_grid_is_one_that_the_units_can_write(
    flat: FlatDesign, units: float, grid: float, pitch: float
) -> None:
    plan = dataclasses.replace(flat.floorplan, units=units, manufacturing_grid=grid)
    assert writable_pitch(plan) == pytest.approx(pitch, abs=1e-12)
    found, _ = constraints_of(dataclasses.replace(flat, floorplan=plan))
    assert found.grid.pitch_x == found.grid.pitch_y == pytest.approx(pitch, abs=1e-12)


def test_constraints_of_the_user(flat: FlatDesign) -> None:
    settings = ConstraintSettings(
        halo=(5, 4),
        halos={"mem[1]": (1, 1)},
        blockages=(Rectangle(0, 0, 11, 14),),
        regions=(RegionSetting("mine", (Rectangle(1, 4, 31, 24),), ("mem*",), is_exclusive=True),),
        port_keepout=7.0,
        snap="tracks",
        any_orientation=True,
    )
    found, _ = constraints_of(flat, settings)
    first, second = flat.netlist.hard
    assert found.halo[[first, second]].tolist() == [[5, 4, 5, 4], [1, 1, 1, 1]]
    assert not np.delete(found.halo, [first, second], axis=0).any()
    assert found.blockages.tolist() == [[0, 36, 9, 44], [0, 0, 10, 10]]
    mine = found.regions[-1]
    assert (mine.name, mine.rectangles.tolist(), mine.is_exclusive) == ("mine", [[0, 0, 30, 20]], True)
    assert mine.nodes.tolist() == [first, second]
    assert found.port_keepout == 7.0
    assert (found.orientations == 255).all()
    # tracks of M2 (vertical) are at 0.1 + n · 0.4 and its pin is at 8.5 in the macro; the core begins at (1, 4). The
    # corner of FN, with the pin at 1.5, is 0.2 further. In y there is no pin on M1, so the manufacturing grid remains.
    (own,) = found.macro_grids
    assert own.nodes.tolist() == [first, second]
    assert own.grids[:2] == (SnapGrid(0.4, 0.005, 0.2, 0.0), SnapGrid(0.4, 0.005, 0.0, 0.0))
    assert found.grid == SnapGrid(0.005, 0.005)
    assert constraints_of(flat, ConstraintSettings(snap="none"))[0].grid == SnapGrid()
    of_master, _ = constraints_of(flat, ConstraintSettings(halos={"RAM": (2, 3), "mem[1]": (1, 1)}))
    assert of_master.halo[[first, second]].tolist() == [[2, 3, 2, 3], [1, 1, 1, 1]]
    own = constraints_of(flat, ConstraintSettings(snap=SnapGrid(0.7, 0.0, 0.2, 0.0)))[0].grid
    assert own == SnapGrid(0.7, 0.0, 0.6, 0.0)  # 0.2 − 1 + 2 · 0.7


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ConstraintSettings(halos={"rom*": (1, 1)}), r"halo: the netlist has no hard macro 'rom\*'"),
        (ConstraintSettings(halo=(-1, 0)), r"halo -1\.0 of node number"),
        (
            ConstraintSettings(blockages=(Rectangle(70, 0, 80, 10),)),
            r"blockage 1: .* must lie in the core, from \(1, 4\)",
        ),
        (ConstraintSettings(regions=(RegionSetting("r", (Rectangle(2, 5, 9, 9),), ("u1",)),)), "region 'r': .* 'u1'"),
        (ConstraintSettings(regions=(RegionSetting("low", (Rectangle(2, 5, 9, 9),), ()),)), "'low' appears twice"),
    ],
)
def test_wrong_values_are_rejected(flat: FlatDesign, settings: ConstraintSettings, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        constraints_of(flat, settings)


@pytest.mark.parametrize(
    ("symmetry", "names"),
    [
        ("", ["N"]),
        ("X", ["N", "FS"]),
        ("Y", ["N", "FN"]),
        ("X Y", ["N", "FN", "S", "FS"]),
        ("R90", ["N", "S", "E", "W"]),
        ("X Y R90", ["N", "FN", "S", "FS", "E", "FE", "W", "FW"]),
    ],
)
def test_symmetry_determines_the_orientations(symmetry: str, names: list[str]) -> None:
    assert orientation_names(symmetric_orientations(frozenset(symmetry.split()))) == names


def test_the_design_folder_has_them(flat: FlatDesign, tmp_path: Path) -> None:
    imported = import_flat(flat, ImportSettings(columns=5, rows=4, constraints=ConstraintSettings(port_keepout=1.0)))
    assert any("guide 'wish' is ignored" in notice for notice in imported.notices)
    write_design(tmp_path / "chip", imported)
    design = load(tmp_path / "chip")
    by_name = {name: node for node, name in enumerate(design.netlist.names)}
    assert design.constraints.halo[by_name["mem[0]"]].tolist() == [1, 2, 3, 0.5]
    assert [design.netlist.names[node] for node in design.constraints.regions[0].nodes] == ["mem[0]"]
    assert design.constraints.as_bytes() == imported.design.constraints.as_bytes()
    assert design.constraints.port_keepout == 1.0
