"""Searches keep the spacing chosen by an import, and move macros onto edges that they nearly touch."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from placement.annealing import legaliser
from placement.annealing import search as search_module
from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.edges import onto_edges
from placement.annealing.legaliser import fits, legalise
from placement.annealing.search import search
from placement.annealing.starts import legal, with_spacing
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from tests.support.constrained_designs import constrained
from tests.support.designs import four_macros

SPACING = 3.0
QUICK = AnnealConfig(starts=("packed",))


@pytest.fixture(scope="module")
def design() -> Design:
    return constrained(load("clustered40"), spacing=SPACING)


def test_a_search_keeps_the_design_s_own_spacing_unless_another_is_given(design: Design) -> None:
    found = search(design, moves=4000, config=QUICK).placement
    assert fits(design, found, spacing=SPACING)
    given = search(design, moves=4000, config=AnnealConfig(starts=("packed",), spacing=0.0)).placement
    assert not fits(design, given, spacing=SPACING)


def test_a_placement_that_is_refined_is_moved_apart(design: Design) -> None:
    begin = legalise(design, design.initial)
    assert not fits(design, begin, spacing=SPACING)
    assert fits(design, search(design, begin, moves=2000).placement, spacing=SPACING)


def test_where_macros_cannot_keep_it_they_do_not(design: Design, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legaliser, "COMPARISONS", 10**4)
    monkeypatch.setattr(legaliser, "EXACT_SECONDS", 0.2)
    full = constrained(load("toy6"), spacing=40.0)
    begin = legal(full, full.initial, AnnealConfig())
    assert fits(full, begin) and not fits(full, begin, spacing=40.0)
    assert with_spacing(full, AnnealConfig(), [begin]).spacing == 0.0
    assert with_spacing(design, AnnealConfig(), []).spacing == SPACING
    with pytest.raises(DesignError):
        legal(full, full.initial, AnnealConfig(spacing=40.0))
    assert fits(full, search(full, moves=2000).placement)


def test_a_stopped_search_resumes_with_the_same_spacing(design: Design, tmp_path) -> None:
    whole = search(design, moves=8000, round_moves=1000, config=QUICK).placement
    calls = iter([False] * 2 + [True] * 1000)
    watch = search_module.Watch(tmp_path, lambda: next(calls))
    stopped = search(design, moves=8000, round_moves=1000, config=QUICK, watch=watch)
    assert not stopped.finished
    with mock.patch.object(search_module, "make_starts", side_effect=AssertionError("starts are made again")):
        again = search(design, moves=8000, round_moves=1000, config=QUICK, watch=search_module.Watch(tmp_path))
    assert again.placement == whole and fits(design, whole, spacing=SPACING)


def moved(design: Design, node: int, x: float, y: float) -> Placement:
    return design.initial.moved(np.array([node]), np.array([x]), np.array([y]))


def test_macros_near_an_edge_are_moved_onto_it() -> None:
    design = four_macros()
    node = int(design.placing_order[0])
    width, height = design.netlist.width[node], design.netlist.height[node]
    apart, checked = legalise(design, design.initial, spacing=1.5), 0
    for axis, end in ((0, design.canvas.width), (1, design.canvas.height)):
        size = (width, height)[axis]
        for gap, wanted in ((1.0, 0.0), (2.0, 2.0)):
            for at, edge in ((gap + size / 2, wanted + size / 2), (end - gap - size / 2, end - wanted - size / 2)):
                place = [apart.x[node], apart.y[node]]
                place[axis] = at
                start = apart.moved(np.array([node]), np.array(place[:1]), np.array(place[1:]))
                if not fits(design, start, spacing=1.5):
                    continue
                found = onto_edges(design, start, spacing=1.5)
                assert (found.x, found.y)[axis][node] == pytest.approx(edge)
                assert fits(design, found, spacing=1.5)
                checked += 1
    assert checked >= 4
    assert onto_edges(design, apart, spacing=0.0) is apart


def test_a_macro_that_would_not_be_legal_on_the_edge_stays() -> None:
    design = four_macros()
    node = int(design.placing_order[0])
    width = design.netlist.width[node]
    blocked = constrained(design, blockages=np.array([[0.0, 0.0, 0.5, design.canvas.height]]))
    start = legalise(blocked, moved(blocked, node, width / 2 + 1.0, design.canvas.height / 2))
    assert start.x[node] == width / 2 + 1.0
    assert onto_edges(blocked, start, spacing=1.5).x[node] == start.x[node]
    assert onto_edges(design, start, spacing=1.5).x[node] == width / 2
