"""What a comparison found: the table, the files and the pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich import box
from rich.table import Table

from placement.evaluation.placers import PlacerOutcome
from placement.evaluation.settings import CompareConfig
from placement.netlist.design import Design
from placement.netlist.files import csv_text, write_whole
from placement.report.metrics import FullMetrics, Metrics, json_object, make_table

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
FLAT_COLUMNS = {
    "placer": "placer",
    "n": "seeds",
    "cost": "mean",
    "illegal": "overlaps",
    "flat wire-\nlength, µm": "flat_wirelength",
    "routed wire-\nlength, µm": "routed_wirelength",
    "best\nrouted": "best_routed_wirelength",
    "overflow": "overflow",
    "density\noverflow": "density_overflow",
    "hot\nspots": "hot_spots",
    "seconds": "flat_seconds",
}
"""With the flat check."""
FORMATS = {
    "overflow": ".3%",
    "density_overflow": ".1%",
    "wirelength_gap": ".1%",
    "flat_seconds": ",.1f",
    **dict.fromkeys(("flat_wirelength", "routed_wirelength", "best_routed_wirelength", "hot_spots"), ",.0f"),
}
"""Of a row's numbers that are not written with four decimals."""


class Entry(NamedTuple):
    """One placer's run with one seed, or a placement that was given.

    Attributes:
        placer: its name, or the placement's.
        seed: None of a given placement.
        outcome: of a given placement, without a curve; it began with the file.
        metrics: of the placement; with the flat check's where that was done.
        folder: where the run and the flat check are kept.
    """

    placer: str
    seed: int | None
    outcome: PlacerOutcome
    metrics: Metrics
    folder: Path

    @property
    def title(self) -> str:
        """Which one it is, in words."""
        return self.placer if self.seed is None else f"{self.placer}, seed {self.seed}"


def worth(entry: Entry) -> float:
    """What the best has least of: routed wirelength, µm, with the flat check, else the cost."""
    flat = entry.metrics.full
    return entry.metrics.costs.total if flat is None else flat.routed_wirelength


def _of(entries: Sequence[Entry], placer: str) -> list[Entry]:
    return [entry for entry in entries if entry.placer == placer]


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
                "seconds": _mean_seconds(own),
                **_flat_summary([entry.metrics.full for entry in own if entry.metrics.full is not None]),
            }
        )
        if optimum is not None:
            rows[-1]["wirelength_gap"] = float(costs[:, 0].mean()) / optimum - 1
    return rows


def _mean_seconds(entries: Sequence[Entry]) -> float | None:
    """CPU seconds of the placer; None of a given placement."""
    spent = [entry.outcome.curve[-1][0] for entry in entries if entry.outcome.curve]
    return float(np.mean(spent)) if spent else None


def _flat_summary(checks: Sequence[FullMetrics]) -> dict[str, Any]:
    """The mean of each of the flat check's figures, and the least routed wirelength."""
    if not checks:
        return {}
    means = dict(zip(FullMetrics._fields, np.mean(checks, axis=0).tolist(), strict=True))
    means["flat_converged"] = all(check.flat_converged for check in checks)
    return {**means, "best_routed_wirelength": min(check.routed_wirelength for check in checks)}


def comparison_table(entries: Sequence[Entry], title: str, optimum: float | None = None) -> Table:
    """A line per placer; with the gap to `optimum`, as for `summary`, where wirelength is all that counts."""
    weights = entries[0].metrics.weights
    shows_gap = optimum is not None and weights.density == weights.congestion == 0
    hidden = ("density", "congest.") if shows_gap else ()
    columns = {name: key for name, key in COLUMNS.items() if name not in hidden}
    if entries[0].metrics.full is not None:
        columns = FLAT_COLUMNS
    if shows_gap:
        columns = {**columns, "gap": "wirelength_gap"}
    caption = "n: seeds; spread: standard deviation; illegal: overlaps and macros outside"
    if entries[0].metrics.full is not None:
        caption = "means of the seeds; illegal: overlaps and macros outside; seconds: CPU time of the flat check"
    if shows_gap:
        caption += f"; gap: mean wirelength above the least possible, {optimum:,.0f} µm"
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
    best = {placer: min(_of(entries, placer), key=worth) for placer in placers}
    shown = {placer: (entry.outcome.placement, entry.metrics.costs.total) for placer, entry in best.items()}
    title = f"{design.name}: placers compared"
    figure = curves.plot_side_by_side(design, shown, title=title, cost=config.weights.name)
    style.save_figure(figure, folder / "placements.png")
    if config.flat:
        _draw_flat(folder / "flat.png", design, best)


def _draw_flat(path: Path, design: Design, best: Mapping[str, Entry]) -> None:
    """The best flat check of each placer, side by side."""
    from placement.evaluation.comparison_flat import read_drawn
    from placement.report import plots, style

    panels = []
    for placer, entry in best.items():
        drawn, flat = read_drawn(entry.folder), entry.metrics.full
        assert flat is not None
        cells = plots.DrawnCells(drawn.x, drawn.y, drawn.cluster)
        maps = (drawn.horizontal, drawn.vertical)
        panels.append(plots.FullPanel(placer, entry.outcome.placement, flat, cells, *maps))
    style.save_figure(plots.plot_full_side_by_side(design, panels, title=design.name), path)
