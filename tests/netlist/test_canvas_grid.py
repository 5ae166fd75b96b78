"""The grid rule: the published grids, its steps by hand, and a slow packing in Python."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.netlist import _native
from placement.netlist.canvas import canvas_of, choose_grid, waste
from placement.netlist.constraints import Constraints
from placement.netlist.errors import DesignError
from placement.netlist.generators.flat import FlatOptions, flat_on_floorplan

# Ariane: 133 memories of one size, on the two published canvases.
MEMORY_WIDTH, MEMORY_HEIGHT = np.full(133, 57.57), np.full(133, 133.0)


@pytest.mark.parametrize(
    ("width", "height", "columns", "rows"), [(1433.406, 1433.406, 24, 21), (1347.1, 1346.8, 23, 28)]
)
def test_published_grids(width: float, height: float, columns: int, rows: int) -> None:
    assert choose_grid(width, height, MEMORY_WIDTH, MEMORY_HEIGHT) == (columns, rows)


def test_waste_by_hand() -> None:
    # A side of 6 in one gcell of 10.
    assert waste(np.array([6.0]), 10.0) == pytest.approx(4 / 10)
    # Sides of 12 span three gcells of 10 each and extend 1 into the outer ones, one of which they share.
    assert waste(np.array([12.0, 12.0]), 10.0) == pytest.approx((50 - 24) / 50)
    # Sides of 28 extend 9 into the outer ones and share none.
    assert waste(np.array([28.0, 28.0]), 10.0) == pytest.approx((60 - 56) / 60)
    assert waste(np.array([]), 10.0) == 0


def slow_empty_share(width: float, height: float, columns: int, rows: int, macros: list[tuple[float, float]]) -> float:
    """The packing as described, gcell by gcell."""
    step_x, step_y = width / columns, height / rows
    placed: list[tuple[float, float, float, float]] = []
    for w, h in macros:
        for cell in range(columns * rows):
            x, y = (cell % columns + 0.5) * step_x, (cell // columns + 0.5) * step_y
            box = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
            inside = box[0] >= -1e-9 and box[1] >= -1e-9 and box[2] <= width + 1e-9 and box[3] <= height + 1e-9
            if inside and not any(
                min(box[2], other[2]) - max(box[0], other[0]) > 1e-9
                and min(box[3], other[3]) - max(box[1], other[1]) > 1e-9
                for other in placed
            ):
                placed.append(box)
                break
        else:
            return -1.0
    empty = 0
    for cell in range(columns * rows):
        left, bottom = cell % columns * step_x, cell // columns * step_y
        empty += not any(
            min(left + step_x, box[2]) - max(left, box[0]) > 2e-5 * step_x
            and min(bottom + step_y, box[3]) - max(bottom, box[1]) > 2e-5 * step_y
            for box in placed
        )
    return empty / (columns * rows)


@settings(max_examples=80, deadline=None)
@given(
    columns=st.integers(1, 9),
    rows=st.integers(1, 9),
    sizes=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=8),
)
def test_packing_as_described(columns: int, rows: int, sizes: list[tuple[int, int]]) -> None:
    macros = sorted(((w * 1.01, h * 1.03) for w, h in sizes), key=lambda size: -size[0] * size[1])
    found = _native.empty_share(
        100.0, 90.0, columns, rows, [w for w, _ in macros], [h for _, h in macros], tolerance=1e-9
    )
    assert found == pytest.approx(slow_empty_share(100.0, 90.0, columns, rows, macros))


def test_a_canvas_without_space_is_rejected() -> None:
    with pytest.raises(DesignError, match=r"2 macros cannot be packed.* 100 × 100 µm"):
        choose_grid(100.0, 100.0, np.array([80.0, 80.0]), np.array([80.0, 80.0]))


def test_halos_count_as_room_between_macros() -> None:
    """Halos count on both sides of a macro; the sides and halos of an oriented macro are turned."""
    flat = flat_on_floorplan("chip", FlatOptions(cells=200, macros=9, ports=9, macro_pins=8, macro_aspect=2.5), seed=1)
    nodes = flat.netlist.num_nodes
    halos = dataclasses.replace(Constraints.none(nodes), halo=np.full((nodes, 2), [0.5, 0.1]))
    turned = dataclasses.replace(flat, placement=dataclasses.replace(flat.placement, orientation=np.full(nodes, 4)))
    width, height = flat.netlist.width[flat.netlist.hard], flat.netlist.height[flat.netlist.hard]
    core = flat.floorplan.core
    for design, more in ((flat, (1.0, 0.2)), (turned, (0.2, 1.0))):
        canvas, _ = canvas_of(design, constraints=halos)
        sides = (height, width) if design is turned else (width, height)
        expected = choose_grid(core.width, core.height, sides[0] + more[0], sides[1] + more[1])
        assert (canvas.columns, canvas.rows) == expected
    upright = dataclasses.replace(halos, orientations=np.full(nodes, 0b1111))  # rotated macros will be rotated back
    assert not np.allclose(width, height)
    as_written, as_kept = (canvas_of(one, constraints=upright)[0] for one in (flat, turned))
    assert (as_kept.columns, as_kept.rows) == (as_written.columns, as_written.rows)
    as_turned = canvas_of(turned, constraints=halos)[0]
    assert (as_turned.columns, as_turned.rows) != (as_written.columns, as_written.rows)


def test_bounds_hold() -> None:
    columns, rows = choose_grid(100.0, 300.0, np.array([9.0] * 5), np.array([9.0] * 5))
    assert 500 <= columns * rows <= 2500
    assert 1 / 1.5 <= (100 / columns) / (300 / rows) <= 1.5
