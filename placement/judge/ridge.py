"""The simplest judge: a linear function of the parts, fitted within designs.

As good as the networks, it errs otherwise: half of what a judge says is its (docs/experiments/2026-11-judge.md).

Axis legend: B placements of one design, Q parts.
"""

from __future__ import annotations

import numpy as np

from placement.judge.examples import Example

PENALTY = 1e-3
"""On the squared weights, times the number of placements."""


def fit_ridge(examples: list[Example]) -> np.ndarray:
    """float64 [Q]: the weights that predict differences of log wirelength between placements of a design."""
    parts = np.concatenate([example.geometry.parts - example.geometry.parts.mean(0) for example in examples])
    wirelength = [example.targets.wirelength - example.targets.wirelength.mean() for example in examples]
    scale = parts.std(0) + 1e-9
    scaled = (parts / scale).astype(np.float64)
    gram = scaled.T @ scaled + PENALTY * len(scaled) * np.eye(scaled.shape[1])
    weights: np.ndarray = np.linalg.solve(gram, scaled.T @ np.concatenate(wirelength)) / scale
    return weights


def ridge_level(examples: list[Example], weights: np.ndarray) -> float:
    """What the weights [Q] miss of the log wirelength (`Targets`) in the mean of all placements."""
    missed = [example.targets.wirelength - example.geometry.parts @ weights for example in examples]
    return float(np.concatenate(missed).mean())
