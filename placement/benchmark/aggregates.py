"""Statistics of a placer over many runs: interquartile mean, performance profile, probability of improvement,
intervals.

Definitions as in `rliable` (Agarwal, Schwarzer, Castro, Courville, Bellemare: "Deep reinforcement learning at the edge
of the statistical precipice", NeurIPS 2021), here for scores where lower is better: a score is a cost divided by the
baseline's. A failed run scores infinity.

Axis legend: a sample is a list over designs, the strata, of float64 [..., runs on that design]; the axes before the
runs are repetitions of the bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import trim_mean

METRICS = ("chip_cost", "proxy_cost", "wirelength", "routed_wirelength", "coloquinte_wirelength")
"""Scores by which runs can be compared; lower is better."""
TRIMMED = 0.25
REPETITIONS = 2000
CONFIDENCE = 0.95
Sample = Sequence[np.ndarray]


class Interval(NamedTuple):
    """An estimate and the bounds of its confidence interval."""

    value: float
    low: float
    high: float


def interquartile_mean(sample: Sample) -> np.ndarray:
    """Returns the mean of all runs' scores without the lowest and highest quarter, each rounded down to whole runs."""
    return trim_mean(np.concatenate(sample, axis=-1), TRIMMED, axis=-1)


def profile(sample: Sample, thresholds: np.ndarray) -> np.ndarray:
    """Returns the share of runs that score at most each threshold, float64 of its shape."""
    scores = np.sort(np.concatenate(sample))
    return np.searchsorted(scores, thresholds, side="right") / len(scores)


def probability_of_improvement(first: Sample, second: Sample) -> np.ndarray:
    """Returns the probability that a run of `first` scores less than one of `second`, averaged over the designs.

    It is Mann and Whitney's U over the number of pairs; ties count half.
    """
    shares = [
        ((x < y) + 0.5 * (x == y)).mean(axis=(-2, -1))
        for x, y in ((x[..., :, None], y[..., None, :]) for x, y in zip(first, second, strict=True))
    ]
    mean: np.ndarray = np.mean(shares, axis=0)
    return mean


def bootstrap(
    statistic: Callable[..., np.ndarray], *samples: Sample, seed: int = 0, repetitions: int = REPETITIONS
) -> Interval:
    """Returns the statistic of the samples with its percentile interval.

    The bootstrap is stratified: runs are resampled with replacement among those of the same design.
    """
    rng = np.random.default_rng(seed)
    drawn = [[runs[rng.integers(0, len(runs), (repetitions, len(runs)))] for runs in sample] for sample in samples]
    tail = 100 * (1 - CONFIDENCE) / 2
    # scores may be infinite: no interpolation between a finite value and infinity
    low, high = np.percentile(statistic(*drawn), [tail, 100 - tail], method="nearest")
    return Interval(float(statistic(*samples)), float(low), float(high))
