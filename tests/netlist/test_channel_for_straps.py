"""The channel rule that an import derives from power straps, for files with a known pitch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from placement.netlist.flat_design import FlatDesign, read_flat, write_flat
from placement.netlist.floorplan import Straps
from placement.netlist.formats.def_design import read_lef_def
from placement.netlist.import_constraints import ConstraintSettings, constraints_of
from tests.interop.chips import RAM, Chip, section


def straps(net: str, first: int, *, pitch: int = 10_000, until: int = 200_000, use: str = "POWER") -> str:
    """Returns vertical straps of M2, 1 µm wide, through the whole core; one more in pieces, and a via."""
    segments = [f"M2 1000 + SHAPE STRIPE ( {x} 0 ) ( * {until} )" for x in range(first, 200_000, pitch)]
    segments += [f"M2 1000 + SHAPE STRIPE ( {first + 3000} 0 ) ( * 9000 )", "M2 0 + SHAPE STRIPE ( 77 88 ) VIA12"]
    segments.append("M1 400 + SHAPE FOLLOWPIN ( 0 0 ) ( 200000 * )")
    return f"{net} ( * {net} ) + USE {use} + ROUTED " + " NEW ".join(segments)


def chip(tmp_path: Path, *nets: str, macros: dict[str, str] | None = None) -> FlatDesign:
    chosen = macros or {"m0": "RAM", "m1": "RAM"}
    made = Chip(core=(200, 200), masters=RAM, macros=chosen, sections=section("SPECIALNETS", nets))
    lef, text = made.write(tmp_path)
    return read_lef_def([lef], text)[0]


def test_straps_and_their_pitch(tmp_path: Path) -> None:
    flat = chip(tmp_path, straps("VDD", 2000), straps("VSS", 6000, use="GROUND"))
    assert flat.floorplan.straps == (Straps("M2", True, 10.0, 1.0),)
    write_flat(tmp_path / "flat.npz", flat)
    assert read_flat(tmp_path / "flat.npz").floorplan.straps == flat.floorplan.straps


def test_a_channel_has_a_strap_of_each_net_wherever_it_begins(tmp_path: Path) -> None:
    constraints, notices = constraints_of(chip(tmp_path, straps("VDD", 2000), straps("VSS", 6000, use="GROUND")))
    assert constraints.channel == (11.0, 0.0) and constraints.spacing == 0
    notice_text = "macros abut or leave channels of 11 µm across, so that each gap has a power strap of every supply"
    assert any(notice_text in one and "M2 10 µm pitch per net, 1 µm wide" in one for one in notices)
    for begin in np.linspace(20, 30, 101):
        for first in (2.0, 6.0):
            centre = first + 10 * np.ceil((begin + 0.5 - first) / 10 - 1e-9)
            assert centre + 0.5 <= begin + 11 + 1e-9


@pytest.mark.parametrize(
    ("nets", "macros", "reason"),
    [
        ([straps("VDD", 2000, pitch=40_000)], None, "that is too wide for these macros"),
        ([straps("VDD", 2000)], {f"m{number}": "RAM" for number in range(40)}, "the core has too little whitespace"),
        (
            [straps("VDD", 2000)],
            {"m0": "RAM + PLACED ( 30000 30000 ) N", "m1": "RAM + PLACED ( 55000 40000 ) N"},
            "1 gaps between macros in the files are narrower",
        ),
    ],
)
def test_where_there_is_no_rule(nets: list[str], macros: dict[str, str] | None, reason: str, tmp_path: Path) -> None:
    constraints, notices = constraints_of(chip(tmp_path, *nets, macros=macros))
    assert not constraints.has_channels
    assert any(reason in one and "--channel" in one for one in notices)


def test_cases_without_a_rule_and_their_notices(tmp_path: Path) -> None:
    short = chip(tmp_path, straps("VDD", 2000, until=90_000))
    assert short.floorplan.straps == () and not constraints_of(short)[0].has_channels
    flat = chip(tmp_path, straps("VDD", 2000))
    assert constraints_of(flat, ConstraintSettings(channel=(0.0, 0.0)))[0].channel == (0.0, 0.0)
    assert constraints_of(flat, ConstraintSettings(channel=(7.0, 5.0)))[0].channel == (7.0, 5.0)
