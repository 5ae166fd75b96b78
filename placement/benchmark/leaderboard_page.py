"""Results as Markdown, with the leaderboard in a file beside the page."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

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
from placement.benchmark.suites import SUPPLIED, read_suite
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole

PAGE_NAME, BOARD_NAME = "benchmark.md", "leaderboard.json"
PROFILE_NAME, TIME_NAME = "profiles.png", "time_to_quality.png"
PICTURES = {
    PROFILE_NAME: "Share of each placer's runs by normalised cost",
    TIME_NAME: "Normalised chip cost of each placer by CPU time",
}
SEARCH = "search@60"  # baseline of the chip cost in suites that rank placers by placed cells
IMAGES = "images"  # folder of the pictures, beside the page of all results
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
    write_whole(folder / PAGE_NAME, "\n".join(sections(results)))
    if plots and rows:
        draw_board(folder / PROFILE_NAME, folder / TIME_NAME, results)


def groups(results: Results) -> Iterator[tuple[str, int, str, list[Mapping[str, Any]]]]:
    """Yields suite, version, split, and their results."""
    key = lambda one: (str(one["suite"]), int(one["suite_version"]), str(one["split"]))  # noqa: E731
    for (suite, version, split), own in itertools.groupby(sorted(results, key=key), key):
        yield suite, version, split, list(own)


def sections(results: Results, notes: Mapping[str, str] | None = None) -> list[str]:
    """Returns a section per suite and split: description, findings, tables of metrics and designs, failures, machines.

    Without `notes`, links to pictures are omitted as well.
    """
    lines: list[str] = []
    for suite, version, split, group in groups(results):
        title = f"{suite}, version {version}, {split}" if version else suite
        lines += [f"## {title}", "", *_about(suite, split, group), ""]
        if findings := _findings(group):
            lines += [findings, ""]
        if notes is not None:
            if note := notes.get(f"{suite}-{version}"):
                lines += [note, ""]
            for name in pictures(group):
                lines += [f"![{PICTURES[name]}]({IMAGES}/benchmark_{suite}_{name})", ""]
        of_clusters = headline(group) == METRICS[0]
        costed = group if of_clusters else _without_supplied(group)
        for metric in METRICS[:3] if of_clusters else (*reversed(METRICS[3:]), METRICS[0]):
            own = costed if metric in METRICS[:3] else group
            if rows := board(own, metric):
                left_out = [f"`{name}`" for names in without_baseline(own, metric).values() for name in names]
                text = f" Not included, because the baseline has no score: {', '.join(left_out)}." if left_out else ""
                lines += [f"### {_title(metric)}", ""]
                lines += [f"Baseline: {baseline_text(own)}.{text}", ""]
                lines += [*_markdown(COLUMNS, map(row_cells, rows)), ""]
        if not version:
            columns, cells = score_rows(group)
            lines += [*_markdown(columns, cells), ""]
        for name in PAGE_SCORES if version else ():
            own = costed if name in METRICS[:3] else group
            if any(name in one["scores"] for one in own):
                lines += [f"### {_title(name)} by design", ""]
                lines += [
                    f"Median {SCORES[name][0]}. A dash means that no run is valid.",
                    "",
                    *_designs_table(own, name),
                    "",
                ]
        if failures := _failures(group):
            lines += ["### Failures", "", *failures, ""]
        lines += ["### Setup", "", *_provenance(group), ""]
    return lines


def _without_supplied(results: Results) -> list[Mapping[str, Any]]:
    """Returns the results to compare by the chip cost in a suite that ranks placers by placed cells.

    Supplied placements are omitted, because no clusters are placed around their macros.
    """
    return [{**one, "baseline": SEARCH} for one in results if one.get("kind") != SUPPLIED]


def pictures(results: Results) -> list[str]:
    """Returns the pictures to show; costs of clusters are omitted if placers are ranked by placed cells."""
    return [name for name in PICTURES if name != TIME_NAME or headline(results) == METRICS[0]]


def _findings(results: Results) -> str:
    """Describes the best placer by the headline metric, its margin, and the number of failed runs."""
    metric = headline(results)
    rows = board(results, metric)
    if len(rows) < 2 or not rows[0].score.value < rows[1].score.value < math.inf:
        return ""
    first, second = rows[:2]
    costs: dict[str, dict[str, list[float]]] = {}
    for one in results:
        if one["status"] == "ok" and metric in one["scores"]:
            own = costs.setdefault(str(one["design"]), {})
            own.setdefault(str(one["placer"]), []).append(one["scores"][metric])
    medians = [{placer: float(np.median(values)) for placer, values in own.items()} for own in costs.values()]
    best = [min(own, key=own.__getitem__) for own in medians]
    failed = sum(one["status"] != "ok" for one in results)
    what, gap = SCORES[metric][0].partition(",")[0], 1 - first.score.value / second.score.value
    return (
        f"{first.placer} has the lowest {what}, {gap:.1%} below that of {second.placer}, and the lowest median on "
        f"{best.count(first.placer)} of {len(best)} designs. {failed} of {len(results)} runs failed."
    )


def _title(name: str) -> str:
    return name.upper() if name in ("wns", "tns") else name.replace("_", " ").capitalize()


def _about(suite: str, split: str, results: Results) -> list[str]:
    """Describes the suite, the number of runs, and the designs of the split without runs."""
    known = {str(one["design"]) for one in results}
    text = f"{len(results)} runs on {len(known)} designs."
    try:
        found = read_suite(suite)
        missing = [one.name for one in found.chosen(split) if one.name not in known]
    except DesignError:  # a user-defined suite
        return [text]
    lines = [f"{found.about[0].upper()}{found.about[1:]}. {text}"]
    return lines + (["", f"Not run: {', '.join(f'`{name}`' for name in missing)}."] if missing else [])


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
    spent, clock = (sum(one.get(key) or 0.0 for one in results) / 3600 for key in ("cpu_seconds", "wall_seconds"))
    seeds = sorted({int(one["seed"]) for one in results})
    placers = dict.fromkeys(str(one["placer"]) for one in results if one.get("template") is None)
    full = " full=true" if any("routed_wirelength" in one["scores"] for one in results) else ""
    one = results[0]
    where = one["suite"] if one["suite_version"] else f"design={one['suite']}"
    where += "" if one["split"] == "test" else f" split={one['split']}"
    command = f"macro-placement benchmark {where} placers={','.join(placers)} seeds={len(seeds)}{full}"
    return [
        f"- Command: `{command}`",
        *lines,
        f"- Finished: {dates[0]} to {dates[-1]}",
        f"- Seeds: {', '.join(map(str, seeds))}",
        f"- Total time without scoring: {spent:.2f} CPU-hours, {clock:.2f} hours wall-clock",
    ]
