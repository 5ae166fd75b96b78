"""Exact packing of few macros: a feasible problem is solved without overlaps, an infeasible one is proved so."""

from __future__ import annotations

import numpy as np
import pytest

from placement.annealing.displacement import Boxes
from placement.annealing.exact_packing import Infeasible, packed_exactly
from placement.annealing.legaliser import boxes_of
from tests.support.dense import dense_design


def boxes(sizes: list[tuple[float, float]], side: float = 10.0, obstacle: tuple[float, ...] = (5, 5, 0, 0)) -> Boxes:
    """Returns movable boxes in a square, beside one obstacle (x, y, width, height)."""
    width, height = (np.array([*of, extent]) for of, extent in zip(zip(*sizes, strict=True), obstacle[2:], strict=True))
    count = len(sizes)
    half = np.stack((width[:count], height[:count])) / 2
    x, y = (np.array([side / 2] * count + [at]) for at in obstacle[:2])
    none, far = np.zeros((2, count + 1)), np.full((2, count + 1), -np.inf)
    return Boxes(x, y, width, height, count, half, side - half, far, none, np.ones((count, count + 1), bool), False)


@pytest.mark.parametrize(
    ("sizes", "obstacle", "fits"),
    [
        ([(6, 10), (4, 10)], (5, 0, 0, 0), True),
        ([(6, 10), (4.1, 10)], (5, 0, 0, 0), False),
        ([(6, 6), (5, 5)], (5, 0, 0, 0), False),  # they would fit by area
        ([(6, 4), (4, 6), (6, 4), (4, 6)], (5, 5, 2, 2), True),  # a pinwheel around the obstacle
        ([(6, 4), (4, 6), (6, 4), (4, 6)], (4.9, 5, 2, 2), False),
    ],
)
def test_it_knows_what_fits(sizes: list[tuple[float, float]], obstacle: tuple[float, ...], fits: bool) -> None:
    given = boxes(sizes, obstacle=obstacle)
    if not fits:
        with pytest.raises(Infeasible):
            packed_exactly(given, seconds=10)
        return
    found = packed_exactly(given, seconds=10)
    assert found is not None
    pairs = given.pairs()
    assert not given.moved_to(*found).overlaps(pairs, given.needed(*pairs)).any()


def test_what_was_cut_from_a_canvas_fits_into_it() -> None:
    design = dense_design(4, macros=7, utilization=0.8)
    assert packed_exactly(boxes_of(design, design.initial, spacing=0), seconds=30)
