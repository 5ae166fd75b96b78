"""A search that sees timing: its rounds, which one is chosen, resuming, and what it rejects."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from placement.annealing.search import Watch
from placement.cli.main import main
from placement.config import ConfigError
from placement.evaluation.settings import SearchConfig
from placement.evaluation.timing_search import ROUNDS, TimedSearch, search_with_timing
from placement.netlist.load import load
from tests.cli.test_timing_commands import imported
from tests.support.small_timing import SDC

MOVES = 4000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an imported chip whose paths fail."""
    at = tmp_path_factory.mktemp("chip")
    assert imported(at, "--liberty", str(at / "chip.lib"), "--sdc", str(at / "chip.sdc")) == 0
    (at / "chip.sdc").write_text(SDC.replace("period 200", "period 60"))
    files = [word for name in ("lef", "def") for word in (f"--{name}", str(at / f"chip.{name}"))]
    files += ["--verilog", str(at / "chip.v"), "--liberty", str(at / "chip.lib"), "--sdc", str(at / "chip.sdc")]
    assert main(["import", *files, "--free-macros", "--out", str(at / "fast"), "--columns", "2", "--rows", "2"]) == 0
    return at


def searched(design: Path, watch: Watch) -> TimedSearch | None:
    config = SearchConfig(design=str(design), timing=0.2, moves=MOVES, plots=False)
    return search_with_timing(load(str(design)), [], config, watch=watch)


def test_rounds_and_the_best_of_them(folder: Path, tmp_path: Path) -> None:
    found = searched(folder / "fast", Watch())
    assert found is not None and len(found.rounds) == ROUNDS + 1
    assert all(one.tns < 0 and one.failing > 0 and one.wirelength > 0 for one in found.rounds)
    first = found.rounds[0]
    scores = [one.wirelength / first.wirelength + 0.2 * one.tns / first.tns for one in found.rounds]
    assert found.chosen == int(np.argmin(scores))
    assert found.result.moves == sum(one.moves for one in found.rounds)


def test_a_stopped_search_resumes_to_the_same_end(folder: Path, tmp_path: Path) -> None:
    whole = searched(folder / "fast", Watch(tmp_path / "whole"))

    def stopped() -> bool:
        return (tmp_path / "cut/round1").exists()

    part = searched(folder / "fast", Watch(tmp_path / "cut", stopped))
    assert whole is not None and part is not None and not part.result.finished and len(part.rounds) < len(whole.rounds)
    resumed = searched(folder / "fast", Watch(tmp_path / "cut"))
    assert resumed is not None
    assert [one[:4] for one in resumed.rounds] == [one[:4] for one in whole.rounds]
    assert np.array_equal(resumed.result.placement.x, whole.result.placement.x)
    kept = json.loads((tmp_path / "cut/rounds.json").read_text())
    assert len(kept["searches"]) == ROUNDS + 1


def test_the_command_shows_the_rounds(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"design={folder / 'fast'}", "timing=0.1", f"moves={MOVES}", f"out={tmp_path / 'out'}", "plots=false"]
    assert main(["search", *words]) == 0
    out = capsys.readouterr().out
    assert "rounds, with cells placed coarsely" in out and "*: the result" in out
    assert (tmp_path / "out/placement.plc").is_file()


def test_a_design_without_timing_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path) == 0
    capsys.readouterr()
    assert main(["search", f"design={tmp_path / 'chip'}", "timing=0.1", "moves=100"]) == 2
    assert "import the design again with --liberty and --sdc" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("other", "message"),
    [({"candidates": 2}, "candidates=2: must be 1 with timing"), ({"method": "mixed_size"}, "method='mixed_size'")],
)
def test_what_rounds_do_not_go_with(other: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SearchConfig(design="chip", timing=0.1, **other)  # type: ignore[arg-type]
