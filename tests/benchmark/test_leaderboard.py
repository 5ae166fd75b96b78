"""The leaderboard of artificial results, and the committed page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.submissions import check, page, read_notes
from placement.benchmark.benchmark_plots import quality_over_time
from placement.benchmark.leaderboard import board, normalised, read_results, without_baseline

ROOT = Path(__file__).resolve().parents[2]
CHIP = "chip_cost"


def result(placer: str, design: str, cost: float | None, seed: int = 0, **more: Any) -> dict[str, Any]:
    """Returns a run that scored `cost`, or failed (None)."""
    ended = {"status": "late", "reason": "used 9.0 CPU-s of 2", "scores": {}}
    if cost is not None:
        ended = {"status": "ok", "reason": None, "scores": {CHIP: cost}}
    about = {"schema": 1, "suite": "synthetic", "suite_version": 1, "split": "test", "baseline": "base@10"}
    named = {"placer": placer, "kind": placer.partition("@")[0], "design": design, "seed": seed}
    return {**about, **named, **ended, "cpu_seconds": 2.0, **more}


RESULTS = [
    *(result("base@10", "test01_20_local", cost, seed) for seed, cost in enumerate((1.0, 2.0, 4.0))),
    *(result("mine@10", "test01_20_local", cost, seed) for seed, cost in enumerate((1.0, 1.0, None))),
    result("base@10", "test02_30_mixed_ruled", 10.0),
    result("mine@10", "test02_30_mixed_ruled", 11.0),
    result("mine@10", "test03_40_global", 3.0),
]


def test_scores_are_over_the_median_of_the_baseline() -> None:
    found = normalised(RESULTS, CHIP)
    assert found["base@10"]["test01_20_local"].tolist() == [0.5, 1.0, 2.0]
    assert found["mine@10"]["test01_20_local"].tolist() == [0.5, 0.5, math.inf]
    assert found["mine@10"]["test02_30_mixed_ruled"].tolist() == [1.1]
    assert "test03_40_global" not in found["mine@10"], "its baseline has no result"


def test_designs_without_a_score_of_their_baseline_are_named() -> None:
    assert without_baseline(RESULTS, CHIP) == {"base@10": ["test03_40_global"]}
    assert without_baseline(RESULTS[:4], CHIP) == {}


def test_a_placer_whose_runs_have_no_score_is_omitted() -> None:
    routed = [{**one, "scores": {**one["scores"], "routed_wirelength": 5.0}} for one in RESULTS if one["scores"]]
    unscored = [result("quick@1", "test01_20_local", cost, seed) for seed, cost in enumerate((1.0, None))]
    failing = [result("late@1", "test01_20_local", None)]
    found = normalised([*routed, *unscored, *failing], "routed_wirelength")
    assert list(found) == ["base@10", "mine@10", "late@1"], "the failed run of quick@1 does not count either"
    assert "quick@1" in normalised([*routed, *unscored], CHIP)


def test_a_baseline_may_be_named_without_its_seconds() -> None:
    results = [{**one, "baseline": "base"} for one in RESULTS]
    assert normalised(results, CHIP)["base@10"]["test02_30_mixed_ruled"].tolist() == [1.0]


def test_the_rows_of_the_board() -> None:
    first, second = board(RESULTS, CHIP, repetitions=200)
    assert (first.placer, first.designs, first.runs, first.failed) == ("mine@10", 2, 4, 1)
    assert first.score.value == pytest.approx((0.5 + 1.1) / 2), "of 0.5, 0.5, 1.1 and infinity the inner two"
    assert first.better is None
    assert second.better is not None
    by_hand = (
        (0.5 * 2 + 1) / 9 + 1 / 9 + 1 / 9
    ) / 2 + 1 / 2  # design 1: 0.5 ties twice and beats inf; 1 and 2 beat inf
    assert second.better.value == pytest.approx(by_hand)


def test_a_placer_with_designs_missing_is_below_those_that_have_all() -> None:
    rows = board([*RESULTS, result("best@1", "test02_30_mixed_ruled", 1.0)], CHIP, repetitions=10)
    assert [row.placer for row in rows][-1] == "best@1"


def test_the_quality_over_time_is_of_what_was_reached() -> None:
    runs = [
        result("base@10", "test01_20_local", 2.0, curve=[[1.0, 4.0], [1.5, 3.0]]),
        result("mine@10", "test01_20_local", 1.0, curve=[], cpu_seconds=3.0),
    ]
    times = np.array([0.5, 1.0, 1.7, 2.0, 3.0])
    assert quality_over_time(runs, "base@10", times).tolist() == [math.inf, 2.0, 1.5, 1.0, 1.0]
    assert quality_over_time(runs, "mine@10", times).tolist() == [math.inf] * 4 + [0.5]
    runs.append(result("mine@10", "test01_20_local", None, 1))
    assert math.isinf(quality_over_time(runs, "mine@10", times)[-1]), "half of the runs failed"


def test_the_page_names_what_was_not_run_and_what_failed() -> None:
    text = page(RESULTS, {"synthetic-1": "Findings of this suite."})
    assert "9 runs on 3 designs." in text and "Not run: `test04_60_local_ruled`, " in text
    assert "| mine@10 | `test01_20_local` | late | 1 | used 9.0 CPU-s of 2 |" in text
    assert "| `test03_40_global` | – | 3.0000 |" in text
    assert "Baseline: base@10. Not included, because the baseline has no score: `test03_40_global`." in text
    assert "### Proxy cost" not in text, "no run has one"
    assert "mine@10 has the lowest chip cost, 20.0% below that of base@10, and the lowest median on 2 of 3" in text
    assert "\nFindings of this suite.\n" in text and "](images/benchmark_synthetic_profiles.png)" in text


def test_a_suite_with_cells_also_compares_costs_of_clusters() -> None:
    def run(placer: str, scores: dict[str, float]) -> dict[str, Any]:
        more = {"suite": "public", "baseline": "supplied", "scores": scores}
        return result(placer, "ct_ariane", 1.0) | more

    supplied = run("supplied", {CHIP: 9.0, "routed_wirelength": 4.0})
    search = run("search@60", {CHIP: 2.0, "routed_wirelength": 3.0})
    text = page([supplied, search, run("quick@1", {CHIP: 3.0})], {})
    routed, chip = text.split("### Chip cost\n")[0], text.split("### Chip cost\n")[1].split("###")[0]
    assert "Baseline: supplied." in routed and "| search@60 | 1 | 1 | 0 | 2.0 | 0.750 " in routed
    assert "quick@1" not in routed, "its cells are not placed"
    assert "Baseline: search@60." in chip and "| quick@1 | 1 | 1 | 0 | 2.0 | 1.500 " in chip
    assert "supplied" not in chip, "nobody placed clusters around its macros"
    assert "| design | search@60 | quick@1 |" in text.split("### Chip cost by design")[1]


def test_results_of_other_versions_are_not_compared() -> None:
    text = page([*RESULTS, result("new@1", "test01_20_local", 1.0, suite_version=2)], {})
    assert text.count("## synthetic, version 1, test") == text.count("## synthetic, version 2, test") == 1


def test_the_committed_page_is_that_of_the_committed_results() -> None:
    folder = ROOT / "benchmarks/results"
    written = (ROOT / "docs/benchmark.md").read_text(encoding="utf-8")
    assert written == page(read_results(folder), read_notes(folder)), "run `python benchmarks/submissions.py page`"


@pytest.mark.slow
def test_the_committed_results_are_what_their_placements_give() -> None:
    """Includes results of pull requests."""
    check(ROOT / "benchmarks/results")
