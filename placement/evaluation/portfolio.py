"""`search method=portfolio`: unlike ways to search, and more searches of those that did best.

No cost says which start and which weights suit a design: over made designs the best of these ways is up to 12% shorter
after the check than a search with the chip cost from its own starts, and it is not the same one on each of them
(docs/experiments/2026-11-portfolio.md). So the first round tries each way once, and later rounds those that did best.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from placement.config import CostWeights


class Way(NamedTuple):
    """A way to search.

    Attributes:
        suffix: of the start's name in what users read.
        mixed_size: whether it begins with cells and macros placed together, instead of the search's own starts.
        density, congestion: times the weight that the user gave each.
    """

    suffix: str
    mixed_size: bool
    density: float
    congestion: float

    def weights(self, given: CostWeights) -> CostWeights:
        """Of the cost, where the user gave `given`."""
        return given._replace(density=self.density * given.density, congestion=self.congestion * given.congestion)


WAYS = (
    Way(", density ×3", True, 3.0, 1.0),
    Way(", density ×3", False, 3.0, 1.0),
    Way(", congestion ×3", False, 1.0, 3.0),
    Way("", False, 1.0, 1.0),
)
"""In the order of the first round."""
LATER = (0, 1, 0, 2)
"""Ranks of the ways that the candidates of a later round take, the best way being 0."""


def ways_of(count: int, worths: Mapping[int, float]) -> list[Way]:
    """The ways of the first `count` candidates.

    Args:
        count: of candidates; those of the last round may be some of it.
        worths: of all candidates of the rounds before the last, by number; the less, the better. Infinite: the cells
            did not find their room.
    """
    taken: list[int] = []
    while len(taken) < count:
        if not taken:
            taken += range(len(WAYS))
            continue
        tried = [[worths[number] for number, way in enumerate(taken) if way == at] for at in range(len(WAYS))]
        ranked = sorted(range(len(WAYS)), key=lambda at: (float(np.mean(tried[at])), at))
        taken += [ranked[rank] for rank in LATER]
    return [WAYS[at] for at in taken[:count]]
