"""The channel rule in the counts, masks, moves and the legaliser, compared with a slow oracle."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pytest

from placement.annealing.legaliser import NoLegalPlacement, _bands, _channels, fits, legalise
from placement.annealing.search import search
from placement.engine import _native
from placement.engine.costs import legality, violations
from placement.engine.state import IllegalAction, PlacementState
from placement.netlist.constraints import Constraints, SnapGrid
from placement.netlist.constraints_file import constraints_of, constraints_text
from placement.netlist.design import Design, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.faults import NARROW, find_faults
from placement.netlist.feasibility import check_constraints
from tests.support.designs import Net, Node, build, square_canvas
from tests.support.legality_oracle import narrow_gaps

CHANNEL = (12.0, 10.0)
NO_GRID = SnapGrid()


def with_channels(
    design: Design,
    channel: tuple[float, float] = CHANNEL,
    *,
    halo: float | tuple[float, ...] = 0.0,
    grid: SnapGrid = NO_GRID,
) -> Design:
    kept = Constraints.none(design.netlist.num_nodes)
    halos = np.where((design.netlist.kind == NodeKind.HARD)[:, None], np.broadcast_to(halo, 4), 0.0)
    return dataclasses.replace(design, constraints=dataclasses.replace(kept, halo=halos, grid=grid, channel=channel))


def random_macros(seed: int, *, count: int = 7, fixed: int = 1, cells: int = 10) -> Design:
    """Returns macros of whole even sides on a canvas of 120 × 120 µm; the first `fixed` ones are in corners."""
    generator = np.random.default_rng(seed)
    sides = 2.0 * generator.integers(8, 17, (count, 2))
    nodes = [Node("port", NodeKind.PORT, 0.0, 60.0)]
    for number, (width, height) in enumerate(sides.tolist()):
        nodes.append(Node(f"m{number}", NodeKind.HARD, width / 2, height / 2, width, height, fixed=number < fixed))
    nets = [Net([("port", 0, 0), *((node.name, 0, 0) for node in nodes[1:])])]
    nets += [Net([(a.name, 1, 0), (b.name, 0, 1)]) for a, b in combinations(nodes[1:], 2)]
    return build(f"random{seed}", square_canvas(cells, cells, cell=120 / cells), nodes, nets)


def shuffled(design: Design, generator: np.random.Generator, *, step: float = 1.0) -> Placement:
    order, canvas = design.placing_order, design.canvas
    places = []
    for extent, sides in zip(
        (canvas.width, canvas.height), design.netlist.sides(design.initial.orientation), strict=True
    ):
        half = sides[order] / 2
        places.append(half + step * generator.integers(0, (extent - 2 * half) // step + 1))
    return design.initial.moved(order, *places)


def sides(seed: int) -> float | tuple[float, ...]:
    """Returns a halo (µm), for some seeds with four different sides."""
    return (float(seed % 3), 0.0, 0.5, 2.0) if seed % 4 == 3 else float(seed % 3)


def two(gap: float, lift: float, *, halo: float = 0.0, channel: tuple[float, float] = CHANNEL) -> Design:
    """Returns macros of 20 × 20 µm, `gap` µm apart, the right one raised, both far from the edges."""
    nodes = [
        Node("port", NodeKind.PORT, 0.0, 0.0),
        Node("a", NodeKind.HARD, 40.0, 40.0, 20.0, 20.0),
        Node("b", NodeKind.HARD, 60.0 + gap, 40.0 + lift, 20.0, 20.0),
    ]
    design = build("two", square_canvas(12, 12, cell=10.0), nodes, [Net([("a", 0, 0), ("b", 0, 0)])])
    return with_channels(design, channel, halo=halo)


@pytest.mark.parametrize(
    ("gap", "lift", "halo", "broken"),
    [
        (0.0, 0.0, 0.0, False),  # they abut
        (0.1, 0.0, 0.0, True),
        (11.9, 0.0, 0.0, True),
        (12.0, 0.0, 0.0, False),  # a channel
        (5.0, 19.9, 0.0, True),  # they still face each other
        (5.0, 20.0, 0.0, False),
        (4.0, 0.0, 2.0, False),  # as close as their halos allow
        (4.1, 0.0, 2.0, True),
        (13.0, 0.0, 7.0, False),  # too close for the halos, which is a different rule
    ],
)
def test_pairs_by_hand(gap: float, lift: float, halo: float, broken: bool) -> None:
    design = two(gap, lift, halo=halo)
    assert violations(design).channels == broken == narrow_gaps(design, design.initial)
    reasons = find_faults(design, design.initial)
    assert [NARROW in " ".join(reasons.get(node, [])) for node in (1, 2)] == [broken, broken]
    if broken:
        assert f"is {gap:.4g} µm from b, {NARROW} of 12 µm" in reasons[1]


def test_edges_by_hand() -> None:
    for corner, broken in ((0.0, False), (1.0, True), (9.0, True), (10.0, False), (50.0, False)):
        nodes = [Node("port", NodeKind.PORT, 0.0, 0.0), Node("a", NodeKind.HARD, 60.0, corner + 10.0, 20.0, 20.0)]
        design = with_channels(
            build("one", square_canvas(12, 12, cell=10.0), nodes, [Net([("port", 0, 0), ("a", 0, 0)])])
        )
        assert violations(design).channels == broken
        text = " ".join(find_faults(design, design.initial).get(1, []))
        assert ("from the canvas's edge" in text) == broken


def test_fixed_macros_that_break_the_rule_are_reported() -> None:
    for gap, broken in ((5.0, True), (0.0, False), (12.0, False)):
        free = two(gap, 0.0)
        fixed = dataclasses.replace(free.initial, fixed=np.array([True, True, True]))
        notices = check_constraints(dataclasses.replace(free, initial=fixed))
        assert bool(notices) == broken == (NARROW in " ".join(notices))


def test_no_rule_is_the_default() -> None:
    design = two(5.0, 0.0, channel=(0.0, 0.0))
    assert not design.constraints.any and violations(design).channels == 0


@pytest.mark.parametrize("seed", range(40))
def test_counts_and_legality_are_the_oracles(seed: int) -> None:
    generator = np.random.default_rng(seed)
    grid = SnapGrid(1.0, 0.0, 0.0, 0.0) if seed % 4 == 3 else SnapGrid()
    design = with_channels(random_macros(seed, fixed=0, count=4), halo=sides(seed), grid=grid)
    for _ in range(50):
        placement = shuffled(design, generator, step=4.0 if seed % 2 else 1.0)
        count = narrow_gaps(design, placement)
        assert violations(design, placement).channels == count
        clear = count == 0 and sum(violations(design, placement)) == 0 and sum(legality(design, placement)) == 0
        assert fits(design, placement) == clear


@pytest.mark.parametrize("off_grid", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_an_episode_keeps_the_rule_and_the_mask_offers_all_that_does(seed: int, off_grid: bool) -> None:
    generator = np.random.default_rng(seed)
    halo = sides(seed) if seed % 4 == 3 else float(seed % 3 == 2)
    design = with_channels(random_macros(seed, count=5, cells=24 if seed % 2 else 30), halo=halo)
    state = PlacementState(dataclasses.replace(design, off_grid=off_grid))
    canvas, narrow = design.action_canvas, 0
    while state.step < len(design.placing_order):
        mask = state.mask().reshape(canvas.rows, canvas.columns).astype(bool)
        node, done = int(design.placing_order[state.step]), design.placing_order[: state.step]
        placed = design.initial.moved(done, *state.centres().T)
        others = np.concatenate([[node], done, design.netlist.hard[design.initial.fixed[design.netlist.hard]]])
        for row, column in generator.integers(0, (canvas.rows, canvas.columns), (60, 2)).tolist():
            x, y = (column + 0.5) * canvas.width / canvas.columns, (row + 0.5) * canvas.height / canvas.rows
            here = placed.moved(np.array([node]), np.array([x]), np.array([y]))
            some = only(design, here, others)
            legal = not sum(legality(*some)) and not sum(violations(*some))
            if not off_grid:
                assert mask[row, column] == legal
            elif legal:
                assert mask[row, column]
            if not mask[row, column]:
                with pytest.raises(IllegalAction) as raised:
                    state.place(row, column)
                narrow += "narrower than a channel (12 µm in x, 10 µm in y)" in str(raised.value)
        choices = np.flatnonzero(mask.ravel())
        if not len(choices):
            break
        state.place(*divmod(int(generator.choice(choices)), canvas.columns))
    assert narrow > 0
    done = design.placing_order[: state.step]
    assert len(done) >= 2
    final = design.initial.moved(done, *state.centres().T)
    fixed = design.netlist.hard[design.initial.fixed[design.netlist.hard]]
    some = only(design, final, np.concatenate([done, fixed]))
    assert not sum(legality(*some)) and not sum(violations(*some))


def only(design: Design, placement: Placement, macros: np.ndarray) -> tuple[Design, Placement]:
    """Returns the design with only these macros and the port, and their placement."""
    names = [design.netlist.names[node] for node in macros.tolist()]
    width, height = design.netlist.width, design.netlist.height
    nodes = [Node("port", NodeKind.PORT, 0.0, 60.0)]
    for node, name in zip(macros.tolist(), names, strict=True):
        x, y = float(placement.x[node]), float(placement.y[node])
        nodes.append(Node(name, NodeKind.HARD, x, y, float(width[node]), float(height[node])))
    small = build("some", design.canvas, nodes, [Net([("port", 0, 0), (names[0], 0, 0)])])
    kept = design.constraints
    small = with_channels(small, kept.channel, halo=tuple(kept.halo[macros[0]]), grid=kept.grid)
    return small, small.initial


@pytest.mark.parametrize("seed", range(40))
def test_no_place_is_nearer(seed: int) -> None:
    """Coordinates are integers, so a nearest position is among all integer ones."""
    generator = np.random.default_rng(seed)
    count = int(generator.integers(1, 7))
    at = generator.integers(0, 60, (2, count)).astype(float)
    facing = generator.integers(6, 14, (2, count)).astype(float)
    abut = facing + generator.integers(0, 3, (2, count))
    reach = abut + generator.integers(0, 2, (2, count)) * generator.integers(0, 4, (2, count))
    channel = facing + np.array([[8.0], [6.0]])
    low, high = np.array([5.0, 6.0]), np.array([55.0, 54.0])
    edges = [[low[axis], low[axis] + wide, high[axis] - wide, high[axis]] for axis, wide in enumerate((8.0, 6.0))]
    start = generator.integers(-5, 65, 2).astype(float)
    areas = [
        np.concatenate([at - reach, at + reach]),
        *_channels(at, facing, np.stack([abut, abut]), channel),
        *_bands(np.array(edges)),
    ]
    found = _native.nearest_legal_position(tuple(start), tuple(low), tuple(high), *np.concatenate(areas, axis=1))
    x, y = np.meshgrid(np.arange(low[0], high[0] + 1), np.arange(low[1], high[1] + 1), indexing="ij")
    places = np.stack([x.ravel(), y.ravel()])

    def free(one: np.ndarray) -> bool:
        away = np.abs(one[:, None] - at)
        narrow = (away > abut + 1e-6) & (away < channel - 1e-6) & (away < facing - 1e-6)[::-1]
        at_edge = any(
            from_ + 1e-6 < one[axis] < to - 1e-6 for axis in (0, 1) for from_, to in (edges[axis][:2], edges[axis][2:])
        )
        return not (at_edge or narrow.any() or (away < reach - 1e-6).all(axis=0).any())

    legal = [float(np.abs(one - start).sum()) for one in places.T if free(one)]
    if found is None:
        assert not legal
    else:
        assert free(np.array(found)) and np.abs(np.array(found) - start).sum() == pytest.approx(min(legal))


@pytest.mark.parametrize("seed", range(8))
def test_the_legaliser_keeps_the_rule(seed: int) -> None:
    grid = SnapGrid(0.5, 0.25, 0.1, 0.0) if seed % 2 else SnapGrid()
    macros = random_macros(seed, count=8, fixed=1 - seed % 2)  # a corner is off the grid
    design = with_channels(macros, halo=sides(seed), grid=grid)
    before = shuffled(design, np.random.default_rng(seed))
    after = legalise(design, before)
    assert fits(design, after) and not sum(violations(design, after)) and narrow_gaps(design, after) == 0
    assert legalise(design, after) == after
    spaced = legalise(with_channels(design), before, spacing=3.0)
    assert fits(with_channels(design), spaced, spacing=3.0) and narrow_gaps(with_channels(design), spaced) == 0


def test_a_full_canvas_is_packed_without_gaps() -> None:
    nodes = [Node("port", NodeKind.PORT, 0.0, 60.0)]
    nodes += [Node(f"m{number}", NodeKind.HARD, 60.0, 60.0, 30.0, 40.0) for number in range(12)]
    design = build("full", square_canvas(10, 10, cell=12.0), nodes, [Net([("m0", 0, 0), ("m1", 0, 0)])])
    design = with_channels(design)
    try:
        after = legalise(design, design.initial)
    except NoLegalPlacement:
        pytest.fail("twelve macros that fill the canvas were not packed")
    assert narrow_gaps(design, after) == 0 and not sum(legality(design, after))


@pytest.mark.parametrize("halo", [0.0, 1.0])
def test_a_search_keeps_the_rule_and_moves(halo: float) -> None:
    design = with_channels(random_macros(3, count=7), (5.0, 4.0), halo=halo)
    found = search(design, moves=20_000, seed=1, round_moves=500)
    assert not sum(violations(design, found.placement)) and not sum(legality(design, found.placement))
    assert narrow_gaps(design, found.placement) == 0
    kinds = {name: tally.accepted for name, tally in found.tallies.items() if name.startswith("hard_")}
    assert all(kinds[name] > 0 for name in ("hard_shift", "hard_abut", "hard_slide", "hard_jump")), str(kinds)


def test_the_file_keeps_the_rule() -> None:
    design = two(5.0, 0.0)
    text = constraints_text(design.netlist, design.constraints)
    assert '"channel": [12.0, 10.0]' in text
    assert constraints_of("file", text, design.netlist).channel == CHANNEL
    assert '"channel"' not in constraints_text(design.netlist, Constraints.none(design.netlist.num_nodes))
    with pytest.raises(DesignError, match=r"channel: .* must be two widths"):
        constraints_of("file", text.replace("12.0", "-1"), design.netlist)
