"""Cells and macros placed together, and clusters formed by their positions."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

from placement.flat.correspondence import core_of, macros_on_flat
from placement.flat.electrostatic import PlacerSettings
from placement.flat.global_placement import place_before_clustering, place_cells, place_mixed_size
from placement.flat.problem import Core, flat_problem, half_perimeter
from placement.netlist.clustering.cluster import ClusteringSettings
from placement.netlist.clustering.groups import centroids
from placement.netlist.design import Design, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.generators.flat import FlatDraft, FlatOptions, flat_draft, flat_on_floorplan
from placement.netlist.importing import ImportedDesign, ImportSettings, import_flat
from tests.support.flat_designs import chain_design

QUICK = PlacerSettings(growth=1.1, iterations=400)
OPTIONS = FlatOptions(cells=1500, macros=6, ports=20, macro_pins=20, macro_utilization=0.3, cell_utilization=0.4)
FEW = ClusteringSettings(clusters=12)


@functools.cache
def made() -> FlatDraft:
    return flat_draft(FlatOptions(cells=400, macros=4, ports=16, macro_pins=16), seed=2)


def start() -> Placement:
    """Returns the draft's own placement, with one macro fixed and the others free."""
    fixed = made().placement.fixed.copy()
    fixed[made().netlist.hard] = False
    fixed[made().netlist.hard[0]] = True
    return dataclasses.replace(made().placement, fixed=fixed)


@functools.cache
def placed() -> Placement:
    return place_mixed_size(made().netlist, start(), Core(made().width, made().height, halo=2.0), settings=QUICK)


def test_macros_end_inside_with_their_halos_and_hardly_overlap() -> None:
    draft, found = made(), placed()
    macros = draft.netlist.hard[1:]
    x, y = found.x[macros], found.y[macros]
    half_x, half_y = draft.netlist.width[macros] / 2 + 2.0, draft.netlist.height[macros] / 2 + 2.0
    assert (x >= half_x - 1e-3).all() and (x <= draft.width - half_x + 1e-3).all()
    assert (y >= half_y - 1e-3).all() and (y <= draft.height - half_y + 1e-3).all()
    hard = draft.netlist.hard
    width, height = draft.netlist.width[hard], draft.netlist.height[hard]
    apart_x = np.abs(found.x[hard][:, None] - found.x[hard]) - (width[:, None] + width) / 2
    apart_y = np.abs(found.y[hard][:, None] - found.y[hard]) - (height[:, None] + height) / 2
    shared = np.clip(-apart_x, 0, None) * np.clip(-apart_y, 0, None)
    assert np.triu(shared, 1).sum() < 0.1 * (width * height).sum()


def test_wires_are_shorter_than_with_places_at_random_and_fixed_nodes_stay() -> None:
    draft, found, before = made(), placed(), start()
    cells = np.flatnonzero(draft.netlist.kind == NodeKind.CELL)
    dealt = np.random.default_rng(0).permutation(cells)
    assert half_perimeter(draft.netlist, found) < 0.6 * half_perimeter(
        draft.netlist, found.moved(cells, found.x[dealt], found.y[dealt])
    )
    stay = np.flatnonzero(before.fixed | (draft.netlist.kind == NodeKind.PORT))
    assert draft.netlist.hard[0] in stay
    np.testing.assert_array_equal(found.x[stay], before.x[stay])
    np.testing.assert_array_equal(found.y[stay], before.y[stay])


def test_one_seed_gives_one_placement() -> None:
    core = Core(made().width, made().height, halo=2.0)
    again = place_mixed_size(made().netlist, start(), core, settings=QUICK)
    np.testing.assert_array_equal(again.x, placed().x)


def test_macros_count_with_their_halos_only_where_they_are_to_be_placed() -> None:
    draft, core = made(), Core(made().width, made().height, halo=2.0)
    mixed = flat_problem(draft.netlist, start(), core, mixed_size=True)
    own = draft.netlist.kind[mixed.cells] == NodeKind.HARD
    np.testing.assert_allclose(mixed.width[own], draft.netlist.width[draft.netlist.hard[1:]] + 4.0)
    assert own.sum() == len(draft.netlist.hard) - 1 and len(mixed.fixed) == 1


def crowding(placement: Placement) -> float:
    """Returns the share of its bin (a tenth of the core across and up) that cells occupy, averaged over the cells."""
    draft = made()
    cells = draft.netlist.kind == NodeKind.CELL
    area = (draft.netlist.width * draft.netlist.height)[cells]
    bins = [np.linspace(0, side, 11) for side in (draft.width, draft.height)]
    taken, *_ = np.histogram2d(placement.x[cells], placement.y[cells], bins=bins, weights=area)
    return float((taken**2).sum() / taken.sum()) / (draft.width * draft.height / 100)


def test_cells_spread_to_the_requested_density() -> None:
    core = Core(made().width, made().height, halo=2.0)
    settings = dataclasses.replace(QUICK, density=0.5)
    spread = place_mixed_size(made().netlist, start(), core, settings=settings)
    assert crowding(spread) < 0.85 * crowding(placed())
    assert half_perimeter(made().netlist, spread) > half_perimeter(made().netlist, placed())
    full = dataclasses.replace(QUICK, density=0.01)  # their area times 100 does not fit: they get all there is
    assert np.isfinite(place_mixed_size(made().netlist, start(), core, settings=full).x).all()


def test_macros_are_placed_as_they_are_turned() -> None:
    """A macro in E equals one in N whose sides, pins and halos are defined turned."""
    draft, begin = made(), start()
    macro = draft.netlist.hard[2]
    halo = np.zeros((draft.netlist.num_nodes, 4))
    halo[macro] = 1.0, 3.0, 2.0, 5.0  # left, bottom, right, top: in E bottom, right, top, left
    sizes = {"width": draft.netlist.width.copy(), "height": draft.netlist.height.copy()}
    sizes["width"][macro] *= 2
    netlist = dataclasses.replace(draft.netlist, **sizes)
    orientation = begin.orientation.copy()
    orientation[macro] = Orientation.E
    lying = dataclasses.replace(begin, orientation=orientation)
    core = Core(draft.width, draft.height, halo=halo)

    for name, other in (("width", "height"), ("height", "width")):
        sizes[name] = getattr(netlist, name).copy()
        sizes[name][macro] = getattr(netlist, other)[macro]
    mine = netlist.pin_node == macro
    dx, dy = np.where(mine, netlist.pin_dy, netlist.pin_dx), np.where(mine, -netlist.pin_dx, netlist.pin_dy)
    written = dataclasses.replace(netlist, **sizes, pin_dx=dx, pin_dy=dy)
    turned_core = dataclasses.replace(core, halo=halo[:, [1, 2, 3, 0]])

    problem = flat_problem(netlist, lying, core, mixed_size=True)
    expected = flat_problem(written, begin, turned_core, mixed_size=True)
    at = np.flatnonzero(problem.cells == macro)
    np.testing.assert_allclose(problem.width[at], netlist.height[macro] + 8.0)
    np.testing.assert_allclose(problem.shift[at], [[(5.0 - 3.0) / 2, (1.0 - 2.0) / 2]])
    np.testing.assert_array_equal(problem.width, expected.width)
    np.testing.assert_array_equal(problem.height, expected.height)
    for found, right in zip(problem.nets, expected.nets, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-5)
    bare = flat_problem(written, begin, Core(draft.width, draft.height), mixed_size=True).nets
    pins = problem.nets.pin_cell == at[0]
    np.testing.assert_allclose(problem.nets.pin_x[pins], bare.pin_x[pins] - 1.0, atol=1e-5)
    np.testing.assert_allclose(problem.nets.pin_y[pins], bare.pin_y[pins] + 0.5, atol=1e-5)
    boxes = problem.moved(lying, np.full(len(problem.cells), 9.0), np.full(len(problem.cells), 9.0))
    assert (boxes.x[macro], boxes.y[macro]) == (9.0 - 1.0, 9.0 + 0.5)
    found = place_mixed_size(netlist, lying, core, settings=QUICK)
    assert found.orientation[macro] == Orientation.E
    assert (found.orientation[netlist.kind == NodeKind.CELL] == Orientation.N).all()


def spans(imported: ImportedDesign) -> float:
    """Returns the mean distance in µm of cells from their clusters' centres; all cells are placed around the macros."""
    flat, cluster = imported.flat, imported.clustering.cluster
    macros = macros_on_flat(flat, imported.design.netlist, imported.design.initial)
    placed = place_cells(flat.netlist, macros, core_of(flat, imported.design)).placement
    area = flat.netlist.width * flat.netlist.height
    x, y = centroids(cluster, imported.clustering.count, x=placed.x, y=placed.y, area=area)
    inside = np.flatnonzero(cluster >= 0)
    own = cluster[inside]
    return float(np.hypot(placed.x[inside] - x[own], placed.y[inside] - y[own]).mean())


def test_clusters_by_positions_hold_cells_that_any_placement_keeps_together() -> None:
    flat = flat_on_floorplan("made", OPTIONS, seed=3)
    alone, placed = import_flat(flat), import_flat(flat, place=place_before_clustering)
    assert (alone.clustering.placed, placed.clustering.placed) == (False, True)
    assert placed.clustering.count < 1.5 * alone.clustering.count
    # The macros are at the generator's positions, not at those of the placement for the clusters.
    assert spans(placed) < 0.9 * spans(alone)


def test_what_is_fixed_stays_and_the_rest_lies_in_the_core() -> None:
    flat = flat_on_floorplan("made", dataclasses.replace(OPTIONS, cells=600), seed=3)
    hard = flat.netlist.hard
    fixed = flat.placement.fixed.copy()
    fixed[hard[0]] = True
    flat = dataclasses.replace(flat, placement=dataclasses.replace(flat.placement, fixed=fixed))
    found: list[Placement] = []

    def place(flat: FlatDesign, design: Design) -> Placement:
        found.append(place_before_clustering(flat, design))
        return found[-1]

    import_flat(flat, place=place)
    (placed,) = found
    assert placed.placed.all()
    assert (placed.x[hard[0]], placed.y[hard[0]]) == (flat.placement.x[hard[0]], flat.placement.y[hard[0]])
    core = flat.floorplan.core
    for node in (*hard.tolist(), *flat.cells.tolist()):
        half = flat.netlist.width[node] / 2, flat.netlist.height[node] / 2
        assert core.x_low - 1e-3 <= placed.x[node] - half[0] and placed.x[node] + half[0] <= core.x_high + 1e-3
        assert core.y_low - 1e-3 <= placed.y[node] - half[1] and placed.y[node] + half[1] <= core.y_high + 1e-3


def without_positions(cells: int = 200) -> FlatDesign:
    flat = chain_design([("b/", cells)], macro_after=cells // 2)
    placed = flat.placement.placed.copy()
    placed[flat.cells] = False
    return dataclasses.replace(flat, placement=dataclasses.replace(flat.placement, placed=placed))


def test_clusters_go_by_the_positions_that_are_found_and_the_initial_placement_does_not() -> None:
    flat = without_positions()

    def apart(flat: FlatDesign, design: Design) -> Placement:
        """Puts every other cell of the chain at the other end of the diagonal."""
        assert (design.netlist, design.canvas.width) == (flat.netlist, flat.floorplan.core.width)
        there = np.where(np.arange(len(flat.cells)) % 2, 10.0, design.canvas.width - 10.0)
        return flat.placement.moved(flat.cells, there, there)

    imported = import_flat(flat, ImportSettings(columns=4, rows=4, clustering=FEW), place=apart)
    cluster = imported.clustering.cluster[flat.cells]
    assert not set(cluster[::2]) & set(cluster[1::2])
    assert not imported.design.initial.placed[imported.design.netlist.soft].any()
    alone = import_flat(flat, ImportSettings(columns=4, rows=4, clustering=FEW)).clustering.cluster[flat.cells]
    assert set(alone[::2]) & set(alone[1::2])


def test_given_positions_are_taken_and_none_where_none_are_wanted() -> None:
    def never(flat: FlatDesign, design: Design) -> Placement:
        raise AssertionError("cells were placed")

    assert import_flat(
        chain_design([("b/", 200)], macro_after=9), ImportSettings(clustering=FEW), place=never
    ).clustering.placed
    unwanted = dataclasses.replace(FEW, use_positions=False)
    assert not import_flat(without_positions(), ImportSettings(clustering=unwanted), place=never).clustering.placed


@pytest.mark.parametrize("is_placed", [False, True])
def test_where_cells_cannot_be_placed_a_notice_says_so_and_connectivity_is_used(is_placed: bool) -> None:
    def fail(flat: FlatDesign, design: Design) -> Placement:
        raise DesignError("too full")

    flat = without_positions()
    if is_placed:  # cells have positions, the macro has none
        placed = np.where(np.arange(flat.netlist.num_nodes) == flat.netlist.hard[0], False, True)
        flat = dataclasses.replace(flat, placement=dataclasses.replace(flat.placement, placed=placed))
    imported = import_flat(flat, ImportSettings(columns=4, rows=4, clustering=FEW), place=fail)
    assert "cells and macros could not be placed together for the clustering: too full" in imported.notices
    expected = import_flat(flat, ImportSettings(columns=4, rows=4, clustering=FEW))
    np.testing.assert_array_equal(imported.clustering.cluster, expected.clustering.cluster)
    assert imported.clustering.placed == is_placed
