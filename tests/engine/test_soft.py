"""The soft-macro placers: inside the canvas, deterministic, hard macros untouched, better than a pile in the middle."""

from __future__ import annotations

import concurrent.futures
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from placement.engine import _native
from placement.engine.costs import PROXY_WEIGHTS, CostWeights, compute_costs
from placement.engine.native_design import native_design
from placement.engine.soft import ANNEALED, SOFT_PLACERS, place_soft_macros
from placement.netlist.design import Design, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from tests.support.designs import Net, Node, build, random_design, random_placement, square_canvas

every_placer = pytest.mark.parametrize("placer", (*SOFT_PLACERS, ANNEALED))


def _movable(design: Design) -> np.ndarray:
    soft = design.netlist.soft
    return soft[~design.initial.fixed[soft]]


def _sizes(design: Design, placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    turned = placement.orientation >= Orientation.E
    width, height = design.netlist.width, design.netlist.height
    return np.where(turned, height, width), np.where(turned, width, height)


def _check_inside(design: Design, placement: Placement) -> None:
    movable = _movable(design)
    for centre, size, side in zip(
        (placement.x, placement.y),
        _sizes(design, placement),
        (design.canvas.width, design.canvas.height),
        strict=True,
    ):
        half = np.minimum(size[movable], side) / 2
        tolerance = 1e-5 * side
        assert (centre[movable] >= half - tolerance).all()
        assert (centre[movable] <= side - half + tolerance).all()


def _hard(name: str, x: float, y: float, side: float = 20.0) -> Node:
    return Node(name, NodeKind.HARD, x, y, side, side)


def _soft(name: str, width: float = 10.0, height: float = 10.0) -> Node:
    return Node(name, NodeKind.SOFT, 0.0, 0.0, width, height)


def _place(design: Design, placer: str) -> Placement:
    placed = place_soft_macros(design, design.initial, placer)
    _check_inside(design, placed)
    return placed


@every_placer
@pytest.mark.parametrize("seed", range(12))
def test_random_designs(placer: str, seed: int) -> None:
    design = random_design(seed)
    start = random_placement(design, seed + 100)
    placed = place_soft_macros(design, start, placer)
    movable = _movable(design)
    _check_inside(design, placed)
    assert np.isfinite(placed.x).all() and np.isfinite(placed.y).all()
    others = np.setdiff1d(np.arange(design.netlist.num_nodes), movable)
    for before, after in ((start.x, placed.x), (start.y, placed.y), (start.orientation, placed.orientation)):
        np.testing.assert_array_equal(before[others], after[others])
    np.testing.assert_array_equal(start.fixed, placed.fixed)


@every_placer
def test_result_depends_on_the_hard_macros_only(placer: str) -> None:
    design = random_design(3)
    start = random_placement(design, 5)
    movable = _movable(design)
    assert len(movable) > 1
    first = place_soft_macros(design, start, placer)
    elsewhere = start.moved(movable, start.x[movable][::-1].copy(), start.y[movable] * 0.5)
    assert place_soft_macros(design, elsewhere, placer) == first


@every_placer
def test_one_instance_forgets_between_calls(placer: str) -> None:
    design = random_design(4)
    instance = _native.SoftPlacer(placer, native_design(design))
    expected = place_soft_macros(design, random_placement(design, 1), placer, weights=PROXY_WEIGHTS)
    for seed in (2, 1):
        start = random_placement(design, seed)
        x, y = start.x.copy(), start.y.copy()
        instance.place(x, y, start.orientation)
    np.testing.assert_array_equal(x, expected.x)
    np.testing.assert_array_equal(y, expected.y)


@every_placer
def test_threads_with_an_instance_each_agree(placer: str) -> None:
    design = random_design(6, soft=40, nets=200)
    native = native_design(design)
    starts = [random_placement(design, seed) for seed in range(4)]
    expected = [place_soft_macros(design, start, placer, weights=PROXY_WEIGHTS) for start in starts]

    def place_all(first: int) -> list[tuple[np.ndarray, np.ndarray]]:
        instance = _native.SoftPlacer(placer, native)
        results = []
        for number in [first, *range(len(starts))] * 5:
            x, y = starts[number].x.copy(), starts[number].y.copy()
            instance.place(x, y, starts[number].orientation)
            results.append((x, y))
        return results[-len(starts) :]

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for results in pool.map(place_all, range(3)):
            for (x, y), placement in zip(results, expected, strict=True):
                np.testing.assert_array_equal(x, placement.x)
                np.testing.assert_array_equal(y, placement.y)


@every_placer
def test_a_soft_macro_goes_to_its_net(placer: str) -> None:
    nodes = [_hard("a", 15, 35), _hard("b", 85, 65), _soft("s")]
    nets = [Net([("a", 0, 0), ("s", 0, 0)]), Net([("s", 0, 0), ("b", 0, 0)])]
    placed = _place(build("one", square_canvas(10, 10), nodes, nets), placer)
    assert 10 <= placed.x[2] <= 90
    assert 25 <= placed.y[2] <= 75


@every_placer
def test_one_net_of_soft_macros_only(placer: str) -> None:
    nodes = [_hard("a", 50, 50), _soft("s"), _soft("t"), _soft("u")]
    placed = _place(build("net", square_canvas(10, 10), nodes, [Net([("s", 0, 0), ("t", 1, -1), ("u", 0, 0)])]), placer)
    assert np.isfinite(placed.x).all()


@every_placer
def test_no_soft_macros_leaves_the_placement(placer: str) -> None:
    design = build("none", square_canvas(), [_hard("a", 20, 20), _hard("b", 40, 40)], [Net([("a", 0, 0), ("b", 0, 0)])])
    assert place_soft_macros(design, design.initial, placer) == design.initial


@every_placer
def test_soft_macros_without_nets_spread(placer: str) -> None:
    design = build("free", square_canvas(8, 8), [_hard("a", 10, 10), *(_soft(f"s{i}") for i in range(20))], [])
    placed = _place(design, placer)
    assert compute_costs(design, placed).density_cost < 0.7


@every_placer
@pytest.mark.parametrize(
    ("width", "height"), [(35.0, 4.0), (4.0, 35.0), (45.0, 45.0), (100.0, 30.0), (140.0, 10.0), (0.0, 0.0)]
)
@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (3, 40), (40, 3), (50, 50)])
def test_soft_macros_of_any_size_on_any_grid(placer: str, width: float, height: float, columns: int, rows: int) -> None:
    canvas = dataclasses.replace(square_canvas(10, 10), columns=columns, rows=rows)
    nodes = [_hard("a", 20, 20), Node("p", NodeKind.PORT, 100, 50), *(_soft(f"s{i}", width, height) for i in range(6))]
    nets = [
        Net([("a", 3, 3), ("s0", 0, 0), ("s1", 1, 0)], 3.0),
        Net([("s2", 0, 0), ("s3", 0, 0)]),
        Net([("s4", 0, 0), ("p", 0, 0)]),
    ]
    design = build("sizes", canvas, nodes, nets)
    placed = _place(design, placer)
    assert np.isfinite(placed.x).all() and np.isfinite(placed.y).all()


@every_placer
def test_fixed_soft_macros_stay(placer: str) -> None:
    nodes = [_hard("a", 20, 20), _soft("s")._replace(x=70.0, y=70.0, fixed=True), _soft("t")]
    design = build("fixed", square_canvas(10, 10), nodes, [Net([("a", 0, 0), ("s", 0, 0), ("t", 0, 0)])])
    placed = _place(design, placer)
    assert (placed.x[1], placed.y[1]) == (70.0, 70.0)
    assert placed.x[2] != 0.0


@every_placer
@pytest.mark.parametrize("name", ["clustered40", "clustered120"])
def test_better_than_a_heap_in_the_middle(placer: str, name: str) -> None:
    design = load(name)
    soft, canvas = design.netlist.soft, design.canvas
    middle = np.full(len(soft), 0.5)
    heap = design.initial.moved(soft, middle * canvas.width, middle * canvas.height)
    share = 0.95 if placer == "force_directed" else 0.75
    assert compute_costs(design, _place(design, placer)).total < share * compute_costs(design, heap).total


def test_ariane_costs(ariane_folder: Path) -> None:
    design = load(ariane_folder / "netlist.pb.txt.gz", ariane_folder / "legalized.plc")
    costs = {placer: compute_costs(design, _place(design, placer)).total for placer in SOFT_PLACERS}
    assert costs["force_directed"] < 0.849  # the public force-directed placer
    assert costs["analytic"] < 0.6859  # the file's own soft macros
    assert costs["analytic_fast"] < 0.6859


def test_unknown_placer_names_the_choices() -> None:
    design = random_design(0)
    with pytest.raises(ValueError, match=r"'gravity'.*force_directed"):
        place_soft_macros(design, design.initial, "gravity")


def test_obstacles_must_be_placed() -> None:
    design = build("open", square_canvas(), [_hard("a", 20, 20), _soft("s")], [])
    unplaced = dataclasses.replace(design.initial, placed=np.array([False, True]))
    with pytest.raises(DesignError, match="'a' is not placed"):
        place_soft_macros(design, unplaced)
    other = build("two", square_canvas(), [_hard("a", 20, 20)], [])
    with pytest.raises(DesignError, match="placement of 1 nodes"):
        place_soft_macros(design, other.initial)


def test_native_placer_checks_lengths() -> None:
    design = build("lengths", square_canvas(), [_hard("a", 20, 20), _soft("s")], [])
    instance = _native.SoftPlacer("analytic", native_design(design))
    two, three = np.zeros(2), np.zeros(3)
    with pytest.raises(ValueError, match="one value per node"):
        instance.place(two, three, np.zeros(2, dtype=np.int8))
    with pytest.raises(ValueError, match="3 values and the design has 2"):
        instance.place(three, three.copy(), np.zeros(3, dtype=np.int8))


def test_annealed_is_cheaper_than_what_it_begins_with_and_repeats() -> None:
    design = load("clustered40")
    placement = random_placement(design, 3)
    weights = CostWeights(1.0, 1.0, 1.0, "chip")
    annealed = place_soft_macros(design, placement, ANNEALED, weights=weights)
    begun = place_soft_macros(design, placement, "analytic_fast")
    costs = [compute_costs(design, one, weights=weights).total for one in (annealed, begun)]
    assert costs[0] < 0.95 * costs[1]
    again = place_soft_macros(design, placement, ANNEALED, weights=weights)
    np.testing.assert_array_equal(annealed.x, again.x)
    np.testing.assert_array_equal(annealed.y, again.y)
