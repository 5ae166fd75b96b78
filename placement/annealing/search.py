"""A whole search: starts raced, then annealed in threads, the best kept on disk, resumed when it was stopped."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from placement.annealing import search_checkpoint
from placement.annealing.annealer import Annealer, Tally
from placement.annealing.config import AnnealConfig, Budget
from placement.annealing.cooling import make_schedule
from placement.annealing.legaliser import legalise
from placement.annealing.population import Population
from placement.annealing.starts import Start, affordable, make_starts
from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, compute_costs
from placement.netlist.design import Design, Placement
from placement.netlist.feasibility import check_constraints

FINAL_SHARE = 0.04
"""Share of the budget at the end that accepts only what does not cost."""
SAVE_SECONDS = 10.0
"""Wall-clock seconds between two states on disk."""
EXCHANGE_ROUNDS = 10
"""Rounds between two exchanges of the threads."""
MOST_POINTS = 2000
"""Of a history; every second one is dropped when there are more, so that memory does not grow with the moves."""
_KEPT = ("moves", "rounds", "raced", "unit", "given", "accepted", "racing", "memory")


class Point(NamedTuple):
    """How far a search was: CPU seconds per thread, moves per thread, the best proxy cost so far."""

    seconds: float
    moves: int
    cost: float


@dataclasses.dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes:
        placement: the best.
        costs: of it, by a full evaluation.
        start: the name of the start it came from.
        history: how the best cost fell.
        tallies: moves of all threads, by kind, since the search was last resumed.
        finished: False where it was stopped before its budget was spent.
    """

    placement: Placement
    costs: Costs
    start: str
    history: tuple[Point, ...]
    tallies: dict[str, Tally]
    finished: bool

    @property
    def seconds(self) -> float:
        """CPU seconds of each thread."""
        return self.history[-1].seconds

    @property
    def moves(self) -> int:
        """Moves of each thread."""
        return self.history[-1].moves


@dataclasses.dataclass(frozen=True)
class Watch:
    """What is done beside a search.

    Attributes:
        folder: where its state and its best placement are kept; a search of the same settings that was stopped there
            goes on. None: nowhere.
        stopped: asked between rounds; once true, the search saves its state and ends.
        on_progress: told the progress in [0, 1] and the last point between rounds.
    """

    folder: Path | None = None
    stopped: Callable[[], bool] = lambda: False
    on_progress: Callable[[float, Point], None] = lambda progress, point: None


def search(
    design: Design,
    starts: Sequence[Start] = (),
    *,
    config: AnnealConfig,
    budget: Budget,
    weights: CostWeights = DEFAULT_WEIGHTS,
    threads: int = 1,
    seed: int = 0,
    watch: Watch = Watch(),
) -> SearchResult:
    """The best placement that annealing finds within the budget; never worse than the best of `starts`.

    With a budget of moves the result depends on the arguments only, also when the search was stopped and resumed.

    Args:
        design: what is placed.
        starts: legal placements to improve, raced against each other; none: those of `config.starts`.
        config: how.
        budget: of each thread.
        weights: of the cost's parts.
        threads: annealers, a thread each.
        seed: of everything random, at least 0.
        watch: what is done beside.

    Raises:
        DesignError: the design's constraints cannot be met, no start could be made, one of `starts` is not legal, or
            what was found cannot be put on `config.grid` (it is in the folder, with the search's state).
        OSError: the folder cannot be written.
    """
    check_constraints(design)
    about = search_identity(design, starts, config=config, budget=budget, weights=weights, threads=threads, seed=seed)
    folder = watch.folder
    keep = None if folder is None else partial(search_checkpoint.save, folder, design, about=about)
    run = _SearchRun(design, config, budget, watch, keep, weights.name)
    found = search_checkpoint.load(folder, design, about) if folder is not None else None
    make = partial(Annealer, design, config=config, weights=weights)
    *seeds, race_seed, start_seed = np.random.SeedSequence(seed).generate_state(threads + 2, np.uint64).tolist()
    if found is not None:
        annealers = _resumed(run, found, make)
    else:
        begun = time.thread_time()
        entrants = starts or make_starts(design, affordable(design, config, budget), start_seed, weights)
        annealers = [make(entrant.placement, seed=race_seed) for entrant in entrants]
        spent = time.thread_time() - begun
        run.begin([entrant.name for entrant in entrants], annealers, given=bool(starts), seconds=spent)
    if run.racing:
        chosen = run.race(annealers, threads)
        if not run.racing:
            annealers = [make(chosen[index % len(chosen)], seed=one) for index, one in enumerate(seeds)]
    if not run.racing:
        run.anneal(annealers, threads)
    best = min(annealers, key=lambda annealer: annealer.best_cost).best
    if config.grid > 0:
        best = legalise(design, best, spacing=config.spacing, blockages=config.blockages, grid=config.grid)
    if run.finished and folder is not None:
        search_checkpoint.forget(folder)
    costs = compute_costs(design, best, weights=weights)
    tallies = _summed([annealer.tallies for annealer in annealers])
    return SearchResult(best, costs, run.start, tuple(run.history), tallies, run.finished)


def _resumed(run: _SearchRun, found: search_checkpoint.Saved, make: Callable[..., Annealer]) -> list[Annealer]:
    """Annealers as they were when the search was stopped."""
    annealers = [make(best, seed=0) for best in found.best]
    for annealer, current, state in zip(annealers, found.current, found.states, strict=True):
        annealer.restart(current)
        annealer.go_on(state)
    run.resume(found.progress)
    return annealers


class _SearchRun:
    """The course of one search."""

    def __init__(
        self,
        design: Design,
        config: AnnealConfig,
        budget: Budget,
        watch: Watch,
        keep: Callable[..., None] | None,
        cost: str,
    ) -> None:
        self._design, self._config, self._budget, self._watch, self._keep = design, config, budget, watch, keep
        self._cost = cost
        self.history: list[Point] = []
        self.start = ""
        self.finished = False
        self._racing: list[str] = []  # names of the starts, until the race of them has ended
        self._memory: list[float] = []  # of the schedule
        self._seconds = 0.0  # CPU seconds per thread before the present population
        self._moves = 0.0  # of each thread
        self._rounds = 0
        self._raced = 0.0  # progress when the starts were made; later, at the end of the race
        self._unit = 0.0  # proxy cost of the start
        self._given = False  # whether the starts were
        self._accepted = 1.0
        self._saved = time.monotonic()

    def progress(self) -> dict[str, Any]:
        """What a saved search needs to know."""
        return {
            "history": [list(point) for point in self.history],
            "start": self.start,
            "seconds": self.history[-1].seconds if self.history else 0.0,
            **{name: getattr(self, f"_{name}") for name in _KEPT},
        }

    def resume(self, progress: dict[str, Any]) -> None:
        """Takes over what `progress` gave."""
        self.history = [Point(*point) for point in progress["history"]]
        self.start, self._seconds = progress["start"], progress["seconds"]
        for name in _KEPT:
            setattr(self, f"_{name}", progress[name])

    @property
    def racing(self) -> bool:
        """Whether the starts have yet to be raced to the end."""
        return bool(self._racing)

    def begin(self, names: list[str], entrants: Sequence[Annealer], *, given: bool, seconds: float) -> None:
        """Takes note of the starts; `given`: they are to be refined; `seconds`: of CPU time that they took."""
        self._racing, self._given, self._seconds = names, given, seconds
        self._unit = min(annealer.best_cost for annealer in entrants)
        self._raced = self._share(0.0)  # the making of the starts counts, and is no part of the race
        self.history = [Point(seconds, 0, self._unit)]

    def race(self, entrants: Sequence[Annealer], threads: int) -> list[Placement]:
        """Anneals each entrant for an equal part of the race's share; the `threads` best, as they then are.

        Stopped before that, it is still `racing`.
        """
        names, until = self._racing, self._raced + self._config.race * (1 - self._raced)
        if len(entrants) > 1 and until > self._raced:
            with Population(entrants, threads) as population:
                self._anneal(population, until=until, threads=threads)
                self._seconds += population.thread_seconds
            if self._share(0.0) >= until:
                self._racing, self._memory, self._raced = [], [], self._share(0.0)
        else:
            self._racing = []
        ranked = sorted(range(len(entrants)), key=lambda index: entrants[index].best_cost)[:threads]
        self.start = names[ranked[0]]
        return [entrants[index].best for index in ranked]

    def anneal(self, annealers: Sequence[Annealer], threads: int) -> None:
        """Spends the rest of the budget."""
        with Population(annealers, threads) as population:
            self._anneal(population, until=1.0, threads=threads)
            self.finished = self._share(population.thread_seconds) >= 1

    def _anneal(self, population: Population, *, until: float, threads: int) -> None:
        """Rounds of moves, the temperature falling all the way, until the progress is `until` or somebody stops it."""
        config, design = self._config, self._design
        movable = len(design.placing_order) + int((~design.initial.fixed[design.netlist.soft]).sum())
        schedule = make_schedule(config, cost=self._unit, macros=movable, given=self._given, name=self._cost)
        if self._memory:
            schedule.memory = self._memory
        while (share := self._share(population.thread_seconds)) < until and not self._watch.stopped():
            local = (share - self._raced) / (until - self._raced)
            schedule.advance(local, self._accepted)
            temperature = schedule.temperature if local < 1 - FINAL_SHARE else 0.0
            self._round(population, temperature)
            self._moves += config.round_moves * len(population.annealers) / threads
            if not self._racing and self._rounds % EXCHANGE_ROUNDS == 0:
                population.go_with_the_winner(config.exchange * schedule.temperature)
            self._memory = schedule.memory
            self._report(population, share)
        self._save(population)

    def _round(self, population: Population, temperature: float) -> None:
        self._rounds += 1
        replaces = not self._config.soft_moves and self._rounds % self._config.soft_every == 0
        moves = self._config.round_moves

        def work(annealer: Annealer) -> None:
            annealer.run(moves, temperature)
            if replaces:
                annealer.replace_soft()

        before = sum(annealer.accepted for annealer in population.annealers)
        population.each(work)
        accepted = sum(annealer.accepted for annealer in population.annealers) - before
        self._accepted = accepted / (moves * len(population.annealers))

    def _report(self, population: Population, share: float) -> None:
        best = min(population.best.best_cost, self.history[-1].cost)
        if len(self.history) >= MOST_POINTS:
            self.history = self.history[::2]
        self.history.append(Point(self._seconds + population.thread_seconds, round(self._moves), best))
        self._watch.on_progress(min(1.0, share), self.history[-1])
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self._save(population)

    def _save(self, population: Population) -> None:
        if self._keep is not None:
            self._keep(population.annealers, progress=self.progress())
        self._saved = time.monotonic()

    def _share(self, seconds: float) -> float:
        """Of the budget that is spent, when the present population has spent `seconds` per thread."""
        if self._budget.moves is not None:
            return self._moves / self._budget.moves
        assert self._budget.seconds is not None
        return (self._seconds + seconds) / self._budget.seconds


def search_identity(design: Design, starts: Sequence[Start], **settings: Any) -> dict[str, Any]:
    """What tells one search from another, as plain values: its design, starts and settings."""
    digest = hashlib.sha256()
    for placement in (design.initial, *(start.placement for start in starts)):
        for array in (placement.x, placement.y, placement.orientation, placement.fixed):
            digest.update(array.tobytes())
    digest.update(design.constraints.as_bytes())
    plain = {
        name: dataclasses.asdict(value) if isinstance(value, (AnnealConfig, Budget)) else value
        for name, value in settings.items()
    }
    described: dict[str, Any] = json.loads(json.dumps({"design": design.name, "files": digest.hexdigest(), **plain}))
    return described


def _summed(tallies: list[dict[str, Tally]]) -> dict[str, Tally]:
    return {
        move: Tally(*(sum(values) for values in zip(*(tally[move] for tally in tallies), strict=True)))
        for move in tallies[0]
    }
