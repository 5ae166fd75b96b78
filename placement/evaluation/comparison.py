"""`macro-placement compare`: placers compared at equal CPU time, and placements that files hold."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from placement.annealing.search import Point, Watch
from placement.engine.costs import proxy_cost
from placement.evaluation.placements import check_out, load_placements
from placement.evaluation.placers import PLACERS, Job, PlacerOutcome
from placement.evaluation.settings import CompareConfig
from placement.evaluation.timing_evaluation import PlacementTimer
from placement.flat.timing import TimingEstimate
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready
from placement.netlist.files import csv_text, write_whole
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import OPTIMUM_NAME, find, load
from placement.report.placement_metrics import FullMetrics, Metrics, json_object, make_table, measure
from placement.report.progress_bar import progress_bars
from placement.utils.interruption import Interruption

if TYPE_CHECKING:
    from placement.evaluation.full_evaluation import KeptEvaluations

RESULT_NAME, PLACEMENT_NAME = "result.json", "placement.plc"
GIVEN_NAME = "given"
"""The folder that keeps the evaluations of placements that files hold."""
Show = Callable[[str, float], None]
"""Reports what is being done, and how much of it is done, in [0, 1]."""
COLUMNS = {
    "placer": "placer",
    "n": "seeds",
    "mean": "mean",
    "best": "best",
    "spread": "spread",
    "wire": "wirelength_cost",
    "density": "density_cost",
    "congest.": "congestion_cost",
    "illegal": "overlaps",
}
"""Of the table, and the keys of `summary` that they show."""
FULL_COLUMNS = {
    "placer": "placer",
    "n": "seeds",
    "cost": "mean",
    "illegal": "overlaps",
    "flat wire-\nlength, µm": "flat_wirelength",
    "routed wire-\nlength, µm": "routed_wirelength",
    "best\nrouted": "best_routed_wirelength",
    "no\nplace": "cells_without_place",
    "overflow": "overflow",
    "density\noverflow": "density_overflow",
    "hot\nspots": "hot_spots",
    "seconds": "flat_seconds",
}
"""With the full evaluation."""
TIMING_COLUMNS = {"wns, ps": "wns", "tns, ns": "tns_ns"}
"""With timing, besides."""
FORMATS = {
    "overflow": ".3%",
    "density_overflow": ".1%",
    "wirelength_gap": ".1%",
    "flat_seconds": ",.1f",
    **dict.fromkeys(("flat_wirelength", "routed_wirelength", "best_routed_wirelength", "hot_spots"), ",.0f"),
    "cells_without_place": ",.0f",
    "wns": ",.0f",
    "tns_ns": ",.1f",
}
"""Of a row's numbers that are not written with four decimals."""


class Entry(NamedTuple):
    """One placer's run with one seed, or a placement that was given (no seed, no curve; its start is the file).

    `folder` keeps the run and the full evaluation.
    """

    placer: str
    seed: int | None
    outcome: PlacerOutcome
    metrics: Metrics
    folder: Path

    @property
    def title(self) -> str:
        return self.placer if self.seed is None else f"{self.placer}, seed {self.seed}"

    @property
    def score(self) -> float:
        """Lower is better: the routed wirelength in µm with the full evaluation, else the cost."""
        flat = self.metrics.full
        return self.metrics.costs.total if flat is None else flat.routed_wirelength


def compare(config: CompareConfig, console: Console) -> Metrics:
    """Runs every placer with every seed; prints and writes the table and the pictures, of given placements, too.

    Runs and full evaluations with the same settings that are on disk are not repeated. So a comparison that was stopped
    resumes, and placers, placements and the full evaluation can be added.

    Returns the metrics of the best placement of all (`Entry.score`). Raises ConfigError where the checkpoint cannot be
    used, and DesignError where the design or a placement cannot, or a placer found no legal placement.
    """
    check_out(config)
    design = _design(config)
    folder = config.folder(design, "comparison")
    given = _given(config, design, folder)
    evaluations = None
    if config.needs_cells:  # rejects what has no flat netlist before anything starts
        from placement.evaluation.full_evaluation import KeptEvaluations  # JAX takes seconds to import

        assert config.design is not None
        evaluations = KeptEvaluations(config.design, design)
    timer = None if not config.timing else PlacementTimer(config.design or "", design)
    total = len(given) + len(config.chosen) * config.seeds
    entries: list[Entry] = []
    with Interruption() as interruption, progress_bars(console, "") as (bar,):
        stopped = interruption.requested.is_set

        def show(what: str, share: float) -> None:
            bar((len(entries) + share) / total, what)

        for entry in itertools.chain(given, _placed(config, design, folder, stopped=stopped, show=show)):
            full = _evaluated(entry, evaluations if config.full else None, stopped=stopped, show=show)
            if full is not None:
                entries.append(full if timer is None else _timed(full, timer))
    if timer is not None and entries and (timing := entries[0].metrics.timing) is not None:
        timer.notes(timing, in_clusters=not config.full, console=console)
    if not entries:
        raise DesignError("stopped before any placer was done; the same command resumes")
    optimum = least_wirelength(config, design)
    time = f": {config.time:g} CPU seconds on each of {config.threads} threads" if config.chosen else ""
    console.print(comparison_table(entries, f"{design.name}, {config.weights.name} cost{time}", optimum))
    if config.full:
        from placement.evaluation.full_evaluation import warn_unless_spread

        for entry in entries:
            if entry.metrics.full is not None:
                warn_unless_spread(entry.metrics.full, console, entry.title)
    write_comparison(folder, design, entries, config, optimum)
    if len(entries) < total:
        console.print("stopped before all was done; the same command resumes")
    console.print(f"written to {folder}", soft_wrap=True)
    return min(entries, key=lambda entry: entry.score).metrics


def _design(config: CompareConfig) -> Design:
    if config.design is not None:
        return ready(load(config.design, config.initial))
    # late: JAX takes seconds to import
    from placement.evaluation.policies import policy_from_settings

    return policy_from_settings(config).design


def _given(config: CompareConfig, design: Design, folder: Path) -> list[Entry]:
    if config.design is None:
        return []
    entries = []
    loaded = load_placements(config.placement, config.design, design, labels=config.labels)
    for file, (name, placement) in zip(config.placement, loaded.items(), strict=True):
        own = folder / GIVEN_NAME / hashlib.sha256(str(Path(file).resolve()).encode()).hexdigest()[:16]
        outcome = PlacerOutcome(placement, file, ())
        name = Path(file).name if name in config.chosen else name  # a placer has that name
        entries.append(Entry(name, None, outcome, measure(design, placement, weights=config.weights), own))
    return entries


def _placed(
    config: CompareConfig, design: Design, folder: Path, *, stopped: Callable[[], bool], show: Show
) -> Iterator[Entry]:
    """What every placer finds with every seed; once stopped, what is on disk."""
    for placer in config.chosen:
        for seed in range(config.seed, config.seed + config.seeds):
            own, what = folder / placer.replace("+", "-") / f"seed{seed}", f"{placer}, seed {seed}"

            def report(share: float, point: Point, what: str = what) -> None:
                show(f"{what}: best {point.cost:.6f}", share)

            watch = Watch(own, stopped, report)
            show(what, 0.0)
            found = _run(placer, Job(design, config, seed, watch), own)
            if found is not None:
                yield Entry(placer, seed, found, measure(design, found.placement, weights=config.weights), own)


def _evaluated(
    entry: Entry, evaluations: KeptEvaluations | None, *, stopped: Callable[[], bool], show: Show
) -> Entry | None:
    """With the full evaluation's figures if it is requested; None if that was stopped."""
    if evaluations is None:
        return entry
    flat = evaluations.evaluate(
        entry.outcome.placement,
        entry.folder,
        whose=entry.title,
        report=lambda overflow, share: show(f"{entry.title}: placing cells, overflow {overflow:.0%}", share),
        stopped=stopped,
    )
    return None if flat is None else entry._replace(metrics=dataclasses.replace(entry.metrics, full=flat))


def _run(placer: str, job: Job, folder: Path) -> PlacerOutcome | None:
    """The outcome on disk if there is one of these settings, else that of a run, or None if that was stopped."""
    about = _about(placer, job)
    done = _read(folder, job.design, about)
    if done is not None or job.watch.stopped():
        return done
    try:
        outcome = PLACERS[placer](job)
    except KeyboardInterrupt:  # as mixed_size ends when it is stopped
        return None
    if job.watch.stopped():
        return None
    folder.mkdir(parents=True, exist_ok=True)
    write_placement(folder / PLACEMENT_NAME, job.design, outcome.placement)
    result = {"about": about, "start": outcome.start, "curve": outcome.curve}
    write_whole(folder / RESULT_NAME, json.dumps(result) + "\n")
    return outcome


def _timed(entry: Entry, timer: PlacementTimer) -> Entry:
    """With the timing of its cells where the full evaluation placed them, or in their clusters."""
    placement, cells = entry.outcome.placement, None
    if entry.metrics.full is not None:
        from placement.evaluation.full_evaluation import read_drawn

        drawn = read_drawn(entry.folder)
        cells = timer.with_cells(placement, drawn.x, drawn.y)
    timing = timer.evaluate(placement, cells=cells)
    return entry._replace(metrics=dataclasses.replace(entry.metrics, timing=timing))


def _about(placer: str, job: Job) -> str:
    """A hash that tells this run from others."""
    skipped = {"out", "plots", "json", "placers", "seeds", "seed", "placement", "labels", "full", "timing"}
    settings = {key: value for key, value in dataclasses.asdict(job.config).items() if key not in skipped}
    text = json.dumps([job.design.name, placer, job.seed, settings], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(folder: Path, design: Design, about: str) -> PlacerOutcome | None:
    try:
        result = json.loads((folder / RESULT_NAME).read_text(encoding="utf-8"))
        if result["about"] != about:
            return None
        _, placement = read_placement(folder / PLACEMENT_NAME, design.netlist, located=design.initial)
        return PlacerOutcome(placement, result["start"], tuple(map(tuple, result["curve"])))
    except (OSError, ValueError, KeyError, TypeError, DesignError):
        return None


def least_wirelength(config: CompareConfig, design: Design) -> float | None:
    """The least wirelength that the design can have, µm, if a file of the design has it; else None."""
    path = None if config.design is None else find(config.design).parent / OPTIMUM_NAME
    if path is None or not path.is_file():
        return None
    canvas, placement = read_placement(path, design.netlist, located=design.initial)
    return proxy_cost(design, placement).wirelength if canvas == design.canvas else None


def _of(entries: Sequence[Entry], placer: str) -> list[Entry]:
    return [entry for entry in entries if entry.placer == placer]


def summary(entries: Sequence[Entry], optimum: float | None = None) -> list[dict[str, Any]]:
    """Per placer: mean, best and spread of the cost, the mean of each term, and what is illegal.

    If the least wirelength is known (`optimum`, µm), also by which share the mean wirelength exceeds it.
    """
    rows: list[dict[str, Any]] = []
    for placer in dict.fromkeys(entry.placer for entry in entries):
        own = _of(entries, placer)
        costs = np.array([entry.metrics.costs for entry in own])
        spent = [entry.outcome.curve[-1][0] for entry in own if entry.outcome.curve]
        rows.append(
            {
                "placer": placer,
                "seeds": len(own),
                "mean": float(costs[:, 4].mean()),
                "best": float(costs[:, 4].min()),
                "spread": float(costs[:, 4].std()),
                "wirelength_cost": float(costs[:, 1].mean()),
                "density_cost": float(costs[:, 2].mean()),
                "congestion_cost": float(costs[:, 3].mean()),
                "overlaps": sum(entry.metrics.legality.overlaps for entry in own),
                "outside": sum(entry.metrics.legality.outside for entry in own),
                "seconds": float(np.mean(spent)) if spent else None,
                **_full_summary([entry.metrics.full for entry in own if entry.metrics.full is not None]),
                **_timing_summary([entry.metrics.timing for entry in own if entry.metrics.timing is not None]),
            }
        )
        if optimum is not None:
            rows[-1]["wirelength_gap"] = float(costs[:, 0].mean()) / optimum - 1
    return rows


def _full_summary(found: Sequence[FullMetrics]) -> dict[str, Any]:
    """The mean of each of the full evaluation's figures, and the least routed wirelength."""
    if not found:
        return {}
    means = dict(zip(FullMetrics._fields, np.mean(found, axis=0).tolist(), strict=True))
    means["flat_converged"] = all(one.flat_converged for one in found)
    return {**means, "best_routed_wirelength": min(one.routed_wirelength for one in found)}


def _timing_summary(found: Sequence[TimingEstimate]) -> dict[str, float]:
    """The means of the worst negative slack (ps) and the total (ns)."""
    if not found:
        return {}
    return {
        "wns": float(np.mean([one.wns for one in found])),
        "tns_ns": float(np.mean([one.tns for one in found]) / 1000),
    }


def comparison_table(entries: Sequence[Entry], title: str, optimum: float | None = None) -> Table:
    """A line per placer; with the gap to `optimum`, as for `summary`, if wirelength is all that counts."""
    weights, is_full = entries[0].metrics.weights, entries[0].metrics.full is not None
    columns = FULL_COLUMNS if is_full else COLUMNS
    caption = "n: seeds; spread: standard deviation; illegal: overlaps and macros outside"
    if is_full:
        caption = (
            "means of the seeds; illegal: overlaps and macros outside; no place: cells for which there is none near; "
            "seconds: CPU time of the full evaluation"
        )
    if optimum is not None and weights.density == weights.congestion == 0:
        columns = {name: key for name, key in columns.items() if name not in ("density", "congest.")}
        columns |= {"gap": "wirelength_gap"}
        caption += f"; gap: mean wirelength above the least possible, {optimum:,.0f} µm"
    if entries[0].metrics.timing is not None:
        columns = columns | TIMING_COLUMNS
        caption += "; wns, tns: worst and total negative slack before buffering and sizing"
    rows = [[_cell(key, row) for key in columns.values()] for row in summary(entries, optimum)]
    return make_table(list(columns), rows, title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False)


def _cell(key: str, row: Mapping[str, Any]) -> str:
    """A value of a row of `summary` as text."""
    if key == "overlaps":
        return str(row["overlaps"] + row["outside"])
    if isinstance(row[key], float):
        return format(row[key], FORMATS.get(key, ".4f"))
    return str(row[key])


def write_comparison(
    folder: Path, design: Design, entries: Sequence[Entry], config: CompareConfig, optimum: float | None
) -> None:
    """Writes `comparison.json`, `comparison.csv` and the pictures; `optimum` as for `summary`."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = [
        {"placer": entry.placer, "seed": entry.seed, "start": entry.outcome.start, **json_object(entry.metrics)}
        for entry in entries
    ]
    for run in runs:
        run.pop("timing_paths", None)  # `evaluate` has them
    described = {
        "design": design.name,
        "time": config.time,
        "threads": config.threads,
        "weights": config.weights._asdict(),
        "least_wirelength": optimum,
        "summary": summary(entries, optimum),
        "runs": runs,
    }
    write_whole(folder / "comparison.json", json.dumps(described, indent=2) + "\n")
    write_whole(folder / "comparison.csv", csv_text([runs[0], *(run.values() for run in runs)]))
    if not config.draws_plots:
        return
    # Matplotlib takes a second to import, and a table should not wait for it.
    from placement.report import curves, style

    placers = list(dict.fromkeys(entry.placer for entry in entries))
    histories = {placer: [entry.outcome.curve for entry in _of(entries, placer)] for placer in placers}
    histories = {placer: own for placer, own in histories.items() if all(own)}
    if histories:
        figure = curves.plot_cost_over_time(
            histories,
            title=f"{design.name}: cost over time",
            unit="CPU seconds, all threads together",
            cost=config.weights.name,
        )
        style.save_figure(figure, folder / "cost_over_time.png")
    best = {placer: min(_of(entries, placer), key=lambda entry: entry.score) for placer in placers}
    shown = {placer: (entry.outcome.placement, entry.metrics.costs.total) for placer, entry in best.items()}
    title = f"{design.name}: placers compared"
    figure = curves.plot_side_by_side(design, shown, title=title, cost=config.weights.name)
    style.save_figure(figure, folder / "placements.png")
    if config.full:
        _draw_full(folder / "full.png", design, best)


def _draw_full(path: Path, design: Design, best: Mapping[str, Entry]) -> None:
    """The best full evaluation of each placer, side by side."""
    from placement.evaluation.full_evaluation import read_drawn
    from placement.report import plots, style

    panels = []
    for placer, entry in best.items():
        drawn, flat = read_drawn(entry.folder), entry.metrics.full
        assert flat is not None
        cells = plots.DrawnCells(drawn.x, drawn.y, drawn.cluster)
        maps = (drawn.horizontal, drawn.vertical)
        panels.append(plots.FullPanel(placer, entry.outcome.placement, flat, cells, *maps))
    style.save_figure(plots.plot_full_side_by_side(design, panels), path)
