"""Macros off the grid: the position of an action in its cell, compared with a slow oracle that tries many positions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.config import EnvConfig
from placement.engine.costs import legality, violations
from placement.engine.pool import EnvironmentPool, make_pool
from placement.engine.state import EpisodeRenderer, IllegalAction, PlacementState
from placement.netlist.constraints import Constraints, SnapGrid
from placement.netlist.design import Design, NodeKind, Placement
from placement.netlist.geometry import Rectangle
from tests.engine.test_constraints_state import so_far
from tests.support import legality_oracle as oracle
from tests.support.constrained_designs import randomly_constrained
from tests.support.designs import Net, Node, build, random_design, square_canvas

FINE = 24
"""Positions tried along each side of a cell."""


def playable(seed: int) -> Design | None:
    """Returns a random design off the grid, with or without constraints and a snapping grid; None if unplayable."""
    generator = np.random.default_rng(seed)
    rows, columns = (int(count) for count in generator.integers(4, 9, 2))
    canvas = square_canvas(columns, rows, overlap_threshold=float(generator.choice([0.0, 0.5])))
    design = random_design(seed, hard=6, canvas=dataclasses.replace(canvas, width=canvas.width * 1.37))
    if seed % 2:
        design = randomly_constrained(design, seed)
    try:
        played = dataclasses.replace(design, off_grid=True)
        PlacementState(played)
    except ValueError:
        return None
    return played


def tried(design: Design, low: float, size: float, pitch: float, offset: float, own: float) -> np.ndarray:
    """Returns the centres along a cell's side that the oracle tries: evenly spaced, or on the snapping grid's lines."""
    if pitch == 0:
        return low + size * np.linspace(0, 1, FINE)
    first = np.ceil((low - own / 2 - offset) / pitch - 1e-9)
    lines = offset + pitch * (first + np.arange(int(size / pitch) + 2)) + own / 2
    lines = lines[lines <= low + size]
    return lines[:: max(1, len(lines) // FINE)]


def has_place_by_oracle(design: Design, state: PlacementState, row: int, column: int) -> bool:
    """Returns whether any of the tried positions in a cell is legal."""
    canvas, grid = design.action_canvas, design.constraints.grid
    current = int(design.placing_order[state.step])
    width, height = (float(side[current]) for side in design.netlist.sides(design.initial.orientation))
    across = tried(design, column * canvas.cell_width, canvas.cell_width, grid.pitch_x, grid.offset_x, width)
    up = tried(design, row * canvas.cell_height, canvas.cell_height, grid.pitch_y, grid.offset_y, height)
    for x in across:
        for y in up:
            placement, others = so_far(design, state, (float(x), float(y)))
            if oracle.may_stand(design, placement, current) and not any(
                oracle.too_close(design, placement, current, other) for other in others
            ):
                return True
    return False


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000))
def test_a_cell_is_open_where_the_oracle_finds_a_place_and_macros_are_put_there(seed: int) -> None:
    design = playable(seed)
    if design is None:
        return
    generator = np.random.default_rng(seed)
    canvas, state = design.action_canvas, PlacementState(design)
    while state.step < len(design.placing_order) and state.legal_cells:
        mask = state.mask()
        assert mask.sum() == state.legal_cells
        for row, column in generator.integers(0, mask.shape, (6, 2)):
            if has_place_by_oracle(design, state, int(row), int(column)):
                assert mask[row, column]
            if not mask[row, column]:
                with pytest.raises(IllegalAction, match="macro"):
                    state.place(int(row), int(column))
        rows, columns = np.nonzero(mask)
        chosen = int(generator.integers(len(rows)))
        before = state.step
        state.place(int(rows[chosen]), int(columns[chosen]))
        x, y = state.centres()[-1]
        assert abs(x / canvas.cell_width - columns[chosen] - 0.5) <= 0.5 + 1e-6
        assert abs(y / canvas.cell_height - rows[chosen] - 0.5) <= 0.5 + 1e-6
        kept = state.centres(), state.mask()
        state.undo()
        np.testing.assert_array_equal(state.mask(), mask)
        placement, others = so_far(design, state, (float(x), float(y)))
        current = int(design.placing_order[before])
        assert oracle.may_stand(design, placement, current)
        assert not any(oracle.too_close(design, placement, current, other) for other in others)
        state.place(int(rows[chosen]), int(columns[chosen]))
        np.testing.assert_array_equal(state.centres(), kept[0])
        np.testing.assert_array_equal(state.mask(), kept[1])


def blocks(*sizes: tuple[float, float], off_grid: bool = True, halo: float = 0.0) -> Design:
    """Returns hard macros of these sides, placed largest first, on 4 × 4 cells of 10 µm, one port."""
    nodes = [Node(f"m{number}", NodeKind.HARD, 20.0, 20.0, *size) for number, size in enumerate(sizes)]
    nodes.append(Node("port", NodeKind.PORT, 0.0, 0.0))
    design = build("blocks", square_canvas(4, 4), nodes, [Net([("port", 0, 0), ("m0", 0, 0)])])
    constraints = dataclasses.replace(
        Constraints.none(design.netlist.num_nodes), halo=np.full((design.netlist.num_nodes, 2), halo)
    )
    return dataclasses.replace(
        design,
        off_grid=off_grid,
        constraints=constraints if halo else design.constraints,
    )


def test_a_macro_abuts_what_it_can_touch_in_its_cell_and_is_at_the_centre_elsewhere() -> None:
    state = PlacementState(blocks((12, 12), (8, 14), (6, 6)))
    state.place(0, 0)  # the corner: both edges can be touched there
    np.testing.assert_allclose(state.centres()[-1], [6, 6])
    state.place(0, 1)  # next to it, on the lower edge: 12 + 4, 7
    np.testing.assert_allclose(state.centres()[-1], [16, 7])
    state.place(2, 2)  # nothing near: the cell's centre
    np.testing.assert_allclose(state.centres()[-1], [25, 25])


def test_a_position_past_the_edge_of_its_cell_by_less_than_the_tolerance_is_moved_onto_the_edge() -> None:
    state = PlacementState(blocks((12, 12), (16 + 1e-6, 8)))
    state.place(0, 0)
    assert state.mask()[0, 1]
    state.place(0, 1)
    assert state.centres()[-1].tolist() == [20.0, 4.0]


def test_halos_are_kept_between_macros_that_abut() -> None:
    state = PlacementState(blocks((12, 12), (8, 14), halo=1.5))
    state.place(0, 0)
    state.place(0, 1)
    np.testing.assert_allclose(state.centres()[:, 0], [6, 6 + 6 + 3 + 4])


def test_macros_that_fill_the_canvas_between_the_centres_find_room_off_the_grid_alone() -> None:
    sides = [(13.0, 40.0)] * 3
    design = blocks(*sides)
    state = PlacementState(design)
    for column in (0, 1, 3):
        row, _ = np.argwhere(state.mask())[0]
        state.place(int(row), column)
    np.testing.assert_allclose(state.centres()[:, 0], [6.5, 19.5, 33.5])
    with pytest.raises(ValueError, match="every gcell"):
        PlacementState(dataclasses.replace(design, off_grid=False))


def test_a_snapping_grid_is_kept() -> None:
    design = blocks((12, 12), (8, 14))
    grid = SnapGrid(0.7, 0.3, 0.1, 0.2)
    design = dataclasses.replace(design, constraints=dataclasses.replace(design.constraints, grid=grid))
    state = PlacementState(design)
    state.place(0, 0)
    state.place(0, 1)
    corners = state.centres() - [[6, 6], [4, 7]]
    pitches = (corners - [0.1, 0.2]) / [0.7, 0.3]
    np.testing.assert_allclose(pitches, np.round(pitches), atol=1e-6)
    assert 12 <= corners[1, 0] - corners[0, 0] <= 12 + 0.7


def test_a_macro_without_a_position_is_rejected_before_an_episode() -> None:
    design = blocks((12, 12), (8, 14))
    whole = Rectangle(0, 0, 40, 40)
    constraints = dataclasses.replace(
        design.constraints, blockages=np.array([[whole.x_low, whole.y_low, whole.x_high, whole.y_high]])
    )
    with pytest.raises(ValueError, match="no legal position"):
        PlacementState(dataclasses.replace(design, constraints=constraints))


def assert_legal_and_rendered_alike(pool: EnvironmentPool) -> tuple[Placement, list[int]]:
    """Plays random cells to the end; checks the placement's legality and the renderer. Returns it and the actions."""
    seen, actions = [pool.reset()[0]], list[int]()
    is_over = False
    while not is_over:
        action = pool.sample_actions()
        actions.append(int(action[0]))
        observation, _, terminated, _, info = pool.step(action)
        assert not info["dead_end"][0]
        is_over = bool(terminated[0])
        seen.append({name: array.copy() for name, array in observation.items()})
    design, placement = pool.designs[0], pool.placement(0)
    assert legality(design, placement).overlaps == 0 and sum(violations(design, placement)) == 0
    played = EpisodeRenderer(pool.designs).render([0], [actions], [len(actions)])
    for step, before in enumerate(seen[:-1]):  # the last is after the last action
        np.testing.assert_array_equal(played.mask[0, step], before["mask"][0])
        np.testing.assert_array_equal(played.x[0, step], before["x"][0])
    return placement, actions


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_pool_episodes_are_legal_rendered_alike_and_restored(seed: int) -> None:
    config = EnvConfig(off_grid=True, action_scale=2)
    canvas = dataclasses.replace(square_canvas(7, 6), width=83.0)
    pool = make_pool(random_design(seed, canvas=canvas), 1, config=config, seed=seed)
    design = pool.designs[0]
    assert design.off_grid
    placement, _ = assert_legal_and_rendered_alike(pool)
    other = make_pool(random_design(seed, canvas=canvas), 1, config=config)
    other.restore(0, pool.snapshot(0))
    np.testing.assert_array_equal(other.placement(0).x, placement.x)
    with pytest.raises(ValueError, match="snapshot"):
        make_pool(random_design(seed, canvas=canvas), 1, config=EnvConfig(action_scale=2)).restore(0, pool.snapshot(0))
