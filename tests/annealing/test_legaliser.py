from __future__ import annotations

import dataclasses
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.annealing import legaliser
from placement.annealing.legaliser import NoLegalPlacement, boxes_of, fits, legalise
from placement.engine.costs import legality
from placement.netlist.constraints import SnapGrid
from placement.netlist.design import NodeKind
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from tests.support.constrained_designs import constrained
from tests.support.dense import dense_design, strewn
from tests.support.designs import random_design, random_placement, square_canvas


def displacement(design, before, after) -> float:
    return float(np.abs(after.x - before.x).sum() + np.abs(after.y - before.y).sum())


@pytest.fixture(scope="module")
def design():
    return load("clustered40")


def test_ariane_with_macros_beyond_the_edge(ariane_folder):
    design = load("ariane133_ng45")
    assert legality(design).outside == 18
    legal = legalise(design, design.initial)
    assert legality(design, legal) == (0, 0)
    soft = design.netlist.soft
    assert np.array_equal(legal.x[soft], design.initial.x[soft]), "soft macros stay"
    assert np.array_equal(legal.orientation, design.initial.orientation)
    assert displacement(design, design.initial, legal) < 6_500


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_thrown_macros_become_legal(seed):
    design = random_design(seed, hard=7, canvas=square_canvas())
    placement = random_placement(design, seed)
    try:
        with mock.patch.object(legaliser, "ATTEMPTS", 20):  # the displacement does not matter here
            legal = legalise(design, placement)
    except NoLegalPlacement:
        return
    assert fits(design, legal)
    stays = design.initial.fixed | (design.netlist.kind != 0)
    assert np.array_equal(legal.x[stays], placement.x[stays])
    assert np.array_equal(legal.y[stays], placement.y[stays])


def test_a_legal_placement_comes_back_as_it_is(design):
    legal = legalise(design, design.initial)
    assert legality(design, legal) == (0, 0)
    assert legalise(design, legal) is legal


def test_one_macro_over_another_moves_by_the_shorter_way():
    design = random_design(0, hard=2, soft=0, cells=0, canvas=square_canvas())
    netlist = design.netlist
    fixed = np.array(netlist.kind == 2)
    first, second = netlist.hard
    x, y = design.initial.x.copy(), design.initial.y.copy()
    orientation = np.zeros_like(design.initial.orientation)
    x[first], y[first] = 25.0, 25.0
    x[second], y[second] = 26.0, 25.0
    placement = dataclasses.replace(design.initial, x=x, y=y, orientation=orientation, fixed=fixed)
    design = dataclasses.replace(design, initial=placement)
    legal = legalise(design, placement)
    across = (netlist.width[first] + netlist.width[second]) / 2 - 1.0
    up = (netlist.height[first] + netlist.height[second]) / 2
    assert displacement(design, placement, legal) == pytest.approx(min(across, up), abs=1e-4)


def test_spacing_blockages_and_fixed_macros_are_kept_clear_of(design):
    fixed = design.initial.fixed.copy()
    held = design.netlist.hard[5]
    fixed[held] = True
    placement = dataclasses.replace(random_placement(design, 3), fixed=fixed)
    design = dataclasses.replace(design, initial=placement)
    canvas = design.canvas
    x, y = placement.x[held], placement.y[held]
    design = constrained(design, blockages=np.array([[0.0, 0.0, canvas.width / 5, canvas.height / 5]]))
    if not (canvas.width / 4 < x < canvas.width * 0.8 and canvas.height / 4 < y < canvas.height * 0.8):
        x, y = canvas.width / 2, canvas.height / 2
    placement = placement.moved(np.array([held]), np.array([x]), np.array([y]))
    legal = legalise(design, placement, spacing=1.0)
    assert (legal.x[held], legal.y[held]) == (x, y)
    assert fits(design, legal, spacing=1.0)
    assert not fits(design, legal, spacing=60.0)


@pytest.mark.parametrize("grid", [0.5, 2.0])
def test_corners_come_onto_the_manufacturing_grid(design, grid):
    placement = random_placement(design, 4)
    legal = legalise(constrained(design, grid=SnapGrid(grid, grid)), placement)
    assert legality(design, legal) == (0, 0)
    netlist, nodes = design.netlist, design.placing_order
    turned = legal.orientation[nodes] >= 4
    width = np.where(turned, netlist.height[nodes], netlist.width[nodes])
    height = np.where(turned, netlist.width[nodes], netlist.height[nodes])
    for corner in (legal.x[nodes] - width / 2, legal.y[nodes] - height / 2):
        assert np.abs(corner / grid - np.round(corner / grid)).max() < 1e-6


def test_no_space_and_wrong_arguments_are_reported(design):
    with pytest.raises(NoLegalPlacement, match="there is no legal placement with spacing 1000 µm"):
        legalise(design, design.initial, spacing=1000.0)
    with pytest.raises(DesignError, match=r"spacing=-1\.0: must be at least 0 µm"):
        legalise(design, design.initial, spacing=-1.0)


def test_spacing_is_rounded_up_to_each_axis_own_pitch(design):
    grid, nodes = SnapGrid(0.2, 1.5), np.array([0])
    spaced = constrained(design, grid=grid)
    boxes = boxes_of(spaced, design.initial, spacing=1.5)
    across, up = boxes.needed(nodes, nodes + 1)
    assert (across.item(), up.item()) == pytest.approx((1.6, 1.5))  # the coarser pitch; 1.5 is not a multiple of 0.2
    assert fits(spaced, legalise(spaced, design.initial, spacing=1.5), spacing=1.5)


def test_pairs_are_those_that_keep_clear_of_each_other(design):
    boxes = boxes_of(constrained(design, blockages=np.array([[0.0, 0, 1, 1]])), design.initial, spacing=0.0)
    boxes.concerns[3, -1] = False
    expected = [
        (one, other)
        for one in range(boxes.movable)
        for other in range(one + 1, len(boxes.x))
        if (one, other) != (3, len(boxes.x) - 1)
    ]
    assert boxes.pairs().T.tolist() == [list(pair) for pair in expected]


def test_a_blockage_that_is_a_sliver_is_none():
    design = load("toy6")
    hard = design.netlist.hard[0]
    x, y = design.initial.x[hard], design.initial.y[hard]
    sliver = np.array([[x, y - 1, x + 5e-7, y + 1]])
    thin = dataclasses.replace(design, constraints=dataclasses.replace(design.constraints, blockages=sliver))
    assert np.array_equal(legalise(thin, design.initial).x, legalise(design, design.initial).x)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("macros", "sigma"), [(10, 30.0), (25, 100.0), (60, 100.0)])
def test_a_canvas_that_is_nearly_full_is_filled_again(macros: int, sigma: float, seed: int) -> None:
    design = dense_design(seed, macros=macros)
    assert fits(design, design.initial)
    legal = legalise(design, strewn(design, sigma, seed=seed))
    assert fits(design, legal)
    moved = np.abs(legal.x - design.initial.x) + np.abs(legal.y - design.initial.y)
    assert moved.max() > 1.0, "nothing was to be done"


@pytest.mark.slow
def test_a_search_for_an_order_that_fails_is_repeated(monkeypatch) -> None:
    design = dense_design(28, macros=133)
    begin = strewn(design, 100.0, seed=28)
    assert fits(design, legalise(design, begin))
    monkeypatch.setattr(legaliser, "SEARCHES", 1)
    with pytest.raises(NoLegalPlacement):
        legalise(design, begin)


@pytest.mark.parametrize("seed", range(4))
def test_fixed_macros_and_halos_are_kept_to_where_it_is_nearly_full(seed: int) -> None:
    design = dense_design(2 * seed + 1, macros=20, utilization=0.8)
    fixed = design.initial.fixed.copy()
    fixed[design.placing_order[[2, 9]]] = True
    halo = np.where((design.netlist.kind == NodeKind.HARD)[:, None], 1.5, 0.0) * np.ones(2)
    constraints = dataclasses.replace(design.constraints, halo=halo)
    initial = dataclasses.replace(design.initial, fixed=fixed)
    design = dataclasses.replace(design, initial=initial, constraints=constraints)
    assert fits(design, design.initial), "each piece has more than 1.5 µm around it"
    legal = legalise(design, strewn(design, 80.0, seed=seed))
    assert fits(design, legal)
    standing = np.flatnonzero(fixed)
    assert legal.x[standing].tolist() == design.initial.x[standing].tolist()


def test_a_start_is_legalised_without_improving_it(monkeypatch):
    design = load("clustered40")
    assert not fits(design, design.initial, spacing=4.0)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a start needs no linear program")

    for name in ("tightened", "in_order", "_improved", "_packed"):
        monkeypatch.setattr(legaliser, name, never)
    assert fits(design, legalise(design, design.initial, spacing=4.0, thorough=False), spacing=4.0)
