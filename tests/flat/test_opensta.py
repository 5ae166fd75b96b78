"""OpenSTA compared with our timing: stand-ins for the program in every error case, and the program itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from placement.flat.opensta import OpenSta
from placement.netlist.errors import DesignError
from placement.netlist.timing_netlist import read_timing, write_timing
from tests.flat.test_timing import EXPECTED, chip
from tests.support.small_timing import DEF, SDC, VERILOG

ENDS = """\
Endpoint                                         Slack
third/D (DFF)                200.00000  250.00000  -50.00000 (VIOLATED)
third/D (DFF)                200.00000  230.00000  -30.00000 (VIOLATED)
second/D (DFF)               200.00000  210.50000  -10.50000 (VIOLATED)
extra/RN (DFF)               200.00000  100.00000  100.00000 (MET)
"""


def stand_in(folder: Path, script: str) -> str:
    path = folder / "stand-in"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_the_worst_slack_of_each_endpoint_counts(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path)
    (tmp_path / "report").write_text(ENDS)
    judge = OpenSta(stand_in(tmp_path, f"cp {tmp_path}/report ends.txt"), timing, flat)
    found = judge.evaluate(flat.placement, folder=tmp_path / "kept")
    assert found.slack == {"third/D": -50, "second/D": -10.5, "extra/RN": 100}
    assert (found.total.wns, found.total.tns, found.total.failing, found.total.endpoints) == (-50, -60.5, 2, 3)
    apart = (EXPECTED["third/D"] + 50, EXPECTED["second/D"] + 10.5)
    assert found.common == 2 and found.median_difference == pytest.approx(sum(apart) / 2, abs=1e-3)
    run = (tmp_path / "kept/run.tcl").read_text()
    assert run.index("read_liberty") < run.index("link_design {chip}") < run.index("read_sdc") < run.index("read_sdf")
    assert "(INTERCONNECT ram/Q[0] third/D (2.000::2.000) (2.000::2.000))" in (tmp_path / "kept/wires.sdf").read_text()
    assert (tmp_path / "kept/2.sdc").read_text() == SDC


def test_names_as_yosys_writes_them_are_escaped(tmp_path: Path) -> None:
    verilog = VERILOG.replace("INV one (", r"INV \core.r[3]$_DFF_P_ (")
    timing, flat = chip(tmp_path, verilog=verilog, def_text=DEF.replace("- one INV", r"- core.r\[3\]$_DFF_P_ INV"))
    (tmp_path / "report").write_text(ENDS)
    judge = OpenSta(stand_in(tmp_path, f"cp {tmp_path}/report ends.txt"), timing, flat)
    judge.evaluate(flat.placement, folder=tmp_path / "kept")
    assert r"first/Q core\.r\[3\]\$_DFF_P_/A" in (tmp_path / "kept/wires.sdf").read_text()
    # Of the wire alone: OpenSTA adds the loads of the pins.
    load = r"set_load 0.8 [get_nets -of_objects [get_pins {core.r\[3\]$_DFF_P_/Y}]]"
    assert load in (tmp_path / "kept/loads.tcl").read_text()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "echo x > ends.txt; echo Error: wires.sdf, line 3 syntax error.",
            r"did not read all wire delays: wires.sdf, line",
        ),
        ("echo loading; echo Error: no such net; exit 1", r"ended with status 1: no such net"),
        ("exit 0", r"ended with status 0: it wrote nothing"),
        ("echo nothing > ends.txt", r"found no constrained endpoint"),
    ],
)
def test_a_program_that_fails_is_reported(tmp_path: Path, script: str, message: str) -> None:
    timing, flat = chip(tmp_path)
    with pytest.raises(DesignError, match=message):
        OpenSta(stand_in(tmp_path, script), timing, flat).evaluate(flat.placement)


def test_a_program_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timing, flat = chip(tmp_path)
    monkeypatch.setattr("placement.flat.opensta.DEADLINE", 0.05)
    with pytest.raises(DesignError, match="took longer than"):
        OpenSta(stand_in(tmp_path, "exec sleep 60"), timing, flat).evaluate(flat.placement)


def test_missing_and_changed_files_are_found_before_the_work(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path)
    with pytest.raises(DesignError, match="sta=nowhere: no such program"):
        OpenSta("nowhere", timing, flat)
    program = stand_in(tmp_path, "exit 0")
    (tmp_path / "chip.sdc").write_text(f"{SDC}\n")
    with pytest.raises(DesignError, match=r"chip.sdc: has changed since the import"):
        OpenSta(program, timing, flat)
    (tmp_path / "common.tcl").write_text("set a 1\n")
    timing, flat = chip(tmp_path, sdc=f"source common.tcl\n{SDC}")
    assert [one.kind for one in timing.files] == ["verilog", "liberty", "sdc", "sourced"]
    (tmp_path / "common.tcl").write_text("set a 2\n")
    with pytest.raises(DesignError, match=r"common.tcl: has changed since the import"):
        OpenSta(program, timing, flat)
    (tmp_path / "chip.sdc").unlink()
    with pytest.raises(DesignError, match=r"chip.sdc: cannot be read"):
        OpenSta(program, timing, flat)


def test_a_design_keeps_where_its_files_are(tmp_path: Path) -> None:
    timing, _ = chip(tmp_path)
    write_timing(tmp_path / "timing.npz", timing)
    kept = read_timing(tmp_path)
    assert kept.top == "chip" and kept.files == timing.files
    assert [(one.kind, one.path) for one in kept.files] == [
        (kind, str(tmp_path / f"chip.{suffix}"))
        for kind, suffix in (("verilog", "v"), ("liberty", "lib"), ("sdc", "sdc"))
    ]


@pytest.mark.skipif(shutil.which("sta") is None, reason="the judge needs OpenSTA (Debian: opensta)")
def test_opensta_finds_our_slacks(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path)
    found = OpenSta("sta", timing, flat).evaluate(flat.placement)
    assert found.slack.keys() == EXPECTED.keys()
    assert found.slack == pytest.approx(EXPECTED, abs=0.05) and found.median_difference < 0.01


@pytest.mark.skipif(shutil.which("sta") is None, reason="the judge needs OpenSTA (Debian: opensta)")
def test_commands_that_opensta_passes_over_are_listed(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path, sdc=SDC + "no_such_command\n")
    (notice,) = OpenSta("sta", timing, flat).evaluate(flat.placement).notices
    assert "commands (1)" in notice and "no_such_command" in notice
