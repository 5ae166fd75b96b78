"""`macro-placement search candidates=N`: several searches, all cells placed around each result, the best kept.

A cost that takes microseconds cannot see what the flat check sees, and searches of unlike seeds differ more after the
check than in the cost. So the check chooses.
"""

from __future__ import annotations

import concurrent.futures
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from placement.annealing.search import Point, SearchResult, Watch, search, search_identity
from placement.annealing.starts import Start
from placement.engine.costs import compute_costs
from placement.evaluation.flat_evaluation import FlatJudge, FlatPlaced
from placement.evaluation.mixed_size import refine_among_cells, wire_beyond_tracks
from placement.evaluation.progress_bar import progress_bars
from placement.evaluation.settings import SearchConfig
from placement.netlist.design import Design, Placement
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import read_placement, write_placement
from placement.report.metrics import make_table

RECORD_NAME = "candidates.json"
DETOUR = 60.0
"""µm of wire that one is worth which finds no track. So weighed, Kendall's τ with the routed wirelength that a flow
measured on six published placements of Ariane is 0.47 (docs/experiments/2026-11-chip-cost.md)."""
SEARCH_SHARE = 0.8
"""Of a candidate's progress in the bar; the rest is its check."""
DEADLINE_SECONDS = 7 * 24 * 3600.0
"""Wall-clock seconds that all candidates together may take before they count as hung."""


class Candidate(NamedTuple):
    """A search's result and what it is worth.

    Attributes:
        number: of the candidate, from 0.
        start: what the search began with.
        cost: the search's.
        seconds, moves: of its one thread.
        flat_wirelength: µm, half perimeters with all cells placed as `FlatJudge.spread` does.
        spread: whether the cells found their room.
        beyond_tracks: µm of wire that the tracks do not hold, by the nets' boxes on gcells of 10 µm.
        placement: of the clustered design.
    """

    number: int
    start: str
    cost: float
    seconds: float
    moves: int
    flat_wirelength: float
    spread: bool
    beyond_tracks: float
    placement: Placement

    @property
    def worth(self) -> float:
        """µm, lower is better: the wirelength with all cells placed, and `DETOUR` for each µm beyond the tracks."""
        return self.flat_wirelength + DETOUR * self.beyond_tracks


def find_best(
    design: Design,
    starts: Callable[[int], Sequence[Start]],
    config: SearchConfig,
    *,
    folder: Path,
    stopped: threading.Event,
    console: Console,
) -> list[Candidate]:
    """Searches `config.count` times, `config.threads` at once; the results, the best first.

    Stopped before the end, those that were found; the same call goes on from there.

    Args:
        design: what is placed; its flat netlist lies in its folder.
        starts: of a search, by its seed; none: it makes its own.
        config: of the command.
        folder: keeps the candidates.
        stopped: ends the searches and the checks.
        console: gets a bar on a terminal.

    Raises:
        DesignError: there is no flat netlist, or a search or a check cannot be done.
        OSError: a file cannot be written.
    """
    assert config.design is not None
    judge = FlatJudge(config.design, design)
    seeds = np.random.SeedSequence(config.seed).generate_state(config.count, np.uint64).tolist()
    record = _Record(folder, design, search_identity(design, [], **_settings(config)))
    waiting = [number for number in range(config.count) if number not in record.found]
    with progress_bars(console, *(f"candidate {number}" for number in waiting)) as shown:
        bars = dict(zip(waiting, shown, strict=True))

        def work(number: int) -> None:
            def show(share: float, point: Point | None = None) -> None:
                bars[number](share * SEARCH_SHARE, "")

            watch = Watch(folder / f"candidate{number}", stopped.is_set, show)
            seed = seeds[number]
            try:
                options = _find(design, starts(seed), config, judge=judge, number=number, watch=watch, seed=seed)
            except KeyboardInterrupt:
                return  # stopped meanwhile
            if not stopped.is_set():
                record.add(ranked(options)[0])
                bars[number](1.0, "")

        _do_all(work, waiting, threads=config.threads, stopped=stopped)
    return ranked(record.found.values())


def ranked(found: Iterable[Candidate]) -> list[Candidate]:
    """The candidates, the best first: those whose cells found their room, then by their worth."""
    return sorted(found, key=lambda one: (not one.spread, one.worth, one.number))


def candidates_table(found: Sequence[Candidate]) -> Table:
    """The candidates, the best first."""
    rows = []
    for one in found:
        wires = f"{one.flat_wirelength:,.0f}{'' if one.spread else ', not spread'}"
        rows.append(
            [str(one.number), one.start, f"{one.cost:.5f}", wires, f"{one.beyond_tracks:,.0f}", f"{one.seconds:,.0f}"]
        )
    columns = ("no.", "start", "cost", "flat, µm", "beyond tracks, µm", "CPU-s")
    return make_table(columns, rows, title="candidates, the best first")


def _do_all(work: Callable[[int], None], numbers: Sequence[int], *, threads: int, stopped: threading.Event) -> None:
    """Has threads work on all numbers; `stopped` is set, too, once one of them has raised, which is raised here."""
    with concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="candidate") as pool:
        futures = [pool.submit(work, number) for number in numbers]
        try:
            for future in concurrent.futures.as_completed(futures, timeout=DEADLINE_SECONDS):
                future.result()
        except BaseException:
            stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _find(
    design: Design,
    starts: Sequence[Start],
    config: SearchConfig,
    *,
    judge: FlatJudge,
    number: int,
    watch: Watch,
    seed: int,
) -> list[Candidate]:
    """What a search found; of method=mixed_size what it began with, too.

    Raises:
        KeyboardInterrupt: the search was stopped.
    """

    def candidate(start: str, placement: Placement, flat: FlatPlaced, found: SearchResult | None) -> Candidate:
        seconds, moves = (found.seconds, found.moves) if found is not None else (0.0, 0)
        cost = compute_costs(design, placement, weights=weights).total
        beyond = wire_beyond_tracks(design, flat)
        wirelength, spread = flat.result.wirelength, flat.result.converged
        return Candidate(number, start, cost, seconds, moves, wirelength, spread, beyond, placement)

    weights, anneal, time, moves = config.weights, config.anneal, config.time, config.moves
    if config.chosen_method != "mixed_size":
        result = search(
            design, starts, config=anneal, seconds=time, moves=moves, weights=weights, seed=seed, watch=watch
        )
        _require_finished(result)
        checked = judge.spread(result.placement, stopped=watch.stopped)
        return [candidate(result.start, result.placement, checked, result)]
    (start,) = starts
    begun = judge.spread(start.placement, stopped=watch.stopped)
    if watch.stopped():  # its cells are not where they would end
        raise KeyboardInterrupt
    placement, result = refine_among_cells(
        design, start.placement, begun, anneal, seconds=time, moves=moves, seed=seed, watch=watch
    )
    _require_finished(result)
    refined = judge.spread(placement, stopped=watch.stopped)
    return [
        candidate(f"{start.name}, not refined", start.placement, begun, None),
        candidate(start.name, placement, refined, result),
    ]


def _require_finished(result: SearchResult) -> None:
    """Raises KeyboardInterrupt where the search was stopped; its folder keeps how far it came."""
    if not result.finished:
        raise KeyboardInterrupt


def _settings(config: SearchConfig) -> dict[str, Any]:
    begins = {"method": config.chosen_method, "placement": config.placement, "checkpoint": config.checkpoint}
    budget = {"seconds": config.time if config.moves is None else None, "moves": config.moves}
    return {"config": config.anneal, **budget, "weights": config.weights, "seed": config.seed, **begins}


class _Record:
    """The candidates found so far, on disk; of other settings there are none."""

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
        except (OSError, ValueError, KeyError, TypeError):  # a damaged record: begin anew
            self.found = {}

    def add(self, candidate: Candidate) -> None:
        """Keeps a candidate."""
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
        """As the file has it, which rounds: a search that goes on gives what one that was not stopped would."""
        return read_placement(self._placement(number), self._design.netlist, located=self._design.initial)[1]

    def _placement(self, number: int) -> Path:
        return self._folder / f"candidate{number}" / "placement.plc"
