"""`macro-placement search` and `legalise`: a placement, or a policy's best samples, improved or made legal."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from placement.annealing.config import AnnealConfig
from placement.annealing.legaliser import legalise
from placement.annealing.search import SearchResult, Watch, search
from placement.annealing.starts import Start, legal, refinement_starts
from placement.evaluation.given_placement import has_macro_places, load_placement
from placement.evaluation.placement_evaluation import Found, check_out, write_results
from placement.evaluation.progress_bar import progress_bars
from placement.evaluation.settings import LegaliseConfig, SearchConfig
from placement.netlist.design import Design, Placement
from placement.netlist.feasibility import check_constraints
from placement.netlist.load import load
from placement.report.metrics import Metrics, make_table, measure, metrics_table
from placement.utils.interruption import Interruption

STOPPED = "stopped before its time was spent; the same command goes on from here"
MOST_SAMPLES = 4
"""The best of a policy's samples that race against each other; the search refines the winner."""


def evaluate_search(config: SearchConfig, console: Console) -> Metrics:
    """Searches; prints, writes and returns the metrics of the best placement.

    Ctrl-C ends the search with the best so far; the same command goes on from there.

    Raises:
        ConfigError: the checkpoint cannot be used.
        DesignError: the design or the placement cannot be used.
        OSError: a file cannot be written.
    """
    check_out(config)
    design, starts, name = _starts(config, console)
    folder = config.folder(design, f"{name}-{config.chosen_method}")
    title = f"{design.name}: {name}, {config.chosen_method}"
    if config.count > 1 or config.chosen_method == "mixed_size":
        return _evaluate_candidates(config, design, starts, folder=folder, title=title, console=console)
    with Interruption() as interruption, progress_bars(console, "") as (bar,):
        result = search(
            design,
            starts,
            config=config.anneal,
            seconds=config.time,
            moves=config.moves,
            weights=config.weights,
            threads=config.threads,
            seed=config.seed,
            watch=Watch(
                folder, interruption.requested.is_set, lambda share, point: bar(share, f"best {point.cost:.6f}")
            ),
        )
    metrics = measure(design, result.placement, weights=config.weights)
    console.print(metrics_table(metrics, title))
    console.print(moves_table(result))
    if not result.finished:
        console.print(STOPPED)
    described = {
        "search": config.chosen_method,
        "start": result.start,
        "seconds": result.seconds,
        "moves": result.moves,
    }
    write_results(folder, Found(design, result.placement, metrics, title, described), config, console)
    return metrics


def _evaluate_candidates(
    config: SearchConfig, design: Design, starts: list[Start], *, folder: Path, title: str, console: Console
) -> Metrics:
    """Searches several times, and has the flat check choose.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the first candidate was found.
    """
    from placement.evaluation.candidates import candidates_table, find_best  # JAX takes seconds to import
    from placement.evaluation.flat_evaluation import check_placement

    with Interruption() as interruption:
        stopped = interruption.requested

        def begin(seed: int) -> Sequence[Start]:
            if config.chosen_method != "mixed_size":
                return starts
            return [_mixed_size(config, design, seed, stopped=stopped.is_set)]

        found = find_best(design, begin, config, folder=folder, stopped=stopped, console=console)
    if len(found) < config.count or stopped.is_set():
        console.print(f"{len(found)} of {config.count} candidates: {STOPPED}", soft_wrap=True)
    if not found:
        raise KeyboardInterrupt
    best = found[0]
    console.print(candidates_table(found))
    assert config.design is not None
    flat = None if stopped.is_set() else check_placement(config.design, design, best.placement, console).metrics
    metrics = dataclasses.replace(measure(design, best.placement, weights=config.weights), full=flat)
    console.print(metrics_table(metrics, title))
    described = {
        "search": config.chosen_method,
        "start": best.start,
        "seconds": best.seconds,
        "moves": best.moves,
        "candidate": best.number,
        "candidates": len(found),
    }
    write_results(folder, Found(design, best.placement, metrics, title, described), config, console)
    return metrics


def evaluate_legalised(config: LegaliseConfig, console: Console) -> Metrics:
    """Makes a placement legal; prints, writes and returns its metrics.

    Raises:
        DesignError: the design or the placement cannot be used, or no legal placement was found.
        OSError: a file cannot be written.
    """
    check_out(config)
    design, given, file = load_placement(config)
    _tell_fixed(design, console)
    rules, name = config.rules, Path(file).stem
    clear = placement = _cleared(design, given, file, rules, console)
    if config.grid > 0:
        placement = legalise(design, clear, spacing=config.spacing, blockages=rules.blockages, grid=config.grid)
        console.print(f"onto a grid of {config.grid:g} µm: {displaced(clear, placement)}", soft_wrap=True)
    metrics = measure(design, placement, weights=config.weights)
    title = f"{design.name}: {name}, made legal"
    console.print(metrics_table(metrics, title))
    found = Found(design, placement, metrics, title, {"search": "legalise", "placement": name})
    write_results(config.folder(design, f"{name}-legalise"), found, config, console)
    return metrics


def _mixed_size(config: SearchConfig, design: Design, seed: int, *, stopped: Callable[[], bool]) -> Start:
    from placement.evaluation.mixed_size_start import mixed_size_start  # JAX takes seconds to import

    assert config.design is not None
    return mixed_size_start(config.design, design, config.anneal, weights=config.weights, seed=seed, stopped=stopped)


def _starts(config: SearchConfig, console: Console) -> tuple[Design, list[Start], str]:
    """What the search begins with (nothing: its own starts), and a name for that."""
    if config.chosen_method != "refine":
        assert config.design is not None
        design = load(config.design, config.initial)
        _tell_fixed(design, console)
        if config.method is None and has_macro_places(design):
            said = (
                "the search begins with its own starts; method=refine improves the placement that the design comes with"
            )
            console.print(f"note: {said}", soft_wrap=True)
        return design, [], "own"
    if config.checkpoint is not None:
        # late: JAX takes seconds to import
        from placement.evaluation.policy_evaluation import complete, load_policy

        policy = load_policy(config)
        found = complete(policy.evaluate(config.seed), policy.design)[:MOST_SAMPLES]
        places = [one.placement for one in found if one.placement is not None]
        samples = [Start(f"sample {number}", placement) for number, placement in enumerate(places)]
        return policy.design, refinement_starts(policy.design, samples, config.anneal), policy.run.name
    loaded = None
    if config.placement is None:
        assert config.design is not None
        design = loaded = load(config.design, config.initial)
        if not has_macro_places(design):
            console.print(f"the macros of {design.name} have no places: the search begins with its own", soft_wrap=True)
            return design, [], "own"
    design, placement, name = load_placement(config, loaded)
    _tell_fixed(design, console)
    return design, [Start(name, _cleared(design, placement, name, config.anneal, console))], Path(name).stem


def _tell_fixed(design: Design, console: Console) -> None:
    """Refuses constraints that cannot be met, before anything starts; says what fixed macros break."""
    for notice in check_constraints(design):
        console.print(f"note: {notice}", soft_wrap=True)


def _cleared(design: Design, placement: Placement, name: str, rules: AnnealConfig, console: Console) -> Placement:
    """The placement made legal; says how far macros were moved."""
    clear = legal(design, placement, rules)
    if clear is not placement:
        console.print(f"{name} is not legal: {displaced(placement, clear)}", soft_wrap=True)
    return clear


def displaced(before: Placement, after: Placement) -> str:
    """A phrase: how far macros were moved from one placement to the other."""
    way = np.abs(after.x - before.x) + np.abs(after.y - before.y)
    return f"{int((way > 0).sum())} macros were moved, by {way.sum():,.1f} µm in all and {way.max():,.1f} µm at most"


def moves_table(result: SearchResult) -> Table:
    """How many moves of each kind were drawn, legal and accepted, and what they saved."""
    rate = result.moves / result.seconds if result.seconds > 0 else 0.0
    drawn = sum(tally.drawn for tally in result.tallies.values())
    rows = [
        [
            kind,
            f"{tally.drawn / drawn:.1%}",
            f"{tally.evaluated / tally.drawn:.1%}",
            f"{tally.accepted / max(1, tally.evaluated):.1%}",
            f"{1e6 * tally.saved / tally.drawn:.3f}",
        ]
        for kind, tally in result.tallies.items()
        if tally.drawn
    ]
    return make_table(
        ("kind", "share", "legal", "accepted", "saved per million"),
        rows,
        title=f"moves, from start {result.start}",
        caption=f"{result.moves:,} moves and {result.seconds:.1f} CPU seconds per thread: {rate:,.0f} a second",
    )
