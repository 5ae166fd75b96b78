"""`macro-placement search candidates=N`: several searches, all cells placed around each result, the best kept.

A cost that takes microseconds cannot see what the flat check sees, and searches of unlike seeds differ more after the
check than in the cost. So the check chooses. With `method=portfolio` it chooses among ways to search, too, and a
trained judge may say which of the results are worth a check.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from placement.annealing.search import Point, SearchResult, Watch, search, search_identity
from placement.annealing.starts import Start
from placement.config import NO_JUDGE
from placement.engine.costs import compute_costs
from placement.evaluation.flat_evaluation import FlatJudge, FlatPlaced
from placement.evaluation.mixed_size import refine_among_cells, wire_beyond_tracks
from placement.evaluation.portfolio import WAYS, Way, ways_of
from placement.evaluation.progress_bar import progress_bars
from placement.evaluation.settings import SearchConfig
from placement.judge.estimate import Estimator, read_judge
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import read_placement, write_placement
from placement.report.metrics import FullMetrics, make_table

RECORD_NAME = "candidates.json"
DETOUR = 60.0
"""µm of wire that one is worth which finds no track. So weighed, Kendall's τ with the routed wirelength that a flow
measured on six published placements of Ariane is 0.47 (docs/experiments/2026-11-chip-cost.md)."""
MORE_OVERFLOW = 0.01
"""Share of the demand: of checked candidates those that overflow by more than this above the least rank behind."""
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
        flat_wirelength: µm, half perimeters with all cells placed as `FlatJudge.spread` does, of a portfolio as
            `FlatJudge.place`; 0 where they were not placed.
        spread: whether the cells found their room; True where they were not placed.
        beyond_tracks: µm of wire that the tracks do not hold, by the nets' boxes on gcells of 10 µm; 0 of a portfolio.
        estimate: µm, the routed wirelength that a judge expects; 0 without one.
        check: the whole flat check's figures, of `method=portfolio` only; with a judge, of those that it chose.
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
    estimate: float
    check: FullMetrics | None
    placement: Placement

    @property
    def worth(self) -> float:
        """µm, the less, the better: the routed wirelength, where that was estimated, else what a judge expects of it.

        Without either, the wirelength with all cells placed, and `DETOUR` for each µm that the tracks do not hold.
        """
        if self.check:
            return self.check.routed_wirelength
        return self.estimate or self.flat_wirelength + DETOUR * self.beyond_tracks

    def with_check(self, check: FullMetrics) -> Candidate:
        """The same, checked."""
        return self._replace(flat_wirelength=check.flat_wirelength, spread=check.flat_converged, check=check)


def find_best(
    design: Design,
    starts: Callable[[int, bool], Sequence[Start]],
    config: SearchConfig,
    *,
    folder: Path,
    stopped: threading.Event,
    console: Console,
) -> list[Candidate]:
    """Searches `config.count` times, `config.threads` at once; the results, the best first.

    Of a portfolio with a judge, `config.checked` of the results are checked, once all were found: those that are first
    among the `most_promising`.

    Stopped before the end, those that were found; the same call goes on from there.

    Args:
        design: what is placed; its flat netlist lies in its folder.
        starts: of a search, by its seed and whether they are to be of mixed size; none: it makes its own.
        config: of the command.
        folder: keeps the candidates.
        stopped: ends the searches and the checks.
        console: gets a bar on a terminal.

    Raises:
        ConfigError: the judge cannot be used.
        DesignError: there is no flat netlist, or a search or a check cannot be done.
        OSError: a file cannot be written.
    """
    assert config.design is not None
    judge = FlatJudge(config.design, design)
    estimator = None
    if config.chosen_method == "portfolio" and config.judge != NO_JUDGE:
        estimator = Estimator(design, read_judge(config.judge, optional=True))
    seeds = np.random.SeedSequence(config.seed).generate_state(config.count, np.uint64).tolist()
    about = _settings(config) | ({"judge": estimator.digest} if estimator else {})
    record = _Record(folder, design, search_identity(design, [], **about))
    waiting = [number for number in range(config.count) if number not in record.found]
    with progress_bars(console, *(f"candidate {number}" for number in waiting)) as shown:
        bars = dict(zip(waiting, shown, strict=True))
        ways: dict[int, Way] = {}

        def work(number: int) -> None:
            def show(share: float, point: Point | None = None) -> None:
                bars[number](share * SEARCH_SHARE, "")

            watch = Watch(folder / f"candidate{number}", stopped.is_set, show)
            way, seed = ways.get(number), seeds[number]
            try:
                begins = starts(seed, way.mixed_size if way else config.chosen_method == "mixed_size")
                if way is None:
                    options = _find(design, begins, config, judge=judge, number=number, watch=watch, seed=seed)
                    found = ranked(options)[0]
                else:
                    found = _find_way(design, begins, config, way=way, number=number, watch=watch, seed=seed)
                    if estimator:
                        found = found._replace(estimate=estimator.routed_wirelength(found.placement))
                    else:
                        found = _checked(found, judge, console, stopped=watch.stopped)
            except KeyboardInterrupt:
                return  # stopped meanwhile
            if not stopped.is_set():
                record.add(found)
                bars[number](1.0, "")

        for numbers in _rounds(waiting, config.chosen_method):
            if stopped.is_set():
                break
            if config.chosen_method == "portfolio":
                ways.update(enumerate(ways_of(numbers[-1] + 1, _worths(record.found))))
            _do_all(work, numbers, threads=config.threads, stopped=stopped)
    if estimator and not stopped.is_set():
        _check_best(record, judge, config, stopped=stopped, console=console)
    return ranked(record.found.values())


def _check_best(
    record: _Record, judge: FlatJudge, config: SearchConfig, *, stopped: threading.Event, console: Console
) -> None:
    """Checks those of `most_promising`, until so many as are asked for found their room."""
    while not stopped.is_set():
        found = most_promising(record.found)
        good = sum(one.check is not None and one.spread for one in found)
        waiting = [one for one in found if one.check is None and one.spread][: config.checked - good]
        if not waiting:
            return
        _check_all(waiting, record, judge, threads=config.threads, stopped=stopped, console=console)


def most_promising(found: Mapping[int, Candidate]) -> list[Candidate]:
    """Judged candidates in the order in which they are checked: the best of each way, then the second best, and so on.

    A judge ranks results of one way better than those of unlike ways: its errors are alike where the starts are.
    """
    ways = ways_of(max(found, default=-1) + 1, _worths(found))
    ranks: dict[int, int] = {}
    for one in sorted(found.values(), key=lambda one: (one.estimate, one.number)):
        ranks[one.number] = sum(ways[other] == ways[one.number] for other in ranks)
    return sorted(found.values(), key=lambda one: (ranks[one.number], one.estimate, one.number))


def _check_all(
    waiting: Sequence[Candidate],
    record: _Record,
    judge: FlatJudge,
    *,
    threads: int,
    stopped: threading.Event,
    console: Console,
) -> None:
    """Checks these candidates, a bar for each."""
    with progress_bars(console, *(f"check of candidate {one.number}" for one in waiting)) as bars:

        def work(number: int) -> None:
            def show(overflow: float, share: float) -> None:
                bars[number](share, f"density overflow {overflow:.1%}")

            one = _checked(waiting[number], judge, console, stopped=stopped.is_set, report=show)
            if not stopped.is_set():
                record.add(one)

        _do_all(work, range(len(waiting)), threads=threads, stopped=stopped)


def _checked(
    one: Candidate,
    judge: FlatJudge,
    console: Console,
    *,
    stopped: Callable[[], bool],
    report: Callable[[float, float], None] | None = None,
) -> Candidate:
    """The candidate with its check; where the cells cannot be placed, a line that says so, and none.

    What chooses is the routed wirelength, which packed cells begun in the middle would not change.
    """
    try:
        return one.with_check(judge.check(one.placement, middle=False, report=report, stopped=stopped).metrics)
    except DesignError as error:
        console.print(f"candidate {one.number}: {error}", soft_wrap=True)
        return one._replace(spread=False)


def ranked(found: Iterable[Candidate]) -> list[Candidate]:
    """The candidates, the best first.

    First those whose cells found their room, of these the checked ones, of these those that overflow little; then by
    their worth.
    """
    found = list(found)
    overflows = [one.check.overflow for one in found if one.check and one.spread]
    most = min(overflows, default=0.0) + MORE_OVERFLOW

    def order(one: Candidate) -> tuple[bool, bool, bool, float, int]:
        not_checked = bool(overflows) and one.check is None
        return not one.spread, not_checked, one.check is not None and one.check.overflow > most, one.worth, one.number

    return sorted(found, key=order)


def _rounds(numbers: Sequence[int], method: str) -> list[list[int]]:
    """The candidates that are searched for together; of a portfolio's later rounds the ways depend on the earlier."""
    if method != "portfolio":
        return [list(numbers)]
    return [list(group) for _, group in itertools.groupby(numbers, key=lambda number: number // len(WAYS))]


def _worths(found: Mapping[int, Candidate]) -> dict[int, float]:
    """What says which ways did best: where there is a judge, what it expects, whether or not it was checked since."""
    return {number: one.estimate or (one.worth if one.spread else math.inf) for number, one in found.items()}


def candidates_table(found: Sequence[Candidate]) -> Table:
    """The candidates, the best first."""
    is_judged, is_checked = any(one.estimate for one in found), any(one.check for one in found)
    rows = []
    for one in found:
        wires = f"{one.flat_wirelength:,.0f}{'' if one.spread else ', not spread'}" if one.flat_wirelength else ""
        tracks = f"{one.beyond_tracks:,.0f}"
        if is_checked or is_judged:
            tracks = f"{one.check.routed_wirelength:,.0f}; {one.check.overflow:.2%}" if one.check else ""
        judged = [f"{one.estimate:,.0f}"] if is_judged else []
        rows.append([str(one.number), one.start, f"{one.cost:.5f}", *judged, wires, tracks, f"{one.seconds:,.0f}"])
    columns = (
        "no.",
        "start",
        "cost",
        *(["judged, µm"] if is_judged else []),
        "flat, µm",
        "routed, µm; over" if is_checked or is_judged else "beyond tracks, µm",
        "CPU-s",
    )
    caption = "judged: the routed wirelength that the judge expects" if is_judged else None
    return make_table(columns, rows, title="candidates, the best first", caption=caption)


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
        return Candidate(number, start, cost, seconds, moves, wirelength, spread, beyond, 0.0, None, placement)

    budget, weights, anneal = config.budget, config.weights, config.anneal
    if config.chosen_method != "mixed_size":
        result = search(design, starts, config=anneal, budget=budget, weights=weights, seed=seed, watch=watch)
        _require_finished(result)
        checked = judge.spread(result.placement, stopped=watch.stopped)
        return [candidate(result.start, result.placement, checked, result)]
    (start,) = starts
    begun = judge.spread(start.placement, stopped=watch.stopped)
    if watch.stopped():  # its cells are not where they would end
        raise KeyboardInterrupt
    placement, result = refine_among_cells(
        design, start.placement, begun, anneal, budget=budget, seed=seed, watch=watch
    )
    _require_finished(result)
    refined = judge.spread(placement, stopped=watch.stopped)
    return [
        candidate(f"{start.name}, not refined", start.placement, begun, None),
        candidate(start.name, placement, refined, result),
    ]


def _find_way(
    design: Design,
    starts: Sequence[Start],
    config: SearchConfig,
    *,
    way: Way,
    number: int,
    watch: Watch,
    seed: int,
) -> Candidate:
    """What a portfolio's search found; neither judged nor checked.

    Raises:
        KeyboardInterrupt: the search was stopped.
    """
    weights = way.weights(config.weights)
    result = search(design, starts, config=config.anneal, budget=config.budget, weights=weights, seed=seed, watch=watch)
    _require_finished(result)
    return Candidate(
        number=number,
        start=f"{result.start}{way.suffix}",
        cost=compute_costs(design, result.placement, weights=config.weights).total,
        seconds=result.seconds,
        moves=result.moves,
        flat_wirelength=0.0,
        spread=True,
        beyond_tracks=0.0,
        estimate=0.0,
        check=None,
        placement=result.placement,
    )


def _require_finished(result: SearchResult) -> None:
    """Raises KeyboardInterrupt where the search was stopped; its folder keeps how far it came."""
    if not result.finished:
        raise KeyboardInterrupt


def _settings(config: SearchConfig) -> dict[str, Any]:
    begins = {"method": config.chosen_method, "placement": config.placement, "checkpoint": config.checkpoint}
    return {"config": config.anneal, "budget": config.budget, "weights": config.weights, "seed": config.seed, **begins}


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
                check = line.pop("check")
                self.found[line["number"]] = Candidate(
                    **line, check=None if check is None else FullMetrics(**check), placement=self._read(line["number"])
                )
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
                line["check"] = line["check"] and line["check"]._asdict()
            described = {"about": self._about, "candidates": lines}
            write_whole(self._folder / RECORD_NAME, json.dumps(described, indent=1) + "\n")

    def _read(self, number: int) -> Placement:
        """As the file has it, which rounds: a search that goes on gives what one that was not stopped would."""
        return read_placement(self._placement(number), self._design.netlist, located=self._design.initial)[1]

    def _placement(self, number: int) -> Path:
        return self._folder / f"candidate{number}" / "placement.plc"
