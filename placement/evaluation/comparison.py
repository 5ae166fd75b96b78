"""`macro-placement compare`: placers compared at equal CPU time."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from placement.engine.costs import proxy_cost
from placement.evaluation.placers import PLACERS, Job, PlacerOutcome
from placement.evaluation.search_evaluation import progress_bar
from placement.evaluation.settings import CompareConfig
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready
from placement.netlist.files import csv_text, write_whole
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.generators.shipped import OPTIMUM_NAME
from placement.netlist.load import find, load
from placement.report.metrics import Metrics, json_object, measure
from placement.report.tables import make_table
from placement.search.search import Watch
from placement.training.interruption import Interruption

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
RESULT_NAME, PLACEMENT_NAME = "result.json", "placement.plc"


class Entry(NamedTuple):
    """One placer's run with one seed."""

    placer: str
    seed: int
    outcome: PlacerOutcome
    metrics: Metrics


def compare(config: CompareConfig, console: Console) -> Metrics:
    """Runs every placer with every seed; prints and writes the table and the pictures.

    Runs with the same settings that are on disk are not repeated. So a comparison that was stopped goes on, and placers
    can be added.

    Returns:
        The metrics of the best placement of all.

    Raises:
        ConfigError: the checkpoint cannot be used.
        DesignError: the design cannot be used, or a placer found no legal placement.
        OSError: a file cannot be written.
    """
    design = _design(config)
    folder = config.folder(design, "comparison")
    entries: list[Entry] = []
    with Interruption() as interruption, progress_bar(console) as show:
        for placer in config.placers:
            for seed in range(config.seed, config.seed + config.seeds):
                own = folder / placer.replace("+", "-") / f"seed{seed}"
                job = Job(design, config, seed, Watch(own, interruption.requested.is_set, show))
                outcome = _run(placer, job, own)
                if outcome is None:
                    break
                entries.append(Entry(placer, seed, outcome, measure(design, outcome.placement, weights=config.weights)))
    if not entries:
        raise DesignError("stopped before any placer was done; the same command goes on")
    optimum = least_wirelength(config, design)
    table = comparison_table(
        entries, f"{design.name}: {config.time:g} CPU seconds on each of {config.threads} threads", optimum
    )
    console.print(table)
    _write(folder, design, entries, config, optimum)
    if len(entries) < len(config.placers) * config.seeds:
        console.print("stopped before all placers were done; the same command goes on")
    console.print(f"written to {folder}", soft_wrap=True)
    return min(entries, key=lambda entry: entry.metrics.costs.proxy_cost).metrics


def _design(config: CompareConfig) -> Design:
    if config.design is not None:
        return ready(load(config.design, config.initial))
    # late: JAX takes seconds to import
    from placement.evaluation.policy_evaluation import load_policy

    return load_policy(config).design


def _run(placer: str, job: Job, folder: Path) -> PlacerOutcome | None:
    """The outcome on disk if there is one of these settings, else that of a run, or None where that was stopped."""
    about = _about(placer, job)
    done = _read(folder, job.design, about)
    if done is not None:
        return done
    outcome = PLACERS[placer](job)
    if job.watch.stopped():
        return None
    folder.mkdir(parents=True, exist_ok=True)
    write_placement(folder / PLACEMENT_NAME, job.design, outcome.placement)
    result = {"about": about, "start": outcome.start, "curve": outcome.curve}
    write_whole(folder / RESULT_NAME, json.dumps(result) + "\n")
    return outcome


def _about(placer: str, job: Job) -> str:
    """What tells this run from others, as a hash."""
    skipped = {"out", "plots", "json", "placers", "seeds", "seed"}
    settings = {key: value for key, value in dataclasses.asdict(job.config).items() if key not in skipped}
    text = json.dumps([job.design.name, placer, job.seed, settings], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(folder: Path, design: Design, about: str) -> PlacerOutcome | None:
    try:
        result = json.loads((folder / RESULT_NAME).read_text(encoding="utf-8"))
        if result["about"] != about:
            return None
        _, placement = read_placement(folder / PLACEMENT_NAME, design.netlist, located=design.initial)
        return PlacerOutcome(
            placement, result["start"], tuple((float(at), float(cost)) for at, cost in result["curve"])
        )
    except (OSError, ValueError, KeyError, TypeError, DesignError):
        return None


def _of(entries: Sequence[Entry], placer: str) -> list[Entry]:
    return [entry for entry in entries if entry.placer == placer]


def least_wirelength(config: CompareConfig, design: Design) -> float | None:
    """The least wirelength that the design can have, µm, where the files of the design tell; else None.

    Raises:
        DesignError: the file that tells cannot be read.
    """
    path = None if config.design is None else find(config.design).parent / OPTIMUM_NAME
    if path is None or not path.is_file():
        return None
    canvas, placement = read_placement(path, design.netlist, located=design.initial)
    return proxy_cost(design, placement).wirelength if canvas == design.canvas else None


def summary(entries: Sequence[Entry], optimum: float | None = None) -> list[dict[str, Any]]:
    """Per placer: mean, best and spread of the proxy cost, the mean of each part, and what is illegal.

    Where the least wirelength is known (`optimum`, µm), also by which share the wirelengths' mean lies above it.
    """
    rows: list[dict[str, Any]] = []
    for placer in dict.fromkeys(entry.placer for entry in entries):
        own = _of(entries, placer)
        costs = np.array([entry.metrics.costs for entry in own])
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
                "seconds": float(np.mean([entry.outcome.curve[-1][0] for entry in own])),
            }
        )
        if optimum is not None:
            rows[-1]["wirelength_gap"] = float(costs[:, 0].mean()) / optimum - 1
    return rows


def comparison_table(entries: Sequence[Entry], title: str, optimum: float | None = None) -> Table:
    """A line per placer; with the gap to `optimum`, as for `summary`, where wirelength is all that counts."""
    weights = entries[0].metrics.weights
    shows_gap = optimum is not None and weights.density == weights.congestion == 0
    hidden = ("density", "congest.") if shows_gap else ()
    columns = {name: key for name, key in COLUMNS.items() if name not in hidden}
    if shows_gap:
        columns = {**columns, "gap": "wirelength_gap"}
    caption = "n: seeds; spread: standard deviation; illegal: overlaps and macros outside"
    if shows_gap:
        caption += f"; gap: mean wirelength above the least possible, {optimum:,.0f} µm"
    rows = [[_cell(key, row) for key in columns.values()] for row in summary(entries, optimum)]
    return make_table(list(columns), rows, title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False)


def _cell(key: str, row: Mapping[str, Any]) -> str:
    """A value of a row of `summary` as text."""
    if key == "overlaps":
        return str(row["overlaps"] + row["outside"])
    if key == "wirelength_gap":
        return f"{row[key]:.1%}"
    return f"{row[key]:.4f}" if isinstance(row[key], float) else str(row[key])


def _write(
    folder: Path, design: Design, entries: Sequence[Entry], config: CompareConfig, optimum: float | None
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    runs = [
        {"placer": entry.placer, "seed": entry.seed, "start": entry.outcome.start, **json_object(entry.metrics)}
        for entry in entries
    ]
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
    from placement.report import comparison_plots, style

    placers = list(dict.fromkeys(entry.placer for entry in entries))
    curves = {placer: [entry.outcome.curve for entry in _of(entries, placer)] for placer in placers}
    figure = comparison_plots.plot_cost_over_time(
        curves,
        title=f"{design.name}: cost over time",
        unit="CPU seconds, all threads together",
        cost=config.weights.name,
    )
    style.save_figure(figure, folder / "cost_over_time.png")
    best = {placer: min(_of(entries, placer), key=_proxy_cost) for placer in placers}
    shown = {placer: (entry.outcome.placement, entry.metrics.costs.proxy_cost) for placer, entry in best.items()}
    style.save_figure(
        comparison_plots.plot_side_by_side(
            design, shown, title=f"{design.name}: placers compared", cost=config.weights.name
        ),
        folder / "placements.png",
    )


def _proxy_cost(entry: Entry) -> float:
    return entry.metrics.costs.proxy_cost
