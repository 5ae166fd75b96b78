"""`placement.search`: compares starts by successive halving and anneals the best ones in threads. Its state is kept on
disk, so that an interrupted search resumes to the same result.

Temperatures are in units of the cost; progress is the share of the budget that is spent, in [0, 1].
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import time
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from placement.annealing.anneal_config import (
    FINAL_TEMPERATURE,
    INITIAL_TEMPERATURE,
    REFINE_SHARE,
    ROUND_MOVES,
    AnnealConfig,
)
from placement.annealing.annealer import Annealer, AnnealerState, Population, Tally
from placement.annealing.edges import onto_edges
from placement.annealing.starts import ELECTROSTATIC, Start, affordable, legal, make_starts, with_spacing
from placement.annealing.tidying import straighten
from placement.annealing.turning import turn_groups
from placement.config import require
from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, compute_costs
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import check_constraints
from placement.netlist.files import csv_text, write_whole
from placement.netlist.formats.plc import write_placement
from placement.netlist.load import load

TIDYING_SHARE = 0.25  # share of the budget for straightening the macros if `anneal.tidy` is set
TURNING_SHARE = 0.1  # share of this time for turning groups of macros
TIDY_WEIGHT = 1.5
"""Weight of tidiness before the straightening, in units of `anneal.tidy` times the cost of the cheapest start."""
HALVING_SHARE = 0.15
"""Share of the budget after the starts are made in which all of them are annealed before the best are chosen."""
FINAL_SHARE = 0.04  # share of the budget at the end in which no move may raise the cost
EXCHANGE_ROUNDS = 10  # rounds between two exchanges among the threads
EXCHANGE = 40.0  # cost gap, in temperatures, beyond which a thread continues from the placement of the best thread
SOFT_ROUNDS = 4  # rounds between two calls of the soft placer if the search does not move soft macros
ADAPTIVE_GAIN, ADAPTIVE_LAST = 0.05, 0.9
"""Change of the adaptive temperature's logarithm per round for each halving of the acceptance to be made up, and the
progress from which on the temperature is the final one.
"""
SAVE_SECONDS = 10.0  # wall-clock seconds between two saves of the state
MOST_POINTS = 2000  # maximum length of a history; beyond it every second point is dropped, which bounds the memory
STATE_NAME, BEST_NAME, HISTORY_NAME = "search.npz", "best.plc", "search.csv"
HISTORY_COLUMNS = ("seconds", "moves", "cost", "cost_name")
"""Columns of the history, one line per round: CPU seconds and moves of each thread, the best cost so far, and its name.
"""
FORMAT = 6


class Point(NamedTuple):
    """Progress of a search: CPU seconds per thread, moves per thread, and the best cost so far."""

    seconds: float
    moves: int
    cost: float


@dataclasses.dataclass(frozen=True)
class SearchResult:
    """The result of a search."""

    placement: Placement  # placement, costs: the best placement and its costs, computed from scratch
    costs: Costs
    start: str  # the name of the start that it came from
    history: tuple[Point, ...]  # the course of the best cost
    tallies: dict[str, Tally]  # proposals of all threads by move, since the search was last resumed
    finished: bool  # False if the search was stopped before its budget was spent

    @property
    def seconds(self) -> float:
        return self.history[-1].seconds

    @property
    def moves(self) -> int:
        return self.history[-1].moves


@dataclasses.dataclass(frozen=True)
class Watch:
    """The storage of a search and the callbacks during it.

    Attributes:
        folder: holds the state and the best placement, from which an interrupted search resumes; None: nothing is kept.
        stopped: called between rounds; once it returns true, the search saves its state and ends.
        on_progress: called between rounds with the progress and the last point.
    """

    folder: Path | None = None
    stopped: Callable[[], bool] = lambda: False
    on_progress: Callable[[float, Point], None] = lambda progress, point: None


def search(  # noqa: PLR0913  the public face: all but the first have a default
    design: Design | str,
    start: Placement | Sequence[Start] | None = None,
    *,
    seconds: float = 60.0,
    moves: int | None = None,
    config: AnnealConfig | None = None,
    weights: CostWeights = DEFAULT_WEIGHTS,
    threads: int = 1,
    seed: int = 0,
    watch: Watch = Watch(),
    round_moves: int = ROUND_MOVES,
) -> SearchResult:
    """Returns the best placement that simulated annealing finds on the exact cost; never worse than the best start.

    Args:
        design: a design, or the name or path of one.
        start: a placement to improve, made legal first, or several legal ones; None: the search makes its own starts.
        seconds: CPU seconds of each thread.
        moves: moves of each thread, instead of `seconds`; the result then depends on the arguments only, even if the
            search was stopped and resumed.
        config: the settings of the annealing; None: the defaults.
        weights: weights of the cost's components.
        threads: number of annealers, one thread each.
        seed: seed of all random numbers, at least 0.
        watch: the storage of the search and the callbacks during it.
        round_moves: moves of a thread between two changes of the temperature.

    Example:
        >>> found = placement.search("toy6", moves=2000)
        >>> found.costs.total < placement.cost(placement.load("toy6")).total
        True

    Raises:
        DesignError: the design cannot be used, no legal placement was found, or one of several starts is not legal.
        ConfigError: seconds or moves is not above 0.
        OSError: the folder cannot be written.
    """
    design = load(design) if isinstance(design, str) else design
    config = AnnealConfig() if config is None else config
    require(moves is not None or seconds > 0, "time", seconds, "above 0 seconds")
    require(moves is None or moves > 0, "moves", moves, "at least 1")
    check_constraints(design)
    tidying = config.tidy is not None and len(design.placing_order) > 0
    searching = 1 - TIDYING_SHARE if tidying else 1.0
    main_moves = None if moves is None else max(1, round(moves * searching))
    given = (Start("given", legal(design, start, config)),) if isinstance(start, Placement) else tuple(start or ())
    about = search_identity(
        design, given, config=config, seconds=seconds * searching if moves is None else None, moves=main_moves,
        weights=weights,
        threads=threads, seed=seed, round_moves=round_moves,
    )  # fmt: skip
    run = _Run(design, config, about, watch)
    *seeds, entrant_seed, start_seed = np.random.SeedSequence(seed).generate_state(threads + 2, np.uint64).tolist()
    found, begun = run.load(), time.thread_time()
    if found is None:
        entrants = given or _own_starts(design, config, start_seed, weights, seconds=about["seconds"], moves=main_moves)
    begins = [best for best, _, _ in found] if found is not None else [entrant.placement for entrant in entrants]
    by_default, config = config.spacing is None, with_spacing(design, config, begins)
    if tidying and found is None:
        cheapest = min(compute_costs(design, one, weights=weights).total for one in begins)
        run.state.tidy = TIDY_WEIGHT * (config.tidy or 0.0) * cheapest
    make = partial(Annealer, design, config=config, weights=weights._replace(tidy=weights.tidy + run.state.tidy))
    if found is not None:
        annealers = [make(best, seed=0) for best, _, _ in found]
        for annealer, (_, current, state) in zip(annealers, found, strict=True):
            annealer.restart(current)
            annealer.resume(state)
    else:
        annealers = [make(entrant.placement, seed=entrant_seed) for entrant in entrants]
        run.begin([entrant.name for entrant in entrants], annealers, time.thread_time() - begun)
    if run.state.entrants:
        chosen = run.halve(annealers)
        if not run.state.entrants:
            annealers = [make(chosen[index % len(chosen)], seed=one) for index, one in enumerate(seeds)]
    finished = not run.state.entrants and run.anneal(annealers)
    best = min(annealers, key=lambda annealer: annealer.best_cost).best
    if finished and tidying:
        best, finished = run.straighten(
            best, config, weights, seconds=None if moves is not None else seconds * (1 - searching),
            moves=None if moves is None else max(1, moves - (main_moves or 0)), seed=start_seed,
        )  # fmt: skip
    if by_default:
        best = onto_edges(design, best, spacing=config.spacing_in(design))
    if finished and watch.folder is not None:
        (watch.folder / STATE_NAME).unlink(missing_ok=True)
    tallies = {
        move: Tally(*map(sum, zip(*(annealer.tallies[move] for annealer in annealers), strict=True)))
        for move in annealers[0].tallies
    }
    history = tuple(Point(*point) for point in run.state.history)
    return SearchResult(best, compute_costs(design, best, weights=weights), run.state.start, history, tallies, finished)


def _own_starts(
    design: Design, config: AnnealConfig, seed: int, weights: CostWeights, *, seconds: float | None, moves: int | None
) -> list[Start]:
    """Returns the starts of a search; they ignore the design's own spacing if none can keep it."""
    chosen, count = affordable(design, with_spacing(design, config, ()), weights, seconds, moves)
    try:
        return make_starts(design, chosen, seed, weights, electrostatic=count)
    except DesignError:
        if config.spacing is not None or not design.constraints.spacing:
            raise
    return make_starts(design, dataclasses.replace(chosen, spacing=0.0), seed, weights, electrostatic=count)


def search_identity(design: Design, starts: Sequence[Start], **settings: Any) -> dict[str, Any]:
    """Returns what identifies a search, as plain values: its design, starts and settings."""
    digest = hashlib.sha256()
    for placement in (design.initial, *(start.placement for start in starts)):
        for array in (placement.x, placement.y, placement.orientation, placement.fixed):
            digest.update(array.tobytes())
    digest.update(design.constraints.as_bytes())
    plain = {
        name: dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
        for name, value in settings.items()
    }
    about = {"design": design.name, "files": digest.hexdigest(), "starts": len(starts), **plain}
    described: dict[str, Any] = json.loads(json.dumps(about))
    return described


@dataclasses.dataclass
class _State:
    """Progress of a search: all that a saved search holds besides its annealers."""

    # names of the starts until the best of them are chosen
    entrants: list[str] = dataclasses.field(default_factory=list)
    start: str = ""  # name of the chosen start
    unit: float = 0.0  # cost of the cheapest start
    refines: bool = False  # whether the search improves a given placement or one electrostatic start
    tidy: float = 0.0  # weight of tidiness in addition to that of the cost
    begun: float = 0.0  # progress when the starts were made; later, when the best were chosen
    seconds: float = 0.0  # CPU seconds per thread before the current population
    moves: float = 0.0
    rounds: int = 0
    accepted: float = 1.0  # accepted, first_accepted: accepted share of the moves in the last and in the first round
    temperature: float = 0.0
    first_accepted: float = 0.0
    history: list[tuple[float, int, float]] = dataclasses.field(default_factory=list)  # one `Point` per round, as lists


class _Run:
    """One run of a search."""

    def __init__(self, design: Design, config: AnnealConfig, about: dict[str, Any], watch: Watch) -> None:
        self._design, self._config, self._about, self._watch = design, config, about, watch
        self._saved = time.monotonic()
        self.state = _State()

    def begin(self, names: list[str], entrants: Sequence[Annealer], seconds: float) -> None:
        """Records the starts and the CPU seconds that making them took."""
        state = self.state
        state.entrants, state.seconds = names, seconds
        state.unit = min(annealer.best_cost for annealer in entrants)
        state.refines = bool(self._about["starts"]) or names == [ELECTROSTATIC]
        state.begun = self._share(0.0)
        state.history = [Point(seconds, 0, state.unit)]

    def straighten(
        self, placement: Placement, config: AnnealConfig, weights: CostWeights, *, seconds: float | None,
        moves: int | None, seed: int,
    ) -> tuple[Placement, bool]:  # fmt: skip
        """Straightens a placement and turns groups of macros; returns the result and whether both steps finished."""
        for step, share in ((straighten, 1 - TURNING_SHARE), (turn_groups, TURNING_SHARE)):
            after = step(
                self._design, placement, weights=weights, config=config, seconds=seconds and seconds * share,
                moves=moves and max(1, round(moves * share)), seed=seed, stopped=self._watch.stopped,
            )  # fmt: skip
            placement, last = after.placement, Point(*self.state.history[-1])
            cost = compute_costs(self._design, placement, weights=weights).total
            self.state.history.append(Point(last.seconds + after.seconds, last.moves + after.moves, cost))
            if not after.finished:
                return placement, False
        return placement, True

    def halve(self, entrants: Sequence[Annealer]) -> list[Placement]:
        """Anneals each entrant for an equal share of the time and returns the current best placement for each thread.

        If the run is stopped before that, `state.entrants` is not emptied.
        """
        state, threads = self.state, self._about["threads"]
        names, until = state.entrants, state.begun + HALVING_SHARE * (1 - state.begun)
        if len(entrants) > 1:
            with Population(entrants, threads) as population:
                self._anneal(population, until=until)
                state.seconds += population.thread_seconds
            if self._is_settled(population) or self._share(0.0) >= until:
                state.entrants, state.begun = [], self._share(0.0)
                state.temperature = state.first_accepted = 0.0
        else:
            state.entrants = []
        ranked = sorted(range(len(entrants)), key=lambda index: entrants[index].best_cost)[:threads]
        state.start = names[ranked[0]]
        return [entrants[index].best for index in ranked]

    def anneal(self, annealers: Sequence[Annealer]) -> bool:
        """Spends the rest of the budget; returns whether all of it is spent."""
        with Population(annealers, self._about["threads"]) as population:
            self._anneal(population, until=1.0)
            return self._is_settled(population) or self._share(population.thread_seconds) >= 1

    def _is_settled(self, population: Population) -> bool:
        """Returns whether no improvement is possible: no macro is movable, or a cost is 0."""
        netlist, fixed = self._design.netlist, self._design.initial.fixed
        softs = int((~fixed[netlist.soft]).sum()) if self._config.soft_moves else 0
        return not (len(self._design.placing_order) or softs) or population.best.best_cost == 0

    def _anneal(self, population: Population, *, until: float) -> None:
        """Runs rounds of moves at falling temperatures until the progress is `until` or the watch stops the search."""
        state, count = self.state, len(population.annealers)
        while (share := self._share(population.thread_seconds)) < until and not self._watch.stopped():
            if self._is_settled(population):
                break
            local = (share - state.begun) / (until - state.begun)
            state.temperature = self._next_temperature(local)
            self._round(population, state.temperature if local < 1 - FINAL_SHARE else 0.0)
            state.moves += self._about["round_moves"] * count / self._about["threads"]
            if not state.entrants and state.rounds % EXCHANGE_ROUNDS == 0:
                population.follow_the_best(EXCHANGE * state.temperature)
            self._report(population, share)
        self._save(population)

    def _next_temperature(self, progress: float) -> float:
        """Returns the temperature of the next round.

        The geometric schedule falls by the same factor in equal times. The adaptive one lets the accepted share fall
        evenly to a tenth of the first (Lam and Delosme, 1988).
        """
        config, design, state = self._config, self._design, self.state
        name = CostWeights(*self._about["weights"]).name
        unit = state.unit / max(1, len(design.placing_order) + int((~design.initial.fixed[design.netlist.soft]).sum()))
        initial = config.initial_temperature
        if initial is None:
            initial = INITIAL_TEMPERATURE[name] * (REFINE_SHARE if state.refines else 1.0)
        first, last = initial * unit, min(FINAL_TEMPERATURE, initial) * unit
        if config.schedule == "geometric":
            return first * (last / first) ** min(1.0, progress)
        if progress >= ADAPTIVE_LAST:
            return last
        temperature = state.temperature or first
        state.first_accepted = state.first_accepted or state.accepted
        if state.accepted > 0 and state.first_accepted > 0:
            wanted = state.first_accepted * 10 ** (-progress / ADAPTIVE_LAST)
            temperature *= math.exp(ADAPTIVE_GAIN * math.log2(wanted / state.accepted))
        return min(first, max(last, temperature))

    def _round(self, population: Population, temperature: float) -> None:
        state, moves = self.state, self._about["round_moves"]
        state.rounds += 1
        replaces = not self._config.soft_moves and state.rounds % SOFT_ROUNDS == 0

        clears = state.tidy > 0 and not state.entrants

        def work(annealer: Annealer) -> None:
            if clears:
                annealer.grow_clear()
            annealer.run(moves, temperature)
            if replaces:
                annealer.replace_soft()

        before = sum(annealer.accepted for annealer in population.annealers)
        population.each(work)
        accepted = sum(annealer.accepted for annealer in population.annealers) - before
        state.accepted = accepted / (moves * len(population.annealers))

    def _share(self, seconds: float) -> float:
        """Returns the share of the budget that is spent once the current population has spent `seconds` per thread."""
        if self._about["moves"] is not None:
            return float(self.state.moves / self._about["moves"])
        return float((self.state.seconds + seconds) / self._about["seconds"])

    def _report(self, population: Population, share: float) -> None:
        state = self.state
        if len(state.history) >= MOST_POINTS:
            state.history = state.history[::2]
        best = min(population.best.best_cost, state.history[-1][2])
        point = Point(state.seconds + population.thread_seconds, round(state.moves), best)
        state.history.append(point)
        self._watch.on_progress(min(1.0, share), point)
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self._save(population)

    def _save(self, population: Population) -> None:
        """Writes the state, history and best placement, each whole or not at all; raises OSError."""
        self._saved = time.monotonic()
        folder, state = self._watch.folder, self.state
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, np.ndarray] = {}
        for index, annealer in enumerate(population.annealers):
            for name, placement in (("current", annealer.placement), ("best", annealer.best)):
                arrays[f"{name}_{index}"] = np.stack([placement.x, placement.y, placement.orientation])
            random, moves, arrays[f"values_{index}"] = annealer.state
            arrays[f"counters_{index}"] = np.array([random, moves], dtype=np.uint64)
        kept = dataclasses.asdict(state) | {"seconds": state.history[-1][0] if state.history else 0.0}
        described = {"format": FORMAT, "about": self._about, "state": kept, "annealers": len(population.annealers)}
        arrays["described"] = np.frombuffer(json.dumps(described).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        write_whole(folder / STATE_NAME, buffer.getvalue())
        rows = [(*point, CostWeights(*self._about["weights"]).name) for point in state.history]
        write_whole(folder / HISTORY_NAME, csv_text([HISTORY_COLUMNS, *rows]))
        best = population.best
        comment = f"best so far of a search, {best.best_cost:.6f}"
        write_placement(folder / BEST_NAME, self._design, best.best, comments=[comment])

    def load(self) -> list[tuple[Placement, Placement, AnnealerState]] | None:
        """Restores this search from its folder: best and current placement and the state of each annealer.

        Returns None if the folder holds no readable state of this search.
        """
        if self._watch.folder is None or not (self._watch.folder / STATE_NAME).is_file():
            return None
        try:
            path = self._watch.folder / STATE_NAME
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                described = json.loads(arrays["described"].tobytes())
                if described["format"] != FORMAT or described["about"] != self._about:
                    return None
                found = []
                for index in range(int(described["annealers"])):
                    best, current = (self._placement(arrays[f"{name}_{index}"]) for name in ("best", "current"))
                    random, moves = arrays[f"counters_{index}"].tolist()
                    found.append((best, current, AnnealerState(random, moves, arrays[f"values_{index}"])))
                self.state = _State(**described["state"])
                return found
        except (OSError, KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile):
            return None

    def _placement(self, values: np.ndarray) -> Placement:
        nodes = self._design.netlist.num_nodes
        if values.shape != (3, nodes):
            raise ValueError(f"a placement of shape {values.shape}")
        placed = np.ones(nodes, dtype=np.bool_)
        return Placement(values[0], values[1], values[2].astype(np.int8), placed, self._design.initial.fixed)
