"""Soft and partial placement blockages in the area of cells."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from placement.flat.cell_blockages import without_cell_blockages
from placement.flat.problem import Core
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Blockage, Floorplan, Rows
from placement.netlist.generators.flat import FlatOptions, flat_on_floorplan
from placement.netlist.geometry import Rectangle

BOX = np.array([[10.0, 4.0, 20.0, 14.0]])


def flat_with(*blockages: Blockage, rows: int = 20) -> FlatDesign:
    """Returns a floorplan of 40 × 40 µm with rows of 2 µm."""
    made = flat_on_floorplan("made", FlatOptions(cells=50, macros=1, ports=4), seed=0)
    area = Rectangle(0.0, 0.0, 40.0, 40.0)
    plan = Floorplan(
        units=1000, die=area, core=area, rows=Rows.filling(area, 2.0, rows, site_width=0.2), blockages=blockages
    )
    return dataclasses.replace(made, floorplan=plan)


def blocked(flat: FlatDesign) -> list[tuple[float, ...]]:
    return list(without_cell_blockages(Core(40.0, 40.0), flat).blockages)


def test_a_soft_blockage_has_no_cells() -> None:
    assert blocked(flat_with(Blockage(BOX, is_soft=True))) == [(10.0, 4.0, 20.0, 14.0)]


def test_hard_ones_routing_and_those_of_components_are_others_matter() -> None:
    flat = flat_with(Blockage(BOX), Blockage(BOX, layer="M1"), Blockage(BOX, is_soft=True, node=0))
    assert blocked(flat) == []


def test_a_partial_blockage_gives_up_whole_rows_evenly() -> None:
    """Five rows from 4 to 14 µm, 40% for cells: two remain, the first and the third."""
    found = blocked(flat_with(Blockage(BOX, density=0.4)))
    assert found == [(10.0, 6.0, 20.0, 8.0), (10.0, 10.0, 20.0, 12.0), (10.0, 12.0, 20.0, 14.0)]


@pytest.mark.parametrize(("density", "rows"), [(0.0, 5), (0.2, 4), (0.5, 2), (0.99, 0), (1.0, 0)])
def test_so_many_rows_are_taken(density: float, rows: int) -> None:
    assert len(blocked(flat_with(Blockage(BOX, density=density)))) == rows


def test_rows_at_the_edge_of_a_blockage_are_cut_by_it() -> None:
    assert blocked(flat_with(Blockage(BOX + np.array([0, 1, 0, -8]), density=0.0))) == [(10.0, 5.0, 20.0, 6.0)]
    assert blocked(flat_with(Blockage(BOX, density=0.1), rows=1)) == []
