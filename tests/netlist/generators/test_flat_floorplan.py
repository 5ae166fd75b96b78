"""Made-up flat designs on a floorplan: they are imported as real ones are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from placement.engine.costs import legality
from placement.netlist.design import NodeKind
from placement.netlist.flat_file import FLAT_NAME, read_flat
from placement.netlist.generators.flat import ROW_HEIGHT, FlatOptions
from placement.netlist.generators.flat_floorplan import flat_on_floorplan
from placement.netlist.importing import import_design, read_clusters, write_design
from placement.netlist.load import load

OPTIONS = FlatOptions(cells=300, macros=4, ports=8, macro_pins=12)


def test_macros_may_move_and_ports_may_not() -> None:
    flat = flat_on_floorplan("made", OPTIONS, seed=3)
    kind = flat.netlist.kind
    np.testing.assert_array_equal(flat.placement.fixed, kind == NodeKind.PORT)
    core = flat.floorplan.core
    assert len(flat.floorplan.rows) * ROW_HEIGHT == pytest.approx(core.height)
    assert core.width >= flat.placement.x.max()


def test_it_is_imported_and_read_back(tmp_path: Path) -> None:
    flat = flat_on_floorplan("made", OPTIONS, seed=3)
    imported = import_design(flat)
    write_design(tmp_path, imported)
    design = load(tmp_path)
    assert [len(design.netlist.hard), len(design.netlist.ports)] == [4, 8]
    assert legality(design) == (0, 0)
    # NanGate45's tracks above metal1: 1/0.14 + 1/0.28 + 1/0.8 + 1/1.6 across, 1/0.19 + 2/0.28 + 1/0.8 + 1/1.6 up.
    assert design.canvas.routes_horizontal == pytest.approx(12.589, abs=1e-3)
    assert design.canvas.routes_vertical == pytest.approx(14.281, abs=1e-3)
    read = read_flat(tmp_path / FLAT_NAME).netlist
    assert read.names == flat.netlist.names
    np.testing.assert_array_equal(read.net_pins, flat.netlist.net_pins)
    cells = flat.netlist.kind == NodeKind.CELL
    assert (read_clusters(tmp_path)[cells] >= -1).all()


def test_one_seed_one_design() -> None:
    first, same, other = (flat_on_floorplan("made", OPTIONS, seed=seed).netlist for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.net_pins, same.net_pins)
    assert not np.array_equal(first.net_start, other.net_start)
