"""From Verilog, LEF, DEF, Liberty and SDC files to the timing of a placement, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from placement.cli.main import main
from tests.support.small_timing import DEF, LEF, LIBERTY, SDC, VERILOG


def imported(folder: Path, *words: str) -> int:
    for name, text in {
        "chip.v": VERILOG,
        "chip.lef": LEF,
        "chip.def": DEF,
        "chip.lib": LIBERTY,
        "chip.sdc": SDC,
    }.items():
        (folder / name).write_text(text)
    files = [word for name in ("lef", "def") for word in (f"--{name}", str(folder / f"chip.{name}"))]
    files += ["--verilog", str(folder / "chip.v"), "--columns", "2", "--rows", "2", "--clusters", "2"]
    return main(["import", *files, "--out", str(folder / "chip"), *words])


def test_import_and_evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path, "--liberty", str(tmp_path / "chip.lib"), "--sdc", str(tmp_path / "chip.sdc")) == 0
    source = json.loads((tmp_path / "chip/source.json").read_text())
    assert [file["name"] for file in source["files"]][-2:] == ["chip.lib", "chip.sdc"]
    capsys.readouterr()
    assert main(["evaluate", f"design={tmp_path / 'chip'}", "timing=true", "json=true"]) == 0
    out = capsys.readouterr().out
    found = json.loads(out.splitlines()[-1])
    # Nothing fails at 200 ps; the wire from the memory to the register next to it is critical.
    assert (found["wns"], found["tns"], found["endpoints"], found["failing_endpoints"]) == (0.0, 0.0, 6, 0)
    assert found["timing_paths"][0]["start"] == "ram/CK" and found["timing_paths"][0]["macros"] == ["ram"]
    assert found["timing_groups"]["from macros"]["endpoints"] == 1
    assert "worst paths, one per endpoint" in out and "cells are timed in their clusters" in out


def test_opensta_is_compared_and_paths_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path, "--liberty", str(tmp_path / "chip.lib"), "--sdc", str(tmp_path / "chip.sdc")) == 0
    program = tmp_path / "stand-in"
    program.write_text("#!/bin/sh\necho 'third/D (DFF) 200.0 207.5 -7.5 (VIOLATED)' > ends.txt\n")
    program.chmod(0o755)
    words = ["evaluate", f"design={tmp_path / 'chip'}", "json=true", f"out={tmp_path / 'out'}"]
    assert main([*words, "timing=true", f"sta={program}", "plots=true"]) == 0
    out = capsys.readouterr().out
    found = json.loads(out.splitlines()[-1])
    theirs = found["opensta"]
    assert (theirs["wns"], theirs["tns"], theirs["endpoints"], theirs["common_endpoints"]) == (-7.5, -7.5, 1, 1)
    assert (theirs["estimated_wns"], found["wns"]) == (0, 0) and "worst slack by OpenSTA" in out
    assert (tmp_path / "out/paths.png").read_bytes().startswith(b"\x89PNG")
    assert main([*words, f"sta={program}"]) == 2
    assert "needs timing=true" in capsys.readouterr().err


def test_without_liberty_there_is_no_timing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path) == 0
    assert main(["evaluate", f"design={tmp_path / 'chip'}", "timing=true"]) == 2
    assert "import the design again with --liberty and --sdc" in capsys.readouterr().err


def test_constraints_without_liberty_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path, "--sdc", str(tmp_path / "chip.sdc")) == 2
    assert "sdc needs liberty" in capsys.readouterr().err


def test_a_benchmark_has_columns_of_timing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert imported(tmp_path, "--liberty", str(tmp_path / "chip.lib"), "--sdc", str(tmp_path / "fast.sdc")) == 2
    (tmp_path / "fast.sdc").write_text(SDC.replace("period 200", "period 60"))
    assert imported(tmp_path, "--liberty", str(tmp_path / "chip.lib"), "--sdc", str(tmp_path / "fast.sdc")) == 0
    words = [f"design={tmp_path / 'chip'}", "placements=[given=chip/initial.plc]", "plots=false", "out=out"]
    assert main(["benchmark", *words]) == 0
    file = tmp_path / "out/given/chip/seed0.json"
    assert "wns" not in json.loads(file.read_text())["scores"], "of cells in their clusters"
    capsys.readouterr()
    assert main(["benchmark", *words, "full=true"]) == 0
    out = capsys.readouterr().out
    assert "wns, ps" in out and "tns, ps" in out, "whole, however many scores there are"
    found = json.loads(file.read_text())["scores"]
    assert main(["evaluate", *words[:1], "placement=chip/initial.plc", "full=true", "timing=true", "json=true"]) == 0
    alone = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["wns"], found["tns"]) == (alone["wns"], alone["tns"]) and found["wns"] < 0


def test_a_benchmark_of_a_design_without_a_clock_is_untimed(tmp_path: Path) -> None:
    assert imported(tmp_path, "--liberty", str(tmp_path / "chip.lib")) == 0
    words = [f"design={tmp_path / 'chip'}", f"out={tmp_path / 'out'}", "placers=supplied", "seeds=1", "plots=false"]
    assert main(["benchmark", *words, "full=true"]) == 0
    result = json.loads((tmp_path / "out/supplied/chip/seed0.json").read_text())
    assert result["status"] == "ok" and "routed_wirelength" in result["scores"] and "tns" not in result["scores"]
