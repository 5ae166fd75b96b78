"""Leaderboard: reads, normalises and aggregates results, and formats them as tables."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich import box
from rich.table import Table

from placement.benchmark.aggregates import (
    METRICS,
    REPETITIONS,
    Interval,
    bootstrap,
    interquartile_mean,
    probability_of_improvement,
)
from placement.netlist.errors import DesignError
from placement.report.placement_metrics import make_table

NEEDED = ("schema", "suite", "suite_version", "design", "split", "placer", "seed", "status", "scores", "baseline")
SCORES = {  # heading and format of the scores in tables of medians
    "chip_cost": ("chip cost", ".4f"),
    "proxy_cost": ("proxy cost", ".4f"),
    "wirelength": ("wirelength, µm", ",.0f"),
    "wirelength_gap": ("above the minimum", ".1%"),
    "flat_wirelength": ("flat wirelength, µm", ",.0f"),
    "routed_wirelength": ("routed wirelength, µm", ",.0f"),
    "overflow": ("overflow", ".3%"),
    "cells_without_place": ("cells without place", ",.0f"),
    "coloquinte_wirelength": ("coloquinte wirelength, µm", ",.0f"),
    "coloquinte_overflow": ("coloquinte overflow", ".3%"),
    "wns": ("wns, ps", ",.0f"),
    "tns": ("tns, ps", ",.0f"),
}
Results = Sequence[Mapping[str, Any]]


class Row(NamedTuple):
    """A placer on the leaderboard."""

    placer: str  # its name
    designs: int  # number of designs with a baseline on which it has results
    runs: int  # runs, failed: number of runs, and of those that found no legal placement in time
    failed: int
    cpu_seconds: float  # mean CPU seconds of a run
    score: Interval  # interquartile mean of the normalised scores; a failed run scores infinity
    # the probability that its run scores less than one of the first placer on the leaderboard; None for the first
    better: Interval | None


def read_results(folder: Path) -> list[dict[str, Any]]:
    """Returns the results below a folder, with their `file`; raises DesignError if a file is damaged."""
    found = []
    for path in sorted(folder.glob("**/seed*.json")):
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            missing = [key for key in NEEDED if key not in result]
        except (OSError, ValueError, TypeError) as error:
            raise DesignError(f"{path}: not a benchmark result: {error}") from None
        if missing:
            raise DesignError(f"{path}: not a benchmark result: it has no {', '.join(missing)}")
        found.append({**result, "file": path})
    return found


def normalised(results: Results, metric: str) -> dict[str, dict[str, np.ndarray]]:
    """Returns placer → design → float64 [runs]: scores over the baseline's median; infinity for a failed run.

    Omitted are designs whose baseline has no score, placers with successful runs none of which was scored by the
    metric, and the unscored runs of other placers.
    """
    base, found = baselines(results, metric), dict[str, dict[str, list[float]]]()
    unscored = {one["placer"] for one in results if one["status"] == "ok"}
    unscored -= {one["placer"] for one in results if metric in one["scores"]}
    for one in results:
        if one["design"] not in base or one["placer"] in unscored:
            continue
        if metric in one["scores"] or one["status"] != "ok":
            value = one["scores"][metric] if one["status"] == "ok" else math.inf
            found.setdefault(one["placer"], {}).setdefault(one["design"], []).append(value / base[one["design"]])
    return {placer: {name: np.array(runs) for name, runs in own.items()} for placer, own in found.items()}


def baselines(results: Results, metric: str) -> dict[str, float]:
    """Returns the median score of each design's baseline."""
    values: dict[str, list[float]] = {}
    for one in results:
        if one["baseline"] in (one["placer"], one.get("kind")) and one["status"] == "ok" and metric in one["scores"]:
            values.setdefault(one["design"], []).append(one["scores"][metric])
    return {name: float(np.median(own)) for name, own in values.items()}


def headline(results: Results) -> str:
    """Returns the ranking metric: that of an independent judge, else of the full evaluation, else the chip cost."""
    scored = {name for one in results for name in one["scores"]}
    return next((name for name in reversed(METRICS[3:]) if name in scored), METRICS[0])


def without_baseline(results: Results, metric: str) -> dict[str, list[str]]:
    """Returns baseline → the designs on which it has no score, which no table can count."""
    base, found = baselines(results, metric), dict[str, list[str]]()
    for one in results:
        names = found.setdefault(str(one["baseline"]), [])
        if one["baseline"] is not None and one["design"] not in base and one["design"] not in names:
            names.append(str(one["design"]))
    return {baseline: names for baseline, names in found.items() if names}


def board(results: Results, metric: str, *, repetitions: int = REPETITIONS) -> list[Row]:
    """Ranks the placers, best first; those with results on all designs come before others."""
    scores = normalised(results, metric)
    spent: dict[str, list[float]] = {}
    for one in results:
        spent.setdefault(one["placer"], []).append(one.get("cpu_seconds", math.nan))
    most = max((len(own) for own in scores.values()), default=0)
    rows = []
    for placer, own in scores.items():
        runs = np.concatenate(list(own.values()))
        value = bootstrap(interquartile_mean, list(own.values()), repetitions=repetitions)
        failed = int(np.isinf(runs).sum())
        rows.append(Row(placer, len(own), len(runs), failed, float(np.nanmean(spent[placer])), value, None))
    rows.sort(key=lambda row: (row.designs < most, row.score.value, row.placer))
    return [row._replace(better=_better(scores, row, rows[0], repetitions)) for row in rows]


def _better(scores: Mapping[str, Mapping[str, np.ndarray]], row: Row, first: Row, repetitions: int) -> Interval | None:
    shared = [name for name in scores[row.placer] if name in scores[first.placer]]
    if row is first or not shared:
        return None
    samples = [[scores[placer][name] for name in shared] for placer in (row.placer, first.placer)]
    return bootstrap(probability_of_improvement, *samples, repetitions=repetitions)


def _text(value: Interval | None, form: str = ".3f") -> str:
    if value is None:
        return "–"
    low, high = (format(one, form) if math.isfinite(one) else "∞" for one in value[1:])
    return f"{format(value.value, form) if math.isfinite(value.value) else '∞'} [{low}, {high}]"


COLUMNS = ("placer", "designs", "runs", "failed", "CPU-s", "score [95%]", "P(better than first) [95%]")


def row_cells(row: Row) -> list[str]:
    """Formats a row for the columns `COLUMNS`."""
    counts = str(row.designs), str(row.runs), str(row.failed)
    return [row.placer, *counts, f"{row.cpu_seconds:.1f}", _text(row.score), _text(row.better, ".0%")]


def summary_table(results: Results, metric: str, title: str) -> Table:
    """Returns the leaderboard as a table whose caption defines the scores."""
    rows = board(results, metric)
    caption = (
        f"score: interquartile mean of {metric.replace('_', ' ')} over that of {baseline_text(results)}; "
        "lower is better; intervals: stratified bootstrap; failed runs score infinity"
    )
    return make_table(COLUMNS, map(row_cells, rows), title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False)


def score_table(results: Results, title: str) -> Table:
    """Returns the median scores of one design, one column per placer because there are more scores than placers."""
    columns, rows = score_rows(results)
    heading, *lines = zip(columns, *rows, strict=True)
    caption = "medians over the valid runs; best: their lowest chip cost"
    return make_table(heading, lines, title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False)


def score_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """Returns the table of one design, one row per placer: runs, failed runs, CPU seconds, median scores."""
    shown = [name for name in SCORES if any(name in one["scores"] for one in results)]
    columns = ["placer", "runs", "failed", "CPU-s", "best", *(SCORES[name][0] for name in shown)]
    rows = []
    for placer in dict.fromkeys(str(one["placer"]) for one in results):
        own = [one for one in results if one["placer"] == placer]
        good = [one["scores"] for one in own if one["status"] == "ok" and one["scores"]]
        spent = float(np.mean([one.get("cpu_seconds", math.nan) for one in own]))
        best = min((scores[METRICS[0]] for scores in good), default=math.nan)
        cells = [placer, str(len(own)), str(len(own) - len(good)), f"{spent:.1f}", median_text([best], METRICS[0])]
        rows.append(cells + [median_text([one[name] for one in good if name in one], name) for name in shown])
    return columns, rows


def median_text(values: Sequence[float], name: str) -> str:
    """Formats the median of the scores of that name; – if there are none."""
    return format(float(np.median(values)), SCORES[name][1]) if len(values) and np.isfinite(values[0]) else "–"


def baseline_text(results: Results) -> str:
    """Describes the baselines of the designs."""
    return ", ".join(sorted({str(one["baseline"]) for one in results}))
