"""The legaliser of standard cells, checked site by site by independent code."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.flat import _native
from placement.flat.legalisation import MOST_SITES, legalise_cells
from placement.flat.problem import Core, half_perimeter
from placement.netlist.design import NodeKind, Orientation
from placement.netlist.floorplan import Rows
from placement.netlist.generators.flat import ROW_HEIGHT, SITE_WIDTH, FlatOptions, flat_draft
from placement.netlist.geometry import Rectangle

SITE, HEIGHT = 0.25, 1.5


def native(
    rows: list[tuple[float, float, int]], boxes: list[list[float]], cells: list[tuple[float, float, float, float]]
):
    """Returns row, x and y of each cell; rows are (x, y, sites), cells (x, y, width, height)."""
    x, y, sites = np.array(rows, np.float64).reshape(-1, 3).T
    full = np.ones(len(rows))
    columns = (x.copy(), y.copy(), HEIGHT * full, SITE * full, sites.astype(np.int32))
    return _native.legalise(
        *columns, np.array(boxes, np.float64).reshape(-1, 4), *np.array(cells).reshape(-1, 4).T.copy()
    )


def check(rows, boxes, cells, found) -> int:
    """Asserts that placed cells are on free sites of rows without overlaps; returns the number of free sites left."""
    taken: dict[tuple[float, float], object] = {}
    for x, y, sites in rows:
        for site in range(int(sites)):
            low = x + site * SITE
            blocked = any(a < low + SITE and c > low and b < y + HEIGHT and d > y for a, b, c, d in boxes)
            taken[low, y] = "box" if blocked else None
    for number, ((_, _, width, height), row, x, y) in enumerate(zip(cells, *found, strict=True)):
        if row < 0:
            continue
        assert y == rows[row][1]
        for up in range(int(np.ceil(height / HEIGHT))):
            for site in range(int(np.ceil(width / SITE))):
                spot = (x + site * SITE, y + up * HEIGHT)
                assert taken[spot] is None, f"cell {number} at {spot}: {taken[spot]}"
                taken[spot] = number
    return sum(one is None for one in taken.values())


WIDTHS, HEIGHTS = st.sampled_from([0.2, 0.25, 0.5, 0.8, 1.5]), st.sampled_from([1.0, 1.5, 3.0, 4.5])


@given(
    cells=st.lists(st.tuples(st.floats(-2, 9), st.floats(-2, 9), WIDTHS, HEIGHTS), min_size=1, max_size=60),
    boxes=st.lists(st.tuples(*[st.integers(0, 60)] * 4), max_size=5),
    cut=st.booleans(),
)
def test_cells_are_on_free_sites_of_rows_and_do_not_overlap(cells, boxes, cut) -> None:
    halves = [(0.0, 12), (4.0, 14)] if cut else [(0.0, 30)]
    rows = [(x, level * HEIGHT, sites) for level in range(5) for x, sites in halves]
    areas = [[a / 8, b / 8, (a + c + 1) / 8, (b + d + 1) / 8] for a, b, c, d in boxes]
    found = native(rows, areas, cells)
    left = check(rows, areas, cells, found)
    if left == 0 or (found[0] >= 0).all():
        return
    # A single cell of one site and one row without a position is too many.
    small = [row for row, cell in zip(found[0], cells, strict=True) if cell[2] <= SITE and cell[3] <= HEIGHT]
    assert all(row >= 0 for row in small)


def test_cells_that_are_legal_stay() -> None:
    rows = [(0.0, level * HEIGHT, 40) for level in range(3)]
    cells = [(1.0, 0.0, 0.5, 1.5), (1.5, 0.0, 1.0, 1.5), (3.0, 1.5, 0.75, 3.0), (0.0, 1.5, 0.25, 1.5)]
    _, x, y = native(rows, [], cells)
    assert x.tolist() == [1.0, 1.5, 3.0, 0.0] and y.tolist() == [0.0, 0.0, 1.5, 1.5]


def test_cells_that_overlap_share_the_displacement() -> None:
    """Two cells of four sites at the same position: Abacus moves each by half of the overlap."""
    _, x, _ = native([(0.0, 0.0, 40)], [], [(4.0, 0.0, 1.0, 1.5), (4.0, 0.0, 1.0, 1.5)])
    assert sorted(x.tolist()) == [3.5, 4.5]


def test_a_row_that_is_nearer_wins_over_a_long_push() -> None:
    rows = [(0.0, 0.0, 40), (0.0, HEIGHT, 40)]
    cells = [(0.0, 0.0, 8.0, 1.5), (4.0, 0.0, 8.0, 1.5)]
    row, x, _ = native(rows, [], cells)
    assert row.tolist() == [0, 1] and x.tolist() == [0.0, 2.0]  # the row ends at 10 µm


def test_a_cell_wider_than_every_run_has_no_place() -> None:
    row, _, _ = native([(0.0, 0.0, 12)], [[1.0, 0.0, 1.5, 1.5]], [(0.0, 0.0, 2.0, 1.5), (0.0, 0.0, 1.0, 1.5)])
    assert row.tolist() == [-1, 0]


def test_a_tall_cell_needs_rows_that_touch() -> None:
    rows = [(0.0, 0.0, 12), (0.0, 4.0, 12), (0.0, 5.5, 12)]
    row, _, y = native(rows, [], [(0.0, 0.0, 1.0, 3.0)])
    assert row.tolist() == [1] and y.tolist() == [4.0]


@pytest.fixture(scope="module")
def draft():
    made = flat_draft(FlatOptions(cells=400, macros=4, ports=8, macro_pins=8, cell_utilization=0.5), seed=4)
    rng = np.random.default_rng(0)
    cells = made.netlist.kind == NodeKind.CELL
    at = rng.random((2, int(cells.sum())))
    fixed = made.placement.fixed & ~cells
    placement = dataclasses.replace(made.placement, fixed=fixed)
    placement = placement.moved(np.flatnonzero(cells), at[0] * made.width, at[1] * made.height)
    count = int(made.height / ROW_HEIGHT)
    rows = Rows.filling(Rectangle(0.0, 0.0, made.width, made.height), ROW_HEIGHT, count, site_width=SITE_WIDTH)
    return made, placement, rows


@pytest.mark.parametrize("halo", [0.0, 1.1])
def test_the_cells_of_a_design_are_legal_outside_macros_and_halos(draft, halo: float) -> None:
    made, placement, rows = draft
    netlist, core = made.netlist, Core(made.width, made.height, halo=halo)
    found = legalise_cells(netlist, placement, core, rows)
    assert found is not None
    cells = np.flatnonzero(netlist.kind == NodeKind.CELL)
    left = found.placement.x[cells] - netlist.width[cells] / 2
    low = found.placement.y[cells] - netlist.height[cells] / 2
    sites, levels = left / SITE_WIDTH, low / ROW_HEIGHT
    assert np.abs(sites - np.rint(sites)).max() < 1e-6 and np.abs(levels - np.rint(levels)).max() < 1e-6
    assert left.min() > -1e-6 and (left + netlist.width[cells]).max() < made.width + 1e-6
    assert low.min() > -1e-6 and (low + ROW_HEIGHT).max() < made.height + 1e-6
    macros = netlist.hard
    boxes = np.concatenate([np.stack([found.placement.x[macros], found.placement.y[macros]])] * 2).T
    half = np.stack([netlist.width[macros], netlist.height[macros]]).T / 2 + halo
    boxes = np.concatenate([boxes[:, :2] - half, boxes[:, 2:] + half], axis=1)
    own = np.stack([left, low, left + netlist.width[cells], low + netlist.height[cells]], axis=1)
    every = np.concatenate([own, boxes])
    for number, (a, b, c, d) in enumerate(own):
        over = np.minimum(every[:, 2], c) - np.maximum(every[:, 0], a)
        above = np.minimum(every[:, 3], d) - np.maximum(every[:, 1], b)
        meets = np.flatnonzero((over > 1e-6) & (above > 1e-6))
        assert meets.tolist() == [number]
    row = np.rint(levels).astype(int)
    assert (found.placement.orientation[cells] == rows.orientation[row]).all()
    assert found.wirelength == half_perimeter(netlist, found.placement)
    away = np.abs(found.placement.x - placement.x)[cells] + np.abs(found.placement.y - placement.y)[cells]
    assert found.mean_displacement == pytest.approx(away.mean())
    assert found.most_displacement == pytest.approx(away.max())
    assert found.without_place == 0
    others = np.flatnonzero(netlist.kind != NodeKind.CELL)
    assert (found.placement.x[others] == placement.x[others]).all()


def test_cells_are_kept_off_fixed_cells(draft) -> None:
    made, placement, rows = draft
    cells = np.flatnonzero(made.netlist.kind == NodeKind.CELL)
    tap = cells[0]
    fixed = placement.fixed.copy()
    fixed[tap] = True
    at = placement.moved(cells, np.full(len(cells), made.width / 2), np.full(len(cells), made.height / 2))
    at = dataclasses.replace(at, fixed=fixed)
    found = legalise_cells(made.netlist, at, Core(made.width, made.height), rows)
    assert found is not None
    assert found.placement.x[tap] == made.width / 2 and found.placement.y[tap] == made.height / 2
    width, height = made.netlist.width, made.netlist.height
    apart_x = np.abs(found.placement.x - at.x[tap]) - (width + width[tap]) / 2
    apart_y = np.abs(found.placement.y - at.y[tap]) - (height + height[tap]) / 2
    others = cells[1:]
    assert ((apart_x[others] > -1e-6) | (apart_y[others] > -1e-6)).all()


def test_a_cell_that_must_go_too_far_counts_as_without_a_place(draft) -> None:
    made, placement, _ = draft
    reach = MOST_SITES * SITE_WIDTH
    box = Rectangle(2 * reach, 0.0, 3 * reach, made.height)
    far = Rows.filling(box, ROW_HEIGHT, int(made.height / ROW_HEIGHT), site_width=SITE_WIDTH)
    found = legalise_cells(made.netlist, placement, Core(4 * reach, made.height), far)
    assert found is not None
    assert found.without_place == int((made.netlist.kind == NodeKind.CELL).sum())
    assert (found.placement.x[made.netlist.kind == NodeKind.CELL] > 2 * reach).all()


def test_without_rows_nothing_is_legalised(draft) -> None:
    made, placement, rows = draft
    none = dataclasses.replace(
        rows, **{field.name: getattr(rows, field.name)[:0] for field in dataclasses.fields(rows)}
    )
    assert legalise_cells(made.netlist, placement, Core(made.width, made.height), none) is None


def test_cells_take_the_orientation_of_their_rows(draft) -> None:
    made, placement, rows = draft
    found = legalise_cells(made.netlist, placement, Core(made.width, made.height), rows)
    assert found is not None
    cells = made.netlist.kind == NodeKind.CELL
    assert set(found.placement.orientation[cells].tolist()) == {Orientation.N, Orientation.FS}
