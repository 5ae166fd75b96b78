"""What many runs say of a placer: interquartile mean, performance profile, probability of improvement, intervals.

As `rliable` defines them (Agarwal, Schwarzer, Castro, Courville, Bellemare: "Deep reinforcement learning at the edge of
the statistical precipice", NeurIPS 2021), here for scores of which less is better: a score is a cost divided by the
baseline's. A run that failed scores infinity.

Axis legend: a sample is a list over designs of float64 [runs on that design]; the strata of the bootstrap are designs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

METRICS = ("chip_cost", "proxy_cost", "wirelength", "routed_wirelength", "coloquinte_wirelength")
"""Scores that runs can be compared by; less is better."""
TRIMMED = 0.25
REPETITIONS = 2000
CONFIDENCE = 0.95
Sample = Sequence[np.ndarray]


class Interval(NamedTuple):
    """An estimate, and the ends of its confidence interval."""

    value: float
    low: float
    high: float


def interquartile_mean(sample: Sample) -> float:
    """The mean of all runs' scores without the lowest and the highest quarter, both rounded down to whole runs."""
    scores = np.sort(np.concatenate(sample))
    cut = int(TRIMMED * len(scores))
    return float(scores[cut : len(scores) - cut].mean())


def profile(sample: Sample, thresholds: np.ndarray) -> np.ndarray:
    """The share of runs that score at most each threshold, float64 of its shape."""
    scores = np.sort(np.concatenate(sample))
    return np.searchsorted(scores, thresholds, side="right") / len(scores)


def probability_of_improvement(first: Sample, second: Sample) -> float:
    """The probability that a run of `first` scores less than one of `second` on the same design, mean over designs.

    It is Mann and Whitney's U over the number of pairs; equal scores count half.
    """
    shares = [
        float((x[:, None] < y[None, :]).mean() + (x[:, None] == y[None, :]).mean() / 2)
        for x, y in zip(first, second, strict=True)
    ]
    return float(np.mean(shares))


def bootstrap(
    statistic: Callable[..., float], *samples: Sample, seed: int = 0, repetitions: int = REPETITIONS
) -> Interval:
    """The statistic of the samples with its percentile interval.

    Runs are drawn again, with replacement, among those of the same design: a stratified bootstrap.
    """
    rng = np.random.default_rng(seed)
    drawn = [
        statistic(*([runs[rng.integers(0, len(runs), len(runs))] for runs in sample] for sample in samples))
        for _ in range(repetitions)
    ]
    tail = 100 * (1 - CONFIDENCE) / 2
    # infinite scores: no interpolation between a finite value and infinity
    low, high = np.percentile(drawn, [tail, 100 - tail], method="nearest")
    return Interval(statistic(*samples), float(low), float(high))
