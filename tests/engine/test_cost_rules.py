"""Each rule of the cost with numbers computed by hand, on grids of 10 µm gcells.

`square_canvas`: a gcell holds 20 horizontal and 40 vertical tracks; a hard macro that covers a gcell's whole side
blocks half of them. Maps are compared as {(row, column): tracks}, without zeros.
"""

from __future__ import annotations

import numpy as np
import pytest

from placement.engine.costs import CostMaps, cost_maps, proxy_cost
from placement.netlist.design import Canvas, Design, NodeKind, Orientation
from tests.support import oracle
from tests.support.designs import Net, Node, build, square_canvas

HORIZONTAL, VERTICAL = 20.0, 40.0  # tracks of a gcell


def net_design(cells: list[tuple[int, int]], weight: float = 1.0, canvas: Canvas | None = None) -> Design:
    """Returns one net through the middles of the cells (column, row), the first its driver."""
    nodes = [Node(f"cell_{i}", NodeKind.CELL, 10 * x + 5, 10 * y + 5) for i, (x, y) in enumerate(cells)]
    net = Net([(node.name, 0, 0) for node in nodes], weight)
    return build("net", canvas or square_canvas(), nodes, [net])


def macro_design(left: float, bottom: float, right: float, top: float, kind: NodeKind = NodeKind.HARD) -> Design:
    """Returns one macro, given by its sides, and no net."""
    name = "Grp_0" if kind == NodeKind.SOFT else "macro"
    middle = ((left + right) / 2, (bottom + top) / 2)
    return build("macro", square_canvas(), [Node(name, kind, *middle, right - left, top - bottom)], [])


def tracks(maps: CostMaps) -> tuple[dict, dict]:
    """Returns the used tracks of the horizontal and the vertical map, if any."""
    return tuple(  # type: ignore[return-value]
        {
            (int(row), int(column)): float(values[row, column] * capacity)
            for row, column in zip(*np.nonzero(np.abs(values) > 1e-12), strict=True)
        }
        for values, capacity in ((maps.horizontal, HORIZONTAL), (maps.vertical, VERTICAL))
    )


def approx(expected: dict) -> object:
    return pytest.approx(expected, abs=1e-3)


def row(number: int, columns: range, value: float = 1.0) -> dict:
    return {(number, column): value for column in columns}


def column(number: int, rows: range, value: float = 1.0) -> dict:
    return {(row, number): value for row in rows}


NETS = {
    "one cell": ([(2, 2), (2, 2)], {}, {}),
    "two cells, driver low": ([(0, 0), (3, 2)], row(0, range(3)), column(3, range(2))),
    "two cells, driver high": ([(3, 2), (0, 0)], row(2, range(3)), column(0, range(2))),
    "two cells, three pins": ([(3, 2), (3, 2), (0, 0)], row(2, range(3)), column(0, range(2))),
    "stairs up": (
        [(4, 3), (0, 0), (2, 1)],
        row(0, range(2)) | row(1, range(2, 4)),
        column(2, range(1)) | column(4, range(1, 3)),
    ),
    "stairs down": (
        [(0, 4), (2, 3), (3, 1)],
        row(4, range(2)) | row(3, range(2, 3)),
        column(2, range(3, 4)) | column(3, range(1, 3)),
    ),
    "two right, both above": ([(3, 4), (0, 0), (3, 2)], row(0, range(3)), column(3, range(4))),
    "two right, not above": ([(0, 4), (3, 2), (3, 3)], row(3, range(3)), {(2, 3): 1.0, (3, 0): 1.0}),
    "two right, one level": ([(0, 2), (3, 2), (3, 4)], row(2, range(3)), column(3, range(2, 4))),
    "two last level": (
        [(2, 1), (0, 3), (4, 1)],
        row(3, range(2)) | row(1, range(2, 4)),
        column(2, range(1, 3)),
    ),
    "corner": ([(1, 0), (1, 3), (4, 3)], row(3, range(1, 4)), column(1, range(3))),
    "two first level": ([(0, 1), (2, 1), (4, 3)], row(1, range(4)), column(4, range(1, 3))),
    "middle lowest": ([(0, 2), (2, 0), (4, 3)], row(2, range(4)), column(2, range(2)) | {(2, 4): 1.0}),
    "one column": ([(1, 0), (1, 2), (1, 4)], {}, column(1, range(4))),
    "four pins in three cells": ([(0, 2), (0, 2), (2, 0), (4, 3)], row(2, range(4)), column(2, range(2)) | {(2, 4): 1}),
    "four cells": (
        [(2, 2), (0, 0), (4, 4), (2, 4)],
        row(2, range(4)),
        column(0, range(2)) | column(4, range(2, 4)) | column(2, range(2, 4)),
    ),
    "four cells, one path twice": (
        [(0, 0), (1, 0), (2, 0), (2, 1)],
        {(0, 0): 3.0, (0, 1): 2.0},
        {(0, 2): 1.0},
    ),
}


@pytest.mark.parametrize("case", NETS)
def test_routing_of_a_net(case: str) -> None:
    cells, horizontal, vertical = NETS[case]
    assert tracks(cost_maps(net_design(cells))) == (approx(horizontal), approx(vertical))


def test_the_oracle_routes_by_hand_too() -> None:
    for cells, horizontal, vertical in NETS.values():
        design = net_design(cells)
        maps = CostMaps(*(np.array(each) for each in oracle.maps(design, design.initial)))
        assert tracks(maps) == (approx(horizontal), approx(vertical))


@pytest.mark.parametrize(("weight", "counted"), [(0.25, 1.0), (1.0, 1.0), (3.5, 3.5), (0.0, 1.0)])
def test_a_weight_below_one_counts_as_one_in_routing(weight: float, counted: float) -> None:
    maps = cost_maps(net_design([(0, 0), (2, 0)], weight))
    assert tracks(maps) == (approx(row(0, range(2), counted)), approx({}))


def test_repeated_nets_add_up_each_with_its_own_weight() -> None:
    nodes = [Node("a", NodeKind.CELL, 5, 5), Node("b", NodeKind.CELL, 15, 5)]
    pins = [("a", 0, 0), ("b", 0, 0)]
    design = build("twice", square_canvas(), nodes, [Net(pins, 0.5), Net(pins, 2.0), Net(pins[::-1], 4.0)])
    assert tracks(cost_maps(design)) == (approx({(0, 0): 7.0}), approx({}))
    assert proxy_cost(design).wirelength == pytest.approx(10 * 6.5, rel=1e-15)


def test_a_port_on_the_far_corner_falls_in_the_last_cell() -> None:
    nodes = [Node("port", NodeKind.PORT, 50.0, 50.0), Node("cell", NodeKind.CELL, 35.0, 45.0)]
    design = build("edge", square_canvas(), nodes, [Net([("port", 0, 0), ("cell", 0, 0)])])
    assert tracks(cost_maps(design)) == (approx({(4, 3): 1.0}), approx({}))


@pytest.mark.parametrize(
    ("orientation", "x", "y"),
    [
        ("N", 3, 1),
        ("FN", -3, 1),
        ("S", -3, -1),
        ("FS", 3, -1),
        ("E", 1, -3),
        ("FE", -1, -3),
        ("W", -1, 3),
        ("FW", 1, 3),
    ],
)
def test_an_orientation_turns_the_pins_of_hard_macros_only(orientation: str, x: float, y: float) -> None:
    for kind, at in ((NodeKind.HARD, (x, y)), (NodeKind.SOFT, (3, 1))):
        nodes = [
            Node("Grp_0", kind, 25, 25, 8, 4, Orientation[orientation]),
            Node("origin", NodeKind.PORT, 0, 0),
        ]
        design = build("pin", square_canvas(), nodes, [Net([("Grp_0", 3, 1), ("origin", 0, 0)])])
        assert proxy_cost(design).wirelength == pytest.approx(50 + at[0] + at[1], rel=1e-15)


def test_wirelength_is_weighted_and_normalised() -> None:
    nodes = [Node(name, NodeKind.CELL, x, y) for name, x, y in (("a", 1, 2), ("b", 4, 8), ("c", 11, 5))]
    nets = [Net([("a", 0, 0), ("b", 0, 0), ("c", 0, 0)], 2.0), Net([("b", 0, 0), ("c", 0, 0)], 0.5), Net([("a", 0, 0)])]
    costs = proxy_cost(build("three", square_canvas(), nodes, nets))
    assert costs.wirelength == pytest.approx(2.0 * (10 + 6) + 0.5 * (7 + 3), rel=1e-15)
    assert costs.wirelength_cost == pytest.approx(37.0 / (100 * 3.5), rel=1e-15)


BLOCKS = {  # sides of the macro; horizontal and vertical tracks that it blocks
    "inside one cell": ((22, 23, 28, 27), {(2, 2): 4}, {(2, 2): 12}),
    "whole cells": ((10, 10, 30, 20), row(1, range(1, 3), 10), row(1, range(1, 3), 20)),
    "two rows, partly": ((12, 14, 18, 26), column(1, range(1, 3), 6), {(1, 1): 12}),
    "two rows, top partly": ((12, 10, 18, 26), {(1, 1): 10, (2, 1): 6}, {(1, 1): 12}),
    "two rows, within the tolerance": (
        (12, 10.000002, 18, 29.999995),
        column(1, range(1, 3), 10),
        column(1, range(1, 3), 12),
    ),
    "two columns, partly": ((14, 12, 26, 16), {(1, 1): 4}, row(1, range(1, 3), 12)),
    "two columns, left partly": ((14, 12, 29.999999, 16), {(1, 1): 4}, {(1, 1): 12, (1, 2): 20}),
    "rows and columns, partly": (
        (14, 14, 26, 26),
        {(1, 1): 6, (2, 1): 6},
        {(1, 1): 12, (1, 2): 12},
    ),
    "three rows": ((12, 14, 18, 36), {(1, 1): 6, (2, 1): 10, (3, 1): 6}, {(1, 1): 12, (2, 1): 12}),
    "bottom partly, top on a line": ((12, 14, 18, 30), {(1, 1): 6, (2, 1): 10}, {(1, 1): 12, (2, 1): 12}),
    "beyond the left edge": ((-5, 12, 15, 18), {(1, 0): 6}, {(1, 0): 20, (1, 1): 10}),
    "beyond the edge, one column left": ((-5, 12, 5, 18), {(1, 0): 6}, {(1, 0): 10}),
    "beyond the top right corner": ((40, 40, 60, 60), {(4, 4): 10}, {(4, 4): 20}),
    "outside": ((51, 12, 59, 18), {}, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", BLOCKS)
def test_what_a_hard_macro_blocks(case: str) -> None:
    sides, horizontal, vertical = BLOCKS[case]
    assert tracks(cost_maps(macro_design(*sides))) == (approx(horizontal), approx(vertical))


def test_a_soft_macro_blocks_nothing_but_has_density() -> None:
    design = macro_design(12, 14, 18, 26, NodeKind.SOFT)
    maps = cost_maps(design)
    assert tracks(maps) == (approx({}), approx({}))
    assert maps.density[1, 1] == pytest.approx(0.36, rel=1e-12)
    assert maps.density[2, 1] == pytest.approx(0.36, rel=1e-12)
    assert np.count_nonzero(maps.density) == 2


def test_vertical_demand_is_smoothed_along_rows_and_horizontal_along_columns() -> None:
    canvas = square_canvas(smoothing=1)
    maps = cost_maps(net_design([(0, 0), (1, 0)], 6.0, canvas))  # horizontal on row 0 at column 0
    assert tracks(maps) == (approx({(0, 0): 3.0, (1, 0): 3.0}), approx({}))
    maps = cost_maps(net_design([(2, 0), (2, 1)], 6.0, canvas))  # vertical on column 2 at row 0
    assert tracks(maps) == (approx({}), approx({(0, 1): 2.0, (0, 2): 2.0, (0, 3): 2.0}))
    maps = cost_maps(net_design([(2, 0), (2, 1)], 6.0, square_canvas(smoothing=9)))
    assert tracks(maps) == (approx({}), approx(row(0, range(5), 1.2)))


def test_blockage_is_not_smoothed() -> None:
    node = Node("macro", NodeKind.HARD, 25, 25, 6, 4)
    maps = cost_maps(build("macro", square_canvas(smoothing=3), [node], []))
    assert tracks(maps) == (approx({(2, 2): 4}), approx({(2, 2): 12}))


def test_fewer_than_ten_cells_take_the_mean_of_the_occupied_ones() -> None:
    nodes = [Node("a", NodeKind.HARD, 5, 5, 10, 4), Node("b", NodeKind.SOFT, 25, 25, 8, 10)]
    design = build("nine", square_canvas(3, 3), nodes, [])
    assert proxy_cost(design).density_cost == pytest.approx(0.5 * (0.4 + 0.8) / 2, rel=1e-12)
    assert proxy_cost(net_design([(0, 0)], canvas=square_canvas(3, 3))).density_cost == 0.0


@pytest.mark.parametrize(("columns", "rows", "counted"), [(3, 3, 1), (10, 1, 1), (19, 1, 1), (10, 2, 2), (7, 7, 4)])
def test_how_many_of_the_busiest_cells_count(columns: int, rows: int, counted: int) -> None:
    nodes = [
        Node(f"macro_{i}", NodeKind.HARD, 10 * (i % columns) + 5, 10 * (i // columns) + 5, 2 * i + 1, 10)
        for i in range(4)
    ]
    design = build("few", square_canvas(columns, rows), nodes, [])
    maps = cost_maps(design)
    busiest = np.sort(np.concatenate([maps.horizontal, maps.vertical]), axis=None)[::-1][:counted]
    assert proxy_cost(design).congestion_cost == pytest.approx(busiest.mean(), rel=1e-12)
    if columns * rows >= 10:
        densest = np.sort(maps.density, axis=None)[::-1][:counted]
        assert proxy_cost(design).density_cost == pytest.approx(0.5 * densest.mean(), rel=1e-12)


def test_a_design_without_nets_costs_no_wirelength() -> None:
    costs = proxy_cost(macro_design(12, 14, 18, 26))
    assert (costs.wirelength, costs.wirelength_cost) == (0.0, 0.0)
