"""Which episodes were seen before, by identity: exact, small, and saved with a checkpoint.

An actor's counts rise, so what was seen of it is a few runs of consecutive counts with gaps where episodes were lost.
"""

from __future__ import annotations

import bisect

import numpy as np

GAPS = 256
"""Runs remembered for each actor; past that the oldest gap is closed: what was in it counts as seen."""


class EpisodeIntervalSet:
    """A set of identities (actor, count).

    Args:
        rows: int64 [N, 3], as `rows()` gave them, to go on from; None = nothing seen.
    """

    def __init__(self, rows: np.ndarray | None = None) -> None:
        self._runs: dict[int, list[list[int]]] = {}  # actor → [first, last] in rising order, never touching
        for actor, first, last in np.asarray([] if rows is None else rows, np.int64).reshape(-1, 3).tolist():
            self._runs.setdefault(actor, []).append([first, last])
        for runs in self._runs.values():
            runs.sort()

    def add(self, actor: int, count: int) -> bool:
        """Adds an identity; whether it is new."""
        runs = self._runs.setdefault(actor, [])
        at = bisect.bisect_right(runs, count, key=lambda run: run[0])
        if at and count <= runs[at - 1][1]:
            return False
        joins_before = at > 0 and runs[at - 1][1] == count - 1
        joins_after = at < len(runs) and runs[at][0] == count + 1
        if joins_before and joins_after:
            runs[at - 1][1] = runs.pop(at)[1]
        elif joins_before:
            runs[at - 1][1] = count
        elif joins_after:
            runs[at][0] = count
        else:
            runs.insert(at, [count, count])
            if len(runs) > GAPS:
                runs[0][1] = runs.pop(1)[1]
        return True

    def rows(self) -> np.ndarray:
        """int64 [N, 3]: actor, first and last count of each run."""
        rows = [(actor, *run) for actor, runs in self._runs.items() for run in runs]
        return np.array(rows, np.int64).reshape(-1, 3)
