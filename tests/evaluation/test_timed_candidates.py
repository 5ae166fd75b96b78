"""`search candidates=N timing=W`: slack counts in the choice among searches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from placement.cli.main import main
from placement.config import ConfigError
from placement.evaluation.searching import Candidate, candidates_table, ranked
from placement.evaluation.settings import SearchConfig
from placement.netlist.load import load
from tests.cli.test_timing_commands import imported
from tests.support.small_timing import SDC


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of an imported chip whose paths fail."""
    at = tmp_path_factory.mktemp("chip")
    assert imported(at) == 0  # writes the files
    (at / "fast.sdc").write_text(SDC.replace("period 200", "period 60"))
    files = [word for name in ("lef", "def") for word in (f"--{name}", str(at / f"chip.{name}"))]
    files += ["--verilog", str(at / "chip.v"), "--liberty", str(at / "chip.lib"), "--sdc", str(at / "fast.sdc")]
    assert main(["import", *files, "--free-macros", "--out", str(at / "fast"), "--columns", "2", "--rows", "2"]) == 0
    return at


def test_slack_is_shown_and_counts(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"design={folder / 'fast'}", "candidates=3", "moves=300", f"out={tmp_path}", "plots=false", "json=true"]
    assert main(["search", *words, "timing=1000"]) == 0
    out = capsys.readouterr().out
    assert "tns, ps" in out and "failing" in out
    found = {one["number"]: one for one in json.loads((tmp_path / "candidates.json").read_text())["candidates"]}
    best = json.loads((tmp_path / "metrics.json").read_text())
    chosen = max(found, key=lambda number: (found[number]["spread"], found[number]["tns"]))
    assert best["candidate"] == chosen and len({one["tns"] for one in found.values()}) == 3
    assert found[chosen]["failing"] > 0 and best["tns"] == pytest.approx(found[chosen]["tns"], rel=1e-3)
    # The cells in the table are those that `evaluate` times.
    words = [f"design={folder / 'fast'}", f"placement={tmp_path / 'placement.plc'}", "full=true", "timing=true"]
    assert main(["evaluate", *words, "json=true"]) == 0
    again = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert again["tns"] == pytest.approx(found[chosen]["tns"], rel=1e-3)


def test_slack_is_weighed_against_wires_by_hand() -> None:
    design = load("toy6")
    short, fast = (
        Candidate(number, "start", 0.1, 1.0, 10, wirelength, True, 0, 0.0, design.initial, -9.0, tns, 3)
        for number, wirelength, tns in ((0, 99.0, -120.0), (1, 101.0, -80.0))
    )
    # 2% of the mean wirelength, compared with 40% of the mean slack.
    assert ranked((short, fast)) == [short, fast]
    assert ranked((short, fast), 0.049) == [short, fast]
    assert ranked((short, fast), 0.051) == [fast, short]
    met = [one._replace(tns=0.0) for one in (fast, short)]
    assert [one.number for one in ranked(met, 0.051)] == [0, 1]
    assert ranked((fast._replace(without_place=1), short), 1.0)[0] == short
    assert list(candidates_table([fast], timed=True).columns[7].cells) == ["-80"]


def test_a_design_without_timing_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path) == 0
    capsys.readouterr()
    assert main(["search", f"design={tmp_path / 'chip'}", "timing=0.07", "candidates=2", "moves=100"]) == 2
    assert "import the design again with --liberty and --sdc" in capsys.readouterr().err


def test_one_candidate_leaves_no_choice() -> None:
    with pytest.raises(
        ConfigError, match="candidates=1: must be above 1 with timing, which chooses among candidates, such as 4"
    ):
        SearchConfig(design="chip", timing=0.07)
