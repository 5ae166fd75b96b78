"""`search candidates=N`: the full evaluation chooses among searches."""

from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path

import pytest
from rich.console import Console

from placement.annealing.search import search_identity
from placement.benchmark.built_in import Request, place
from placement.benchmark.scoring import broken_rules, costs_of
from placement.cli.main import main
from placement.config import CostConfig
from placement.engine.costs import compute_costs
from placement.evaluation import searching
from placement.evaluation.searching import Candidate, candidates_table, find_best, ranked
from placement.evaluation.settings import SearchConfig
from placement.netlist.load import load

WORDS = ["cost=chip", "method=anneal", "moves=20000", "candidates=2", "json=true"]


@pytest.fixture(scope="module")
def searched(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("candidates")
    assert main(["search", f"design={made}", *WORDS, f"out={folder}"]) == 0
    return folder


def test_the_best_by_the_check_is_kept(made: Path, searched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads((searched / "candidates.json").read_text())
    scores = {one["number"]: one["flat_wirelength"] + 60 * one["beyond_tracks"] for one in record["candidates"]}
    best = json.loads((searched / "metrics.json").read_text())
    assert len(set(scores.values())) == 2  # different seeds give different placements
    assert best["candidate"] == min(scores, key=lambda number: scores[number])
    assert main(["evaluate", f"design={made}", f"placement={searched}/placement.plc", "full=true", "json=true"]) == 0
    again = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert again["flat_wirelength"] == pytest.approx(best["flat_wirelength"], rel=1e-3)  # the file rounds positions


def test_a_stopped_search_resumes_to_the_same_end(
    made: Path, searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SearchConfig(
        design=str(made), method="anneal", moves=20000, candidates=2, cost=CostConfig(name="chip"), seed=0
    )
    design, stopped = load(str(made)), threading.Event()
    add = searching._Record.add

    def add_and_stop(record: searching._Record, one: Candidate) -> None:
        add(record, one)
        stopped.set()

    quiet = Console(quiet=True)
    with monkeypatch.context() as patched:
        patched.setattr(searching._Record, "add", add_and_stop)
        first = find_best(design, [], config, folder=tmp_path, stopped=stopped, console=quiet)
    assert [one.number for one in first] == [0]
    both = find_best(design, [], config, folder=tmp_path, stopped=threading.Event(), console=quiet)
    whole = json.loads((searched / "candidates.json").read_text())["candidates"]
    assert {one.number: one.flat_wirelength for one in both} == {one["number"]: one["flat_wirelength"] for one in whole}
    same, other = searching._identity(config), searching._identity(dataclasses.replace(config, seed=1))
    earlier = {**same, "full_evaluation": same["full_evaluation"] - 1}
    found = [
        searching._Record(tmp_path, design, search_identity(design, [], **one)).found for one in (same, other, earlier)
    ]
    assert len(found[0]) == 2 and not any(found[1:])


def test_what_cannot_be_checked_is_rejected_before_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "design=toy6", *WORDS]) == 2
    assert "has no flat netlist" in capsys.readouterr().err
    assert main(["search", "checkpoint=run", "candidates=2"]) == 2
    assert "candidates=2: needs design=" in capsys.readouterr().err


def test_a_mixed_size_start_is_kept_if_its_refinement_is_worse(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*(word for word in WORDS if "method" not in word), "method=mixed_size", f"out={tmp_path}"]
    assert main(["search", f"design={made}", *words]) == 0
    found = json.loads((tmp_path / "metrics.json").read_text())
    assert found["overlaps"] == found["outside"] == 0
    record = json.loads((tmp_path / "candidates.json").read_text())["candidates"]
    assert {one["start"].removesuffix(", not refined") for one in record} == {"mixed size"}
    placed = compute_costs(load(str(made), tmp_path / "placement.plc"), weights=CostConfig(name="chip").weights())
    assert found["cost"] == pytest.approx(placed.total, rel=1e-5)
    capsys.readouterr()
    assert main(["search", "design=toy6", "method=mixed_size"]) == 2
    assert "has no flat netlist" in capsys.readouterr().err


def test_mixed_size_is_a_placer(made: Path) -> None:
    design = load(str(made))
    found = place(Request(design=str(made), placer="mixed_size", seed=0, seconds=5.0), made)
    assert broken_rules(design, found.placement) == {}
    assert found.curve[-1][1] == pytest.approx(costs_of(design, found.placement)["chip_cost"])


def test_cells_that_did_not_spread_lose_to_any_that_did() -> None:
    design = load("toy6")
    short, long = (
        Candidate(number, "start", 0.1, 1.0, 10, wirelength, spread, 0, 0.0, design.initial)
        for number, wirelength, spread in ((0, 90.0, False), (1, 100.0, True))
    )
    assert ranked((short, long)) == [long, short]
    without = long._replace(number=2, flat_wirelength=95.0, without_place=3)
    assert ranked((without, short, long)) == [long, without, short]
    table = candidates_table([long, short])
    assert list(table.columns[3].cells) == ["100", "90, not spread"]
