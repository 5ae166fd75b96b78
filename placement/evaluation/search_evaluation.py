"""Improving a placement, or a policy's best samples, by search: `evaluate.py … search=refine`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from placement.evaluation.placement_evaluation import DEFAULT_OUT, EvaluateConfig, Found, load_placement, write_results
from placement.netlist.design import Design, Placement
from placement.netlist.files import csv_text, write_whole
from placement.netlist.load import load
from placement.report.metrics import Metrics, measure, metrics_table
from placement.search.legaliser import legalise
from placement.search.search import Point, SearchResult, Watch, search
from placement.search.starts import Start, blockages, legal, refinement_starts
from placement.training.interruption import Interruption

MOST_SAMPLES = 4
"""Of a policy, the best that are raced against each other before the best of them is refined."""


def evaluate_search(config: EvaluateConfig, console: Console) -> Metrics:
    """Searches, or makes legal, as `config` says; prints, writes and returns the metrics of what was found.

    Ctrl-C ends the search with the best so far; the same command goes on from there.

    Raises:
        ConfigError: the checkpoint cannot be used.
        DesignError: the design or the placement cannot be used.
        OSError: a file cannot be written.
    """
    design, starts, name = _starts(config, console)
    if config.search == "legalise":
        return _legalised(config, console, design, starts[0])
    folder = Path(config.out) if config.out is not None else DEFAULT_OUT / design.name / f"{name}-{config.search}"
    with Interruption() as interruption, progress_bar(console) as show:
        watch = Watch(folder, interruption.requested.is_set, show)
        result = search(
            design,
            starts,
            config=config.anneal,
            budget=config.budget,
            weights=config.weights,
            threads=config.threads,
            seed=config.seed,
            watch=watch,
        )
    metrics = measure(design, result.placement, weights=config.weights)
    title = f"{design.name}: {name}, {config.search}"
    console.print(metrics_table(metrics, title))
    console.print(moves_table(result))
    described = {"search": config.search, "start": result.start, "seconds": result.seconds, "moves": result.moves}
    write_results(folder, Found(design, result.placement, metrics, title, described), config)
    write_history(folder / "search.csv", result.history)
    if not result.finished:
        console.print("stopped before its time was spent; the same command goes on from here")
    console.print(f"written to {folder}", soft_wrap=True)
    return metrics


def _legalised(config: EvaluateConfig, console: Console, design: Design, clear: Start) -> Metrics:
    """Puts what is legal on the manufacturing grid, if there is one; prints, writes and returns its metrics."""
    anneal, placement = config.anneal, clear.placement
    if anneal.grid > 0:
        placement = legalise(design, placement, spacing=anneal.spacing, blockages=blockages(anneal), grid=anneal.grid)
        console.print(f"onto a grid of {anneal.grid:g} µm: {displaced(clear.placement, placement)}", soft_wrap=True)
    name = Path(clear.name).stem
    folder = Path(config.out) if config.out is not None else DEFAULT_OUT / design.name / f"{name}-legalise"
    metrics = measure(design, placement, weights=config.weights)
    title = f"{design.name}: {name}, made legal"
    console.print(metrics_table(metrics, title))
    write_results(folder, Found(design, placement, metrics, title, {"search": "legalise", "placement": name}), config)
    console.print(f"written to {folder}", soft_wrap=True)
    return metrics


def _starts(config: EvaluateConfig, console: Console) -> tuple[Design, list[Start], str]:
    """What the search begins with (nothing: its own starts), and what to call that."""
    if config.search == "anneal":
        assert config.design is not None
        return load(config.design, config.initial), [], "own"
    if config.checkpoint is not None:
        # late: JAX takes seconds to import
        from placement.evaluation.policy_evaluation import complete, load_policy

        policy = load_policy(config)
        found = complete(policy.evaluate(config.seed), policy.design)[:MOST_SAMPLES]
        names = [f"sample {number}" for number in range(len(found))]
        placements = [evaluation.placement for evaluation in found]
        samples = [Start(name, place) for name, place in zip(names, placements, strict=True) if place is not None]
        return policy.design, refinement_starts(policy.design, samples, config.anneal, config.seed), policy.run.name
    design, placement, name = load_placement(config)
    clear = legal(design, placement, config.anneal)
    if clear is not placement:
        console.print(f"{name} is not legal: {displaced(placement, clear)}", soft_wrap=True)
    return design, [Start(name, clear)], Path(name).stem


def displaced(before: Placement, after: Placement) -> str:
    """In words, how far macros were moved from one placement to the other."""
    way = np.abs(after.x - before.x) + np.abs(after.y - before.y)
    return f"{int((way > 0).sum())} macros were moved, by {way.sum():,.1f} µm in all and {way.max():,.1f} µm at most"


@contextlib.contextmanager
def progress_bar(console: Console) -> Iterator[Callable[[float, Point], None]]:
    """A bar on a terminal, nothing elsewhere; gives what is to be told of progress."""
    columns = (BarColumn(), TextColumn("{task.percentage:.0f} %"), TextColumn("{task.description}"))
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("searching", total=1.0)

        def show(share: float, point: Point) -> None:
            progress.update(task, completed=share, description=f"best {point.cost:.6f}")

        yield show


def moves_table(result: SearchResult) -> Table:
    """What became of the moves of each kind."""
    rate = result.moves / result.seconds if result.seconds > 0 else 0.0
    table = Table(title=f"moves, from start {result.start}", title_justify="left", title_style="bold")
    for name in ("kind", "share", "legal", "accepted", "saved per million"):
        table.add_column(name, justify="left" if name == "kind" else "right")
    drawn = sum(tally.drawn for tally in result.tallies.values())
    for kind, tally in result.tallies.items():
        if tally.drawn == 0:
            continue
        table.add_row(
            kind,
            f"{tally.drawn / drawn:.1%}",
            f"{tally.evaluated / tally.drawn:.1%}",
            f"{tally.accepted / max(1, tally.evaluated):.1%}",
            f"{1e6 * tally.saved / tally.drawn:.3f}",
        )
    table.caption = f"{result.moves:,} moves and {result.seconds:.1f} CPU seconds per thread: {rate:,.0f} a second"
    table.caption_justify = "left"
    return table


def write_history(path: Path, history: Sequence[Point]) -> None:
    """How the best cost fell, a line per round."""
    write_whole(path, csv_text([Point._fields, *history]))
