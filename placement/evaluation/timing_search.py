"""A search that sees timing, in rounds: search, place the cells, time them, price wires of failing paths, search on.

The first round takes half of the time and sees wires alone. Each later one begins where the one before ended, at the
temperature of a refinement, with the wires of paths that failed there as added nets (`flat.timing_attraction`). The
round whose placement is the best of all is the result, the first one included.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from placement.annealing.search import Point, SearchResult, Watch, search, search_identity
from placement.annealing.starts import Start
from placement.config import CostWeights
from placement.engine.costs import compute_costs
from placement.evaluation.settings import SearchConfig
from placement.flat.cell_blockages import without_cell_blockages
from placement.flat.correspondence import cells_in_clusters, core_of
from placement.flat.electrostatic import PlacerSettings
from placement.flat.global_placement import CellPlacement, place_cells
from placement.flat.row_area import within_rows
from placement.flat.timing import TimingEstimate, TimingEvaluator
from placement.flat.timing_attraction import Attractions, attracted, attractions
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.flat_design import read_flat
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import clusters_or_none, find
from placement.netlist.pdn_channel import DENSITY
from placement.netlist.timing_netlist import read_timing
from placement.report.placement_metrics import make_table

ROUNDS = 3
"""With attractions, after the first."""
FIRST_SHARE = 0.5
"""Of the time, of the first round."""
MARGIN, SOFTNESS = 0.5, 0.25
"""Of the worst negative slack: the slack of endpoints that still count, and the lateness that counts by 1/e."""
KEPT = 0.5
"""Share of the earlier rounds' attractions in a round: what was pulled together must not fall apart again."""
MOST_SHARE = 0.5
"""Of the wirelength, that the wires of failing paths count at most."""
CELLS = PlacerSettings(overflow=0.1, growth=1.08, balance=1e-3, density=DENSITY)
"""Of the cells in a round, which begin in their clusters: at a quarter of the time of spread cells."""
LEAST_SECONDS = 0.5
"""Of a round's search: where cells take long to place, there are a few seconds more than were given."""
RECORD_NAME, PLACEMENT_NAME = "rounds.json", "placement.plc"


class Round(NamedTuple):
    """What a round found: ps, µm with cells placed, CPU seconds of the search and of placing and timing the cells."""

    wns: float
    tns: float
    failing: int
    wirelength: float
    search_seconds: float
    timing_seconds: float
    moves: int


@dataclasses.dataclass(frozen=True)
class TimedSearch:
    """The result of a search that sees timing.

    Attributes:
        result: of the chosen round's placement, its costs those of the design itself, without tallies.
        rounds: all of them.
        chosen: the number of the chosen one.
    """

    result: SearchResult
    rounds: tuple[Round, ...]
    chosen: int


class RoundTimer:
    """Places the cells of a design around macros, coarsely, and times them.

    Args:
        name: of the design, as `load` takes it.
        design: the clustered one.

    Raises:
        DesignError: the design was imported without Liberty files, has no clock, or its cells are in no clusters.
    """

    def __init__(self, name: str, design: Design) -> None:
        folder = find(name).parent
        timing = read_timing(folder)
        self._design, self._flat = design, read_flat(folder)
        self._cluster = clusters_or_none(folder, self._flat)
        if not (self._cluster >= 0).any():
            raise DesignError(f"{name}: the cells are in no clusters: import the design again")
        self._evaluator = TimingEvaluator(timing, self._flat)
        core = within_rows(core_of(self._flat, design), self._flat.floorplan.rows)
        self._core = without_cell_blockages(core, self._flat)

    def evaluate(self, placement: Placement) -> tuple[CellPlacement, TimingEstimate]:
        """The cells of a placement of the clustered design, and their timing; raises DesignError if they do not fit."""
        start = cells_in_clusters(self._flat, self._cluster, self._design.netlist, placement)
        cells = place_cells(self._flat.netlist, start, self._core, settings=CELLS, start=start)
        return cells, self._evaluator.evaluate(cells.placement, paths=0)

    def attractions(self, cells: CellPlacement, wns: float) -> Attractions:
        """The wires of failing paths; `wns` in ps, below 0."""
        margin, softness = MARGIN * -wns, SOFTNESS * -wns
        slope = self._evaluator.slack_per_um(cells.placement, margin=margin, softness=softness)
        return attractions(self._evaluator, self._cluster, self._design.netlist, slope)


def search_with_timing(
    design: Design, starts: Sequence[Start], config: SearchConfig, *, watch: Watch
) -> TimedSearch | None:
    """Searches with negative slack in the cost; None if it was stopped before the first round ended.

    Stopped later, the best of the rounds until then is returned, and the same call resumes from there.

    Args:
        design: the clustered one that `config` names.
        starts: as of `search`.
        config: with a `timing` above 0.
        watch: as of `search`.

    Raises:
        DesignError: as `search` and `RoundTimer`.
    """
    assert config.design is not None
    timer = RoundTimer(config.design, design)
    about = search_identity(
        design, starts, config=config.anneal, weights=config.weights, timing=config.timing, moves=config.moves,
        seconds=config.time if config.moves is None else None, threads=config.threads, seed=config.seed,
    )  # fmt: skip
    course = _Course(design, timer, about, watch)
    while len(course.rounds) <= ROUNDS and not (watch.stopped() and course.rounds):
        number = len(course.rounds)
        searched, factor = course.searched(config.timing)
        found = search(
            searched,
            [Start(f"round {number}", course.placements[-1])] if number else starts,
            seconds=course.seconds_left(config.time),
            moves=None if config.moves is None else max(1, round(config.moves * _share(number))),
            config=config.anneal,
            weights=config.weights._replace(wirelength=config.weights.wirelength * factor),
            threads=config.threads,
            seed=config.seed + number,
            watch=course.watch(number),
        )
        if not found.finished:
            break
        course.add(found)
    if not course.rounds:
        return None
    return course.result(config.timing, config.weights, finished=len(course.rounds) > ROUNDS)


def _share(number: int) -> float:
    """Of the budget, that a round has."""
    return FIRST_SHARE if number == 0 else (1 - FIRST_SHARE) / ROUNDS


class _Course:
    """The rounds until now, which are kept in a folder; none if that has another search's."""

    def __init__(self, design: Design, timer: RoundTimer, about: dict[str, Any], watch: Watch) -> None:
        self._design, self._timer, self._about, self._watch = design, timer, about, watch
        self._searches: list[dict[str, Any]] = []
        self._attractions: Attractions | None = None
        self.rounds: list[Round] = []
        self.placements: list[Placement] = []
        for one in self._read():
            self._add(one)

    def watch(self, number: int) -> Watch:
        """That of a round's search, whose state is in a folder of its own."""
        done = FIRST_SHARE * (number > 0) + (1 - FIRST_SHARE) / ROUNDS * max(0, number - 1)
        folder = None if self._watch.folder is None else self._round_folder(number)

        def show(share: float, point: Point) -> None:
            self._watch.on_progress(done + share * _share(number), point)

        return Watch(folder, self._watch.stopped, show)

    def seconds_left(self, seconds: float) -> float:
        """CPU seconds of the next round's search: its share of what is left, less the timing of the cells."""
        number = len(self.rounds)
        if number == 0:
            return FIRST_SHARE * seconds
        left = seconds - sum(one.search_seconds + one.timing_seconds for one in self.rounds)
        each = left / (ROUNDS + 1 - number) - self.rounds[-1].timing_seconds
        return max(LEAST_SECONDS, each)

    def searched(self, timing: float) -> tuple[Design, float]:
        """The design of the next round, with attractions, and by how much they raise the sum of the nets' weights."""
        if not self.rounds or self._attractions is None or self.rounds[0].tns >= 0:
            return self._design, 1.0
        found, total = self._attractions, float(self._design.netlist.net_weight.sum())
        length = compute_costs(self._design, self.placements[-1]).wirelength
        weight = found.slack * (timing * length / -self.rounds[0].tns)
        share = float((weight * found.lengths(self.placements[-1])).sum()) / length if length else 0.0
        weight *= min(1.0, MOST_SHARE / share) if share else 0.0
        return attracted(self._design, found, weight), 1 + float(weight.sum()) / total

    def add(self, found: SearchResult) -> None:
        """Takes note of a round's search, times its placement and keeps both."""
        one = {"start": found.start, "seconds": found.seconds, "moves": found.moves}
        if self._watch.folder is not None:
            path = self._round_folder(len(self.rounds)) / PLACEMENT_NAME
            path.parent.mkdir(parents=True, exist_ok=True)
            write_placement(path, self._design, found.placement, comments=[f"round {len(self.rounds)} of a search"])
            described = {"about": self._about, "searches": [*self._searches, one]}
            write_whole(self._watch.folder / RECORD_NAME, json.dumps(described, indent=1) + "\n")
            found = dataclasses.replace(found, placement=self._placement(path))
        self._add((one, found.placement))

    def _add(self, searched: tuple[dict[str, Any], Placement]) -> None:
        one, placement = searched
        begun = time.process_time()
        cells, estimate = self._timer.evaluate(placement)
        if estimate.wns < 0:
            self._attractions = self._timer.attractions(cells, estimate.wns).blended(self._attractions, KEPT)
        self._searches.append(one)
        self.placements.append(placement)
        self.rounds.append(
            Round(
                estimate.wns, estimate.tns, estimate.total.failing, cells.wirelength, one["seconds"],
                time.process_time() - begun, one["moves"],
            )
        )  # fmt: skip

    def result(self, timing: float, weights: CostWeights, *, finished: bool) -> TimedSearch:
        """The best round, by wirelength and negative slack, both relative to the first."""
        first = self.rounds[0]

        def score(number: int) -> tuple[float, int]:
            one = self.rounds[number]
            return one.wirelength / first.wirelength + (timing * one.tns / first.tns if first.tns else 0.0), number

        chosen = min(range(len(self.rounds)), key=score)
        history, seconds, moves = list[Point](), 0.0, 0
        for one, placement in zip(self.rounds, self.placements, strict=True):
            seconds, moves = seconds + one.search_seconds, moves + one.moves
            history.append(Point(seconds, moves, compute_costs(self._design, placement, weights=weights).total))
            seconds += one.timing_seconds
        best = self.placements[chosen]
        costs = compute_costs(self._design, best, weights=weights)
        found = SearchResult(best, costs, self._searches[0]["start"], tuple(history), {}, finished)
        return TimedSearch(found, tuple(self.rounds), chosen)

    def _round_folder(self, number: int) -> Path:
        assert self._watch.folder is not None
        return self._watch.folder / f"round{number}"

    def _placement(self, path: Path) -> Placement:
        """As the file has it, which rounds: a search that was stopped gives what one that was not would."""
        return read_placement(path, self._design.netlist, located=self._design.initial)[1]

    def _read(self) -> list[tuple[dict[str, Any], Placement]]:
        """The searches in the folder, with their placements; none if they are damaged, or another search's."""
        if self._watch.folder is None or not (self._watch.folder / RECORD_NAME).is_file():
            return []
        try:
            known = json.loads((self._watch.folder / RECORD_NAME).read_text(encoding="utf-8"))
            if known["about"] != self._about:
                return []
            paths = [self._round_folder(number) / PLACEMENT_NAME for number in range(len(known["searches"]))]
            return [(one, self._placement(path)) for one, path in zip(known["searches"], paths, strict=True)]
        except (OSError, ValueError, KeyError, TypeError, DesignError):
            return []


def rounds_table(found: TimedSearch) -> Table:
    """What each round gained, and what it cost."""
    rows = [
        [
            f"{number}{' *' if number == found.chosen else ''}", f"{one.wns:,.0f}", f"{one.tns:,.0f}",
            f"{one.failing:,}", f"{one.wirelength:,.0f}", f"{one.search_seconds:.1f}", f"{one.timing_seconds:.1f}",
        ]
        for number, one in enumerate(found.rounds)
    ]  # fmt: skip
    columns = ("round", "wns, ps", "tns, ps", "failing", "wirelength, µm", "search, CPU-s", "timing, CPU-s")
    return make_table(columns, rows, title="rounds, with cells placed coarsely", caption="*: the result")
