"""`search method=portfolio`: several ways to search, each result checked, or those that a judge chooses."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from placement.annealing.starts import Start
from placement.cli.main import main
from placement.config import CostConfig, CostWeights
from placement.evaluation import candidates
from placement.evaluation.candidates import MORE_OVERFLOW, Candidate, find_best, most_promising, ranked
from placement.evaluation.flat_evaluation import FlatFound, FlatJudge
from placement.evaluation.portfolio import WAYS, ways_of
from placement.evaluation.settings import SearchConfig
from placement.judge.estimate import read_judge
from placement.netlist.errors import DesignError
from placement.netlist.load import data_folder, load
from placement.report.metrics import FullMetrics
from placement.training import mixed_size

WORDS = ["method=portfolio", "moves=4000", "candidates=6", "json=true", "plots=false"]
JUDGED = [*WORDS, "judge=base"]


@pytest.fixture(scope="module")
def searched(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("portfolio")
    assert main(["search", f"design={made}", *WORDS, f"out={folder}"]) == 0
    return folder


def test_the_first_round_tries_all_ways_and_later_ones_those_that_did_best() -> None:
    worths = {0: 1.0, 1: 0.9, 2: math.inf, 3: 1.2}
    assert ways_of(3, {}) == list(WAYS[:3])
    assert ways_of(8, worths) == [*WAYS, WAYS[1], WAYS[0], WAYS[1], WAYS[3]]
    # The second way is now 1.3 in the mean of three, the third's first candidate still found no room.
    later = ways_of(10, {**worths, 4: 1.5, 5: 1.0, 6: 1.5, 7: 1.6})
    assert later[8:] == [WAYS[0], WAYS[1]]


def test_a_way_multiplies_the_weights_that_are_given() -> None:
    given = CostWeights(2.0, 0.5, 0.25, "chip")
    assert WAYS[0].weights(given) == CostWeights(2.0, 1.5, 0.25, "chip")
    assert WAYS[2].weights(given) == CostWeights(2.0, 0.5, 0.75, "chip")


def test_the_least_routed_wirelength_is_kept(made: Path, searched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads((searched / "candidates.json").read_text())["candidates"]
    best = json.loads((searched / "metrics.json").read_text())
    starts = {one["number"]: one["start"] for one in found}
    assert starts[0] == "mixed size, density ×3"
    assert starts[1].endswith(", density ×3") and not starts[1].startswith("mixed size")
    assert starts[2].endswith(", congestion ×3") and "×" not in starts[3]
    routed = {one["number"]: one["check"]["routed_wirelength"] for one in found}
    assert len(routed) == 6 and len(set(routed.values())) > 1
    assert best["candidate"] == min(routed, key=lambda number: routed[number])
    assert best["routed_wirelength"] == routed[best["candidate"]]
    assert best["overlaps"] == best["outside"] == 0
    assert main(["evaluate", f"design={made}", f"placement={searched}/placement.plc", "flat=true", "json=true"]) == 0
    again = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert again["routed_wirelength"] == pytest.approx(best["routed_wirelength"], rel=1e-3)  # the file rounds places


@pytest.fixture(scope="module")
def judged(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged")
    assert main(["search", f"design={made}", *JUDGED, f"out={folder}"]) == 0
    return folder


def test_the_judge_says_which_are_checked(made: Path, judged: Path) -> None:
    found = {one["number"]: one for one in json.loads((judged / "candidates.json").read_text())["candidates"]}
    best = json.loads((judged / "metrics.json").read_text())
    assert len(found) == 6
    checked = [number for number, one in found.items() if one["check"]]
    first, *others = sorted(found, key=lambda number: found[number]["estimate"])
    ways = ways_of(6, {number: one["estimate"] for number, one in found.items()})
    second = next(number for number in others if ways[number] != ways[first])
    assert sorted(checked) == sorted([first, second])
    routed = {number: found[number]["check"]["routed_wirelength"] for number in checked}
    assert best["candidate"] == min(routed, key=lambda number: routed[number])
    for number in checked:  # a level, too, not only an order
        assert found[number]["estimate"] == pytest.approx(routed[number], rel=0.3)


def test_a_judge_of_ones_own_is_taken(made: Path, judged: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.npz"
    own.write_bytes((data_folder("judges") / "base.npz").read_bytes())
    words = [word.replace("candidates=6", "candidates=1") for word in WORDS]
    assert main(["search", f"design={made}", *words, f"judge={own}", f"out={tmp_path}"]) == 0
    (one,) = json.loads((tmp_path / "candidates.json").read_text())["candidates"]
    first = next(one for one in json.loads((judged / "candidates.json").read_text())["candidates"] if not one["number"])
    assert one["estimate"] == pytest.approx(first["estimate"], rel=1e-6)
    assert one["check"] is not None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["judge=nowhere.npz"], "judge='nowhere.npz': must be a file of `judge train`, or base, or none"),
        (["judge=cut.npz"], "no judge, or a damaged one"),
        (["judge=none", "checks=2"], "checks=2: only of method=portfolio with a judge"),
        (["method=anneal", "checks=2"], "checks=2: only of method=portfolio with a judge"),
        (["method=anneal", "judge=cut.npz"], "judge='cut.npz': only of method=portfolio"),
    ],
)
def test_a_judge_that_cannot_be_used_is_refused(
    words: list[str],
    said: str,
    made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "cut.npz").write_bytes((data_folder("judges") / "base.npz").read_bytes()[:1000])
    monkeypatch.chdir(tmp_path)
    assert main(["search", f"design={made.resolve()}", *WORDS[:3], *words, "out=out"]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_of_that_name_is_no_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "base").mkdir()
    monkeypatch.chdir(tmp_path)
    assert len(read_judge("base").members) == 5


def test_a_candidate_whose_cells_cannot_be_placed_gives_way_to_the_next(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check, tried = FlatJudge.check, list[object]()

    def fail_first(judge: FlatJudge, *args: Any, **options: Any) -> FlatFound:
        tried.append(args)
        if len(tried) == 1:
            raise DesignError("no room for cells")
        return check(judge, *args, **options)

    monkeypatch.setattr(FlatJudge, "check", fail_first)
    words = ["method=portfolio", "moves=1000", "candidates=3", "judge=base", "checks=1", "plots=false"]
    assert main(["search", f"design={made}", *words, f"out={tmp_path}"]) == 0
    found = json.loads((tmp_path / "candidates.json").read_text())["candidates"]
    first, second, third = sorted(found, key=lambda one: one["estimate"])
    assert f"candidate {first['number']}: no room for cells" in capsys.readouterr().out
    assert not first["spread"] and second["check"] and not third["check"]
    assert json.loads((tmp_path / "metrics.json").read_text())["candidate"] == second["number"]


@pytest.mark.parametrize(("judge", "stops"), [("none", 3), ("base", 3), ("base", 7)])
def test_stopped_between_rounds_it_goes_on_to_the_same_end(
    judge: str,
    stops: int,
    made: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After so many candidates, or after the first check."""
    searched = request.getfixturevalue("judged" if judge == "base" else "searched")
    config = SearchConfig(
        design=str(made),
        method="portfolio",
        moves=4000,
        candidates=6,
        judge=judge,
        cost=CostConfig(name="chip"),
        seed=0,
    )
    design, stopped, quiet = load(str(made)), threading.Event(), Console(quiet=True)

    def begin(seed: int, is_mixed_size: bool) -> list[Start]:
        if not is_mixed_size:
            return []
        start = mixed_size.mixed_size_start(str(made), design, config.anneal, weights=config.weights, seed=0)
        return [start]

    add = candidates._Record.add

    added: list[int] = []

    def add_and_stop(record: candidates._Record, one: Candidate) -> None:
        add(record, one)
        added.append(one.number)
        if len(added) == stops:
            stopped.set()

    with monkeypatch.context() as patched:
        patched.setattr(candidates._Record, "add", add_and_stop)
        first = find_best(design, begin, config, folder=tmp_path, stopped=stopped, console=quiet)
    assert len(added) == stops and len(first) == min(stops, 6)
    whole = find_best(design, begin, config, folder=tmp_path, stopped=threading.Event(), console=quiet)
    at_once = json.loads((searched / "candidates.json").read_text())["candidates"]
    assert {one.number: one.worth for one in whole} == {
        one["number"]: one["check"]["routed_wirelength"] if one["check"] else one["estimate"] for one in at_once
    }
    assert sum(one.check is not None for one in whole) == (2 if judge == "base" else 6)


def test_without_a_start_of_mixed_size_it_goes_on_with_its_own(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: object, **options: object) -> Start:
        raise DesignError("no room")

    monkeypatch.setattr(mixed_size, "mixed_size_start", fail)
    words = [word.replace("candidates=6", "candidates=2") for word in WORDS]
    assert main(["search", f"design={made}", *words, f"out={tmp_path}"]) == 0
    found = json.loads((tmp_path / "candidates.json").read_text())["candidates"]
    assert all("mixed size" not in one["start"] for one in found)
    assert "no start of mixed size, its candidates begin as others: no room" in capsys.readouterr().out


def test_what_overflows_more_than_the_best_ranks_behind() -> None:
    design = load("toy6")

    def one(number: int, routed: float, overflow: float, *, spread: bool = True) -> Candidate:
        check = FullMetrics(1.0, 0.0, routed, overflow, 0, 1.0)
        return Candidate(number, "start", 0.1, 1.0, 10, 1.0, spread, 0.0, 0.0, check, design.initial)

    crowded, longer, within = one(0, 90.0, 0.05), one(1, 100.0, 0.0), one(2, 95.0, 0.9 * MORE_OVERFLOW)
    apart = one(3, 80.0, 0.0, spread=False)
    assert ranked([crowded, longer, within, apart]) == [within, longer, crowded, apart]


def test_of_checked_and_unchecked_candidates_the_checked_come_first() -> None:
    design = load("toy6")
    check = FullMetrics(1.0, 0.0, 100.0, 0.0, 0, 1.0)
    checked, promising, apart = (
        Candidate(number, "start", 0.1, 1.0, 10, 0.0, spread, 0.0, estimate, of, design.initial)
        for number, (spread, estimate, of) in enumerate(((True, 95.0, check), (True, 80.0, None), (False, 70.0, check)))
    )
    assert ranked([apart, promising, checked]) == [checked, promising, apart]
    # What was checked since does not change which ways did best.
    assert candidates._worths({0: checked, 1: promising}) == {0: 95.0, 1: 80.0}


def test_the_best_of_each_way_is_checked_first() -> None:
    design = load("toy6")
    # Of the second round, by the estimates of the first: ways 0, 1, 0, 2.
    estimates = (90.0, 95.0, 99.0, 100.0, 80.0, 94.0, 85.0, 98.0)
    found = {
        number: Candidate(number, "start", 0.1, 1.0, 10, 0.0, True, 0.0, estimate, None, design.initial)
        for number, estimate in enumerate(estimates)
    }
    assert [one.number for one in most_promising(found)] == [4, 5, 7, 3, 6, 1, 2, 0]


def test_what_it_needs_is_said_before_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["design=toy6"], "has no flat netlist"),
        (["checkpoint=run"], "needs design="),
        (["checkpoint=run", "design=toy6"], "has its own starts"),
    ):
        assert main(["search", *words, *WORDS]) == 2
        assert said in capsys.readouterr().err
