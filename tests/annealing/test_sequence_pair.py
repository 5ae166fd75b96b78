"""Packing by sequence pairs: results meet limits and distances; infeasible problems have no result."""

from __future__ import annotations

import numpy as np
import pytest

from placement.engine import _native

TOLERANCE = 1e-6


def _packed(sides: np.ndarray, extent: float, seed: int, gap: float = 0.0) -> np.ndarray | None:
    """Packs boxes of `sides` [2, B] in a square of `extent` from random positions; returns centres [2, B] or None."""
    generator = np.random.default_rng(seed)
    start = generator.uniform(0, extent, sides.shape)
    limits = [axis.tolist() for side in sides for axis in (side / 2, extent - side / 2)]
    apart = [((side + side[:, None]) / 2 + gap).ravel() for side in sides]
    found = _native.pack_boxes(*limits, *apart, *start.tolist(), 10**7, seed)
    return None if found is None else np.array(found)


@pytest.mark.parametrize("seed", range(10))
def test_boxes_keep_to_their_limits_and_apart(seed: int) -> None:
    generator = np.random.default_rng(seed)
    sides, gap = generator.uniform(10, 30, (2, 12)), 2.0
    found = _packed(sides, 100.0, seed, gap)
    assert found is not None
    assert (found >= sides / 2 - TOLERANCE).all() and (found <= 100.0 - sides / 2 + TOLERANCE).all()
    away = np.abs(found[:, :, None] - found[:, None]) - (sides[:, :, None] + sides[:, None]) / 2
    np.fill_diagonal(away[0], np.inf)
    assert (away.max(axis=0) >= gap - TOLERANCE).all()


def test_a_square_is_filled_to_the_brim_and_no_further() -> None:
    """Four quarters fill a square; a fifth box does not fit."""
    quarters = np.full((2, 4), 50.0)
    found = _packed(quarters, 100.0, 3)
    assert found is not None and sorted(map(tuple, found.T)) == [(25.0, 25.0), (25.0, 75.0), (75.0, 25.0), (75.0, 75.0)]
    assert _packed(np.full((2, 5), 50.0), 100.0, 3) is None


def test_wrong_lengths_are_rejected() -> None:
    with pytest.raises(ValueError, match="the same length"):
        _native.pack_boxes([0.0], [1.0, 2.0], [0.0], [1.0], np.zeros(1), np.zeros(1), [0.0], [0.0], 10, 0)
    with pytest.raises(ValueError, match="one value per pair of boxes"):
        _native.pack_boxes([0.0], [1.0], [0.0], [1.0], np.zeros(2), np.zeros(1), [0.0], [0.0], 10, 0)
