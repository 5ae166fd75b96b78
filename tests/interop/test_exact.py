"""Whenever few macros have a legal placement, the legaliser finds one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.exact_placement import exists
from placement.annealing.displacement import Boxes
from placement.annealing.legaliser import NoLegalPlacement, boxes_of, fits, legalise
from tests.support.dense import constrained_design, strewn


def boxes(canvas: tuple[float, float], sizes: list[tuple[float, float]], *, spacing: float = 0.0) -> Boxes:
    """Movable boxes in a canvas."""
    width, height = np.array(sizes, dtype=np.float64).T
    count = len(sizes)
    low = np.stack((width, height)) / 2
    return Boxes(
        np.full(count, canvas[0] / 2), np.full(count, canvas[1] / 2), width, height, count, low,
        np.array(canvas)[:, None] - low, np.zeros((2, count)), np.full((2, count), spacing),
        np.ones((count, count), dtype=bool), False,
    )  # fmt: skip


def test_small_cases_of_the_solver_by_hand() -> None:
    assert exists(boxes((10, 10), [(5, 10), (5, 10)]), seconds=60) is True
    assert exists(boxes((10, 10), [(5, 10), (5, 10)], spacing=0.1), seconds=60) is False
    assert exists(boxes((10, 10), [(11, 1)]), seconds=60) is False
    # A pinwheel around a square of 2: no straight cut divides it, and a fifth box of 3 × 1 does not fit.
    pinwheel = [(6, 4), (4, 6), (6, 4), (4, 6)]
    assert exists(boxes((10, 10), [*pinwheel, (2, 2)]), seconds=60) is True
    assert exists(boxes((10, 10), [*pinwheel, (3, 1)]), seconds=60) is False


@settings(max_examples=10, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), percent=st.integers(50, 95))
def test_what_is_possible_is_found(seed: int, percent: int) -> None:
    design = constrained_design(seed, utilization=percent / 100, most=7)
    start = strewn(design, 300.0, seed=seed)
    try:
        assert fits(design, legalise(design, start))
    except NoLegalPlacement:
        given_up = boxes_of(design, start, spacing=0.0)
        assert exists(given_up, seconds=2) is not True


@pytest.mark.parametrize("sizes", [[(6, 4), (4, 6), (6, 4), (4, 6), (2, 2)], [(5, 10), (5, 5), (5, 5)]])
def test_a_full_canvas_has_an_exact_solution(sizes: list[tuple[float, float]]) -> None:
    assert exists(boxes((10, 10), sizes), seconds=60) is True
