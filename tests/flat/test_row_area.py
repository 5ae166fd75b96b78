"""Row area in pieces, compared with a flood fill over sites."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placement.flat.problem import Core
from placement.flat.row_area import RowArea, RowColumns, RowCounts, free_row_area, row_area, row_columns, within_rows
from placement.netlist.floorplan import Rows
from placement.netlist.generators.flat import FlatOptions, flat_on_floorplan
from placement.netlist.geometry import Rectangle
from placement.netlist.import_constraints import ConstraintSettings
from placement.netlist.importing import ImportSettings, import_flat

SITE, HEIGHT, ACROSS = 0.25, 1.5, 30  # binary fractions, so that nothing is rounded


def columns(parts: list[tuple[int, int, int]]) -> RowColumns:
    """Returns rows from (level, first site, sites)."""
    level, first, sites = np.array(parts, np.int32).reshape(-1, 3).T
    full = np.full(len(parts), 1.0)
    return RowColumns(first * SITE, level * HEIGHT, HEIGHT * full, SITE * full, np.ascontiguousarray(sites))


def flood_fill(rows: RowColumns, boxes: np.ndarray) -> tuple[list[int], int]:
    """Returns the sites of each piece, largest first, and those in runs shorter than 5, by a fill site by site."""
    level, first = np.rint(rows.y / HEIGHT).astype(int), np.rint(rows.x / SITE).astype(int)
    free = np.zeros((ACROSS, 1 + level.max(initial=0)), bool)
    for row in range(len(rows.x)):
        free[first[row] : first[row] + rows.sites[row], level[row]] = True
    for site, row in np.ndindex(*free.shape):
        x, y = site * SITE, row * HEIGHT
        for low_x, low_y, high_x, high_y in boxes:
            if low_x < x + SITE and high_x > x and low_y < y + HEIGHT and high_y > y:
                free[site, row] = False
    seen, pieces = ~free, []
    for start in np.argwhere(free):
        waiting, count = [tuple(start)], 0
        while waiting:
            at = waiting.pop()
            if not (0 <= at[0] < ACROSS and 0 <= at[1] < free.shape[1]) or seen[at]:
                continue
            seen[at] = True
            count += 1
            waiting += [(at[0] + dx, at[1] + dy) for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        pieces += [count] if count else []
    short = 0
    for row in range(len(rows.x)):
        own = free[first[row] : first[row] + rows.sites[row], level[row]]
        short += sum(run for value, group in itertools.groupby(own) if value and (run := len(list(group))) < 5)
    return sorted(pieces, reverse=True), short


def pieces_and_slivers(area: RowArea) -> tuple[list[int], int]:
    return np.bincount(area.piece, weights=area.sites).tolist(), int(area.sites[area.sites < 5].sum())


@given(
    parts=st.lists(
        st.tuples(st.integers(0, 7), st.sampled_from([(0, 9), (9, 11), (20, 10), (21, 6), (0, 30)])),
        min_size=1,
        max_size=16,
    ),
    boxes=st.lists(st.tuples(*[st.integers(0, 63)] * 4), max_size=8),
)
def test_pieces_and_slivers_are_those_of_a_flood_fill(
    parts: list[tuple[int, tuple[int, int]]], boxes: list[tuple[int, int, int, int]]
) -> None:
    chosen: list[tuple[int, int, int]] = []
    for level, (first, sites) in parts:  # rows that do not overlap, some of them in one line
        if all(other[0] != level or first >= other[1] + other[2] or other[1] >= first + sites for other in chosen):
            chosen.append((level, first, sites))
    blocked = np.array(
        [[a * SITE / 2, b * HEIGHT / 4, (a + c) * SITE / 2, (b + d) * HEIGHT / 4] for a, b, c, d in boxes]
    ).reshape(-1, 4)
    blocked = blocked[(blocked[:, 2] > blocked[:, 0]) & (blocked[:, 3] > blocked[:, 1])]
    rows = columns(chosen)
    assert pieces_and_slivers(row_area(rows, blocked)) == flood_fill(rows, blocked)


def test_a_wall_divides_the_rows_and_a_gap_of_one_site_connects_them() -> None:
    rows = columns([(level, 0, 30) for level in range(4)])
    wall = np.array([[10 * SITE, 0.0, 12 * SITE, 4 * HEIGHT]])
    assert pieces_and_slivers(row_area(rows, wall))[0] == [72, 40]
    door = np.array([[10 * SITE, HEIGHT, 12 * SITE, 4 * HEIGHT]])
    area = row_area(rows, door)
    assert RowCounts.of(area) == RowCounts(1, 1.0, 3 * (10 + 18), 114)


def test_without_free_sites_there_is_no_piece() -> None:
    area = row_area(columns([(0, 0, 30)]), np.array([[0.0, 0.0, 30 * SITE, HEIGHT]]))
    assert RowCounts.of(area) == RowCounts(0, 1.0, 0, 0)


def test_rows_of_another_height_are_not_counted_again() -> None:
    box = Rectangle(2.0, 3.0, 12.0, 9.0)
    single, double = Rows.filling(box, 1.5, 4, site_width=0.25), Rows.filling(box, 3.0, 2, site_width=0.25)
    both = Rows(*(np.concatenate([getattr(one, name) for one in (single, double)]) for name in
                  ("x", "y", "width", "height", "site_width", "orientation")))  # fmt: skip
    found = row_columns(both, Core(10.0, 6.0, x=2.0, y=3.0))
    assert found.x.tolist() == [0.0] * 4 and found.y.tolist() == [0.0, 1.5, 3.0, 4.5]
    assert found.sites.tolist() == [40] * 4


def test_where_rows_are_cut_the_core_is_blocked() -> None:
    rows = Rows.filling(Rectangle(2.0, 3.0, 12.0, 9.0), 1.5, 4, site_width=0.25)
    width = rows.width.copy()
    width[1:3] = 6.0  # the right ends of two rows are cut off
    core = Core(10.0, 6.0, x=2.0, y=3.0, blockages=((2.0, 3.0, 3.0, 4.0),))
    found = within_rows(core, dataclasses.replace(rows, width=width))
    assert found.blockages == ((2.0, 3.0, 3.0, 4.0), (8.0, 4.5, 12.0, 7.5))
    assert within_rows(core, rows).blockages == core.blockages
    assert within_rows(core, Rows(*np.zeros((6, 0)))) is core


def test_a_placement_s_row_area_is_what_macros_and_halos_leave() -> None:
    options = FlatOptions(cells=200, macros=3, ports=4, macro_pins=8)
    halo = ImportSettings(constraints=ConstraintSettings(halo=(1.0, 1.0)))
    imported = import_flat(flat_on_floorplan("made", options, seed=1), halo)
    area = free_row_area(imported.flat, imported.design, imported.design.initial)
    assert area is not None
    assert imported.design.constraints.halo[imported.design.netlist.hard].min() == 1.0
    rows = row_columns(imported.flat.floorplan.rows, Core(1.0, 1.0))
    at, netlist, free = imported.design.initial, imported.design.netlist, 0
    for row in range(len(rows.x)):
        left, low = rows.x[row] + rows.site[row] * np.arange(rows.sites[row]), rows.y[row]
        is_free = np.ones(len(left), bool)
        for node in netlist.hard:
            across = abs(left + rows.site[row] / 2 - at.x[node]) < (netlist.width[node] + rows.site[row]) / 2 + 1 - 1e-4
            up = abs(low + rows.height[row] / 2 - at.y[node]) < (netlist.height[node] + rows.height[row]) / 2 + 1 - 1e-4
            is_free &= ~(across & up)
        free += int(is_free.sum())
    assert area.sites.sum() == free
