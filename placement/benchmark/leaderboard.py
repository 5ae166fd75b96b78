"""The leaderboard: results read, normalised and aggregated; as a table, as plots, and as a Markdown page."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from placement.benchmark.aggregates import (
    METRICS,
    REPETITIONS,
    Interval,
    bootstrap,
    interquartile_mean,
    probability_of_improvement,
    profile,
)
from placement.benchmark.benchmark_config import PageConfig
from placement.benchmark.suites import read_suite
from placement.netlist.errors import DesignError
from placement.netlist.files import check_output_file, write_whole
from placement.report.placement_metrics import make_table

PAGE_NAME, BOARD_NAME = "benchmark.md", "leaderboard.json"
PROFILE_NAME, TIME_NAME = "profiles.png", "time_to_quality.png"
NEEDED = ("schema", "suite", "suite_version", "design", "split", "placer", "seed", "status", "scores", "baseline")
SCORES = {
    "chip_cost": ("chip cost", ".4f"),
    "proxy_cost": ("proxy cost", ".4f"),
    "wirelength": ("wirelength, µm", ",.0f"),
    "wirelength_gap": ("above the least", ".1%"),
    "flat_wirelength": ("flat wirelength, µm", ",.0f"),
    "routed_wirelength": ("routed wirelength, µm", ",.0f"),
    "overflow": ("overflow", ".3%"),
    "cells_without_place": ("cells without place", ",.0f"),
    "coloquinte_wirelength": ("coloquinte wirelength, µm", ",.0f"),
    "coloquinte_overflow": ("coloquinte overflow", ".3%"),
    "wns": ("wns, ps", ",.0f"),
    "tns": ("tns, ps", ",.0f"),
}
"""Scores in tables of medians: the heading and the format."""
PAGE_SCORES = (
    "chip_cost",
    "routed_wirelength",
    "overflow",
    "coloquinte_wirelength",
    "coloquinte_overflow",
    "wns",
    "tns",
)
"""Those that the page has a table of all designs for."""
Results = Sequence[Mapping[str, Any]]
_THRESHOLDS = np.linspace(0.8, 2.0, 241)
_POINTS = 60


class Row(NamedTuple):
    """A placer on the board.

    Attributes:
        placer: its name.
        designs: on which it has results, of those with a baseline.
        runs, failed: how many, and how many of them found no legal placement in time.
        cpu_seconds: mean of a run.
        score: interquartile mean of the normalised scores; a run that failed scores infinity.
        better: the probability that its run scores less than one of the first placer on the board; None for the first.
    """

    placer: str
    designs: int
    runs: int
    failed: int
    cpu_seconds: float
    score: Interval
    better: Interval | None


def read_results(folder: Path) -> list[dict[str, Any]]:
    """The results below a folder, with their `file`; raises DesignError where a file is damaged."""
    found = []
    for path in sorted(folder.glob("**/seed*.json")):
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            missing = [key for key in NEEDED if key not in result]
        except (OSError, ValueError, TypeError) as error:
            raise DesignError(f"{path}: is no result of a benchmark: {error}") from None
        if missing:
            raise DesignError(f"{path}: is no result of a benchmark: it has no {', '.join(missing)}")
        found.append({**result, "file": path})
    return found


def normalised(results: Results, metric: str) -> dict[str, dict[str, np.ndarray]]:
    """Placer → design → float64 [runs]: scores over the median of the baseline's; infinity for a run that failed.

    Designs without a score of their baseline are left out.
    """
    base, found = _baselines(results, metric), dict[str, dict[str, list[float]]]()
    for one in results:
        if one["design"] in base:
            value = one["scores"].get(metric, math.inf) if one["status"] == "ok" else math.inf
            found.setdefault(one["placer"], {}).setdefault(one["design"], []).append(value / base[one["design"]])
    return {placer: {name: np.array(runs) for name, runs in own.items()} for placer, own in found.items()}


def _baselines(results: Results, metric: str) -> dict[str, float]:
    """The median score of each design's baseline."""
    values: dict[str, list[float]] = {}
    for one in results:
        if one["baseline"] in (one["placer"], one.get("kind")) and one["status"] == "ok" and metric in one["scores"]:
            values.setdefault(one["design"], []).append(one["scores"][metric])
    return {name: float(np.median(own)) for name, own in values.items()}


def without_baseline(results: Results, metric: str) -> dict[str, list[str]]:
    """Baseline → the designs that have no score of it, which no table can count."""
    base, found = _baselines(results, metric), dict[str, list[str]]()
    for one in results:
        names = found.setdefault(str(one["baseline"]), [])
        if one["baseline"] is not None and one["design"] not in base and one["design"] not in names:
            names.append(str(one["design"]))
    return {baseline: names for baseline, names in found.items() if names}


def board(results: Results, metric: str, *, repetitions: int = REPETITIONS) -> list[Row]:
    """The placers, the best first; those on all designs before others."""
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


COLUMNS = ("placer", "designs", "runs", "failed", "CPU-s", "score [95%]", "better than the first [95%]")


def _cells(row: Row) -> list[str]:
    counts = str(row.designs), str(row.runs), str(row.failed)
    return [row.placer, *counts, f"{row.cpu_seconds:.1f}", _text(row.score), _text(row.better, ".0%")]


def summary_table(results: Results, metric: str, title: str) -> Table:
    """The board as a table; its caption says what the scores are."""
    rows = board(results, metric)
    caption = (
        f"score: interquartile mean of {metric.replace('_', ' ')} over that of {_baseline_text(results)}; "
        "lower is better; intervals: stratified bootstrap; failed runs score infinity"
    )
    return make_table(COLUMNS, map(_cells, rows), title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False)


def score_table(results: Results, title: str) -> Table:
    """The medians of the scores of one design."""
    columns, rows = _score_rows(results)
    caption = "medians of the runs that count; best: the least chip cost of them"
    return make_table(columns, rows, title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False)


def _score_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """The table of one design, a row for each placer: runs, those that failed, CPU seconds, medians of scores."""
    shown = [name for name in SCORES if any(name in one["scores"] for one in results)]
    columns = ["placer", "runs", "failed", "CPU-s", "best", *(SCORES[name][0] for name in shown)]
    rows = []
    for placer in dict.fromkeys(str(one["placer"]) for one in results):
        own = [one for one in results if one["placer"] == placer]
        good = [one["scores"] for one in own if one["status"] == "ok" and one["scores"]]
        spent = float(np.mean([one.get("cpu_seconds", math.nan) for one in own]))
        best = min((scores[METRICS[0]] for scores in good), default=math.nan)
        cells = [placer, str(len(own)), str(len(own) - len(good)), f"{spent:.1f}", _median([best], METRICS[0])]
        rows.append(cells + [_median([one[name] for one in good if name in one], name) for name in shown])
    return columns, rows


def _median(values: Sequence[float], name: str) -> str:
    return format(float(np.median(values)), SCORES[name][1]) if len(values) and np.isfinite(values[0]) else "–"


def _baseline_text(results: Results) -> str:
    return ", ".join(sorted({str(one["baseline"]) for one in results}))


def write_board(folder: Path, results: Results, metric: str, *, plots: bool) -> None:
    """Writes `benchmark.md`, and of suites `leaderboard.json` and the plots."""
    rows = board(results, metric)
    if rows:
        described = {"metric": metric, "rows": [row._asdict() for row in rows]}
        write_whole(folder / BOARD_NAME, json.dumps(described, indent=1).replace("Infinity", "null") + "\n")
    write_whole(folder / PAGE_NAME, "\n".join(_section(results)))
    if plots and rows:
        draw(folder, results, metric)


def draw(folder: Path, results: Results, metric: str) -> None:
    """Draws the performance profiles, and the time to quality where the metric is the chip cost that curves follow."""
    from placement.report import style  # Matplotlib takes a second to import

    scores = normalised(results, metric)
    figure = style.new_figure(7.4, 4.8)
    axes = figure.add_axes((0.115, 0.12, 0.865, 0.70))
    for index, (placer, own) in enumerate(scores.items()):
        share = profile(list(own.values()), _THRESHOLDS)
        look: dict[str, Any] = {
            "color": style.SERIES[index % len(style.SERIES)],
            "linestyle": ("-", "--", ":")[index // len(style.SERIES) % 3],
        }
        axes.step(_THRESHOLDS, share, where="post", linewidth=1.8, label=placer, **look)
    axes.set(
        xlabel=f"{metric.replace('_', ' ')} over that of {_baseline_text(results)}",
        ylabel="share of runs",
        ylim=(0, 1.02),
    )
    style.dress(axes, grid=True)
    axes.legend(frameon=False, fontsize=style.SMALL_SIZE, loc="lower right")
    style.head(
        figure, "Performance profiles", "the share of runs that score at most so much; up and to the left is better"
    )
    style.save_figure(figure, folder / PROFILE_NAME)
    if metric == METRICS[0]:
        _draw_time(folder / TIME_NAME, results)


def quality_over_time(results: Results, placer: str, times: np.ndarray) -> np.ndarray:
    """float64 [times]: the interquartile mean of the normalised chip cost that the placer's runs had reached.

    A run that has none yet, or failed, counts as infinity.
    """
    base = _baselines(results, METRICS[0])
    reached = []
    for one in results:
        if one["placer"] != placer or one["design"] not in base:
            continue
        if one["status"] != "ok":
            reached.append(np.full(len(times), np.inf))
            continue
        curve = [*one.get("curve", []), [one["cpu_seconds"], one["scores"][METRICS[0]]]]
        seconds, costs = np.array(sorted(curve), dtype=np.float64).T
        index = np.searchsorted(seconds, times, side="right") - 1
        best = np.minimum.accumulate(costs)[np.maximum(index, 0)] / base[one["design"]]
        reached.append(np.where(index >= 0, best, np.inf))
    if not reached:
        return np.full(len(times), np.inf)
    return interquartile_mean([np.stack(reached, axis=-1)])


def _draw_time(path: Path, results: Results) -> None:
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    from placement.report import style

    spent = [one["cpu_seconds"] for one in results if one.get("cpu_seconds")]
    if not spent:
        return
    times = np.geomspace(0.5, max(*spent, 1.0), _POINTS)
    figure = style.new_figure(7.4, 4.8)
    axes = figure.add_axes((0.115, 0.12, 0.865, 0.70))
    for index, placer in enumerate(dict.fromkeys(str(one["placer"]) for one in results)):
        values = quality_over_time(results, placer, times)
        known = np.isfinite(values)
        look: dict[str, Any] = {
            "color": style.SERIES[index % len(style.SERIES)],
            "marker": "o" if known.sum() == 1 else "",
        }
        axes.plot(times[known], values[known], linewidth=1.8, label=placer, **look)
    axes.set(
        xscale="log", xlabel="CPU seconds since the process began", ylabel="chip cost, interquartile mean, normalised"
    )
    ticks = [digit * 10**power for power in range(-1, 7) for digit in (1, 2, 5)]
    axes.set_xticks([tick for tick in ticks if times[0] <= tick <= times[-1]])
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    style.dress(axes, grid=True)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=style.SMALL_SIZE)
    style.head(figure, "Time to quality", "a curve begins where three quarters of a placer's runs have a placement")
    style.save_figure(figure, path)


HEAD = (
    "# Benchmark\n\n"
    "<!-- Written by `macro-placement benchmark page` from benchmarks/results/; run it after changing those. -->\n\n"
    "Placers side by side on frozen [suites](how-to/benchmark-suites.md) of designs. Every run is its own process. "
    "Its CPU time is counted from the start of the process, with loading and compilation. A placement counts if it is "
    "legal and in time. [Put your placer on the board](how-to/benchmark-suites.md#put-your-placer-on-the-board) with a "
    "pull request.\n\n"
    "A score is a cost over the cost of the baseline, whose score is 1; lower is better. The tables show its "
    "interquartile mean over all runs, with a 95% interval by stratified bootstrap. A run that failed scores infinity. "
    "The last column is the probability that a run scores lower than one of the first placer on the same design.\n"
)


def page(results: Results) -> str:
    """The whole page of these results."""
    return "\n".join([HEAD, *_section(results)])


def _section(results: Results) -> list[str]:
    """For each suite and split: what it is, a table for each metric, a table of designs, failures, machines."""
    lines: list[str] = []
    key = lambda one: (str(one["suite"]), int(one["suite_version"]), str(one["split"]))  # noqa: E731
    for (suite, version, split), own in itertools.groupby(sorted(results, key=key), key):
        group = list(own)
        title = f"{suite}, version {version}, {split}" if version else suite
        lines += [f"## {title}", "", *_about(suite, split, group), ""]
        for metric in METRICS:
            if rows := board(group, metric):
                left_out = [f"`{name}`" for names in without_baseline(group, metric).values() for name in names]
                text = f" Left out, for it has no score there: {', '.join(left_out)}." if left_out else ""
                lines += [f"### {_title(metric)}", ""]
                lines += [f"Baseline: {_baseline_text(group)}.{text}", ""]
                lines += [*_markdown(COLUMNS, map(_cells, rows)), ""]
        if not version:
            columns, cells = _score_rows(group)
            lines += [*_markdown(columns, cells), ""]
        for name in PAGE_SCORES if version else ():
            if any(name in one["scores"] for one in group):
                lines += [f"### {_title(name)} by design", ""]
                lines += [f"Median {SCORES[name][0]}; – where no run counts.", "", *_designs_table(group, name), ""]
        if failures := _failures(group):
            lines += ["### Failures", "", *failures, ""]
        lines += ["### How it was run", "", *_provenance(group), ""]
    return lines


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _about(suite: str, split: str, results: Results) -> list[str]:
    """What the suite is, how many runs there are, and which designs of the split have none."""
    known = {str(one["design"]) for one in results}
    text = f"{len(results)} runs on {len(known)} designs."
    try:
        found = read_suite(suite)
        missing = [one.name for one in found.chosen(split) if one.name not in known]
    except DesignError:  # a suite of somebody's own
        return [text]
    lines = [f"{found.about[0].upper()}{found.about[1:]}. {text}"]
    return lines + (["", f"Not run: {', '.join(f'`{name}`' for name in missing)}."] if missing else [])


def _markdown(columns: Sequence[str], rows: Iterable[Sequence[str]], *, align: str = "--:") -> list[str]:
    """The lines of a table; `align` is Markdown's, of all columns but the first."""
    lines = [columns, ["---", *[align] * (len(columns) - 1)], *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _designs_table(results: Results, name: str) -> list[str]:
    """The medians of a score, a row for each design, a column for each placer."""
    placers = list(dict.fromkeys(str(one["placer"]) for one in results))
    values: dict[tuple[str, str], list[float]] = {}
    for one in results:
        own = values.setdefault((str(one["design"]), str(one["placer"])), [])
        if one["status"] == "ok" and name in one["scores"]:
            own.append(one["scores"][name])
    rows = [
        [f"`{design}`", *(_median(values.get((design, placer), []), name) for placer in placers)]
        for design in dict.fromkeys(design for design, _ in values)
    ]
    return _markdown(["design", *placers], rows)


def _failures(results: Results) -> list[str]:
    counts: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for one in results:
        if one["status"] != "ok":
            counts.setdefault((str(one["placer"]), str(one["design"]), str(one["status"])), []).append(one)
    rows = [
        [placer, f"`{design}`", status, str(len(own)), str(own[0].get("reason")).replace("|", "\\|")]
        for (placer, design, status), own in counts.items()
    ]
    columns = ("placer", "design", "status", "runs", "the first one's reason")
    return _markdown(columns, rows, align="---") if rows else []


def _provenance(results: Results) -> list[str]:
    machines = sorted(
        {f"{m['processor']}, {m['cores']} cores, {m['system']}" for one in results if (m := one.get("machine"))}
    )
    loads = [one["machine"]["load"] for one in results if one.get("machine")]
    versions = sorted({", ".join(f"{name} {v}" for name, v in one.get("versions", {}).items()) for one in results})
    dates = sorted(str(one.get("finished", ""))[:10] for one in results)
    lines = [f"- Machine: {text}" for text in machines] + [f"- Versions: {text}" for text in versions]
    if loads:
        lines.append(f"- Load average at the start of a run: {min(loads):.1f} to {max(loads):.1f}")
    spent = sum(one.get("cpu_seconds") or 0.0 for one in results) / 3600
    seeds = sorted({int(one["seed"]) for one in results})
    return [
        *lines,
        f"- Finished: {dates[0]} to {dates[-1]}",
        f"- Seeds: {', '.join(map(str, seeds))}",
        f"- CPU hours: {spent:.2f}",
    ]


def write_page(config: PageConfig, console: Console) -> None:
    """Writes the page of all results below a folder. Raises DesignError where there are none, or one is damaged."""
    results = read_results(Path(config.results))
    if not results:
        raise DesignError(f"results={config.results}: holds no results of macro-placement benchmark")
    check_output_file("out", config.out)
    write_whole(config.out, page(results))
    console.print(f"{len(results)} results: {config.out}", soft_wrap=True)
