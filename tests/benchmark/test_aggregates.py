"""Aggregates compared with `rliable` 1.2.0, SciPy, and distributions enumerated by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats

from placement.benchmark.aggregates import bootstrap, interquartile_mean, probability_of_improvement, profile

FIRST = np.array([[0.91, 1.20, 0.75, 1.02], [0.95, 1.10, 0.80, 0.99], [0.90, 1.40, 0.70, 1.02]])
SECOND = np.array([[1.00, 1.15, 0.75, 1.00], [0.97, 1.30, 0.78, 1.05], [1.02, 1.25, 0.74, 0.98]])
"""Runs by designs."""


def sample(scores: np.ndarray) -> list[np.ndarray]:
    return list(scores.T)


def test_the_interquartile_mean_is_that_of_rliable() -> None:
    assert interquartile_mean(sample(FIRST)) == pytest.approx(0.965, abs=1e-12)
    assert interquartile_mean(sample(SECOND)) == pytest.approx(1.0033333333333334, abs=1e-12)


@pytest.mark.parametrize("runs", [1, 2, 3, 5, 8, 13])
def test_the_interquartile_mean_is_scipys_trimmed_mean(runs: int) -> None:
    scores = np.random.default_rng(runs).normal(size=(runs, 3))
    assert interquartile_mean(sample(scores)) == pytest.approx(scipy.stats.trim_mean(scores, 0.25, axis=None))


def test_failures_count_once_they_are_more_than_a_quarter() -> None:
    scores = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0, np.inf, np.inf])
    assert interquartile_mean([scores]) == 1.75  # mean of 1, 2, 2, 2
    assert interquartile_mean([np.append(scores[:-3], [np.inf] * 3)]) == np.inf


def test_the_probability_of_improvement_is_that_of_rliable() -> None:
    """rliable's scores are better when higher, so its arguments were negated."""
    assert probability_of_improvement(sample(FIRST), sample(SECOND)) == pytest.approx(0.625)
    assert probability_of_improvement(sample(SECOND), sample(FIRST)) == pytest.approx(0.375)
    assert probability_of_improvement(sample(FIRST), sample(FIRST)) == 0.5


def test_two_failures_are_equal() -> None:
    failed, found = [np.array([np.inf])], [np.array([1.0])]
    assert probability_of_improvement(failed, failed) == 0.5
    assert probability_of_improvement(found, failed) == 1.0


def test_a_profile_is_the_share_of_runs_that_score_at_most_so_much() -> None:
    scores = [np.array([1.0, 1.2]), np.array([0.9, np.inf])]
    assert profile(scores, np.array([0.8, 0.9, 1.1, 1.2, 9.0])).tolist() == [0.0, 0.25, 0.5, 0.75, 0.75]


def test_the_bootstrap_draws_runs_of_the_same_design() -> None:
    """Two designs of constant scores, far apart: resampling across designs would change their mean."""
    found = bootstrap(interquartile_mean, [np.full(3, 1.0), np.full(3, 5.0)], repetitions=100)
    assert found == (3.0, 3.0, 3.0)


def test_the_interval_of_the_bootstrap_is_that_of_all_draws_enumerated() -> None:
    runs = np.array([1.0, 1.1, 1.5, 2.5])

    def mean(drawn: list[np.ndarray]) -> np.ndarray:
        return np.mean(drawn[0], axis=-1)

    every = [np.mean(draw) for draw in itertools.product(runs, repeat=4)]
    found = bootstrap(mean, [runs], repetitions=20_000)
    assert found.value == pytest.approx(1.525)
    assert (found.low, found.high) == pytest.approx(np.percentile(every, [2.5, 97.5]), abs=0.03)


def test_the_same_seed_gives_the_same_interval() -> None:
    first, again, other = (
        bootstrap(interquartile_mean, sample(FIRST), seed=seed, repetitions=50) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
