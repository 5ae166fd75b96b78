"""`macro-placement compare`: placers compared at equal CPU time, and placements that files hold."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from placement.engine.costs import proxy_cost
from placement.evaluation.comparison_results import Entry, comparison_table, worth, write_comparison
from placement.evaluation.given_placement import load_placements
from placement.evaluation.placement_evaluation import check_out
from placement.evaluation.placers import PLACERS, Job, PlacerOutcome
from placement.evaluation.progress_bar import progress_bars
from placement.evaluation.settings import CompareConfig
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import OPTIMUM_NAME, find, load
from placement.report.metrics import Metrics, measure
from placement.search.search import Point, Watch
from placement.training.interruption import Interruption

if TYPE_CHECKING:
    from placement.evaluation.comparison_flat import FlatChecks

RESULT_NAME, PLACEMENT_NAME = "result.json", "placement.plc"
GIVEN_NAME = "given"
"""The folder of what is kept of placements that files hold."""
Show = Callable[[str, float], None]
"""Tells what is being done, and how much of it is done, in [0, 1]."""


def compare(config: CompareConfig, console: Console) -> Metrics:
    """Runs every placer with every seed; prints and writes the table and the pictures, of given placements, too.

    Runs and flat checks with the same settings that are on disk are not repeated. So a comparison that was stopped goes
    on, and placers, placements and the flat check can be added.

    Returns:
        The metrics of the best placement of all: of the least routed wirelength, without the flat check of the least
        cost.

    Raises:
        ConfigError: the checkpoint cannot be used.
        DesignError: the design or a placement cannot be used, or a placer found no legal placement.
        OSError: a file cannot be written.
    """
    check_out(config)
    design = _design(config)
    folder = config.folder(design, "comparison")
    given = _given(config, design, folder)
    checks = _flat_checks(config, design)
    total = len(given) + len(config.chosen) * config.seeds
    entries: list[Entry] = []
    with Interruption() as interruption, progress_bars(console, "") as (bar,):
        stopped = interruption.requested.is_set

        def show(what: str, share: float) -> None:
            bar((len(entries) + share) / total, what)

        for entry in itertools.chain(given, _placed(config, design, folder, stopped=stopped, show=show)):
            checked = _checked(entry, checks, stopped=stopped, show=show)
            if checked is not None:
                entries.append(checked)
    if not entries:
        raise DesignError("stopped before any placer was done; the same command goes on")
    optimum = least_wirelength(config, design)
    time = f": {config.time:g} CPU seconds on each of {config.threads} threads" if config.chosen else ""
    console.print(comparison_table(entries, f"{design.name}, {config.weights.name} cost{time}", optimum))
    _tell_spread(entries, console)
    write_comparison(folder, design, entries, config, optimum)
    if len(entries) < total:
        console.print("stopped before all was done; the same command goes on")
    console.print(f"written to {folder}", soft_wrap=True)
    return min(entries, key=worth).metrics


def _design(config: CompareConfig) -> Design:
    if config.design is not None:
        return ready(load(config.design, config.initial))
    # late: JAX takes seconds to import
    from placement.evaluation.policy_evaluation import load_policy

    return load_policy(config).design


def _flat_checks(config: CompareConfig, design: Design) -> FlatChecks | None:
    """The flat check where it is asked for; refuses what needs a flat netlist before anything starts."""
    if not config.needs_flat:
        return None
    from placement.evaluation.comparison_flat import FlatChecks  # JAX takes seconds to import

    assert config.design is not None
    checks = FlatChecks(config.design, design)
    return checks if config.flat else None


def _given(config: CompareConfig, design: Design, folder: Path) -> list[Entry]:
    """The placements that files hold."""
    if config.design is None:
        return []
    entries = []
    loaded = load_placements(config.placement, config.design, design)
    for file, (name, placement) in zip(config.placement, loaded.items(), strict=True):
        own = folder / GIVEN_NAME / hashlib.sha256(name.encode()).hexdigest()[:16]
        outcome = PlacerOutcome(placement, file, ())
        entries.append(Entry(name, None, outcome, measure(design, placement, weights=config.weights), own))
    return entries


def _placed(
    config: CompareConfig, design: Design, folder: Path, *, stopped: Callable[[], bool], show: Show
) -> Iterator[Entry]:
    """What every placer finds with every seed; once stopped, what is on disk."""
    for placer in config.chosen:
        for seed in range(config.seed, config.seed + config.seeds):
            own, what = folder / placer.replace("+", "-") / f"seed{seed}", f"{placer}, seed {seed}"
            watch = Watch(own, stopped, functools.partial(_show_search, show, what))
            show(what, 0.0)
            found = _run(placer, Job(design, config, seed, watch), own)
            if found is not None:
                yield Entry(placer, seed, found, measure(design, found.placement, weights=config.weights), own)


def _show_search(show: Show, what: str, share: float, point: Point) -> None:
    show(f"{what}: best {point.cost:.6f}", share)


def _checked(entry: Entry, checks: FlatChecks | None, *, stopped: Callable[[], bool], show: Show) -> Entry | None:
    """With the flat check's figures where it is asked for; None where that was stopped."""
    if checks is None:
        return entry
    flat = checks.check(
        entry.outcome.placement,
        entry.folder,
        whose=entry.title,
        report=lambda overflow, share: show(f"{entry.title}: placing cells, overflow {overflow:.0%}", share),
        stopped=stopped,
    )
    return None if flat is None else entry._replace(metrics=dataclasses.replace(entry.metrics, flat=flat))


def _tell_spread(entries: list[Entry], console: Console) -> None:
    """Notes on cells that did not spread."""
    if not any(entry.metrics.flat for entry in entries):
        return
    from placement.evaluation.flat_evaluation import tell_spread

    for entry in entries:
        if entry.metrics.flat is not None:
            tell_spread(entry.metrics.flat, console, entry.title)


def _run(placer: str, job: Job, folder: Path) -> PlacerOutcome | None:
    """The outcome on disk if there is one of these settings, else that of a run, or None where that was stopped."""
    about = _about(placer, job)
    done = _read(folder, job.design, about)
    if done is not None:
        return done
    if job.watch.stopped():
        return None
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


def _about(placer: str, job: Job) -> str:
    """What tells this run from others, as a hash."""
    skipped = {"out", "plots", "json", "placers", "seeds", "seed", "placement", "flat"}
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
