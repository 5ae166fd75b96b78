"""Pictures and an HTML report of a training run, from what its folder holds.

Read are `metrics.csv`, `best.json` with the placement files that it names, `config.yaml` and `versions.json`; each
may be missing. Written are `plots/*.png`, `plots/*.gif` and `report.html`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from placement.engine.costs import DEFAULT_WEIGHTS, CostWeights
from placement.netlist.design import Design
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import read_placement
from placement.report import animation, curves, html, plots, style
from placement.report.view.session import Session
from placement.report.view.static_page import framed, static_page

SUMMARY = {
    "iteration": "iterations",
    "episodes": "episodes",
    "steps": "steps",
    "seconds": "seconds",
    "cost_mean": "{} cost, mean of the episodes",
    "cost_best": "{} cost, best of the episodes",
    "wirelength_cost_mean": "wirelength cost, mean",
    "density_cost_mean": "density cost, mean",
    "congestion_cost_mean": "congestion cost, mean",
    "dead_ends": "dead ends",
    "steps_per_second": "steps per second",
}
DRAWN = 8
"""Designs whose best placements are drawn; a film of each takes a second or two, and a page of dozens nobody reads."""
COSTS = ("cost", "wirelength_cost", "density_cost", "congestion_cost")


def write_report(
    folder: str | os.PathLike[str],
    designs: Sequence[Design],
    *,
    weights: CostWeights = DEFAULT_WEIGHTS,
    animated: bool = True,
) -> Path:
    """Draws the training curves and the best placements of the first `DRAWN` designs, and writes `report.html`.

    Args:
        folder: the run folder.
        designs: that the run trained on.
        weights: of the cost that was trained on.
        animated: whether the best placement's episode is drawn as a GIF.

    Returns:
        The page's path.

    Raises:
        DesignError: a placement file cannot be read.
        CurvesError: `metrics.csv` is damaged.
        OSError: a file cannot be written.
    """
    folder = Path(folder)
    (folder / "plots").mkdir(parents=True, exist_ok=True)
    best = _json(folder / "best.json")
    title = f"{' and '.join(design.name for design in designs)}, {folder.name}"
    found = html.table(
        ("design", weights.name, "wirelength", "density", "congestion", "file"),
        [(name, *(f"{entry[cost]:.6f}" for cost in COSTS), entry["file"]) for name, entry in best.items()],
    )
    sections = [("Training", _draw_training(folder, title, weights.name)), ("Best placements", [found] if best else [])]
    shown = [design for design in designs if design.name in best]
    for design in shown[:DRAWN]:
        suffix = "" if len(designs) == 1 else f"-{design.name}"
        file = best[design.name]["file"]
        sections.append((design.name, _draw_best(folder, design, file, suffix, weights, animated)))
    if len(shown) > DRAWN:
        words = f"The placements of the other {len(shown) - DRAWN} designs are in the run folder, not drawn: "
        how = "macro-placement evaluate design=NAME placement=FILE plots=true"
        sections.append(("Other designs", [html.paragraph(words + how)]))
    settings = [
        html.folded(name, (folder / name).read_text(encoding="utf-8"))
        for name in ("config.yaml", "versions.json")
        if (folder / name).exists()
    ]
    page = folder / "report.html"
    write_whole(page, html.page(title, f"run folder {folder.name}", [*sections, ("Settings and versions", settings)]))
    return page


def _draw_training(folder: Path, title: str, cost: str) -> list[str]:
    """The table and the picture of the run's progress; nothing before its first iteration."""
    if not (folder / "metrics.csv").exists():
        return []
    columns = curves.read_metrics(folder / "metrics.csv")
    known = [(label.format(cost), columns[name]) for name, label in SUMMARY.items() if name in columns]
    rows = [(label, _text(values[0]), _text(values[-1])) for label, values in known]
    picture = style.save_figure(
        curves.plot_training(columns, title=title, cost=cost), folder / "plots" / "training.png"
    )
    return [
        html.table(("", "first iteration", "last iteration"), rows),
        html.picture(picture, "costs of the sampled episodes, by iteration"),
    ]


def _draw_best(folder: Path, design: Design, file: str, suffix: str, weights: CostWeights, animated: bool) -> list[str]:
    """The pictures of the best placement of one design, and a window on it."""
    _, placement = read_placement(folder / file, design.netlist, located=design.initial)
    title = f"{design.name}: best of {folder.name}"
    place = folder / "plots"
    figure = plots.plot_placement(design, placement, weights=weights, title=title)
    pictures = [(style.save_figure(figure, place / f"placement{suffix}.png"), f"best placement of {design.name}")]
    figure = plots.plot_maps(design, placement, title=title)
    pictures.append((style.save_figure(figure, place / f"maps{suffix}.png"), "where its density and congestion are"))
    if animated:
        path = animation.save_episode(place / f"episode{suffix}.gif", design, placement, weights=weights, title=title)
        pictures.append((path, "its macros in the order in which they are placed"))
    opened = [Session(design, placement, name=file, weights=weights)]
    if design.initial.placed.all():
        opened.append(Session(design, design.initial, name="initial.plc", weights=weights))
    window = framed(static_page(design, opened, title=title), f"a window on the best placement of {design.name}")
    return [*(html.picture(path, caption) for path, caption in pictures), window]


def _text(value: np.float64) -> str:
    if math.isnan(value):
        return "–"
    return f"{int(value):,}" if float(value).is_integer() else f"{value:,.4f}" if abs(value) < 100 else f"{value:,.1f}"


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
