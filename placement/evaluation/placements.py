"""`macro-placement evaluate`: metrics of given placements, and the output files that all these commands share."""

import dataclasses
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from placement.annealing.finishing import flip_macros
from placement.engine.costs import compute_costs
from placement.engine.soft import place_soft_macros
from placement.evaluation.settings import EvaluateConfig, EvaluationSettings, PlacementSettings
from placement.flat.opensta import OpenSta, OpenStaTiming
from placement.flat.placement_timer import PlacementTimer
from placement.flat.timing import DRAWN_PATHS, LISTED_PATHS
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.faults import NARROW, find_faults
from placement.netlist.files import check_output_folder, write_whole
from placement.netlist.flat_design import flat_or_none
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import check_placement_file, find, load
from placement.netlist.user_placement import canvas_note, is_def, read_clustered_def
from placement.report.placement_metrics import Metrics, json_object, measure, metrics_table, write_macros
from placement.report.timing_tables import paths_table

SOFT_PLACER = "analytic"  # default placer of soft macros that no file places
SHOWN_GAPS = 6  # number of gaps narrower than a channel that are listed
_GENERAL_NAMES = ("placement", "best")  # names of the files that commands write


class Found(NamedTuple):
    """An evaluated placement; its title is for tables and pictures, its origin for `metrics.json`."""

    design: Design
    placement: Placement
    metrics: Metrics
    title: str
    origin: Mapping[str, Any]


def evaluate_placement(config: EvaluateConfig, console: Console) -> Metrics:
    """Prints the metrics of a placement, and writes the requested files; raises DesignError."""
    writes = config.out is not None or config.draws_plots or config.flips
    if writes:
        check_out(config)
    design, placement, name, soft = load_placement(config)
    if config.soft_placer is not None:
        placement, soft = place_soft_macros(design, placement, config.soft_placer), f"placed by {config.soft_placer}"
    title = f"{design.name}: {readable_name(config.placement or name)}"
    if config.flips:
        cost = compute_costs(design, placement, weights=config.weights).total
        found = flip_macros(design, placement, weights=config.weights)
        placement, title = found.placement, f"{title}, {found.flipped} macros flipped"
        console.print(
            f"{found.flipped} macros flipped in {found.sweeps} sweeps: "
            f"{config.weights.name} cost {cost:.6f} → {found.costs.total:.6f}"
        )
    assert config.design is not None
    metrics = measure(design, placement, weights=config.weights, flat=flat_or_none(find(config.design).parent))
    folder = config.folder(design, Path(name).stem)
    # A missing file is found before the work.
    timer = PlacementTimer(config.design, design) if config.timing else None
    judge = timer.opensta(config.sta) if timer is not None and config.sta is not None else None
    cells = None
    if config.full:
        from placement.evaluation import full_evaluation  # imported late, since JAX takes seconds

        timing = None if timer is None else timer.evaluator
        checked = full_evaluation.evaluate_fully(config.design, design, placement, console, timing)
        if config.draws_plots:
            full_evaluation.draw(checked, design, placement, folder, title)
        metrics, cells = dataclasses.replace(metrics, full=checked.metrics), checked.legal.placement
    if timer is not None:
        placed = timer.cells(placement) if cells is None else cells
        paths = DRAWN_PATHS if config.draws_plots else LISTED_PATHS
        estimate = timer.evaluate(placement, cells=placed, paths=paths)
        _print_notes(timer.notes(estimate, in_clusters=cells is None), console)
        judged = None if judge is None else _judged(judge, placed, console)
        metrics = dataclasses.replace(metrics, timing=estimate, opensta=judged)
    console.print(metrics_table(metrics, title))
    if metrics.timing is not None:
        console.print(paths_table(metrics.timing))
    if metrics.violations.channels:
        for line in _narrow_gaps(design, placement):
            console.print(line, soft_wrap=True, markup=False, highlight=False)
    if len(design.netlist.soft):
        console.print(f"soft macros: {soft}", soft_wrap=True, markup=False, highlight=False)
    if writes:
        write_results(folder, Found(design, placement, metrics, title, {"placement": name}), config, console)
    return metrics


def _judged(judge: OpenSta, cells: Placement, console: Console) -> OpenStaTiming:
    """OpenSTA's timing of a placement of the flat netlist; prints its notices."""
    found = judge.evaluate(cells)
    _print_notes(found.notices, console)
    return found


def _print_notes(notes: Sequence[str], console: Console) -> None:
    for note in notes:
        console.print(f"note: {note}", soft_wrap=True, markup=False, highlight=False)


def _narrow_gaps(design: Design, placement: Placement) -> list[str]:
    """Sentences on the first gaps that break the channel rule, with the macros' names."""
    found = [
        f"{design.netlist.names[node]} {reason}"
        for node, reasons in find_faults(design, placement).items()
        for reason in reasons
        if NARROW in reason
    ]
    return found[:SHOWN_GAPS]


def check_out(config: EvaluationSettings) -> None:
    """Raises DesignError if no file can be written in `out`, or, by default, below `runs`."""
    check_output_folder("out", config.out if config.out is not None else "runs")


def write_results(folder: Path, found: Found, config: EvaluationSettings, console: Console) -> None:
    """Writes `placement.plc`, `macros.csv`, `metrics.json` and the pictures; prints their paths."""
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
        figure = plots.plot_maps(design, placement, weights=metrics.weights, title=found.title)
        style.save_figure(figure, folder / "maps.png")
        if metrics.timing is not None:
            figure = plots.plot_paths(design, placement, metrics.timing, title=found.title)
            style.save_figure(figure, folder / "paths.png")
        if metrics.rows is not None:
            style.save_figure(plots.plot_rows(design, placement, metrics.rows, title=found.title), folder / "rows.png")
    console.print(f"written to {folder}", soft_wrap=True)


class Given(NamedTuple):
    """The placement for a command: a `.plc` file, a DEF file of an imported design, or the design's own.

    `soft` describes the source of the soft macros.
    """

    design: Design
    placement: Placement
    name: str
    soft: str


def load_placement(config: PlacementSettings, design: Design | None = None) -> Given:
    """Loads the design and the placement that the settings name; raises DesignError.

    `design` saves loading it, if it was already loaded with `config.initial` and no placement is named.
    """
    assert config.design is not None
    for key, path in (("placement", config.placement), ("initial", config.initial)):
        if path is not None:
            check_placement_file(key, path)
    if config.placement is not None and is_def(config.placement):
        design = load(config.design, config.initial)
        placement, soft = read_file(config.placement, config.design, design)
        return Given(design, placement, Path(config.placement).name, soft)
    canvas_file = config.initial if config.initial is not None else config.placement
    if design is None or config.placement is not None:
        design = load(config.design, canvas_file)
    if config.placement is None:
        name = Path(canvas_file).name if canvas_file else "initial.plc"
        return Given(design, *_own(design, name))
    name = Path(config.placement).name
    if config.initial is None:
        return Given(design, design.initial, name, f"as in {name}")
    placement, soft = read_file(config.placement, config.design, design)
    return Given(design, placement, name, soft)


def load_placements(paths: Sequence[str], name: str, design: Design) -> dict[str, Placement]:
    """Reads the placements in `.plc` and DEF files of the design called `name`, by their labels.

    Raises DesignError for a file that is named twice, cannot be found or read, or belongs to another design.
    """
    for path in paths:
        check_placement_file("placement", path)
    return {label: read_file(path, name, design)[0] for label, path in zip(placement_labels(paths), paths, strict=True)}


def placement_labels(paths: Sequence[str]) -> list[str]:
    """Unique short names for files: each is the `readable_name`, or the part of the path that differs.

    Raises DesignError for a file that is named twice.
    """
    files = [Path(path).resolve() for path in paths]
    for path, file in zip(paths, files, strict=True):
        if files.count(file) > 1:
            raise DesignError(f"placement={path}: is given {files.count(file)} times")
    for names in ([readable_name(file) for file in files], [file.name for file in files]):
        if len(set(names)) == len(files):
            return names
    parts = [file.parts for file in files]
    while len({own[0] for own in parts}) == 1:
        parts = [own[1:] for own in parts]
    while len({own[-1] for own in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [own[:-1] for own in parts]
    return ["/".join(own) for own in parts]


def readable_name(file: str | Path) -> str:
    """The label of a placement's file: its name without suffixes, or its folder's if it is `placement` or `best`."""
    path = Path(file).resolve()
    name = re.sub(r"(\.plc|\.def)(\.gz)?$", "", path.name, flags=re.IGNORECASE)
    return path.parent.name if name in _GENERAL_NAMES else name


def read_file(path: str, name: str, design: Design) -> tuple[Placement, str]:
    """Reads the placement in a `.plc` or DEF file on the canvas of `design`, and describes the source of its soft
    macros.

    Soft macros of a DEF file without placed cells are placed, with a note. A `.plc` file for another canvas gets a
    note, too. Raises DesignError like `read_placement` and `read_clustered_def`.
    """
    if is_def(path):
        placement, has_cells, notices = read_clustered_def(path, find(name).parent, design)
        for notice in notices:
            print(f"note: {notice}", file=sys.stderr)
        if has_cells:
            return placement, f"at the centres of their cells in {Path(path).name}"
        return _with_soft(design, placement, f"{path} places no standard cells"), f"placed by {SOFT_PLACER}"
    canvas, placement = read_placement(path, design.netlist, located=design.initial, canvas=design.canvas)
    if note := canvas_note(path, canvas, design.canvas, done="evaluated"):
        print(note, file=sys.stderr)
    return placement, f"as in {Path(path).name}"


def has_macro_places(design: Design) -> bool:
    """Whether the design has positions for its movable macros; an import puts macros without one at a single point."""
    macros = design.placing_order
    if len(macros) < 2:
        return True
    points = np.stack((design.initial.x[macros], design.initial.y[macros]), axis=1)
    _, member, count = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    return 2 * int((count[member.reshape(-1)] > 1).sum()) <= len(macros)


def _own(design: Design, name: str) -> tuple[Placement, str, str]:
    """The design's own placement, its name and its soft macros' source; these are placed if all share one point."""
    if not has_macro_places(design):
        print(f"note: the macros of {design.name} are unplaced: all are at the same point", file=sys.stderr)
    soft = design.netlist.soft
    if len(soft) < 2 or np.ptp(design.initial.x[soft]) > 0 or np.ptp(design.initial.y[soft]) > 0:
        return design.initial, name, f"as in {name}"
    why = f"the standard cells of {design.name} are unplaced"
    return _with_soft(design, design.initial, why), name, f"placed by {SOFT_PLACER}"


def _with_soft(design: Design, placement: Placement, why: str) -> Placement:
    if not len(design.netlist.soft):
        return placement
    print(f"note: {why}: soft macros are placed by {SOFT_PLACER}", file=sys.stderr)
    return place_soft_macros(design, placement, SOFT_PLACER)
