"""Verifies results of `macro-placement benchmark` for a pull request, and writes the page of all results.

    python benchmarks/submissions.py check benchmarks/results
    python benchmarks/submissions.py page  # writes docs/benchmark.md and its pictures

`check` generates the designs again and compares each placement's checksum, legality and costs with its result.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from placement.benchmark.aggregates import METRICS
from placement.benchmark.benchmark_plots import draw_board
from placement.benchmark.leaderboard import SCORES, Results, board, headline, read_results
from placement.benchmark.leaderboard_page import PROFILE_NAME, TIME_NAME, groups, heading, tables
from placement.benchmark.running import Result
from placement.benchmark.scoring import broken_rules, costs_of
from placement.benchmark.suites import content_checksum, design_path, read_suite
from placement.evaluation.placements import read_file
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready
from placement.netlist.files import write_whole
from placement.netlist.load import load

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "benchmark.md"
IMAGES = "images"
"""Folder of the page's pictures, beside the page."""
TOLERANCE = 1e-6
"""Relative difference up to which scores count as equal."""
PICTURES = {
    PROFILE_NAME: "Share of each placer's runs by normalised cost",
    TIME_NAME: "Normalised chip cost of each placer by CPU time",
}
HEAD = (
    "# Benchmark\n\n"
    "<!-- Written by `python benchmarks/submissions.py page` from benchmarks/results/. -->\n\n"
    "This page compares placers on frozen [suites](how-to/benchmark-suites.md) of designs. Every run is a separate "
    "process, whose CPU time includes loading and compilation. A run is valid if its placement is legal and in time. "
    "[Put your placer on the board](how-to/benchmark-suites.md#put-your-placer-on-the-board) with a pull request.\n\n"
    "A score is the cost divided by the baseline's cost; lower is better. The tables show the interquartile mean over "
    "all runs, with a 95% interval by stratified bootstrap. A failed run scores infinity. The last column is the "
    "probability that a run scores lower than a run of the first placer on the same design. Placers without runs on "
    "all designs are listed last.\n"
)


def results_in(folder: Path) -> list[Result]:
    """Returns the results below a folder; raises DesignError if there are none or one is damaged."""
    results = read_results(folder)
    if not results:
        raise DesignError(f"{folder}: contains no results of macro-placement benchmark")
    return results


def check(folder: Path) -> None:
    """Checks results against their placements: the design, the legality, the costs.

    Results of public designs that are not available are skipped. Raises DesignError if a result does not match.
    """
    results = results_in(folder)
    designs: dict[str, tuple[Path, Design]] = {}
    wrong, checked, without, absent = [], 0, 0, dict[str, str]()
    with tempfile.TemporaryDirectory() as made:  # the designs are made here, not taken from the submitter
        for result in results:
            file = result["file"].parent / result["placement"] if result.get("placement") else None
            if result["status"] != "ok":
                continue
            if file is None or not file.is_file():
                without += 1
                continue
            if reason := _missing(result, designs, Path(made)):
                absent[str(result["design"])] = reason
                continue
            checked += 1
            if reason := _difference(result, file, *designs[result["design"]]):
                wrong.append(f"{result['file']}: {reason}")
    for reason in absent.values():
        print(f"skipped: {reason}")
    print(f"{checked} placements checked, {without} results without a placement, {len(wrong)} wrong")
    if wrong:
        raise DesignError("; ".join(wrong[:5]) + (f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""))


def _missing(result: Result, designs: dict[str, tuple[Path, Design]], folder: Path) -> str | None:
    """Returns why a public design is missing or differs from the result's; None if it is added to `designs`."""
    (one,) = read_suite(result["suite"]).chosen("", [result["design"]])
    if one.name not in designs:
        try:
            path = design_path(one, folder)
        except DesignError as error:
            if one.kind != "public":
                raise
            return str(error)
        designs[one.name] = path, load(path)
    if one.checksum is None and result["checksum"] not in (None, content_checksum(designs[one.name][1])):
        return f"{one.name}: was scored on a different version of the design"
    return None


def _difference(result: Result, file: Path, path: Path, design: Design) -> str | None:
    """Returns how a result differs from the scores of its placement on the design; None if it does not."""
    suite = read_suite(result["suite"])
    if suite.version != result["suite_version"]:
        return f"uses version {result['suite_version']} of {suite.name}; this program has version {suite.version}"
    if hashlib.sha256(file.read_bytes()).hexdigest() != result["placement_sha256"]:
        return f"{file.name} differs from the file that was scored"
    design = ready(design)
    placement, _ = read_file(str(file), str(path), design)
    if broken := broken_rules(design, placement):
        return f"{file.name} is not legal: {broken}"
    for name, value in costs_of(design, placement).items():
        if not math.isclose(value, result["scores"].get(name, math.nan), rel_tol=TOLERANCE):
            return f"{name} is {value!r}, instead of {result['scores'].get(name)!r}"
    return None


def page(results: Results, notes: Mapping[str, str]) -> str:
    """Returns the page of these results; `notes` are those of `read_notes`."""
    lines = [HEAD]
    for suite, version, split, group in groups(results):
        lines += [heading(suite, version, split), "", *_about(suite, split, group), ""]
        texts = [_findings(group), notes.get(f"{suite}-{version}", "")]
        texts += [f"![{PICTURES[name]}]({IMAGES}/benchmark_{suite}_{name})" for name in _pictures(group)]
        for text in filter(None, texts):
            lines += [text, ""]
        lines += [*tables(group), "### Setup", "", *_provenance(group), ""]
    return "\n".join(lines)


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


def _pictures(results: Results) -> list[str]:
    """Returns the pictures to show; costs of clusters are omitted if placers are ranked by placed cells."""
    return [name for name in PICTURES if name != TIME_NAME or headline(results) == METRICS[0]]


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


def read_notes(folder: Path) -> dict[str, str]:
    """Reads the files `<suite>-<version>.md` in the folder of the results: remarks on the suites."""
    return {path.stem: path.read_text(encoding="utf-8").strip() for path in sorted(folder.glob("*.md"))}


def write_page(folder: Path, out: Path) -> None:
    """Writes the page of all results below a folder, and its pictures in a folder beside it."""
    results, images = results_in(folder), out.parent / IMAGES
    images.mkdir(parents=True, exist_ok=True)
    for suite, version, _, group in groups(results):
        if version:
            names = {name: images / f"benchmark_{suite}_{name}" for name in _pictures(group)}
            draw_board(names[PROFILE_NAME], names.get(TIME_NAME), group)
    write_whole(out, page(results, read_notes(folder)))
    print(f"{len(results)} results: {out}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("check", "page"))
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS, help="folder of the results")
    parser.add_argument("--out", type=Path, default=PAGE, help="the Markdown page")
    args = parser.parse_args()
    try:
        if args.what == "check":
            check(args.results)
        else:
            write_page(args.results, args.out)
    except DesignError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
