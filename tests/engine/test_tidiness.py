"""Tidiness of macros: arrangements counted by hand, slow oracles, and the cost while macros move."""

import dataclasses

import numpy as np
import pytest
from scipy import ndimage

from placement import CostWeights, IncrementalCost
from placement.engine.costs import compute_costs
from placement.engine.tidiness import equal_neighbours, largest_empty_rectangle, tidiness
from placement.netlist.design import NodeKind
from tests.support.constrained_designs import constrained
from tests.support.designs import Net, Node, build, random_design, random_placement, square_canvas

SIDE, CANVAS, CHANNEL = 20.0, 200.0, 5.0  # µm; the channel is a quarter of the macros' side


def design_of(corners, *, names=None, pin=(0.0, 0.0), halo=0.0):
    """Returns hard macros of 20 × 20 µm at these lower left corners, each with one pin, on a canvas of 200 × 200 µm."""
    names = names or [f"{letter}_m" for letter in "abcdefgh"]
    nodes = [
        Node(name, NodeKind.HARD, x + SIDE / 2, y + SIDE / 2, SIDE, SIDE)
        for name, (x, y) in zip(names, corners, strict=False)
    ]
    nets = [Net([(node.name, *pin) for node in nodes])]
    design = build("tidy", square_canvas(20, 20), nodes, nets)
    return constrained(design, halo=np.full((len(nodes), 2), halo)) if halo else design


def turned(design, orientations):
    return dataclasses.replace(design.initial, orientation=np.array(orientations, dtype=np.int8))


def test_a_row_is_aligned_and_a_staircase_is_not():
    row = tidiness(design_of([(50, 50), (70, 50), (90, 50)]))
    assert (row.aligned, row.channel) == (1.0, CHANNEL)
    stairs = tidiness(design_of([(50, 50), (70, 55), (90, 60)]))
    assert stairs.aligned == 0.0
    assert stairs.cost > row.cost


def test_a_macro_beyond_the_channel_is_no_neighbour():
    assert tidiness(design_of([(50, 50), (74, 50)])).aligned == 1.0
    assert tidiness(design_of([(50, 50), (76, 50)])).aligned == 0.0
    assert tidiness(design_of([(50, 50), (76, 50)], halo=1.0)).aligned == 1.0  # halos leave a gap of 4 µm


def test_banks_are_names_that_differ_in_their_last_number():
    names = ["ram_0", "ram_1", "rom_0", "rom_1"]
    together = design_of([(50, 50), (70, 50), (120, 50), (140, 50)], names=names)
    mixed = design_of([(50, 50), (120, 50), (70, 50), (140, 50)], names=names)
    assert (tidiness(together).grouped, tidiness(mixed).grouped) == (1.0, 0.0)


def test_neighbours_in_one_orientation():
    design = design_of([(50, 50), (70, 50), (90, 50)])
    assert tidiness(design).alike == 1.0
    assert tidiness(design, turned(design, [0, 0, 1])).alike == 0.5


@pytest.mark.parametrize(("orientation", "free"), [(0, 0.5), (1, 0.5), (5, 1.0)])
def test_pins_face_a_neighbour(orientation, free):
    design = design_of([(50, 50), (70, 50)], pin=(-9.0, 0.0))  # on the left in orientation N, on the right in FN
    assert tidiness(design, turned(design, [orientation] * 2)).pins_free == free


@pytest.mark.parametrize(("shared", "free"), [(4.0, 1.0), (6.0, 0.5), (20.0, 0.5)])
def test_a_neighbour_covers_pins_by_more_than_a_quarter_of_the_side(shared, free):
    assert tidiness(design_of([(50, 50), (70, 70 - shared)], pin=(9.0, 0.0))).pins_free == free


def test_pins_face_the_canvas_edge():
    assert tidiness(design_of([(0, 50)], pin=(-9.0, 0.0))).pins_free == 0.0
    assert tidiness(design_of([(CHANNEL, 50)], pin=(-9.0, 0.0))).pins_free == 1.0


def test_corners():
    assert tidiness(design_of([(0, 0), (180, 180), (100, 0)])).corners_free == 0.5


def test_notches_cost_and_channels_do_not():
    def cost(gap):
        return tidiness(design_of([(50, 50), (70 + gap, 50)])).cost

    assert cost(CHANNEL / 2) > cost(0)
    assert cost(CHANNEL / 2) > cost(CHANNEL - 0.1)


@pytest.mark.parametrize("seed", range(4))
def test_whitespace_against_a_fine_raster(seed):
    generator = np.random.default_rng(seed)
    corners = generator.integers(0, 181, (8, 2)).astype(float)
    design = design_of([tuple(corner) for corner in corners])
    found = tidiness(design)
    empty = np.ones((200, 200), dtype=bool)
    for x, y in corners.astype(int):
        empty[y : y + 20, x : x + 20] = False
    best = 0
    for width in range(1, 201):  # the tallest empty stretch for each width and column
        columns = np.lib.stride_tricks.sliding_window_view(empty, width, axis=1).all(2)
        tallest, run = 0, np.zeros(columns.shape[1], dtype=int)
        for row in columns:
            run = np.where(row, run + 1, 0)
            tallest = max(tallest, int(run.max()))
        best = max(best, tallest * width)
    assert found.largest * empty.sum() == pytest.approx(best)
    left, low, right, high = largest_empty_rectangle(design, design.initial)
    assert (right - left) * (high - low) == pytest.approx(best)
    # Squares of 5 × 5 µm in steps of 1 µm, and those that are connected.
    corners_free = np.lib.stride_tricks.sliding_window_view(empty, (5, 5)).all((2, 3))
    labels, count = ndimage.label(corners_free)
    covered = []
    for label in range(1, count + 1):
        reached = np.zeros_like(empty)
        for row, column in zip(*np.nonzero(labels == label), strict=True):
            reached[row : row + 5, column : column + 5] = True
        covered.append(reached.sum())
    assert found.usable == pytest.approx(max(covered) / empty.sum(), abs=1e-3)


@pytest.mark.parametrize("name", ["chip", "proxy"])
@pytest.mark.parametrize("seed", range(3))
def test_the_cost_while_macros_move_is_the_full_evaluations(name, seed):
    weights = CostWeights(1.0, 0.5, 0.5, name, 0.25)
    design = random_design(seed)
    cost = IncrementalCost(design, random_placement(design, seed), weights=weights)
    plain = compute_costs(design, cost.placement, weights=weights._replace(tidy=0.0)).total
    assert cost.costs.total == pytest.approx(plain + 0.25 * tidiness(design, cost.placement).cost)
    generator = np.random.default_rng(seed)
    hard = [node for node in design.netlist.hard.tolist() if not design.initial.fixed[node]]
    for step in range(200):
        node = int(generator.choice(hard))
        x, y = generator.random(2) * (design.canvas.width, design.canvas.height)
        kind = step % 3
        if kind == 0:
            cost.move(node, float(x), float(y))
        elif kind == 1 and len(hard) > 1:
            cost.swap(node, next(other for other in hard if other != node))
        else:
            cost.orient(node, int(generator.integers(8)))
        if generator.random() < 0.4:
            cost.undo()
        elif generator.random() < 0.5:
            cost.commit()
    assert cost.costs == compute_costs(design, cost.placement, weights=weights)


@pytest.mark.parametrize("seed", range(3))
def test_equal_neighbours_are_those_that_the_engine_counts(seed):
    """One-sided halos, a quarter of the macros on their sides, and pairs that differ in orientation."""
    generator = np.random.default_rng(seed)
    places = [(x, y) for x in range(10, 150, 23) for y in range(10, 150, 22)]
    nodes = [
        Node(f"m{at}", NodeKind.HARD, x + generator.integers(0, 4), y, 20.0, float(generator.choice([16, 20])))
        for at, (x, y) in enumerate(places)
    ]
    design = build("tidy", square_canvas(20, 20), nodes, [Net([("m0", 0.0, 0.0)])])
    design = constrained(design, halo=generator.choice([0.0, 1.0], (len(nodes), 4)), spacing=1.0)
    placed = turned(design, generator.choice([0, 1, 2, 4], len(nodes)))
    neighbours = equal_neighbours(design, placed)
    pairs = [(node, other) for node, others in neighbours.items() for other in others.tolist()]
    assert {(b, a) for a, b in pairs} == set(pairs)
    alike = sum(placed.orientation[a] == placed.orientation[b] for a, b in pairs)
    assert 0 < alike / len(pairs) == tidiness(design, placed).alike < 1
