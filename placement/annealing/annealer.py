"""Typed interface of the engine's annealer, which moves the macros of one placement on the exact cost, and populations
of annealers in threads.

Axis legend: N nodes, K moves (`config.MOVES`). Lengths are in µm, temperatures in units of the cost.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placement.annealing.anneal_config import MOVES, SOFT_PLACER, AnnealConfig
from placement.engine import _native
from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, checked_placement
from placement.engine.native_design import native_design
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError

ROUND_SECONDS = 3600.0  # wall-clock seconds after which a round counts as hung


class Tally(NamedTuple):
    """Counts of one move's proposals: drawn, evaluated because legal, and accepted; and the cost that they saved."""

    drawn: int
    evaluated: int
    accepted: int
    saved: float


class AnnealerState(NamedTuple):
    """All that the next moves depend on besides the placement: the random number generator and the moves drawn so far.

    `values` (float64 [5, K]) are the adapted parameters and the recent statistics behind them.
    """

    random: int
    moves: int
    values: np.ndarray


class Annealer:
    """One placement under annealing; equal arguments and calls give equal placements. Not thread-safe.

    Raises DesignError if `start` is incomplete or not legal.
    """

    def __init__(
        self,
        design: Design,
        start: Placement,
        *,
        config: AnnealConfig,
        weights: CostWeights = DEFAULT_WEIGHTS,
        seed: int = 0,
    ) -> None:
        self._design = design
        self._start = start = checked_placement(design, start)
        try:
            self._native = _native.Annealer(
                native_design(design), start.x, start.y, start.orientation, tuple(weights), config.spacing_in(design),
                config.rotate, config.soft_moves, seed,
            )  # fmt: skip
        except ValueError as error:
            raise DesignError(f"{design.name}: {error}") from None

    def set_mix(self, weights: Mapping[str, float]) -> None:
        """Sets the relative frequencies of the moves, which replace those of the engine's table."""
        self._native.set_mix([weights.get(move, 0.0) for move in MOVES])

    def run(self, moves: int, temperature: float, most: float = math.inf) -> None:
        """Proposes `moves` moves; temperature 0 accepts only those that do not raise the cost.

        `most`: upper bound of the accepted cost without tidiness.
        """
        self._native.run(moves, temperature, most)

    def grow_clear(self) -> None:
        """Lets tidiness count macros in the largest empty rectangle and a strip beside it; forgets the best so far."""
        self._native.grow_clear()

    def replace_soft(self) -> bool:
        """Runs the soft placer on all soft macros and keeps the result only if it is cheaper; returns whether it is."""
        return self._native.replace_soft(SOFT_PLACER)

    def restart(self, placement: Placement) -> None:
        """Continues from another placement; `best` changes only if this one is better. Raises DesignError."""
        placement = checked_placement(self._design, placement)
        try:
            self._native.restart(placement.x, placement.y, placement.orientation)
        except ValueError as error:
            raise DesignError(f"{self._design.name}: {error}") from None

    @property
    def costs(self) -> Costs:
        return Costs(*self._native.costs())

    @property
    def best_cost(self) -> float:
        return self._native.best_cost

    @property
    def placement(self) -> Placement:
        return self._copy(best=False)

    @property
    def best(self) -> Placement:
        """A copy of the placement that has `best_cost`."""
        return self._copy(best=True)

    @property
    def tallies(self) -> dict[str, Tally]:
        return dict(zip(MOVES, map(Tally, *self._native.tally()), strict=True))

    @property
    def accepted(self) -> int:
        return sum(self._native.tally()[2])

    @property
    def state(self) -> AnnealerState:
        """The state that, with `placement` and `best`, lets a new annealer continue exactly as this one would."""
        random, moves, values = self._native.state()
        return AnnealerState(random, moves, np.array(values))

    def resume(self, state: AnnealerState) -> None:
        """Adopts another annealer's state; placement and best are set by `start` and `restart`."""
        self._native.set_state(state.random, state.moves, state.values.tolist())

    def _copy(self, *, best: bool) -> Placement:
        x, y = np.empty_like(self._start.x), np.empty_like(self._start.y)
        orientation = np.empty_like(self._start.orientation)
        self._native.write(best, x, y, orientation)
        return dataclasses.replace(self._start, x=x, y=y, orientation=orientation)


class Population:
    """Annealers that move in lockstep, one thread each; used as a context manager.

    `seconds` are the CPU seconds of each annealer, float64 [number of annealers].
    """

    def __init__(self, annealers: Sequence[Annealer], threads: int) -> None:
        self.annealers = tuple(annealers)
        self._begun = time.thread_time()
        self.seconds = np.zeros(len(self.annealers))
        self._threads = threads
        self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=threads, thread_name_prefix="annealer")

    def __enter__(self) -> Population:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    @property
    def thread_seconds(self) -> float:
        """CPU seconds per thread so far: those of the busiest annealer, or the average per thread if that is more.

        The time of the calling thread is added because it dominates if moves take no time.
        """
        own = time.thread_time() - self._begun
        return own + max(float(self.seconds.max()), float(self.seconds.sum()) / self._threads)

    def each(self, work: Callable[[Annealer], None]) -> None:
        """Runs `work` on every annealer concurrently and waits; raises the exception of any that failed."""

        def timed(index: int) -> None:
            start = time.thread_time()
            work(self.annealers[index])
            self.seconds[index] += time.thread_time() - start

        futures = [self._pool.submit(timed, index) for index in range(len(self.annealers))]
        done, late = concurrent.futures.wait(futures, timeout=ROUND_SECONDS)
        if late:
            raise TimeoutError(f"{len(late)} of {len(futures)} annealers did not finish a round in {ROUND_SECONDS:g} s")
        for future in done:
            future.result()

    def follow_the_best(self, behind: float) -> None:
        """Restarts annealers whose cost exceeds the best one's by more than `behind` from its placement."""
        costs = [annealer.costs.total for annealer in self.annealers]
        best = int(np.argmin(costs))
        far = [annealer for annealer, cost in zip(self.annealers, costs, strict=True) if cost > costs[best] + behind]
        if far:
            placement = self.annealers[best].placement
            for annealer in far:
                annealer.restart(placement)

    @property
    def best(self) -> Annealer:
        return min(self.annealers, key=lambda annealer: annealer.best_cost)
