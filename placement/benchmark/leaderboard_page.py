"""Results as Markdown, with the leaderboard in a file beside the page."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from placement.benchmark.aggregates import METRICS
from placement.benchmark.benchmark_plots import draw_board
from placement.benchmark.leaderboard import (
    COLUMNS,
    SCORES,
    Results,
    baseline_text,
    board,
    headline,
    median_text,
    row_cells,
    score_rows,
    without_baseline,
)
from placement.benchmark.suites import SUPPLIED
from placement.netlist.files import write_whole

PAGE_NAME, BOARD_NAME = "benchmark.md", "leaderboard.json"
PROFILE_NAME, TIME_NAME = "profiles.png", "time_to_quality.png"
SEARCH = "search@60"  # baseline of the chip cost in suites that rank placers by placed cells
PAGE_SCORES = (  # scores that have a table of all designs on the page
    "chip_cost",
    "routed_wirelength",
    "overflow",
    "coloquinte_wirelength",
    "coloquinte_overflow",
    "wns",
    "tns",
)


def write_board(folder: Path, results: Results, *, plots: bool) -> None:
    """Writes `benchmark.md`, and for suites `leaderboard.json` and the plots."""
    metric = headline(results)
    rows = board(results, metric)
    if rows:
        described = {"metric": metric, "rows": [row._asdict() for row in rows]}
        write_whole(folder / BOARD_NAME, json.dumps(described, indent=1).replace("Infinity", "null") + "\n")
    lines = list[str]()
    for suite, version, split, group in groups(results):
        lines += [heading(suite, version, split), "", *tables(group)]
    write_whole(folder / PAGE_NAME, "\n".join(lines))
    if plots and rows:
        draw_board(folder / PROFILE_NAME, folder / TIME_NAME, results)


def groups(results: Results) -> Iterator[tuple[str, int, str, list[Mapping[str, Any]]]]:
    """Yields suite, version, split, and their results."""
    key = lambda one: (str(one["suite"]), int(one["suite_version"]), str(one["split"]))  # noqa: E731
    for (suite, version, split), own in itertools.groupby(sorted(results, key=key), key):
        yield suite, version, split, list(own)


def heading(suite: str, version: int, split: str) -> str:
    """Returns the heading of a group's section."""
    return f"## {suite}, version {version}, {split}" if version else f"## {suite}"


def tables(results: Results) -> list[str]:
    """Returns the tables of one group's metrics, designs and failures."""
    version, lines = results[0]["suite_version"], list[str]()
    of_clusters = headline(results) == METRICS[0]
    costed = results if of_clusters else _without_supplied(results)
    for metric in METRICS[:3] if of_clusters else (*reversed(METRICS[3:]), METRICS[0]):
        own = costed if metric in METRICS[:3] else results
        if rows := board(own, metric):
            left_out = [f"`{name}`" for names in without_baseline(own, metric).values() for name in names]
            text = f" Not included, because the baseline has no score: {', '.join(left_out)}." if left_out else ""
            lines += [f"### {_title(metric)}", "", f"Baseline: {baseline_text(own)}.{text}", ""]
            lines += [*_markdown(COLUMNS, map(row_cells, rows)), ""]
    if not version:
        columns, cells = score_rows(results)
        lines += [*_markdown(columns, cells), ""]
    for name in PAGE_SCORES if version else ():
        own = costed if name in METRICS[:3] else results
        if any(name in one["scores"] for one in own):
            lines += [f"### {_title(name)} by design", ""]
            lines += [f"Median {SCORES[name][0]}. A dash means that no run is valid.", ""]
            lines += [*_designs_table(own, name), ""]
    if failures := _failures(results):
        lines += ["### Failures", "", *failures, ""]
    return lines


def _without_supplied(results: Results) -> list[Mapping[str, Any]]:
    """Returns the results to compare by the chip cost in a suite that ranks placers by placed cells.

    Supplied placements are omitted, because no clusters are placed around their macros.
    """
    return [{**one, "baseline": SEARCH} for one in results if one.get("kind") != SUPPLIED]


def _title(name: str) -> str:
    return name.upper() if name in ("wns", "tns") else name.replace("_", " ").capitalize()


def _markdown(columns: Sequence[str], rows: Iterable[Sequence[str]], *, align: str = "--:") -> list[str]:
    """Returns the lines of a Markdown table; `align` applies to all columns but the first."""
    lines = [columns, ["---", *[align] * (len(columns) - 1)], *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _designs_table(results: Results, name: str) -> list[str]:
    """Returns the medians of a score, one row per design, one column per placer."""
    placers = list(dict.fromkeys(str(one["placer"]) for one in results if name in one["scores"]))
    values: dict[tuple[str, str], list[float]] = {}
    for one in results:
        own = values.setdefault((str(one["design"]), str(one["placer"])), [])
        if one["status"] == "ok" and name in one["scores"]:
            own.append(one["scores"][name])
    rows = [
        [f"`{design}`", *(median_text(values.get((design, placer), []), name) for placer in placers)]
        for design in dict.fromkeys(design for (design, _), own in values.items() if own)
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
    columns = ("placer", "design", "status", "runs", "reason of the first run")
    return _markdown(columns, rows, align="---") if rows else []
