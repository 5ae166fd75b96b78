"""Synthetic flat designs on a floorplan: they are imported like real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from placement.engine.costs import legality
from placement.netlist.design import NodeKind
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FLAT_NAME, read_flat
from placement.netlist.generators.flat import ROW_HEIGHT, FlatOptions, drawn_options, flat_draft, flat_on_floorplan
from placement.netlist.importing import import_flat, write_design
from placement.netlist.load import load, read_clusters

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
    imported = import_flat(flat)
    write_design(tmp_path, imported)
    design = load(tmp_path)
    assert [len(design.netlist.hard), len(design.netlist.ports)] == [4, 8]
    assert legality(design) == (0, 0)
    # NanGate45's tracks above metal1: horizontal 1/0.14 + 1/0.28 + 1/0.8 + 1/1.6, vertical 1/0.19 + 2/0.28 + 1/0.8 +
    # 1/1.6.
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


def test_macros_of_a_bank_are_alike_and_talk_to_the_same_cells() -> None:
    options = FlatOptions(
        cells=1200, macros=9, ports=8, macro_pins=12, bank=3, bank_cells=0.25, size_spread=4, macro_aspect=2,
        core_aspect=1.5, macro_utilization=0.3,
    )  # fmt: skip
    flat = flat_on_floorplan("made", options, seed=3)
    netlist, core = flat.netlist, flat.floorplan.core
    hard = netlist.hard
    sizes = np.stack([netlist.width[hard], netlist.height[hard]], axis=1).reshape(3, 3, 2)
    assert (np.ptp(sizes, axis=1) == 0).all()
    areas = sizes[:, 0].prod(axis=1)
    assert 1 < areas.max() / areas.min() <= 4
    assert sizes[:, 0, 1].max() / sizes[:, 0, 0].min() > 1
    ratios = sizes[:, 0, 1] / sizes[:, 0, 0]
    assert ((ratios >= 0.5) & (ratios <= 2)).all()
    assert core.height / core.width == pytest.approx(1.5, rel=0.02)
    assert 3 * areas.sum() / (core.width * core.height) == pytest.approx(0.3, rel=0.05)
    # Bank 1 connects to cells 400 to 499, and to no others.
    owner = netlist.pin_node
    first_cell = int(np.flatnonzero(netlist.kind == NodeKind.CELL)[0])
    for net in np.split(netlist.net_pins, netlist.net_start[1:-1]):
        nodes = owner[net]
        if nodes[0] in hard[3:6]:
            assert 400 <= nodes[1] - first_cell < 500
        for macro in nodes[1:][np.isin(nodes[1:], hard[3:6])]:
            assert 400 <= nodes[0] - first_cell < 500, macro


def test_generated_macros_do_not_overlap_on_the_core() -> None:
    options = FlatOptions(cells=900, macros=11, size_spread=3, macro_aspect=2, core_aspect=0.7, macro_utilization=0.4)
    flat = flat_on_floorplan("made", options, seed=5)
    hard, core = flat.netlist.hard, flat.floorplan.core
    half = np.stack([flat.netlist.width[hard], flat.netlist.height[hard]], axis=1) / 2
    at = np.stack([flat.placement.x[hard], flat.placement.y[hard]], axis=1)
    assert (at - half > -1e-6).all() and (at + half < [core.width + 1e-6, core.height + 1e-6]).all()
    apart = (np.abs(at[:, None] - at) - half[:, None] - half).max(axis=2)
    assert (apart[~np.eye(len(hard), dtype=bool)] > -1e-6).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size_spread": 0.5}, "size_spread: 0.5 must be from 1 to 100"),
        ({"bank": 0}, "bank: 0 must be at least 1"),
        ({"bank_cells": 0.0}, "bank_cells: 0.0 must be from 0.001 to 1"),
        ({"core_aspect": 20.0}, "core_aspect: 20.0 must be from 0.1 to 10"),
    ],
)
def test_inconsistent_options_are_rejected(changes: dict[str, float], message: str) -> None:
    with pytest.raises(DesignError, match=message):
        FlatOptions(**changes)  # type: ignore[arg-type]


def test_macros_that_fit_in_no_rows_are_rejected() -> None:
    with pytest.raises(DesignError, match="do not fit in rows at macro_utilization"):
        flat_on_floorplan("made", FlatOptions(cells=900, macros=3, macro_aspect=50, macro_utilization=0.8), seed=1)


def test_drawn_options_differ_from_seed_to_seed_and_can_be_made() -> None:
    drawn = [drawn_options(seed) for seed in range(1, 9)]
    assert drawn == [drawn_options(seed) for seed in range(1, 9)]
    assert len({options.macros for options, _ in drawn}) > 4
    assert len({options.bank for options, _ in drawn}) > 2
    smallest = min((options for options, _ in drawn), key=lambda options: options.cells)
    made = flat_draft(smallest, seed=1)
    assert len(made.netlist.hard) == smallest.macros
