"""The typed face of the engine's annealer: one placement whose macros move at a temperature on the exact cost; and
several of them in threads.

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

ROUND_SECONDS = 3600.0
"""Wall-clock seconds that a round may take before it counts as hung."""


class Tally(NamedTuple):
    """What became of the proposals of one move: drawn, legal and evaluated, accepted, and cost saved by them."""

    drawn: int
    evaluated: int
    accepted: int
    saved: float


class AnnealerState(NamedTuple):
    """What the next moves depend on, beside the placement: the random number generator, and the moves drawn so far.

    `values` (float64 [5, K]) are what was adapted and the recent experience that it is adapted to.
    """

    random: int
    moves: int
    values: np.ndarray


class Annealer:
    """One placement under annealing; equal arguments and calls give equal placements. Not for two threads at once.

    Raises DesignError where `start` is incomplete or not legal.
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
        blockages = [list(blockage) for blockage in config.blockages]
        try:
            self._native = _native.Annealer(
                native_design(design), start.x, start.y, start.orientation, tuple(weights), config.spacing_in(design),
                config.rotate, blockages, config.soft_moves, seed,
            )  # fmt: skip
        except ValueError as error:
            raise DesignError(f"{design.name}: {error}") from None

    def set_mix(self, weights: Mapping[str, float]) -> None:
        """How often each move is proposed, relative to the others, instead of as its row in the engine's table says."""
        self._native.set_mix([weights.get(move, 0.0) for move in MOVES])

    def run(self, moves: int, temperature: float, most: float = math.inf) -> None:
        """Proposes `moves` moves; temperature 0 accepts only those that do not raise the cost.

        `most`: the highest cost, less its tidiness, that is accepted.
        """
        self._native.run(moves, temperature, most)

    def grow_clear(self) -> None:
        """Has tidiness count macros in the largest empty rectangle and a strip beside it; forgets the best so far."""
        self._native.grow_clear()

    def replace_soft(self) -> bool:
        """Has the soft placer place all soft macros, and keeps that only if it is cheaper; returns whether it is."""
        return self._native.replace_soft(SOFT_PLACER)

    def restart(self, placement: Placement) -> None:
        """Continues from another placement; the best so far stays unless this one is better; raises DesignError."""
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
        """A copy of the placement of `best_cost`."""
        return self._copy(best=True)

    @property
    def tallies(self) -> dict[str, Tally]:
        return dict(zip(MOVES, map(Tally, *self._native.tally()), strict=True))

    @property
    def accepted(self) -> int:
        return sum(self._native.tally()[2])

    @property
    def state(self) -> AnnealerState:
        """With `placement` and `best`, all that a new annealer needs to continue as this one would."""
        random, moves, values = self._native.state()
        return AnnealerState(random, moves, np.array(values))

    def resume(self, state: AnnealerState) -> None:
        """Takes over another annealer's state; placement and best are given by `start` and `restart`."""
        self._native.set_state(state.random, state.moves, state.values.tolist())

    def _copy(self, *, best: bool) -> Placement:
        x, y = np.empty_like(self._start.x), np.empty_like(self._start.y)
        orientation = np.empty_like(self._start.orientation)
        self._native.write(best, x, y, orientation)
        return dataclasses.replace(self._start, x=x, y=y, orientation=orientation)


class Population:
    """Annealers that move in step, one thread each; used as a context manager.

    `seconds` are the CPU seconds that each has spent, float64 [number of annealers].
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
        """CPU seconds per thread so far: of the busiest annealer, or their share where threads have several.

        The calling thread's own are added: where moves take no time, the rounds do.
        """
        own = time.thread_time() - self._begun
        return own + max(float(self.seconds.max()), float(self.seconds.sum()) / self._threads)

    def each(self, work: Callable[[Annealer], None]) -> None:
        """Has every annealer do `work`, all at once, and waits; raises what one of them raised."""

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
        """Annealers whose cost is more than `behind` above the best one's continue from that one's placement."""
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
