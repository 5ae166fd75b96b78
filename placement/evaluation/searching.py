"""`macro-placement search` and `legalise`: improve a placement or a policy's best samples, or make a placement legal.

A cost that takes microseconds misses effects that the full evaluation finds, and searches of different seeds differ
more in the full evaluation than in the cost. Therefore, `candidates=N` places all cells around the results of N
searches, and keeps the best.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.search import Point, SearchResult, Watch, search, search_identity
from placement.annealing.starts import Start, legal, refinement_starts
from placement.engine.costs import compute_costs
from placement.evaluation.placements import (
    Found,
    check_out,
    has_macro_places,
    load_placement,
    readable_name,
    write_results,
)
from placement.evaluation.settings import LegaliseConfig, PlacementSettings, SearchConfig
from placement.flat.flat_evaluator import FULL_EVALUATION
from placement.flat.placement_timer import PlacementTimer
from placement.netlist.design import Design, Placement
from placement.netlist.feasibility import check_constraints
from placement.netlist.files import write_whole
from placement.netlist.flat_design import flat_or_none
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import find, load
from placement.report.placement_metrics import Metrics, make_table, measure, metrics_table
from placement.report.progress_bar import progress_bars
from placement.utils.interruption import Interruption

if TYPE_CHECKING:  # JAX takes seconds to import.
    from placement.evaluation.full_evaluation import FullEvaluator

STOPPED = "stopped early; the same command resumes"
MOST_SAMPLES = 4
"""Number of a policy's best samples that enter the successive halving of starts; the search refines the winner."""
RECORD_NAME = "candidates.json"
DETOUR = 60.0
"""Weight of a µm of wire without a track. With it, Kendall's τ with the routed wirelength that a flow measured on six
published placements of Ariane is 0.47 (docs/experiments/costs.md)."""
SEARCH_SHARE = 0.8  # the search's fraction of a candidate's progress bar; the rest is its evaluation
DEADLINE_SECONDS = 7 * 24 * 3600.0  # timeout of all candidates together, in wall-clock seconds


def evaluate_search(config: SearchConfig, console: Console) -> Metrics:
    """Searches; prints, writes and returns the metrics of the best placement.

    Ctrl-C ends the search with the best placement so far (KeyboardInterrupt if there is none); the same command resumes
    from there. Raises ConfigError or DesignError if the checkpoint, the design or the placement cannot be used.
    """
    check_out(config)
    design, starts, name = _starts(config, console)
    folder = config.folder(design, f"{name}-{config.chosen_method}")
    title = f"{design.name}: {_title(name, config)}"
    described: dict[str, Any] = {"search": config.chosen_method}
    best: Candidate | SearchResult
    if config.candidates > 1 or config.chosen_method == "mixed_size":
        with Interruption() as interruption:
            stopped = interruption.requested
            found = find_best(design, starts, config, folder=folder, stopped=stopped, console=console)
        if len(found) < config.candidates or stopped.is_set():
            console.print(f"{len(found)} of {config.candidates} candidates: {STOPPED}", soft_wrap=True)
        if not found:
            raise KeyboardInterrupt
        best, table = found[0], candidates_table(found, timed=config.timing > 0)
        described |= {"candidate": best.number, "candidates": len(found)}
        metrics = _measured(design, best.placement, config)
        if not stopped.is_set():
            from placement.evaluation.full_evaluation import evaluate_fully  # imported late, since JAX takes seconds

            assert config.design is not None
            timer = _timer(config, design)
            timing = None if timer is None else timer.evaluator
            full = evaluate_fully(config.design, design, best.placement, console, timing)
            metrics = dataclasses.replace(metrics, full=full.metrics)
            if timer is not None:
                metrics = dataclasses.replace(
                    metrics, timing=timer.evaluate(best.placement, cells=full.legal.placement)
                )
    else:
        with Interruption() as interruption, progress_bars(console, "") as (bar,):
            best = result = search(
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
        metrics, table = _measured(design, best.placement, config), moves_table(result)
        if not result.finished:
            console.print(STOPPED)
    console.print(metrics_table(metrics, title))
    console.print(table)
    described |= {"start": best.start, "seconds": best.seconds, "moves": best.moves}
    write_results(folder, Found(design, best.placement, metrics, title, described), config, console)
    return metrics


def _title(name: str, config: SearchConfig) -> str:
    """A short description of a search's design, start and duration."""
    kind = "mixed-size search" if config.chosen_method == "mixed_size" else "search"
    begin = "its own starts" if name == "own" else readable_name(config.placement) if config.placement else name
    length = f"{config.time:g} CPU seconds" if config.moves is None else f"{config.moves:,} moves"
    return f"{kind} from {begin}, {length}"


def evaluate_legalised(config: LegaliseConfig, console: Console) -> Metrics:
    """Makes a placement legal; prints, writes and returns its metrics. Raises DesignError."""
    check_out(config)
    design, given, file, _ = load_placement(config)
    _note_constraints(design, console)
    placement, name = _cleared(design, given, file, config.rules, console), Path(file).stem
    metrics = _measured(design, placement, config)
    title = f"{design.name}: {name}, made legal"
    console.print(metrics_table(metrics, title))
    found = Found(design, placement, metrics, title, {"search": "legalise", "placement": name})
    write_results(config.folder(design, f"{name}-legalise"), found, config, console)
    return metrics


def _measured(design: Design, placement: Placement, config: PlacementSettings) -> Metrics:
    """The metrics, with the row area if the design that the settings name has a flat netlist."""
    flat = None if config.design is None else flat_or_none(find(config.design).parent)
    return measure(design, placement, weights=config.weights, flat=flat)


def _starts(config: SearchConfig, console: Console) -> tuple[Design, list[Start], str]:
    """The starts of the search (none: it makes its own), and a name for them."""
    if config.checkpoint is not None:
        # imported late, since JAX takes seconds
        from placement.evaluation.policies import finished, no_placement, policy_from_settings

        policy = policy_from_settings(config)
        episodes = policy.evaluate(config.seed)
        found = [one.placement for one in finished(episodes) if one.placement is not None]
        if not found:
            raise no_placement(policy.design, len(episodes))
        samples = [Start(f"sample {number}", placement) for number, placement in enumerate(found[:MOST_SAMPLES])]
        _note_constraints(policy.design, console)
        return policy.design, refinement_starts(policy.design, samples, config.anneal), policy.run.name
    assert config.design is not None
    loaded = load(config.design, config.initial) if config.placement is None else None
    if loaded is not None:
        refines, has_places = config.chosen_method == "refine", has_macro_places(loaded)
        if refines and not has_places:
            note = f"the macros of {loaded.name} are unplaced: the search uses its own starts"
            console.print(f"note: {note}", soft_wrap=True)
        elif config.method is None and has_places:
            note = "the search uses its own starts; method=refine improves the design's placement"
            console.print(f"note: {note}", soft_wrap=True)
        if not (refines and has_places):
            _note_constraints(loaded, console)
            return loaded, [], "own"
    design, placement, name, _ = load_placement(config, loaded)
    _note_constraints(design, console)
    return design, [Start(name, _cleared(design, placement, name, config.anneal, console))], Path(name).stem


def _note_constraints(design: Design, console: Console) -> None:
    """Prints violations of fixed macros, and whether none can move; raises DesignError for impossible constraints."""
    for notice in check_constraints(design):
        console.print(f"note: {notice}", soft_wrap=True)
    if len(design.netlist.hard) and not len(design.placing_order):
        rest = "only clusters of cells can move" if len(design.netlist.soft) else "nothing can move"
        console.print(
            f"note: all {len(design.netlist.hard)} macros of {design.name} are fixed: {rest}; "
            "macro-placement import --free-macros frees the macros that the files fix",
            soft_wrap=True,
        )


def _cleared(design: Design, placement: Placement, name: str, rules: AnnealConfig, console: Console) -> Placement:
    """Makes the placement legal; prints the distance that macros were moved."""
    clear = legal(design, placement, rules)
    if clear is not placement:
        console.print(f"{name} is not legal: {displaced(placement, clear)}", soft_wrap=True)
    return clear


def displaced(before: Placement, after: Placement) -> str:
    """A phrase on the distance that macros were moved from one placement to the other."""
    moved = np.abs(after.x - before.x) + np.abs(after.y - before.y)
    total, most = moved.sum(), moved.max()
    return f"{int((moved > 0).sum())} macros were moved, by {total:,.1f} µm in total and at most {most:,.1f} µm each"


def moves_table(result: SearchResult) -> Table:
    """A table of the moves of each kind that were drawn, legal and accepted, and their savings."""
    rate = result.moves / result.seconds if result.seconds > 0 else 0.0
    drawn = sum(tally.drawn for tally in result.tallies.values())
    rows = []
    for kind, tally in result.tallies.items():
        if tally.drawn:
            shares = tally.drawn / drawn, tally.evaluated / tally.drawn, tally.accepted / max(1, tally.evaluated)
            rows.append([kind, *(f"{share:.1%}" for share in shares), f"{1e6 * tally.saved / tally.drawn:.3f}"])
    return make_table(
        ("kind", "share", "legal", "accepted", "saved per million"),
        rows,
        title=f"moves, from start {result.start}",
        caption=f"{result.moves:,} moves and {result.seconds:.1f} CPU seconds per thread: {rate:,.0f} per second",
    )


class Candidate(NamedTuple):
    """A search's result, a placement of the clustered design.

    `flat_wirelength` (µm, half perimeters) is measured with the cells of `FullEvaluator.legal`; `spread` tells whether
    they converged, and `without_place` is the number of cells without a place. `beyond_tracks` is the wire in µm that
    exceeds the tracks, by the nets' boxes on gcells of 10 µm. `wns` and `tns` (ps, at most 0) and `failing` (endpoints)
    belong to these cells, if slack counts.
    """

    number: int
    start: str
    cost: float
    seconds: float
    moves: int
    flat_wirelength: float
    spread: bool
    without_place: int
    beyond_tracks: float
    placement: Placement
    wns: float = 0.0
    tns: float = 0.0
    failing: int = 0

    @property
    def score(self) -> float:
        """Score in µm, lower is better: wirelength with all cells placed, plus `DETOUR` per µm beyond the tracks."""
        return self.flat_wirelength + DETOUR * self.beyond_tracks


def find_best(
    design: Design,
    starts: Sequence[Start],
    config: SearchConfig,
    *,
    folder: Path,
    stopped: threading.Event,
    console: Console,
) -> list[Candidate]:
    """Searches `config.candidates` times, `config.threads` at once; returns the results, best first.

    Without `starts` each search makes its own. Once `stopped` is set, the results so far are returned, and the same
    call resumes from there. Raises DesignError if there is no flat netlist, or a search or an evaluation is impossible.
    """
    from placement.evaluation.full_evaluation import FullEvaluator  # imported late, since JAX takes seconds

    assert config.design is not None
    timer = _timer(config, design)
    evaluator = FullEvaluator(config.design, design, None if timer is None else timer.evaluator)
    seeds = np.random.SeedSequence(config.seed).generate_state(config.candidates, np.uint64).tolist()
    record = _Record(folder, design, search_identity(design, [], **_identity(config)))
    waiting = [number for number in range(config.candidates) if number not in record.found]
    with progress_bars(console, *(f"candidate {number}" for number in waiting)) as shown:
        bars = dict(zip(waiting, shown, strict=True))

        def work(number: int) -> None:
            def show(share: float, point: Point | None = None) -> None:
                bars[number](share * SEARCH_SHARE, "")

            watch = Watch(folder / f"candidate{number}", stopped.is_set, show)
            try:
                found = _find(
                    number, design, starts, config, evaluator=evaluator, timer=timer, watch=watch, seed=seeds[number]
                )
            except KeyboardInterrupt:
                return  # stopped during the search
            if not stopped.is_set():
                record.add(found)
                bars[number](1.0, "")

        with concurrent.futures.ThreadPoolExecutor(config.threads, thread_name_prefix="candidate") as pool:
            futures = [pool.submit(work, number) for number in waiting]
            try:
                for future in concurrent.futures.as_completed(futures, timeout=DEADLINE_SECONDS):
                    future.result()
            except BaseException:
                stopped.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
    return ranked(record.found.values(), config.timing)


def _timer(config: SearchConfig, design: Design) -> PlacementTimer | None:
    """The timer, or None if slack does not count; raises DesignError if it does and the design has no timing."""
    assert config.design is not None
    return PlacementTimer(config.design, design) if config.timing > 0 else None


def ranked(found: Iterable[Candidate], timing: float = 0.0) -> list[Candidate]:
    """Sorts candidates, best first: those whose cells spread and find a place, then by their score.

    `timing` is the weight of the negative slack that is added to the score, both relative to the mean of all
    candidates.
    """
    candidates = list(found)
    score = sum(one.score for one in candidates) / max(1, len(candidates)) or 1.0
    slack = sum(one.tns for one in candidates) / max(1, len(candidates)) or 1.0

    def rank(one: Candidate) -> tuple[bool, bool, float, int]:
        return not one.spread, one.without_place > 0, one.score / score + timing * one.tns / slack, one.number

    return sorted(candidates, key=rank)


def candidates_table(found: Sequence[Candidate], *, timed: bool = False) -> Table:
    """A table of the candidates, best first, with their slack if they are `timed`."""
    rows = []
    for one in found:
        wires = f"{one.flat_wirelength:,.0f}{'' if one.spread else ', not spread'}"
        slack = (f"{one.wns:,.0f}", f"{one.tns:,.0f}", f"{one.failing:,}") if timed else ()
        figures = f"{one.cost:.5f}", wires, str(one.without_place), f"{one.beyond_tracks:,.0f}"
        rows.append([str(one.number), one.start, *figures, *slack, f"{one.seconds:,.0f}"])
    slack = ("wns, ps", "tns, ps", "failing") if timed else ()
    columns = ("no.", "start", "cost", "flat, µm", "no place", "beyond tracks, µm", *slack, "CPU-s")
    return make_table(columns, rows, title="candidates, best first")


def _find(
    number: int,
    design: Design,
    starts: Sequence[Start],
    config: SearchConfig,
    *,
    evaluator: FullEvaluator,
    timer: PlacementTimer | None,
    watch: Watch,
    seed: int,
) -> Candidate:
    """Returns the best result of one search. Raises KeyboardInterrupt if it was stopped; its folder keeps its state."""
    from placement.evaluation.mixed_size_start import mixed_size_start, refine_among_cells, wire_beyond_tracks

    budget: dict[str, Any] = {"seconds": config.time, "moves": config.moves, "seed": seed, "watch": watch}
    anneal, weights, stopped = config.anneal, config.weights, watch.stopped
    found: list[tuple[str, Placement, float, int]] = []
    if config.chosen_method == "mixed_size":
        assert config.design is not None
        start = mixed_size_start(config.design, design, anneal, weights=weights, seed=seed, stopped=stopped)
        placed = evaluator.spread(start.placement, stopped=stopped)
        if stopped():  # Its cells have not reached their final positions.
            raise KeyboardInterrupt
        found.append((f"{start.name}, not refined", start.placement, 0.0, 0))
        placement, result = refine_among_cells(design, start.placement, placed, anneal, **budget)
        name = start.name
    else:
        result = search(design, starts, config=anneal, weights=weights, **budget)
        name, placement = result.start, result.placement
    if not result.finished:
        raise KeyboardInterrupt
    found.append((name, placement, result.seconds, result.moves))
    candidates = []
    for name, placement, seconds, moves in found:
        cost = compute_costs(design, placement, weights=weights).total
        cells, without_place = evaluator.legal(placement, stopped=stopped)
        if stopped():  # Its cells have not reached their final positions.
            raise KeyboardInterrupt
        figures = cells.result.wirelength, cells.result.converged, without_place, wire_beyond_tracks(design, cells)
        one = Candidate(number, name, cost, seconds, moves, *figures, placement)
        if timer is not None:
            slack = timer.evaluate(placement, cells=cells.placement, paths=0)
            one = one._replace(wns=slack.wns, tns=slack.tns, failing=slack.total.failing)
        candidates.append(one)
    return ranked(candidates, config.timing)[0]


def _identity(config: SearchConfig) -> dict[str, Any]:
    begins = {"method": config.chosen_method, "placement": config.placement, "checkpoint": config.checkpoint}
    budget = {"seconds": config.time if config.moves is None else None, "moves": config.moves}
    cells = {"full_evaluation": FULL_EVALUATION, "timing_driven": config.timing > 0}
    return {"config": config.anneal, **budget, "weights": config.weights, "seed": config.seed, **begins, **cells}


class _Record:
    """The candidates found so far, on disk; empty if they belong to other settings."""

    def __init__(self, folder: Path, design: Design, about: dict[str, Any]) -> None:
        self._folder, self._design, self._about, self._lock = folder, design, about, threading.Lock()
        self.found: dict[int, Candidate] = {}
        path = folder / RECORD_NAME
        if not path.is_file():
            return
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            if known["about"] != about:
                return
            for line in known["candidates"]:
                self.found[line["number"]] = Candidate(**line, placement=self._read(line["number"]))
        except (OSError, ValueError, KeyError, TypeError):  # A damaged record is replaced.
            self.found = {}

    def add(self, candidate: Candidate) -> None:
        with self._lock:
            comments = [f"candidate {candidate.number}"]
            write_placement(self._placement(candidate.number), self._design, candidate.placement, comments=comments)
            self.found[candidate.number] = candidate._replace(placement=self._read(candidate.number))
            lines = [one._asdict() for one in self.found.values()]
            for line in lines:
                del line["placement"]
            described = {"about": self._about, "candidates": lines}
            write_whole(self._folder / RECORD_NAME, json.dumps(described, indent=1) + "\n")

    def _read(self, number: int) -> Placement:
        """Reads a candidate, rounded as in its file, so that resumed and uninterrupted searches agree."""
        return read_placement(self._placement(number), self._design.netlist, located=self._design.initial)[1]

    def _placement(self, number: int) -> Path:
        return self._folder / f"candidate{number}" / "placement.plc"
