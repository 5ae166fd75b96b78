"""Rectangles derived from area rules, compared with counts of unit squares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.netlist.floorplan import Region
from placement.netlist.geometry import clipped, complement, grown, merged_in_line, union_area
from placement.netlist.keep_outs import KeepOutKind, keep_outs, port_surroundings
from tests.support.constrained_designs import constrained
from tests.support.designs import four_macros

SIDE = 12


def painted(rectangles: np.ndarray) -> np.ndarray:
    """Returns how often each unit square of a 12 × 12 canvas is covered."""
    squares = np.zeros((SIDE, SIDE), int)
    for left, low, right, high in rectangles.astype(int).tolist():
        squares[max(left, 0) : max(right, 0), max(low, 0) : max(high, 0)] += 1
    return squares


@st.composite
def rectangle_sets(draw: st.DrawFn) -> np.ndarray:
    corner = st.integers(-3, SIDE + 2)
    found = [
        (x, y, x + draw(st.integers(1, 8)), y + draw(st.integers(1, 8)))
        for x, y in draw(st.lists(st.tuples(corner, corner), max_size=6))
    ]
    return np.array(found, dtype=np.float64).reshape(-1, 4)


@settings(max_examples=200, deadline=None)
@given(rectangles=rectangle_sets())
def test_sets_of_rectangles_against_painted_squares(rectangles: np.ndarray) -> None:
    covered = painted(rectangles) > 0
    free = complement(rectangles, SIDE, SIDE)
    assert (painted(free) == ~covered).all(), "what is free is covered once, the rest never"
    assert union_area(clipped(rectangles, SIDE, SIDE)) == covered.sum()
    assert union_area(free) == (~covered).sum()
    merged = merged_in_line(rectangles)
    assert ((painted(merged) > 0) == covered).all()
    assert len(merged) <= len(rectangles)


def test_growing_and_shrinking() -> None:
    box = np.array([[2.0, 2, 4, 8]])
    assert grown(box, (1, 0.5)).tolist() == [[1, 1.5, 5, 8.5]]
    assert grown(box, (-0.5, -1)).tolist() == [[2.5, 3, 3.5, 7]]
    assert not len(grown(box, (-1, 0)))


def test_squares_around_ports_in_a_row_are_one() -> None:
    squares = np.array([[0.0, 0, 2, 2], [5, 0, 7, 2], [1, 0, 3, 2], [0, 1.5, 2, 3.5], [9, 4, 10, 5]])
    assert sorted(merged_in_line(squares).tolist()) == [[0, 0, 3, 2], [0, 1.5, 2, 3.5], [5, 0, 7, 2], [9, 4, 10, 5]]


def test_area_rules_by_hand() -> None:
    design = four_macros()  # 50 × 50 µm, ports at (0, 25) and (50, 15)
    names = {name: node for node, name in enumerate(design.netlist.names)}
    design = constrained(
        design,
        blockages=np.array([[40.0, 40, 60, 60]]),
        port_keepout=3.0,
        regions=(
            Region("left", np.array([[0.0, 0, 20, 50]]), np.array([names["large"]])),
            Region("top", np.array([[0.0, 30, 50, 50]]), np.array([names["small"]]), is_exclusive=True),
        ),
    )
    assert port_surroundings(design).tolist() == [[0, 22, 3, 28], [47, 12, 50, 18]]
    kept = keep_outs(design)

    def of(name: str) -> list[tuple[KeepOutKind, list[float]]]:
        return [(KeepOutKind(kept.kind[item]), kept.rectangles[item].tolist()) for item in kept.of(names[name])]

    common = [
        (KeepOutKind.BLOCKAGE, [40, 40, 50, 50]),
        (KeepOutKind.PORT, [0, 22, 3, 28]),
        (KeepOutKind.PORT, [47, 12, 50, 18]),
    ]
    not_top = (KeepOutKind.REGION, [0, 30, 50, 50])
    assert of("middle") == of("kept") == [*common, not_top]
    assert of("large") == [*common, (KeepOutKind.REGION, [20, 0, 50, 50]), not_top]
    assert of("small") == [*common, (KeepOutKind.REGION, [0, 0, 50, 30])]
    assert kept.set_of[names["middle"]] == kept.set_of[names["kept"]] != kept.set_of[names["large"]]
    assert kept.set_of[names["cluster"]] == -1
    assert keep_outs(design) is kept


def test_without_constraints_nothing_is_kept_off() -> None:
    kept = keep_outs(four_macros())
    assert not len(kept.rectangles) and kept.set_start.tolist() == [0, 0]


@pytest.mark.parametrize("width", [1.0, 2.5])
def test_a_whole_canvas_has_no_complement(width: float) -> None:
    assert complement(np.array([[0.0, 0, width, 9]]), width, 9.0).shape == (0, 4)
