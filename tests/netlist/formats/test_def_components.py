"""Pad rings, bumps and rows of pads in DEF files, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from placement.netlist.design import NodeKind
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.formats.def_design import read_lef_def
from placement.netlist.geometry import Rectangle
from placement.netlist.user_placement import read_def_placement
from tests.support.small_lef_def import DEF, LEF

RING = """\
SITE pads
  CLASS PAD ;
  SIZE 1 BY 3 ;
END pads
MACRO PAD
  CLASS PAD INPUT ;
  SIZE 2 BY 3 ;
  PIN C
    DIRECTION OUTPUT ;
    PORT
      LAYER M1 ;
        RECT 0 0 0.2 0.2 ;
    END
  END C
END PAD
MACRO CORNER
  CLASS ENDCAP BOTTOMLEFT ;
  SIZE 3 BY 3 ;
END CORNER
MACRO BUMP
  CLASS COVER BUMP ;
  SIZE 4 BY 4 ;
  PIN P
    DIRECTION INOUT ;
  END P
END BUMP
END LIBRARY
"""
# The core is (2, 4) to (52, 8): pads below it, left of it (rotated), inside it and unplaced; a corner, two bumps.
COMPONENTS = """\
- south PAD + FIXED ( 10000 0 ) N ;
- west PAD + PLACED ( -3000 5000 ) W ;
- within PAD + PLACED ( 20000 5000 ) N ;
- nowhere PAD ;
- corner CORNER + FIXED ( -3000 0 ) N ;
- ball BUMP + FIXED ( 30000 6000 ) E ;
- lost BUMP ;
END COMPONENTS"""
ROWS = """\
ROW s pads 2000 0 N DO 58 BY 1 STEP 1000 0 ;
ROW w pads 0 3000 W DO 1 BY 37 STEP 0 1000 ;
TRACKS X 100 DO 150"""


def ring(tmp_path: Path) -> FlatDesign:
    text = DEF.replace("COMPONENTS 5", "COMPONENTS 12").replace("END COMPONENTS", COMPONENTS)
    text = text.replace("TRACKS X 100 DO 150", ROWS).replace("( u1 Y ) ( u2 A )", "( u1 Y ) ( u2 A ) ( south C )")
    text = text.replace("- q ( mem", "- q ( within C ) ( ball P ) ( mem")
    (tmp_path / "cells.lef").write_text(LEF.replace("END LIBRARY\n", RING))
    (tmp_path / "chip.def").write_text(text)
    return read_lef_def([tmp_path / "cells.lef"], tmp_path / "chip.def")[0]


def test_pads_outside_the_core_and_bumps_are_points(tmp_path: Path) -> None:
    design = ring(tmp_path)
    netlist, placement = design.netlist, design.placement
    node = {
        name: netlist.names.index(name) for name in ("south", "west", "within", "nowhere", "corner", "ball", "lost")
    }
    assert netlist.hard.tolist() == [0, 1, node["within"]]
    points = [node[name] for name in ("south", "west", "nowhere", "corner", "ball", "lost")]
    assert (netlist.kind[points] == NodeKind.PORT).all()
    assert (netlist.width[points] == 0).all() and (netlist.height[points] == 0).all()
    # At the edge facing the core: above the southern pad of 2 × 3, right of the western one of 3 × 2; a bump's centre.
    at = {name: (float(placement.x[node[name]]), float(placement.y[node[name]])) for name in node}
    assert (at["south"], at["west"], at["corner"], at["ball"]) == ((11, 3), (0, 6), (0, 3), (32, 8))
    assert at["within"] == (21, 6.5)
    # A quarter and three quarters of the perimeter of a die of 60 × 40.
    assert (at["nowhere"], at["lost"]) == ((10, 40), (50, 0))
    assert placement.fixed[[*points, node["within"]]].all() and placement.placed[points].all()
    assert design.pads.tolist() == [node["within"]]
    assert "4 pads and corners of the pad ring stay in place" in design.notices
    assert any(notice.startswith("2 of 6 pads and bumps have no position") for notice in design.notices)


def test_nets_end_in_the_points_themselves(tmp_path: Path) -> None:
    netlist = ring(tmp_path).netlist
    for name, offset in (("south", (0, 0)), ("ball", (0, 0)), ("within", (-0.9, -1.4))):
        (pin,) = (netlist.pin_node == netlist.names.index(name)).nonzero()[0].tolist()
        assert (netlist.pin_dx[pin], netlist.pin_dy[pin]) == (pytest.approx(offset[0]), pytest.approx(offset[1]))


def test_another_file_moves_no_points(tmp_path: Path) -> None:
    design = ring(tmp_path)
    text = (tmp_path / "chip.def").read_text().replace("FIXED ( 10000 0 ) N", "UNPLACED")
    (tmp_path / "other.def").write_text(text.replace("FIXED ( 5000 8000 ) FS", "FIXED ( 6000 8000 ) FS"))
    found, _ = read_def_placement(tmp_path / "other.def", design)
    south = design.netlist.names.index("south")
    assert (found.x[south], found.y[south], bool(found.placed[south])) == (11, 3, True)
    assert found.x[0] == 11


def test_rows_of_pads_are_no_part_of_the_core(tmp_path: Path) -> None:
    design = ring(tmp_path)
    assert design.floorplan.core == Rectangle(2, 4, 52, 8)
    assert len(design.floorplan.rows) == 2
    words = "2 rows of sites that are for pads or in no LEF file (pads) are not part of the core"
    assert any(notice.endswith(words) for notice in design.notices)


def test_rows_of_sites_that_no_lef_file_has_are_no_part_of_the_core_where_others_are_known(tmp_path: Path) -> None:
    text = DEF.replace("TRACKS X 100 DO 150", ROWS)
    design = read(tmp_path, LEF, text)
    assert design.floorplan.core == Rectangle(2, 4, 52, 8)
    assert any("in no LEF file (pads) are not part of the core" in notice for notice in design.notices)


def read(tmp_path: Path, lef: str, text: str) -> FlatDesign:
    (tmp_path / "cells.lef").write_text(lef)
    (tmp_path / "chip.def").write_text(text)
    return read_lef_def([tmp_path / "cells.lef"], tmp_path / "chip.def")[0]


def test_rows_that_go_up_are_as_wide_as_their_turned_site(tmp_path: Path) -> None:
    # Ten sites of 0.5 × 2, rotated: 2 wide, one every 0.5.
    text = DEF.replace(
        "ROW r1 core 2000 6000 FS DO 90 BY 1 STEP 500 0", "ROW r1 core 2000 6000 W DO 1 BY 10 STEP 0 500"
    )
    rows = read(tmp_path, LEF, text).floorplan.rows
    assert (rows.width.tolist(), rows.height.tolist()) == ([50, 2], [2, 5])


def test_notices_of_what_is_likely_meant_otherwise(tmp_path: Path) -> None:
    quiet = read(tmp_path, LEF, DEF).notices
    assert not any("higher than" in notice or "CLASS BLOCK" in notice for notice in quiet)
    # The memory of 6 µm in rows of 1 µm, without CLASS.
    low = LEF.replace("SIZE 0.5 BY 2", "SIZE 0.5 BY 1").replace("  CLASS BLOCK ;\n", "")
    low = low.replace("END LIBRARY\n", "MACRO ROM\n  CLASS BLOCK ;\n  SIZE 3 BY 3 ;\nEND ROM\nEND LIBRARY\n")
    notices = read(tmp_path, low, DEF).notices
    assert (
        "2 standard cells are higher than 4 rows (masters: 1, first 'RAM' of 10 × 6 µm): set CLASS "
        "BLOCK in the LEF of those that are macros"
    ) in notices
    # Both memories extend above the rows, which end at 8 µm; one of them is fixed.
    assert "1 fixed macros extend beyond the core, the first being 'mem[0]/ram': they stay in place" in quiet


def test_pins_of_macros_without_shapes_are_reported(tmp_path: Path) -> None:
    message = "1 pins of macros have no shape in LEF (first: 'Q' of RAM): they are assumed to be at the macro's centre"
    assert message not in read(tmp_path, LEF, DEF).notices
    bare = LEF.replace("    PORT\n      LAYER M2 ;\n        POLYGON 8 3 9 3 9 4 8 4 ;\n    END\n", "")
    assert message in read(tmp_path, bare, DEF).notices


def test_ports_beyond_the_die_are_reported(tmp_path: Path) -> None:
    # The die is 60 × 40 µm; up to 0.6 µm beyond an edge is tolerated.
    for y, beyond in ((-500, False), (-700, True)):
        text = DEF.replace("PLACED ( 100 200 ) N", f"PLACED ( 100 {y} ) N")
        message = "1 ports are outside the die, the first being 'out': they keep their positions"
        assert (message in read(tmp_path, LEF, text).notices) == beyond


def test_fixed_macros_that_overlap_are_reported(tmp_path: Path) -> None:
    # 10 × 6 µm at (5, 8), and 6 × 10 µm (rotated) at (14, 13), then next to it at (15, 13).
    for x, overlap in ((14, True), (15, False)):
        text = DEF.replace("+ PLACED ( 20000 8000 ) E", f"+ FIXED ( {x}000 13000 ) E")
        message = "1 pairs of fixed macros overlap, the first being 'mem[0]/ram' and 'mem[1]/ram': they stay in place"
        assert (message in read(tmp_path, LEF, text).notices) == overlap


def test_rows_that_leave_a_corner_free_are_reported(tmp_path: Path) -> None:
    # Rows of 50 and 20 µm, 2 µm high, which span 50 × 40 µm less 4: 140 of 1,700 µm², without macros.
    text = DEF.replace("r1 core 2000 6000 FS DO 90", "r1 core 2000 36000 FS DO 40")
    text = text.replace("+ SOURCE NETLIST + FIXED ( 5000 8000 ) FS\n", "").replace("+ PLACED ( 20000 8000 ) E", "")
    notices = read(tmp_path, LEF, text).notices
    assert any(notice.startswith("rows, placed macros and blockages cover") for notice in notices)
    full = read(tmp_path, LEF, DEF).notices
    assert not any(notice.startswith("rows, placed macros and blockages cover") for notice in full)


def test_a_floorplan_without_nets_is_rejected_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match=r"has no nets; write it again"):
        read(tmp_path, LEF, DEF[: DEF.index("NETS 6 ;")] + "END DESIGN")
