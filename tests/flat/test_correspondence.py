"""Placements of the clustered design on the flat netlist."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from placement.flat.correspondence import cells_in_clusters, core_of, macros_on_flat
from placement.netlist.design import Orientation
from placement.netlist.errors import DesignError
from placement.netlist.floorplan import Blockage, Rectangle
from placement.netlist.generators.flat import FlatOptions, flat_on_floorplan
from placement.netlist.import_constraints import ConstraintSettings
from placement.netlist.importing import ImportedDesign, ImportSettings, import_flat


@pytest.fixture(scope="module")
def imported() -> ImportedDesign:
    return import_flat(flat_on_floorplan("made", FlatOptions(cells=300, macros=4, ports=8, macro_pins=12), seed=3))


def test_macros_are_placed_where_the_clustered_placement_has_them(imported: ImportedDesign) -> None:
    flat, design = imported.flat, imported.design
    shifted = dataclasses.replace(flat.floorplan, core=Rectangle(5.0, 7.0, 5.0 + 60.0, 7.0 + 60.0))
    offset = dataclasses.replace(flat, floorplan=shifted)
    node = int(design.netlist.hard[2])
    placement = design.initial.moved(np.array([node]), np.array([11.0]), np.array([12.0]))
    turned = placement.orientation.copy()
    turned[node] = Orientation.FS
    found = macros_on_flat(offset, design.netlist, dataclasses.replace(placement, orientation=turned))
    there = flat.netlist.names.index(design.netlist.names[node])
    assert (found.x[there], found.y[there], found.orientation[there]) == (16.0, 19.0, Orientation.FS)
    assert not found.placed[flat.cells].any()


def test_cells_are_placed_in_their_clusters(imported: ImportedDesign) -> None:
    flat, design, cluster = imported.flat, imported.design, imported.clustering.cluster
    soft = design.netlist.soft
    generator = np.random.default_rng(1)
    middle = design.canvas.width / 2
    placement = design.initial.moved(soft, *(middle + generator.uniform(-9.0, 9.0, (2, len(soft)))))
    placement = dataclasses.replace(placement, placed=np.ones_like(placement.placed))
    found = cells_in_clusters(flat, cluster, design.netlist, placement)
    for cell in flat.cells[cluster[flat.cells] >= 0].tolist():
        home = design.netlist.names.index(f"Grp_{cluster[cell]}")
        assert abs(found.x[cell] - placement.x[home]) <= design.netlist.width[home] / 2 + 1e-9
        assert abs(found.y[cell] - placement.y[home]) <= design.netlist.height[home] / 2 + 1e-9


def test_a_missing_macro_is_named(imported: ImportedDesign) -> None:
    netlist = dataclasses.replace(
        imported.design.netlist, names=tuple(name.replace("macro1", "other") for name in imported.design.netlist.names)
    )
    with pytest.raises(DesignError, match="macro 'macro1' of the flat netlist is not in the clustered netlist"):
        macros_on_flat(imported.flat, netlist, imported.design.initial)


def test_cells_keep_off_what_the_constraints_say() -> None:
    made = flat_on_floorplan("made", FlatOptions(cells=300, macros=2, ports=8, macro_pins=12), seed=3)
    box = np.array([[1.0, 2.0, 3.0, 4.0]])
    one, other = made.netlist.hard.tolist()
    plan = dataclasses.replace(
        made.floorplan,
        blockages=(Blockage(box), Blockage(box + 5, layer="metal3"), Blockage(box + 9, is_soft=True)),
        halo_node=np.array([one]),
        halo=np.array([[0.5, 0.0, 2.0, 1.0]]),
    )
    flat = dataclasses.replace(made, floorplan=plan)
    name = made.netlist.names[other]
    settings = ConstraintSettings(halos={name: (3.0, 4.0)}, blockages=(Rectangle(10.0, 10.0, 12.0, 13.0),))
    design = import_flat(flat, ImportSettings(constraints=settings)).design
    core = core_of(flat, design)
    assert core.blockages == ((1.0, 2.0, 3.0, 4.0), (10.0, 10.0, 12.0, 13.0))
    halo = np.asarray(core.halo)
    assert halo[one].tolist() == [0.5, 0.0, 2.0, 1.0]  # each side as in the file
    assert halo[other].tolist() == [3.0, 4.0, 3.0, 4.0]
    assert np.delete(halo, [one, other], axis=0).max() == 0
    above = import_flat(flat, ImportSettings(constraints=dataclasses.replace(settings, halo=(2.0, 5.0)))).design
    assert np.asarray(core_of(flat, above).halo)[one].tolist() == [2.0, 5.0, 2.0, 5.0]


def test_blockages_count_from_the_files_origin(imported: ImportedDesign) -> None:
    shifted = dataclasses.replace(imported.flat.floorplan, core=Rectangle(5.0, 7.0, 65.0, 67.0))
    kept = dataclasses.replace(imported.design.constraints, blockages=np.array([[1.0, 2.0, 3.0, 4.0]]))
    design = dataclasses.replace(imported.design, constraints=kept)
    assert core_of(dataclasses.replace(imported.flat, floorplan=shifted), design).blockages == ((6.0, 9.0, 8.0, 11.0),)
