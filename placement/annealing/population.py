"""Annealers in threads; one whose cost is far above the best one's goes on from the best one's placement."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable, Sequence

import numpy as np

from placement.annealing.annealer import Annealer

ROUND_SECONDS = 3600.0
"""Wall-clock seconds that a round may take before it counts as hung."""


class Population:
    """Annealers that move in step, one thread each; used as a context manager.

    Attributes:
        annealers: those of the population.
        seconds: CPU seconds that each has spent, float64 [number of annealers].
    """

    def __init__(self, annealers: Sequence[Annealer], threads: int) -> None:
        self.annealers = tuple(annealers)
        self.seconds = np.zeros(len(self.annealers))
        self._threads = threads
        self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=threads, thread_name_prefix="annealer")

    def __enter__(self) -> Population:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    @property
    def thread_seconds(self) -> float:
        """CPU seconds per thread so far: of the busiest annealer, or their share where threads have several."""
        return max(float(self.seconds.max()), float(self.seconds.sum()) / self._threads)

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

    def go_with_the_winner(self, behind: float) -> int:
        """Annealers whose cost is more than `behind` above the best one's go on from that one's placement.

        Returns:
            How many did.
        """
        costs = [annealer.costs.total for annealer in self.annealers]
        winner = int(np.argmin(costs))
        losers = [index for index, cost in enumerate(costs) if cost > costs[winner] + behind]
        placement = self.annealers[winner].placement if losers else None
        for index in losers:
            assert placement is not None
            self.annealers[index].restart(placement)
        return len(losers)

    @property
    def best(self) -> Annealer:
        """The annealer that met the lowest cost."""
        return min(self.annealers, key=lambda annealer: annealer.best_cost)
