"""Constraints in the mask, the state and the counts, compared with a slow oracle."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.engine.costs import legality, violations
from placement.engine.pool import make_pool
from placement.engine.state import IllegalAction, PlacementState
from placement.netlist.constraints import SnapGrid
from placement.netlist.design import Design, NodeKind, Placement
from placement.netlist.floorplan import Region
from tests.support import legality_oracle as oracle
from tests.support.constrained_designs import constrained, randomly_constrained
from tests.support.designs import Net, Node, build, four_macros, random_design, random_placement, square_canvas


def node_of(design: Design, name: str) -> int:
    return design.netlist.names.index(name)


def so_far(design: Design, state: PlacementState, centre: tuple[float, float]) -> tuple[Placement, list[int]]:
    """Returns the macros placed so far and the current one at a centre; and the placed hard macros without that one."""
    order, centres = design.placing_order, state.centres()
    placed = design.initial.moved(order[: state.step], centres[:, 0], centres[:, 1])
    current = order[state.step]
    fixed = [int(node) for node in design.netlist.hard if design.initial.fixed[node]]
    whole = placed.moved(np.array([current]), np.array([centre[0]]), np.array([centre[1]]))
    return whole, [*fixed, *(int(node) for node in order[: state.step])]


def legal_by_oracle(design: Design, state: PlacementState, row: int, column: int) -> bool:
    canvas, grid = design.canvas, design.constraints.grid
    current = int(design.placing_order[state.step])
    for own in design.constraints.macro_grids:
        if current in own.nodes.tolist():
            grid = own.grids[int(design.initial.orientation[current])]
    x, y = (column + 0.5) * canvas.cell_width, (row + 0.5) * canvas.cell_height
    width, height = (float(side[current]) for side in design.netlist.sides(design.initial.orientation))
    x = snapped_below(x - width / 2, grid.pitch_x, grid.offset_x) + width / 2
    y = snapped_below(y - height / 2, grid.pitch_y, grid.offset_y) + height / 2
    placement, others = so_far(design, state, (x, y))
    return oracle.may_stand(design, placement, current) and not any(
        oracle.too_close(design, placement, current, other) for other in others
    )


def snapped_below(corner: float, pitch: float, offset: float) -> float:
    return corner if pitch == 0 else offset + pitch * np.floor((corner - offset + 1e-6) / pitch)


def playable(seed: int) -> Design | None:
    generator = np.random.default_rng(seed)
    rows, columns = (int(count) for count in generator.integers(6, 11, 2))
    canvas = square_canvas(columns, rows, overlap_threshold=float(generator.choice([0.0, 0.5])))
    design = random_design(seed, hard=6, canvas=dataclasses.replace(canvas, width=canvas.width * 1.37))
    design = randomly_constrained(design, seed + 1)
    try:
        PlacementState(design)
    except ValueError:
        return None
    return design


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), choices=st.lists(st.integers(0, 10_000), min_size=6, max_size=6))
def test_the_mask_is_what_the_oracle_allows(seed: int, choices: list[int]) -> None:
    design = playable(seed)
    if design is None:
        return
    state = PlacementState(design)
    snaps = max(design.constraints.coarsest_pitch) > 0
    for choice in choices:
        if state.step == len(design.placing_order):
            break
        mask = state.mask()
        for row, column in np.ndindex(mask.shape):
            allowed = legal_by_oracle(design, state, row, column)
            assert not mask[row, column] or allowed
            if not snaps or state.step == 0:  # on a grid, the mask is conservative near placed macros
                assert mask[row, column] == allowed
        cells = np.argwhere(mask)
        if not len(cells):
            break
        state.place(*(int(value) for value in cells[choice % len(cells)]))
    order, centres = design.placing_order, state.centres()
    if state.step == len(order):
        assert oracle.is_legal(design, design.initial.moved(order, centres[:, 0], centres[:, 1]))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_counts_are_the_oracles(seed: int) -> None:
    design = randomly_constrained(random_design(seed, hard=7), seed)
    placement = random_placement(design, seed)
    counted = (*legality(design, placement), *violations(design, placement))
    assert counted == oracle.violations(design, placement)


def test_counts_by_hand() -> None:
    """Two macros of 10 × 10 µm, 3 µm apart, the left one at a corner."""
    nodes = [
        Node("p", NodeKind.PORT, 0.0, 12.0),
        Node("a", NodeKind.HARD, 5.0, 5.0, 10.0, 10.0),
        Node("b", NodeKind.HARD, 18.0, 5.0, 10.0, 10.0),
    ]
    design = build("two", square_canvas(4, 4), nodes, [Net([("p", 0, 0), ("a", 0, 0)])])
    a, b = node_of(design, "a"), node_of(design, "b")

    def counts(**changes: object) -> dict[str, int]:
        found = violations(constrained(design, **changes))._asdict()
        return {name: count for name, count in found.items() if count}

    def halos(of_a: float, of_b: float) -> np.ndarray:
        halo = np.zeros((3, 2))
        halo[a], halo[b] = (of_a, 0.0), (of_b, 0.0)
        return halo

    assert counts() == {}
    assert counts(halo=halos(1.5, 1.5)) == {}
    assert counts(halo=halos(1.5, 1.6)) == {"halos": 1}
    assert counts(blockages=np.array([[10.0, 0, 13, 40]])) == {}
    assert counts(blockages=np.array([[9.0, 0, 14, 40]])) == {"blockages": 2}
    left = np.array([[0.0, 0, 12, 40]])
    assert counts(regions=(Region("r", left, np.array([a])),)) == {}
    assert counts(regions=(Region("r", left, np.array([b])),)) == {"regions": 1}
    assert counts(regions=(Region("r", left, np.array([b]), is_exclusive=True),)) == {"regions": 2}
    two_halves = np.array([[0.0, 0, 6, 40], [6, 0, 12, 40]])
    assert counts(regions=(Region("r", two_halves, np.array([a])),)) == {}
    assert counts(grid=SnapGrid(13.0, 0.0)) == {}
    assert counts(grid=SnapGrid(13.0, 0.0, 1.0)) == {"grid": 2}
    assert counts(grid=SnapGrid(10.0, 0.0)) == {"grid": 1}
    assert counts(port_keepout=2.0) == {}
    assert counts(port_keepout=2.5) == {"port_keepout": 1}
    only_e = np.full(3, 255)
    only_e[b] = 1 << 4
    assert counts(orientations=only_e) == {"orientations": 1}


def test_halos_turn_with_the_macro() -> None:
    nodes = [
        Node("p", NodeKind.PORT, 0.0, 0.0),
        Node("a", NodeKind.HARD, 5.0, 5.0, 10.0, 10.0),
        Node("b", NodeKind.HARD, 18.0, 5.0, 10.0, 10.0),
    ]
    design = build("two", square_canvas(4, 4), nodes, [Net([("p", 0, 0), ("a", 0, 0)])])
    halo = np.zeros((3, 2))
    halo[1] = 0.0, 4.0
    design = constrained(design, halo=halo)
    assert violations(design).halos == 0
    turned = design.initial.orientation.copy()
    turned[1] = 4
    assert violations(design, dataclasses.replace(design.initial, orientation=turned)).halos == 1


def rejection(design: Design, row: int, column: int, *, before: tuple[tuple[int, int], ...] = ()) -> str:
    state = PlacementState(design)
    for place in before:
        state.place(*place)
    with pytest.raises(IllegalAction) as raised:
        state.place(row, column)
    return str(raised.value)


def test_rejections_name_the_rule() -> None:
    design = four_macros()  # places large (20 × 10), middle (10 × 16), small (6 × 8, turned) on gcells of 10 µm
    large, middle = node_of(design, "large"), node_of(design, "middle")
    blocked = constrained(design, blockages=np.array([[0.0, 0, 20, 20]]))
    assert "macro 'large' (step 0 of 'four_macros'): it would lie on a placement blockage" in rejection(blocked, 1, 1)
    near = constrained(design, port_keepout=6.0)
    assert "it would be closer to a port than the keep-out of 6 µm" in rejection(near, 2, 1)
    kept_in = constrained(design, regions=(Region("low", np.array([[0.0, 0, 50, 20]]), np.array([large])),))
    assert "it must stay in region 'low'" in rejection(kept_in, 3, 2)
    kept_out = constrained(
        design, regions=(Region("high", np.array([[0.0, 20, 50, 50]]), np.array([middle]), is_exclusive=True),)
    )
    assert "it must stay out of the exclusive region 'high'" in rejection(kept_out, 3, 2)
    halo = np.zeros((design.netlist.num_nodes, 2))
    halo[large] = 1.0, 8.0
    apart = constrained(design, halo=halo)
    # large covers (5, 10) to (25, 20); middle, with a height of 16, would begin at 27 on the gcell two rows up
    message = rejection(apart, 3, 1, before=((1, 1),))
    assert "it would be too close to macro 'large': their halos are 0 and 1 µm in x, 0 and 8 µm in y" in message
    assert "it would overlap macro 'large'" in rejection(apart, 1, 1, before=((1, 1),))


def test_rejections_report_halos_in_the_macros_orientation() -> None:
    design = four_macros()
    large, small = node_of(design, "large"), node_of(design, "small")
    assert design.initial.orientation[small] >= 4  # is rotated by 90°
    halo = np.zeros((design.netlist.num_nodes, 2))
    halo[small] = 1.0, 9.0
    message = rejection(constrained(design, halo=halo), 1, 3, before=((1, 1), (3, 1)))
    assert f"macro {design.netlist.names[large]!r}: their halos are 9 and 0 µm in x, 1 and 0 µm in y" in message


def test_rejections_name_the_grid_where_there_are_no_halos() -> None:
    """Two macros 10 µm wide on gcells of 10 µm; a pitch of 7 µm brings some gcells closer together than others."""
    nodes = [Node("port", NodeKind.PORT, 0.0, 20.0)]
    nodes += [Node(name, NodeKind.HARD, 20.0, 20.0, 10.0, 10.0) for name in ("a", "b")]
    plain = build("chip", square_canvas(4, 4), nodes, [Net([("port", 0, 0), ("a", 0, 0)])])
    design = constrained(plain, grid=SnapGrid(3.0, 3.0, 0.0, 0.0))
    messages = []
    for first, second in itertools.product(range(16), repeat=2):
        state = PlacementState(design)
        try:
            state.place(*divmod(first, 4))
            state.place(*divmod(second, 4))
        except IllegalAction as error:
            messages.append(str(error))
    near_messages = [message for message in messages if "too close" in message]
    assert near_messages and all("on the snapping grid they may overlap" in message for message in near_messages)


def test_a_macro_without_a_gcell_is_found_before_anything_starts() -> None:
    design = four_macros()
    large = node_of(design, "large")
    tiny = constrained(design, regions=(Region("tiny", np.array([[0.0, 0, 21, 11]]), np.array([large])),))
    with pytest.raises(ValueError, match="has no legal gcell between constraints and fixed macros"):
        PlacementState(tiny)
    only_e = np.full(design.netlist.num_nodes, 255)
    only_e[large] = 1 << 4
    with pytest.raises(ValueError, match="has an orientation that is not allowed"):
        PlacementState(constrained(design, orientations=only_e))


def test_corners_are_snapped_below_the_gcells_centre() -> None:
    design = constrained(four_macros(), grid=SnapGrid(7.0, 0.0, 1.0, 0.0))
    state = PlacementState(design)
    state.place(1, 2)  # large, 20 µm wide, is centred at 25: its corner at 15 snaps to 1 + 14
    assert state.centres().tolist() == [[25.0, 15.0]]
    state.undo()
    state.place(1, 3)  # its corner at 25 snaps to 22
    assert state.centres().tolist() == [[32.0, 15.0]]


def test_snapshots_of_other_constraints_are_rejected() -> None:
    design = four_macros()
    pool = make_pool(design, 1)
    other = make_pool(constrained(design, port_keepout=1.0), 1)
    pool.reset()
    other.reset()
    with pytest.raises(ValueError, match="a different design"):
        other.restore(0, pool.snapshot(0))


def spaced(spacing: float) -> Design:
    """Returns four macros on 120 × 120 µm around a fixed one, with a spacing."""
    macros = [Node(f"m{number}", NodeKind.HARD, 20.0, 20.0, 14.0 + number, 23.0) for number in range(4)]
    fixed = Node("f", NodeKind.HARD, 63.0, 58.5, 11.0, 17.0, fixed=True)
    nodes = [Node("p", NodeKind.PORT, 0.0, 12.0), *macros, fixed]
    design = build("four", square_canvas(30, 30, cell=4.0), nodes, [Net([("p", 0, 0), ("m0", 0, 0)])])
    return constrained(design, spacing=spacing)


@pytest.mark.parametrize("off_grid", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_an_episode_keeps_the_designs_spacing(seed: int, off_grid: bool) -> None:
    """This includes fixed macros; on gcell centres the mask offers all such positions."""
    design = spaced(3.0)
    state = PlacementState(dataclasses.replace(design, off_grid=off_grid))
    generator, kept_off = np.random.default_rng(seed), 0
    while state.step < len(design.placing_order):
        mask = state.mask()
        current = int(design.placing_order[state.step])
        for row, column in generator.integers(0, 30, (150, 2)).tolist():
            x, y = (column + 0.5) * design.canvas.cell_width, (row + 0.5) * design.canvas.cell_height
            placement, others = so_far(design, state, (x, y))
            clear = oracle.may_stand(design, placement, current)
            touching = any(oracle.too_close(design, placement, current, other) for other in others)
            close = any(oracle.too_close(design, placement, current, other, spacing=3.0) for other in others)
            kept_off += clear and close and not touching
            if not off_grid:
                assert bool(mask[row, column]) == (clear and not close)
                if clear and close and not touching:
                    with pytest.raises(IllegalAction, match="3 µm from each other, the design's spacing"):
                        state.place(row, column)
        cells = np.argwhere(mask)
        state.place(*cells[int(generator.integers(len(cells)))].tolist())
    order = design.placing_order
    final = design.initial.moved(order, *state.centres().T)
    pairs = itertools.combinations(design.netlist.hard.tolist(), 2)
    assert kept_off > 0 and not any(oracle.too_close(design, final, *pair, spacing=3.0) for pair in pairs)


@pytest.mark.parametrize("off_grid", [False, True])
def test_a_fixed_macro_leaves_a_place_without_the_spacing(off_grid: bool) -> None:
    """Strips of 15 µm around the fixed macro fit a macro of 12 µm, but not 4 µm away from it."""
    nodes = [
        Node("fixed", NodeKind.HARD, 20.0, 20.0, 10.0, 10.0, fixed=True),
        Node("m", NodeKind.HARD, 7.0, 7.0, 12.0, 12.0),
    ]
    design = build("ring", square_canvas(20, 20, cell=2.0), nodes, [Net([("fixed", 0, 0), ("m", 0, 0)])])
    design = dataclasses.replace(design, off_grid=off_grid)
    plain, narrow = (PlacementState(constrained(design, spacing=spacing)) for spacing in (0.0, 4.0))
    assert narrow.legal_cells > 0 and (narrow.mask() == plain.mask()).all()
    assert PlacementState(constrained(design, spacing=2.0)).legal_cells < plain.legal_cells


def test_a_full_design_has_no_spacing_in_an_episode() -> None:
    design = spaced(100.0)
    assert PlacementState(design).legal_cells > 0
    plain = PlacementState(constrained(design, spacing=0.0))
    state = PlacementState(design)
    for _ in range(2):
        assert (state.mask() == plain.mask()).all()
        row, column = np.argwhere(state.mask())[0].tolist()
        state.place(row, column)
        plain.place(row, column)
