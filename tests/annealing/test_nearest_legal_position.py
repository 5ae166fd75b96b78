"""The engine's search for the nearest legal position, compared with all candidate positions."""

from __future__ import annotations

import numpy as np
import pytest

from placement.engine import _native

TOLERANCE = _native.LENGTH_TOLERANCE


def _slow(start: np.ndarray, low: np.ndarray, high: np.ndarray, at: np.ndarray, reach: np.ndarray) -> float:
    """Returns the least distance over every pair of coordinates: the start's, a limit's, or touching a box.

    at, reach: [2, B].
    """
    least = np.inf
    places = []
    for axis in range(2):
        touching = np.concatenate([at[axis] - reach[axis], at[axis] + reach[axis], [low[axis], high[axis]]])
        inside = touching[(touching >= low[axis] - TOLERANCE) & (touching <= high[axis] + TOLERANCE)]
        places.append(np.append(inside, np.clip(start[axis], low[axis], high[axis])))
    for x in places[0]:
        for y in places[1]:
            away = np.abs(np.array([[x], [y]]) - at) - reach
            if not (away < -TOLERANCE).all(axis=0).any():
                least = min(least, abs(x - start[0]) + abs(y - start[1]))
    return least


@pytest.mark.parametrize("seed", range(60))
def test_no_place_is_nearer(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = int(generator.integers(0, 14 if seed < 50 else 60))
    # With integers, boxes touch each other and the limits exactly.
    at = generator.integers(0, 100, (2, count)).astype(np.float64)
    reach = generator.integers(1, 60 if seed % 2 else 25 if seed < 50 else 9, (2, count)).astype(np.float64)
    start = generator.integers(-20, 120, 2).astype(np.float64)
    low, high = np.array([5.0, 10.0]), np.array([95.0, 90.0])
    found = _native.nearest_legal_position(tuple(start), tuple(low), tuple(high), *at - reach, *at + reach)
    least = _slow(start, low, high, at, reach)
    if found is None:
        assert not np.isfinite(least)
        return
    place = np.array(found)
    assert np.abs(place - start).sum() == pytest.approx(least, abs=1e-9)
    assert (place >= low).all() and (place <= high).all()
    assert not (np.abs(place[:, None] - at) - reach < -TOLERANCE).all(axis=0).any()


def test_a_box_as_large_as_the_room_and_one_larger() -> None:
    limits = (50.0, 50.0), (0.0, 0.0), (100.0, 100.0)
    found = _native.nearest_legal_position(*limits, *np.array([[0.0], [0.0], [100.0], [100.0]]))
    assert found is not None and sorted(np.abs(np.array(found) - 50.0)) == [0.0, 50.0]
    assert _native.nearest_legal_position(*limits, *np.array([[-1.0], [-1.0], [101.0], [101.0]])) is None
    with pytest.raises(ValueError, match="the same length"):
        _native.nearest_legal_position(
            (0.0, 0.0), (0.0, 0.0), (1.0, 1.0), np.zeros(2), np.zeros(2), np.zeros(1), np.zeros(2)
        )
