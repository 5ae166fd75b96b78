"""The placement state compared with a slow oracle that follows the definitions literally, and undo bit by bit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.engine.costs import cost_maps
from placement.engine.observation import MAPS
from placement.engine.pool import make_pool
from placement.engine.state import IllegalAction, PlacementState
from placement.netlist.design import TURN, Canvas, Design, NodeKind
from tests.support.designs import Net, Node, build, four_macros, random_design, square_canvas

TOUCHING = 1e-6  # µm; an overlap of at most this is rounding


def size_of(design: Design, node: int) -> tuple[float, float]:
    width, height = design.netlist.width[node], design.netlist.height[node]
    return (height, width) if design.initial.orientation[node] >= 4 else (width, height)


def standing_nodes(design: Design, state: PlacementState) -> dict[int, tuple[float, float]]:
    """Returns the centres of ports, cells, fixed nodes and placed macros."""
    netlist, initial = design.netlist, design.initial
    is_obstacle = initial.fixed | np.isin(netlist.kind, (NodeKind.PORT, NodeKind.CELL))
    centres = {int(node): (initial.x[node], initial.y[node]) for node in np.flatnonzero(is_obstacle)}
    for node, (x, y) in zip(design.placing_order, state.centres(), strict=False):
        centres[int(node)] = (x, y)
    return centres


def cell_centres(canvas: Canvas) -> list[tuple[int, int, float, float]]:
    return [
        (row, column, (column + 0.5) * canvas.cell_width, (row + 0.5) * canvas.cell_height)
        for row in range(canvas.rows)
        for column in range(canvas.columns)
    ]


def oracle_mask(design: Design, state: PlacementState) -> np.ndarray:
    canvas = design.canvas
    mask = np.zeros((canvas.rows, canvas.columns), bool)
    if state.step == len(design.placing_order):
        return mask
    width, height = size_of(design, int(design.placing_order[state.step]))
    hard = [
        (centre, size_of(design, node))
        for node, centre in standing_nodes(design, state).items()
        if design.netlist.kind[node] == NodeKind.HARD
    ]
    for row, column, x, y in cell_centres(canvas):
        left, right, bottom, top = x - width / 2, x + width / 2, y - height / 2, y + height / 2
        legal = min(left, bottom) >= -TOUCHING
        legal = legal and right <= canvas.width + TOUCHING and top <= canvas.height + TOUCHING
        for (other_x, other_y), (other_width, other_height) in hard:
            shared_x = min(right, other_x + other_width / 2) - max(left, other_x - other_width / 2)
            shared_y = min(top, other_y + other_height / 2) - max(bottom, other_y - other_height / 2)
            legal = legal and not min(shared_x, shared_y) > canvas.overlap_threshold + TOUCHING
        mask[row, column] = legal
    return mask


def half_perimeter(points: list[tuple[float, float]]) -> float:
    if not points:
        return 0.0
    xs, ys = zip(*points, strict=True)
    return max(xs) - min(xs) + max(ys) - min(ys)


def oracle_wire_mask(design: Design, state: PlacementState) -> tuple[np.ndarray, float]:
    """Returns the added weighted µm [R, C], and the summed weight of the current macro's nets."""
    canvas, netlist = design.canvas, design.netlist
    added = np.zeros((canvas.rows, canvas.columns))
    if state.step == len(design.placing_order):
        return added, 0.0
    macro, centres, weight = int(design.placing_order[state.step]), standing_nodes(design, state), 0.0
    for net in range(netlist.num_nets):
        pins = netlist.net_pins[netlist.net_start[net] : netlist.net_start[net + 1]]
        if macro not in netlist.pin_node[pins]:
            continue
        weight += netlist.net_weight[net]

        def points(centres: dict[int, tuple[float, float]], pins: np.ndarray = pins) -> list[tuple[float, float]]:
            return [pin_position(design, int(pin), centres) for pin in pins if int(netlist.pin_node[pin]) in centres]

        before = points(centres)
        if before:
            for row, column, x, y in cell_centres(canvas):
                after = half_perimeter(points({**centres, macro: (x, y)}))
                added[row, column] += netlist.net_weight[net] * (after - half_perimeter(before))
    return added, weight


def pin_position(design: Design, pin: int, centres: dict[int, tuple[float, float]]) -> tuple[float, float]:
    netlist = design.netlist
    node = int(netlist.pin_node[pin])
    a, b, c, d = TURN[design.initial.orientation[node]] if netlist.kind[node] == NodeKind.HARD else TURN[0]
    dx, dy = netlist.pin_dx[pin], netlist.pin_dy[pin]
    return centres[node][0] + a * dx + b * dy, centres[node][1] + c * dx + d * dy


def oracle_maps(design: Design, state: PlacementState) -> tuple[np.ndarray, np.ndarray]:
    """Returns occupancy (overlaps counted twice) and density [R, C]."""
    canvas = design.canvas
    occupancy, density = np.zeros((2, canvas.rows, canvas.columns))
    for node, (x, y) in standing_nodes(design, state).items():
        if design.netlist.kind[node] not in (NodeKind.HARD, NodeKind.SOFT):
            continue
        width, height = size_of(design, node)
        for row, column, cell_x, cell_y in cell_centres(canvas):
            shared_x = min(x + width / 2, cell_x + canvas.cell_width / 2) - max(
                x - width / 2, cell_x - canvas.cell_width / 2
            )
            shared_y = min(y + height / 2, cell_y + canvas.cell_height / 2) - max(
                y - height / 2, cell_y - canvas.cell_height / 2
            )
            share = max(shared_x, 0) * max(shared_y, 0) / (canvas.cell_width * canvas.cell_height)
            density[row, column] += share
            if design.netlist.kind[node] == NodeKind.HARD:
                occupancy[row, column] += share
    return occupancy, density


def snapshot(state: PlacementState) -> list[np.ndarray]:
    return [state.mask(), state.wire_mask(), state.occupancy(), state.density(), state.centres()]


def assert_bitwise_equal(left: list[np.ndarray], right: list[np.ndarray]) -> None:
    for a, b in zip(left, right, strict=True):
        assert a.tobytes() == b.tobytes()


def compare(state: PlacementState) -> None:
    design = state.design
    mask = oracle_mask(design, state)
    assert np.array_equal(state.mask(), mask)
    assert state.legal_cells == mask.sum()
    wire, _ = oracle_wire_mask(design, state)
    scale = (design.canvas.width + design.canvas.height) * max(1.0, design.netlist.net_weight.sum())
    np.testing.assert_allclose(state.wire_mask(), wire, rtol=0, atol=1e-12 * scale)
    occupancy, density = oracle_maps(design, state)
    np.testing.assert_allclose(state.occupancy(), occupancy, rtol=0, atol=1e-12)
    np.testing.assert_allclose(state.density(), density, rtol=0, atol=1e-12)


def place_somewhere(state: PlacementState, choice: int) -> bool:
    cells = np.argwhere(state.mask())
    if not len(cells):
        return False
    state.place(*(int(value) for value in cells[choice % len(cells)]))
    return True


def playable(seed: int) -> Design | None:
    """Returns a random design with every feature on a random grid; None if no macro could be placed on it."""
    generator = np.random.default_rng(seed)
    rows, columns = (int(count) for count in generator.integers(3, 12, 2))
    canvas = square_canvas(columns, rows, overlap_threshold=float(generator.choice([0.0, 0.5])))
    design = random_design(seed, hard=6, canvas=dataclasses.replace(canvas, width=canvas.width * 1.37))
    try:
        PlacementState(design)
    except ValueError:
        return None
    return design


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), choices=st.lists(st.integers(0, 10_000), min_size=6, max_size=6))
def test_random_designs_and_actions_agree_with_the_oracle(seed: int, choices: list[int]) -> None:
    design = playable(seed)
    if design is None:
        return
    state = PlacementState(design)
    compare(state)
    for choice in choices:
        if not place_somewhere(state, choice):
            break
        compare(state)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    moves=st.lists(st.one_of(st.integers(0, 10_000), st.just(-1)), min_size=5, max_size=40),
)
def test_undo_restores_every_bit(seed: int, moves: list[int]) -> None:
    design = playable(seed)
    if design is None:
        return
    state = PlacementState(design)
    history = [snapshot(state)]
    for move in moves:
        if move >= 0:
            if place_somewhere(state, move):
                history.append(snapshot(state))
        elif state.step:
            state.undo()
            history.pop()
            assert_bitwise_equal(snapshot(state), history[-1])
    state.reset()
    assert_bitwise_equal(snapshot(state), history[0])


@pytest.mark.parametrize(("columns", "rows"), [(63, 3), (64, 2), (65, 2), (130, 3)])
def test_grids_wider_than_a_machine_word(columns: int, rows: int) -> None:
    design = random_design(5, hard=12, canvas=square_canvas(columns, rows, cell=3.0))
    state = PlacementState(design)
    for choice in (17, 999, 45, 300):
        compare(state)
        assert place_somewhere(state, choice)
    compare(state)


def abutting(cell: float) -> Design:
    """Returns macros as wide as the gcells' pitch and twice as high, on gcells whose side is not a binary fraction."""
    nodes = [Node("port", NodeKind.PORT, 0.0, 0.0)]
    nodes += [Node(f"m{index}", NodeKind.HARD, 0.0, 0.0, cell, 2 * cell) for index in range(6)]
    return build("abutting", square_canvas(7, 5, cell=cell), nodes, [Net([("port", 0, 0), ("m0", 0, 0)])])


@pytest.mark.parametrize("cell", [0.1, 1 / 3, 13.7, 1e3 / 7])
def test_macros_that_touch_are_legal(cell: float) -> None:
    state = PlacementState(abutting(cell))
    state.place(1, 2)
    mask = state.mask()
    assert mask[1].tolist() == [True, True, False, True, True, True, True]  # side by side
    assert mask[3, 2] and not mask[2, 2]  # one above the other
    assert not mask[0].any() and not mask[4].any()  # beyond the canvas


def test_the_density_is_the_cost_functions_own() -> None:
    design = random_design(11, soft=0, canvas=square_canvas(8, 8))
    state = PlacementState(design)
    while place_somewhere(state, 7 * state.step + 3):
        pass
    assert state.step == len(design.placing_order)
    order, centres = design.placing_order, state.centres()
    whole = design.initial.moved(order, centres[:, 0], centres[:, 1])
    np.testing.assert_allclose(state.density(), cost_maps(design, whole).density, rtol=0, atol=1e-12)


def test_the_observation_scales_and_clips_the_maps() -> None:
    design = random_design(21, canvas=square_canvas(9, 7))
    pool = make_pool(design, 1)
    (observation, _), state = pool.reset(), PlacementState(design)
    while True:
        wire, weight = oracle_wire_mask(design, state)
        scale = (design.canvas.width + design.canvas.height) * weight
        expected = {
            "occupancy": np.minimum(state.occupancy(), 1),
            "density": state.density(),
            "wire_mask": np.minimum(wire / scale if scale else wire, 1),
        }
        for index, name in enumerate(MAPS):
            np.testing.assert_allclose(observation["maps"][0, index], expected[name], rtol=1e-6, atol=1e-6)
        assert np.array_equal(observation["mask"][0], state.mask())
        centres = (state.centres() / (design.canvas.width, design.canvas.height)).astype(np.float32)
        assert np.array_equal(observation["x"][0, : state.step], centres[:, 0])
        assert np.array_equal(observation["y"][0, : state.step], centres[:, 1])
        assert not observation["x"][0, state.step :].any()
        cells = np.flatnonzero(state.mask())
        if not len(cells):
            break
        cell = int(cells[(5 * state.step) % len(cells)])
        state.place(*divmod(cell, design.canvas.columns))
        observation = pool.step([cell])[0]
    assert state.step > 3


def test_rejections_name_what_is_wrong() -> None:
    state = PlacementState(four_macros())
    with pytest.raises(ValueError, match="nothing is placed"):
        state.undo()
    with pytest.raises(IllegalAction, match="beyond the canvas"):
        state.place(0, 0) if not state.mask()[0, 0] else state.place(4, 0)
    with pytest.raises(IllegalAction, match="not a cell"):
        state.place(5, 0)
    for _ in range(3):
        assert place_somewhere(state, 0)
    with pytest.raises(IllegalAction, match="all 3 macros"):
        state.place(0, 0)
