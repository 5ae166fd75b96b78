"""Guides of a DEF file: enforced where their macros fit, otherwise ignored with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from placement.netlist.formats.def_design import read_lef_def
from placement.netlist.geometry import Rectangle
from placement.netlist.import_constraints import ConstraintSettings, RegionSetting
from placement.netlist.importing import ImportedDesign, ImportSettings, import_flat
from placement.netlist.macro_arrays import ArraySetting
from tests.support.array_chip import array_def
from tests.support.small_lef_def import LEF

Guides = Mapping[str, tuple[str, str]]  # name → its rectangles, in database units, and its macros
WIDE = "( 12000 12000 ) ( 34000 32000 )"  # (10, 8) to (32, 28) µm on the canvas
INSIDE = [[10, 8, 32, 28]]


def imported(
    folder: Path, guides: Guides, places: dict[str, str] | None = None, blockage: str = "", **settings: Any
) -> ImportedDesign:
    """Imports macros of 10 × 6 µm on a canvas of 100 × 80 µm with gcells of 10 × 8 µm."""
    boxes = "\n".join(f"- {name} {box} + TYPE GUIDE ;" for name, (box, _) in guides.items())
    groups = "\n".join(f"- of_{name} {macros} + REGION {name} ;" for name, (_, macros) in guides.items())
    text = array_def(places)
    for old, new in (
        ("REGIONS 1 ;\n- low ( 2000 4000 ) ( 102000 44000 ) ;", f"REGIONS {len(guides)} ;\n{boxes}"),
        ("GROUPS 1 ;\n- tags tag_* + REGION low ;", f"GROUPS {len(guides)} ;\n{groups}"),
        ("GROUPS", f"BLOCKAGES 1 ;\n- PLACEMENT RECT {blockage} ;\nEND BLOCKAGES\nGROUPS" if blockage else "GROUPS"),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "chip.lef").write_text(LEF)
    (folder / "chip.def").write_text(text)
    flat = read_lef_def([folder / "chip.lef"], folder / "chip.def")[0]
    return import_flat(flat, ImportSettings(columns=10, rows=10, **settings))


def regions(design: ImportedDesign) -> dict[str, tuple[list[list[float]], list[str]]]:
    names = design.design.netlist.names
    found = design.design.constraints.regions
    return {one.name: (one.rectangles.tolist(), [names[node] for node in one.nodes]) for one in found}


def notices(design: ImportedDesign) -> list[str]:
    return [one for one in design.notices if one.startswith("guide")]


@pytest.mark.parametrize("place", ["UNPLACED", "PLACED ( 14000 14000 ) N"])
def test_a_guide_is_enforced_where_its_macros_fit(tmp_path: Path, place: str) -> None:
    found = imported(tmp_path, {"a": (WIDE, "lone")}, {"lone": place})
    assert regions(found) == {"a": (INSIDE, ["lone"])}
    assert notices(found) == ["guide 'a' is enforced as a region: its 1 macros stay inside"]


@pytest.mark.parametrize(
    ("box", "places", "blockage", "reason"),
    [
        (WIDE, {"lone": "PLACED ( 26000 14000 ) N"}, "", "the files place macros outside"),
        ("( 12000 12000 ) ( 20000 40000 )", {}, "", "a macro is larger than its rectangles"),
        ("( 12000 12000 ) ( 23000 22000 )", {}, "", "its macros would cover 55% of its free area"),
        (WIDE, {}, "( 10000 10000 ) ( 40000 40000 )", "it has no free area"),
        ("( 12000 12000 ) ( 22500 40000 )", {}, "", "a macro has no legal gcell in it"),
        (WIDE, {}, "( 12000 18000 ) ( 34000 22000 )", "a macro has no legal gcell in it"),
        (WIDE, {"tag_9": "FIXED ( 18000 18000 ) N"}, "", "a macro has no legal gcell in it"),
    ],
)
def test_a_guide_is_ignored_with_a_reason(
    tmp_path: Path, box: str, places: dict[str, str], blockage: str, reason: str
) -> None:
    found = imported(tmp_path, {"a": (box, "lone")}, places, blockage)
    assert not regions(found)
    (notice,) = notices(found)
    assert notice.startswith(f"guide 'a' is ignored: {reason}; --region 'a:lone:12,12,")


def test_guides_that_overlap_share_their_area(tmp_path: Path) -> None:
    guides = {"a": (WIDE, r"bank\[0\] bank\[1\] bank\[2\]"), "b": (WIDE, "tag_9 tag_10 lone")}
    found = imported(tmp_path, guides)
    assert regions(found) == {"a": (INSIDE, ["bank[0]", "bank[1]", "bank[2]"])}
    assert "'b' is ignored: its macros and those of overlapping regions would cover 82%" in notices(found)[1]


def test_fixed_macros_and_those_of_a_region_have_no_guide(tmp_path: Path) -> None:
    region = RegionSetting("mine", (Rectangle(2, 4, 52, 44),), ("lone",))
    settings = ConstraintSettings(regions=(region,))
    guides = {"a": (WIDE, "lone tag_9"), "mine": (WIDE, "tag_10")}
    found = imported(tmp_path, guides, {"tag_9": "FIXED ( 80000 60000 ) N"}, constraints=settings)
    assert regions(found) == {"mine": ([[0, 0, 50, 40]], ["lone"])}
    assert notices(found) == [
        "guide 'a' is ignored: no movable macro without a region belongs to it",
        "guide 'mine' is replaced by the region of this name",
    ]


@pytest.mark.parametrize(("box", "is_kept"), [("( 12000 12000 ) ( 62000 62000 )", True), (WIDE, False)])
def test_a_guide_of_some_macros_of_an_array_is_that_of_the_array(tmp_path: Path, box: str, is_kept: bool) -> None:
    guides = {"a": (box, r"bank\[0\] bank\[1\]")}
    found = imported(tmp_path, guides, arrays=(ArraySetting("block", ("bank*",)),))
    assert regions(found) == ({"a": ([[10, 8, 60, 58]], ["block"])} if is_kept else {})
    (notice,) = notices(found)
    assert is_kept or notice == "guide 'a' is ignored: its macros would cover 55% of its free area"
