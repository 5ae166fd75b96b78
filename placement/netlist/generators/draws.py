"""Random choices that are the same on every machine and in every release.

They use only `random.Random.random`, whose sequence Python guarantees for a seed; the methods built on it (`shuffle`,
`choices`) and NumPy's generators may change.
"""

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """Draws from a random source, which is consumed."""

    def __init__(self, source: random.Random) -> None:
        self._uniform = source.random

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._uniform()

    def below(self, count: int) -> int:
        """An integer in [0, count)."""
        return int(self._uniform() * count)

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """The items in random order (Fisher and Yates)."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.below(last + 1)
            result[last], result[other] = result[other], result[last]
        return result

    def weighted(self, weights: Sequence[float]) -> int:
        """An index, with probability proportional to its weight."""
        left = self._uniform() * sum(weights)
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return index
        return len(weights) - 1

    def quantile(self, values: Sequence[float], at: float) -> float:
        """The value at fraction `at` in [0, 1) between evenly spaced quantiles (linear interpolation)."""
        place = at * (len(values) - 1)
        below = int(place)
        return values[below] + (place - below) * (values[below + 1] - values[below])
