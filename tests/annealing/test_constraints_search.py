"""The legaliser, annealer, flips and starts meet constraints, as checked by a slow oracle."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from placement.annealing import legaliser
from placement.annealing.anneal_config import MOVES, AnnealConfig
from placement.annealing.annealer import Annealer
from placement.annealing.finishing import flip_macros
from placement.annealing.legaliser import NoLegalPlacement, fits, legalise
from placement.annealing.search import search
from placement.annealing.starts import grid_starts, make_starts
from placement.engine.costs import IncrementalCost, legality, violations
from placement.netlist.constraints import Constraints, SnapGrid
from placement.netlist.design import Design, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import check_constraints
from placement.netlist.floorplan import Region
from placement.netlist.generators.clustered import clustered
from tests.support import legality_oracle as oracle
from tests.support.constrained_designs import constrained, randomly_constrained
from tests.support.designs import random_design, random_placement, square_canvas


@pytest.fixture(scope="module", autouse=True)
def few_attempts() -> Iterator[None]:
    """Spends less time on small displacements and on searches for whitespace, which these tests do not need."""
    with mock.patch.multiple(legaliser, ATTEMPTS=20, COMPARISONS=10**7):
        yield


def drawn(seed: int, *, hard: int = 6) -> Design | None:
    """Returns a random constrained design; None if its constraints cannot be met."""
    canvas = square_canvas(8, 8, overlap_threshold=0.5 * (seed % 2))
    design = randomly_constrained(random_design(seed, hard=hard, soft=4, canvas=canvas), seed + 7)
    try:
        check_constraints(design)
    except DesignError:
        return None
    return design


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10_000), spacing=st.sampled_from([0.0, 0.0, 0.7]))
def test_fits_is_what_the_oracle_says(seed: int, spacing: float) -> None:
    design = randomly_constrained(random_design(seed, hard=3, canvas=square_canvas(8, 8)), seed)
    for number in range(5):
        placement = random_placement(design, seed + number, spill=0.0)
        assert fits(design, placement, spacing=spacing) == oracle.is_legal(design, placement, spacing=spacing)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), spacing=st.sampled_from([0.0, 0.0, 0.7]))
def test_what_the_legaliser_returns_is_legal(seed: int, spacing: float) -> None:
    design = drawn(seed)
    if design is None:
        return
    placement = random_placement(design, seed)
    try:
        legal = legalise(design, placement, spacing=spacing)
    except NoLegalPlacement:
        return
    assert oracle.is_legal(design, legal, spacing=spacing)
    assert legalise(design, legal, spacing=spacing) is legal
    stays = design.initial.fixed | (design.netlist.kind != 0)
    assert np.array_equal(legal.x[stays], placement.x[stays])
    assert np.array_equal(legal.y[stays], placement.y[stays])


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), rotate=st.booleans())
@example(seed=153, rotate=False)  # a mirrored macro has another grid
def test_no_move_breaks_a_constraint(seed: int, rotate: bool) -> None:
    design = drawn(seed)
    if design is None:
        return
    try:
        start = legalise(design, random_placement(design, seed))
    except NoLegalPlacement:
        return
    annealer = Annealer(design, start, config=AnnealConfig(rotate=rotate), seed=seed)
    for _ in range(10):
        annealer.run(300, 1.0)  # so hot that every move is accepted
        assert oracle.is_legal(design, annealer.placement)
    assert oracle.is_legal(design, annealer.best)


def everything(*, side: float = 1.0) -> Design:
    """Returns a clustered design with feasible constraints of each kind; its canvas is `side` times as long."""
    design = clustered(seed=5, hard=12, soft=40, ports=20, name="clustered12")
    canvas, netlist = design.canvas, design.netlist
    canvas = dataclasses.replace(canvas, width=side * canvas.width, height=side * canvas.height)
    design = dataclasses.replace(design, canvas=canvas)
    halo = np.zeros((netlist.num_nodes, 2))
    halo[netlist.hard] = 0.006 * canvas.width, 0.004 * canvas.height
    upright = np.full(netlist.num_nodes, 0xFF)
    upright[netlist.hard[::2]] = 1 << Orientation.S | 1 << Orientation.FS
    left = Region("left", np.array([[0.0, 0, 0.6 * canvas.width, canvas.height]]), netlist.hard[:3])
    corner = np.array([[0.9 * canvas.width, 0.9 * canvas.height, canvas.width, canvas.height]])
    return constrained(
        design,
        halo=halo,
        orientations=upright,
        regions=(left,),
        blockages=corner,
        grid=SnapGrid(0.2, 0.1, 0.05, 0.0),
        port_keepout=0.01 * canvas.width,
    )


@pytest.fixture(scope="module")
def design() -> Design:
    return everything()


def clean(design: Design, placement: Placement) -> bool:
    return legality(design, placement) == (0, 0) and not any(violations(design, placement))


def test_every_kind_of_move_is_still_found(design: Design) -> None:
    start = make_starts(design, AnnealConfig(starts=("electrostatic",)), 0)[0]
    assert clean(design, start.placement)
    annealer = Annealer(design, start.placement, config=AnnealConfig(rotate=True), seed=1)
    annealer.run(60_000, 0.01)
    tallies = annealer.tallies
    moves = [move for move in MOVES if not move.startswith("tidy_")]  # tidy moves need a cost with tidiness
    assert all(tallies[move].evaluated > 0 for move in moves), {move: tallies[move] for move in moves}
    assert clean(design, annealer.placement)
    assert oracle.is_legal(design, annealer.placement)


@pytest.mark.parametrize("start", ["packed", "electrostatic", "greedy", "random", "initial"])
def test_each_start_keeps_to_them(design: Design, start: str) -> None:
    """Sequential starts run on a larger canvas: on the small one they find no whitespace."""
    if start in ("greedy", "random"):
        design = everything(side=1.3)
        starts = grid_starts(start, design, AnnealConfig(), 3)
    else:
        starts = make_starts(design, AnnealConfig(starts=(start,)), 3)
    assert starts
    for found in starts:
        assert found.name.startswith(start)
        assert clean(design, found.placement), found.name


def test_a_search_ends_without_violations(design: Design) -> None:
    found = search(design, config=AnnealConfig(), moves=60_000, seed=2)
    assert clean(design, found.placement)
    assert oracle.is_legal(design, found.placement)
    quick, other = AnnealConfig(starts=("electrostatic",)), constrained(design, port_keepout=0.0)
    kept, free = (search(one, config=quick, moves=20_000, seed=2) for one in (design, other))
    assert kept.costs != free.costs


def test_soft_macros_stay_off_blockages_when_they_move(design: Design) -> None:
    middle = np.array([[0.4, 0.4, 0.6, 0.6]]) * design.canvas.width
    plain = clustered(seed=5, hard=12, soft=40, ports=20, name="clustered12")
    blocked = constrained(plain, blockages=middle)
    start = make_starts(blocked, AnnealConfig(), 0)[0].placement
    annealer = Annealer(blocked, start, config=AnnealConfig(), seed=1)
    annealer.run(40_000, 0.01)

    def inside(placement: Placement) -> np.ndarray:
        x, y = placement.x, placement.y
        within = (x > middle[0, 0]) & (x < middle[0, 2]) & (y > middle[0, 1]) & (y < middle[0, 3])
        return within & (blocked.netlist.kind == 1)

    entered = inside(annealer.placement) & ~inside(start)
    assert not entered.any()


def test_flips_keep_to_allowed_orientations(design: Design) -> None:
    free = clustered(seed=5, hard=12, soft=40, ports=20, name="clustered12")
    found = flip_macros(free, free.initial)
    turned = found.placement.orientation != free.initial.orientation
    assert turned.sum() >= 3
    held = np.flatnonzero(turned)[:3]
    allowed = np.full(free.netlist.num_nodes, 255)
    allowed[held] = 1 << free.initial.orientation[held].astype(np.int64)
    kept = flip_macros(constrained(free, orientations=allowed), free.initial).placement.orientation
    assert np.array_equal(kept[held], free.initial.orientation[held])


def test_a_start_that_breaks_a_constraint_is_rejected(design: Design) -> None:
    with pytest.raises(DesignError, match="violates a constraint; legalise the placement first"):
        Annealer(design, design.initial, config=AnnealConfig())


def test_constraints_that_cannot_be_met_are_rejected_before_the_search(design: Design) -> None:
    tiny = Region("tiny", np.array([[0.0, 0, 1, 1]]), design.netlist.hard[:1])
    with pytest.raises(DesignError, match=r"region 'tiny' has space for .* macro '.*' need"):
        search(constrained(design, regions=(tiny,)), config=AnnealConfig(), moves=1000)


def test_the_spacing_is_added_to_the_constraints(design: Design) -> None:
    spacing = 0.01 * design.canvas.width  # more than the halos in y, less than those in x
    legal = legalise(design, random_placement(design, 5), spacing=spacing)
    assert oracle.is_legal(design, legal, spacing=spacing)


def test_a_region_of_two_rectangles() -> None:
    """An L-shaped region: the macro outside moves into it, and not into the free corner."""
    design = random_design(0, hard=2, soft=0, cells=0, ports=1, canvas=square_canvas(10, 10))
    first, second = design.netlist.hard.tolist()
    shape = np.array([[0.0, 0, 100, 40], [0, 40, 40, 100]])
    design = constrained(design, regions=(Region("L", shape, np.array([first, second])),))
    moved = design.initial.moved(np.array([first, second]), np.array([90.0, 95.0]), np.array([90.0, 85.0]))
    free = dataclasses.replace(moved, fixed=design.netlist.kind == 2)
    design = dataclasses.replace(design, initial=free)
    legal = legalise(design, free)
    assert violations(design, legal).regions == 0
    assert oracle.is_legal(design, legal)


def test_a_cost_knows_nothing_of_constraints(design: Design) -> None:
    plain = dataclasses.replace(design, constraints=Constraints.none(design.netlist.num_nodes))
    assert IncrementalCost(design).costs == IncrementalCost(plain).costs
