"""The routing estimate: capacities and trees by hand, conservation of demand, detours around full edges."""

from __future__ import annotations

import itertools
import signal
import threading

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

from placement.flat import _native
from placement.flat.problem import Core
from placement.flat.routing import RoutingResources, edge_capacities, route_estimate
from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.generators.flat import FlatOptions, flat_draft

TRACKS = RoutingResources(horizontal=2.0, vertical=3.0, macro_horizontal=1.5, macro_vertical=2.0, gcell=10.0)


def ends(
    pairs: list[tuple[tuple[float, float], tuple[float, float]]], *, macro: tuple[float, ...] | None = None
) -> tuple[Netlist, Placement]:
    """Returns cells without extent at the ends of two-pin nets, and a macro (x, y, width, height) or none."""
    points = [point for pair in pairs for point in pair]
    count, macros = len(points), int(macro is not None)
    x, y, width, height = (np.array([value] if macro else []) for value in (macro or (0.0,) * 4))
    netlist = Netlist(
        names=tuple(f"n{i}" for i in range(count + macros)),
        kind=np.array([NodeKind.CELL] * count + [NodeKind.HARD] * macros, np.int8),
        width=np.concatenate([np.zeros(count), width]),
        height=np.concatenate([np.zeros(count), height]),
        file_index=np.arange(count + macros),
        pin_node=np.arange(count),
        pin_dx=np.zeros(count),
        pin_dy=np.zeros(count),
        net_weight=np.ones(len(pairs)),
        net_start=np.arange(0, count + 1, 2),
        net_pins=np.arange(count),
    )
    at = np.array(points, float).reshape(-1, 2)
    placement = Placement(
        x=np.concatenate([at[:, 0], x]),
        y=np.concatenate([at[:, 1], y]),
        orientation=np.zeros(count + macros, np.int8),
        placed=np.ones(count + macros, bool),
        fixed=netlist.kind == NodeKind.HARD,
    )
    return netlist, placement


def test_capacities_by_hand() -> None:
    # On 4 × 3 gcells of 10 µm the macro covers (10, 10) to (25, 15): the lower half of gcell row 1.
    netlist, placement = ends([((1, 1), (2, 2))], macro=(17.5, 12.5, 15.0, 5.0))
    horizontal, vertical = edge_capacities(netlist, placement, Core(width=40.0, height=30.0), TRACKS, (4, 3))
    expected = np.full((3, 3), 20.0)
    expected[:2, 1] -= 0.5 * 15.0  # centres from 5 to 15 and from 15 to 25 meet it
    np.testing.assert_allclose(horizontal, expected)
    expected = np.full((4, 2), 30.0)
    expected[1, :] -= 20.0  # column 1 is blocked between rows 0 and 1, and half between rows 1 and 2
    expected[2, :] -= 10.0
    expected[1:, 1] = 30.0  # nothing is above 15 µm
    np.testing.assert_allclose(vertical, expected)


def test_one_wire_by_hand() -> None:
    netlist, placement = ends([((5, 5), (35, 25))])
    found = route_estimate(netlist, placement, Core(width=40.0, height=30.0), TRACKS)
    assert found.routed_wirelength == pytest.approx(50.0)
    assert found.tree_wirelength == pytest.approx(50.0)
    assert found.overflow == 0.0
    # Three crossings in x and two in y; each of the two edges of a gcell is counted from both sides.
    assert found.horizontal.max() == pytest.approx(1 / 20)
    assert found.vertical.max() == pytest.approx(1 / 30)


def test_wires_go_around_what_is_full() -> None:
    # A hundred wires from left to right in one row whose edges have twenty tracks: with five rows, all fit.
    pairs = [((5.0, 25.0), (45.0, 25.0))] * 100
    netlist, placement = ends(pairs)
    core = Core(width=50.0, height=50.0)
    straight = route_estimate(netlist, placement, core, RoutingResources(2.0, 20.0, 0.0, 0.0, gcell=10.0, rounds=0))
    assert straight.routed_wirelength == pytest.approx(100 * 40.0)
    assert straight.overflow == pytest.approx(0.8)
    around = route_estimate(netlist, placement, core, RoutingResources(2.0, 20.0, 0.0, 0.0, gcell=10.0, rounds=30))
    assert around.overflow < 0.05
    # Twenty wires are straight; twenty in each of the four other rows are 2, 2, 4 and 4 gcells longer.
    assert around.routed_wirelength >= 100 * 40 + 20 * (20 + 20 + 40 + 40) - 1 - 0.05 * 100 * 80


def test_a_macro_across_the_way_makes_wires_longer() -> None:
    # No wire may cross the macro; the detour around its end is 20 µm up and 20 µm down.
    blocking = RoutingResources(2.0, 2.0, 2.0, 2.0, gcell=10.0)
    netlist, placement = ends([((5.0, 5.0), (85.0, 5.0))], macro=(45.0, 10.0, 10.0, 20.0))
    found = route_estimate(netlist, placement, Core(width=90.0, height=50.0), blocking)
    assert found.routed_wirelength == pytest.approx(80.0 + 2 * 20.0)
    assert found.overflow == 0.0


def shortest_ways(side: int, blocked: np.ndarray, ends: tuple[int, int], *, bend: float) -> float:
    """Dijkstra over gcells and directions: returns the length in gcells of the cheapest path, a bend costing `bend`."""
    edges = [(i * side + j, (i + 1) * side + j) for i in range(side - 1) for j in range(side)]
    edges += [(i * side + j, i * side + j + 1) for i in range(side) for j in range(side - 1)]
    count = side * side
    graph = np.zeros((2 * count, 2 * count))
    for node in range(count):
        graph[2 * node, 2 * node + 1] = graph[2 * node + 1, 2 * node] = max(bend, 1e-6)  # zero would mean no edge
    for edge, (a, b) in enumerate(edges):
        if not blocked[edge]:
            direction = int(edge >= side * (side - 1))
            graph[2 * a + direction, 2 * b + direction] = graph[2 * b + direction, 2 * a + direction] = 1.0
    way = dijkstra(graph, indices=[2 * ends[0], 2 * ends[0] + 1])
    return float(way[:, [2 * ends[1], 2 * ends[1] + 1]].min())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 48), st.integers(0, 48))
def test_one_wire_takes_the_way_of_a_slow_maze_router(seed: int, first: int, second: int) -> None:
    side = 7
    blocked = np.random.default_rng(seed).random(2 * side * (side - 1)) < 0.4
    cheapest = shortest_ways(side, blocked, (first, second), bend=0.25)
    assume(first != second and np.isfinite(cheapest))
    x, y = (np.array(at, np.float32) + 0.5 for at in zip(divmod(first, side), divmod(second, side), strict=True))
    capacity = np.where(blocked, 0.0, 10.0).astype(np.float32)
    found = _native.route(
        x,
        y,
        np.array([0, 2], np.int32),
        across=side,
        up=side,
        gcell_width=1.0,
        gcell_height=1.0,
        capacity=capacity,
        rounds=3,
    )
    assert sum(found["excess"]) == 0.0
    # No path is shorter than the shortest; the cheapest exceeds it only by what it saves in bends.
    shortest = shortest_ways(side, blocked, (first, second), bend=0.0)
    assert shortest - 1e-3 <= found["routed_length"] <= cheapest + 1e-3


def hanan_optimum(points: list[tuple[int, int]]) -> float:
    """Returns the length of the shortest rectilinear tree over up to four points, trying up to two Hanan points."""
    grid = list(itertools.product({x for x, _ in points}, {y for _, y in points}))
    best = float("inf")
    for count in range(3):
        for extra in itertools.combinations(grid, count):
            best = min(best, spanning([*points, *extra]))
    return best


def spanning(points: list[tuple[int, int]]) -> float:
    joined, rest, total = [points[0]], list(points[1:]), 0.0
    while rest:
        way, nearest = min((abs(a[0] - b[0]) + abs(a[1] - b[1]), b) for a in joined for b in rest)
        total += way
        joined.append(nearest)
        rest.remove(nearest)
    return total


POINTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=4, unique=True)


@settings(max_examples=60, deadline=None)
@given(POINTS)
def test_trees_lie_between_the_best_and_the_spanning_tree(points: list[tuple[int, int]]) -> None:
    x, y = np.array(points, np.float32).T.copy()
    length = _native.tree_length(x, y)
    assert hanan_optimum(points) - 1e-3 <= length <= spanning(points) + 1e-3
    if len(points) <= 3:
        assert length == pytest.approx(hanan_optimum(points), abs=1e-3)


def test_a_cross_of_four_pins_needs_one_joint() -> None:
    x, y = np.array([[0, 5, 5, 10], [5, 0, 10, 5]], np.float32)
    assert _native.tree_length(x, y) == pytest.approx(20.0)


def test_the_same_input_gives_the_same_estimate() -> None:
    made = flat_draft(FlatOptions(cells=300, macros=4, ports=8, macro_pins=12), seed=5)
    rng = np.random.default_rng(5)
    cells = np.flatnonzero(made.netlist.kind == NodeKind.CELL)
    at = rng.uniform(0, made.width, (2, len(cells)))
    placement = made.placement.moved(cells, *at)
    core = Core(width=made.width, height=made.height)
    tight = RoutingResources(1.0, 1.0, 0.5, 0.5, gcell=5.0)
    first, second = (route_estimate(made.netlist, placement, core, tight) for _ in range(2))
    assert first.routed_wirelength == second.routed_wirelength
    np.testing.assert_array_equal(first.horizontal, second.horizontal)
    assert first.routed_wirelength > first.tree_wirelength


def test_what_cannot_be_routed_is_rejected() -> None:
    made = flat_draft(FlatOptions(cells=50, macros=2, ports=4, macro_pins=4))
    core = Core(width=made.width, height=made.height)
    with pytest.raises(DesignError, match=r"'cell0' has no position \(50 such nodes\)"):
        route_estimate(made.netlist, made.placement, core, TRACKS)
    with pytest.raises(DesignError, match="macro_horizontal: 3"):
        RoutingResources(2.0, 2.0, 3.0, 1.0)
    with pytest.raises(DesignError, match="gcell: 0"):
        RoutingResources(2.0, 2.0, 1.0, 1.0, gcell=0.0)


def test_a_net_of_a_hundred_thousand_pins_gets_a_tree_near_the_best() -> None:
    x, y = np.random.default_rng(0).uniform(0, 1000, (2, 100_000)).astype(np.float32)
    length = _native.tree_length(x, y)
    # Over n random points of an area A the best rectilinear tree is about 0.76 √(nA) long (Bern, 1988); a chain
    # through strips 2/√3 √(nA), and Steiner points can only shorten it.
    assert 0.74 < length / (1000 * np.sqrt(100_000)) < 2 / np.sqrt(3)


def test_a_long_net_on_one_line_is_as_long_as_the_line() -> None:
    x = np.random.default_rng(1).permutation(6000).astype(np.float32)
    assert _native.tree_length(x, np.zeros_like(x)) == pytest.approx(5999.0)


def test_routing_reacts_to_ctrl_c() -> None:
    # All wires compete for one full row: without the signal, the rounds would not end.
    pairs = [((5.0, 25.0 + at % 7), (995.0, 25.0)) for at in range(20_000)]
    netlist, placement = ends(pairs)
    resources = RoutingResources(0.1, 0.1, 0.0, 0.0, gcell=10.0, rounds=1_000_000)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            route_estimate(netlist, placement, Core(width=1000.0, height=1000.0), resources)
    finally:
        timer.join()
