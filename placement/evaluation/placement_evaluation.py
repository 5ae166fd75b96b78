"""`macro-placement evaluate`: the metrics of a placement, and the files that all judging commands write."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from placement.annealing.finishing import flip_macros
from placement.engine.costs import compute_costs
from placement.engine.soft import place_soft_macros
from placement.evaluation.given_placement import load_placement
from placement.evaluation.settings import EvaluateConfig, JudgingSettings
from placement.netlist.design import Design, Placement
from placement.netlist.files import check_output_folder, write_whole
from placement.netlist.formats.plc import write_placement
from placement.report.metrics import Metrics, json_object, measure, metrics_table, write_macros


class Found(NamedTuple):
    """A placement that was evaluated.

    Attributes:
        design: whose it is.
        placement: of all nodes.
        metrics: of `placement`.
        title: its name in tables and pictures.
        origin: where it comes from, for `metrics.json`.
    """

    design: Design
    placement: Placement
    metrics: Metrics
    title: str
    origin: Mapping[str, Any]


def evaluate_placement(config: EvaluateConfig, console: Console) -> Metrics:
    """Prints the metrics of a placement, and writes files where they are asked for.

    Raises:
        DesignError: the design or the placement cannot be found or read.
        OSError: a file cannot be written.
    """
    writes = config.out is not None or config.draws_plots or config.draws_animation or config.flips
    if writes:
        check_out(config)
    design, placement, name = load_placement(config)
    if config.soft_placer is not None:
        placement = place_soft_macros(design, placement, config.soft_placer)
    title = f"{design.name}: {name}"
    if config.flips:
        cost = compute_costs(design, placement, weights=config.weights).total
        found = flip_macros(design, placement, weights=config.weights)
        placement, title = found.placement, f"{title}, {found.flipped} macros flipped"
        console.print(
            f"{found.flipped} macros flipped in {found.sweeps} sweeps: "
            f"{config.weights.name} cost {cost:.6f} → {found.costs.total:.6f}"
        )
    metrics = measure(design, placement, weights=config.weights)
    if config.flat:
        metrics = _with_flat(metrics, config, Found(design, placement, metrics, title, {"placement": name}), console)
    console.print(metrics_table(metrics, title))
    if writes:
        folder = config.folder(design, Path(name).stem)
        write_results(folder, Found(design, placement, metrics, title, {"placement": name}), config, console)
    return metrics


def check_out(config: JudgingSettings) -> None:
    """Raises DesignError where no file can be written in `out`, or below `runs`, where files go by default."""
    check_output_folder("out", config.out if config.out is not None else "runs")


def write_results(folder: Path, found: Found, config: JudgingSettings, console: Console) -> None:
    """Writes `placement.plc`, `macros.csv`, `metrics.json` and the pictures asked for; says where."""
    design, placement, metrics = found.design, found.placement, found.metrics
    folder.mkdir(parents=True, exist_ok=True)
    write_placement(folder / "placement.plc", design, placement, comments=[found.title])
    write_macros(folder / "macros.csv", design, placement)
    described = {"design": design.name, **found.origin, "weights": metrics.weights._asdict(), **json_object(metrics)}
    write_whole(folder / "metrics.json", json.dumps(described, indent=2) + "\n")
    # Matplotlib takes a second to import, and a table should not wait for it.
    if config.draws_plots:
        from placement.report import plots, style

        figure = plots.plot_placement(design, placement, weights=metrics.weights, title=found.title)
        style.save_figure(figure, folder / "placement.png")
        style.save_figure(plots.plot_maps(design, placement, title=found.title), folder / "maps.png")
    if config.draws_animation:
        from placement.report import animation

        animation.save_episode(folder / "episode.gif", design, placement, weights=metrics.weights)
    console.print(f"written to {folder}", soft_wrap=True)


def _with_flat(metrics: Metrics, config: EvaluateConfig, found: Found, console: Console) -> Metrics:
    """The metrics with the flat check's."""
    from placement.evaluation import flat_evaluation  # JAX takes seconds to import

    assert config.design is not None
    checked = flat_evaluation.check_placement(config.design, found.design, found.placement, console)
    if config.draws_plots:
        folder = config.folder(found.design, Path(found.origin["placement"]).stem)
        flat_evaluation.draw(checked, found.design, found.placement, folder, found.title)
    return dataclasses.replace(metrics, full=checked.metrics)
