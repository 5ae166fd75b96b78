"""Cells and macros placed together, and clusters that go by their places."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from placement.flat.before_clustering import place_together
from placement.flat.check import flat_check
from placement.flat.from_clusters import core_of, macros_on_flat
from placement.netlist.clustering.cluster import ClusteringSettings
from placement.netlist.clustering.groups import centroids
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.generators.flat import FlatOptions, flat_on_floorplan
from placement.netlist.importing import ImportedDesign, ImportSettings, import_flat
from tests.support.flat_designs import chain_design

OPTIONS = FlatOptions(cells=3000, macros=6, ports=20, macro_pins=20, macro_utilization=0.3, cell_utilization=0.4)
FEW = ClusteringSettings(parts=12)


def spans(imported: ImportedDesign) -> float:
    """µm, a cell's mean distance from its cluster's centre, all cells placed around the macros as they are drawn."""
    flat, cluster = imported.flat, imported.clustering.cluster
    macros = macros_on_flat(flat, imported.design.netlist, imported.design.initial)
    placed = flat_check(flat.netlist, macros, core_of(flat, imported.design)).placement
    area = flat.netlist.width * flat.netlist.height
    x, y = centroids(cluster, imported.clustering.count, x=placed.x, y=placed.y, area=area)
    inside = np.flatnonzero(cluster >= 0)
    own = cluster[inside]
    return float(np.hypot(placed.x[inside] - x[own], placed.y[inside] - y[own]).mean())


def test_clusters_by_places_hold_what_any_placement_keeps_together() -> None:
    flat = flat_on_floorplan("made", OPTIONS, seed=3)
    alone, placed = import_flat(flat), import_flat(flat, place=place_together)
    assert (alone.clustering.placed, placed.clustering.placed) == (False, True)
    assert placed.clustering.count < 1.5 * alone.clustering.count
    # The macros stand as the generator drew them, not where the clusters' placement had them.
    assert spans(placed) < 0.9 * spans(alone)


def test_what_is_fixed_stays_and_the_rest_lies_in_the_core() -> None:
    flat = flat_on_floorplan("made", dataclasses.replace(OPTIONS, cells=600), seed=3)
    hard = flat.netlist.hard
    fixed = flat.placement.fixed.copy()
    fixed[hard[0]] = True
    flat = dataclasses.replace(flat, placement=dataclasses.replace(flat.placement, fixed=fixed))
    found: list[Placement] = []

    def place(flat: FlatDesign, design: Design) -> Placement:
        found.append(place_together(flat, design))
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


def without_places(cells: int = 200) -> FlatDesign:
    flat = chain_design([("b/", cells)], macro_after=cells // 2)
    placed = flat.placement.placed.copy()
    placed[flat.cells] = False
    return dataclasses.replace(flat, placement=dataclasses.replace(flat.placement, placed=placed))


def test_clusters_go_by_the_places_that_are_found_and_the_first_placement_does_not() -> None:
    flat = without_places()

    def apart(flat: FlatDesign, design: Design) -> Placement:
        """Every other cell of the chain at the other end of the diagonal."""
        assert (design.netlist, design.canvas.width) == (flat.netlist, flat.floorplan.core.width)
        there = np.where(np.arange(len(flat.cells)) % 2, 10.0, design.canvas.width - 10.0)
        return flat.placement.moved(flat.cells, there, there)

    imported = import_flat(flat, ImportSettings(columns=4, rows=4, clustering=FEW), place=apart)
    cluster = imported.clustering.cluster[flat.cells]
    assert not set(cluster[::2]) & set(cluster[1::2])
    assert not imported.design.initial.placed[imported.design.netlist.soft].any()
    alone = import_flat(flat, ImportSettings(columns=4, rows=4, clustering=FEW)).clustering.cluster[flat.cells]
    assert set(alone[::2]) & set(alone[1::2])


def test_places_that_are_given_are_taken_and_none_where_none_are_wanted() -> None:
    def never(flat: FlatDesign, design: Design) -> Placement:
        raise AssertionError("cells were placed")

    assert import_flat(
        chain_design([("b/", 200)], macro_after=9), ImportSettings(clustering=FEW), place=never
    ).clustering.placed
    unwanted = dataclasses.replace(FEW, use_positions=False)
    assert not import_flat(without_places(), ImportSettings(clustering=unwanted), place=never).clustering.placed


@pytest.mark.parametrize("is_placed", [False, True])
def test_where_cells_cannot_be_placed_it_is_said_and_connectivity_serves(is_placed: bool) -> None:
    def fail(flat: FlatDesign, design: Design) -> Placement:
        raise DesignError("no room")

    flat = without_places()
    if is_placed:  # cells have places, the macro has none
        placed = np.where(np.arange(flat.netlist.num_nodes) == flat.netlist.hard[0], False, True)
        flat = dataclasses.replace(flat, placement=dataclasses.replace(flat.placement, placed=placed))
    imported = import_flat(flat, ImportSettings(columns=4, rows=4, clustering=FEW), place=fail)
    assert "cells and macros could not be placed together for the clustering: no room" in imported.notices
    expected = import_flat(flat, ImportSettings(columns=4, rows=4, clustering=FEW))
    np.testing.assert_array_equal(imported.clustering.cluster, expected.clustering.cluster)
    assert imported.clustering.placed == is_placed
