"""Cells and slivers of row area, on a floorplan of three macros whose gaps have 10, 30 and 19 sites."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest

from placement.flat import global_placement
from placement.flat.electrostatic import PlacerSettings
from placement.flat.flat_evaluator import FlatEvaluator
from placement.flat.global_placement import CellPlacement, spread_cells
from placement.flat.problem import MOST_UTILIZATION, Core
from placement.flat.row_area import with_slivers
from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Floorplan, Rows
from placement.netlist.generators.flat import FlatOptions, flat_on_floorplan
from placement.netlist.geometry import Rectangle
from placement.netlist.importing import ImportedDesign, import_flat
from placement.netlist.pdn_channel import DENSITY

SITE, HEIGHT = 0.25, 2.0  # µm, binary fractions
CORE = Rectangle(2.0, 3.0, 51.75, 27.0)  # 12 rows of 199 sites
MACROS = np.array([[0, 0, 15, 12], [17.5, 0, 27.5, 12], [35, 0, 45, 12]], float)  # from the core's corner
SLIVERS = ((17.0, 3.0, 19.5, 15.0), (47.0, 3.0, 51.75, 15.0))
FREE, CLOSED = 49.75 * 24 - 12 * 35, 12 * (2.5 + 4.75)  # µm², whitespace and area of the slivers


@functools.cache
def flat_with(cells: int, rows: int = 12) -> FlatDesign:
    """Returns a design with cells of 0.5 × 2 µm, wired at random, and every other one to the edge of a gap."""
    count, random, cell = 3 + cells, np.random.default_rng(0), np.arange(cells) + 3
    hard = np.arange(count) < 3
    sides = np.concatenate([MACROS[:, 2:] - MACROS[:, :2], np.tile([0.5, HEIGHT], (cells, 1))])
    pairs = [
        (cell[:-1], cell[1:]),
        (cell, random.permutation(cell)),
        (cell[::2], 1 + 2 * np.arange(cells)[::2] // cells),
    ]
    pin_node = np.concatenate([np.stack(one, axis=1) for one in pairs]).ravel()
    of_macro = pin_node < 3
    netlist = Netlist(
        names=tuple(f"n{node}" for node in range(count)),
        kind=np.where(hard, NodeKind.HARD, NodeKind.CELL).astype(np.int8),
        width=sides[:, 0],
        height=sides[:, 1],
        file_index=np.arange(count),
        pin_node=pin_node,
        pin_dx=np.where(of_macro, -5.0, 0.0),  # the left edges of the second and the third macro
        pin_dy=np.where(of_macro, random.uniform(-6.0, 6.0, len(pin_node)), 0.0),
        net_weight=np.ones(len(pin_node) // 2),
        net_start=np.arange(0, len(pin_node) + 1, 2),
        net_pins=np.arange(len(pin_node)),
    )
    middle = (MACROS[:, :2] + MACROS[:, 2:]) / 2 + [CORE.x_low, CORE.y_low]
    x, y = np.resize(middle[:, 0], count), np.resize(middle[:, 1], count)
    placement = Placement(x, y, np.zeros(count, np.int8), placed=np.ones(count, bool), fixed=hard)
    lines = Rows.filling(CORE, HEIGHT, rows, site_width=SITE)
    return dataclasses.replace(
        flat_on_floorplan("made", FlatOptions(cells=50, macros=1, ports=4), seed=0),
        netlist=netlist,
        placement=placement,
        floorplan=Floorplan(units=1000, die=CORE, core=CORE, rows=lines),
        master=np.full(count, -1),
        written_names={},
    )


@functools.cache
def imported() -> ImportedDesign:
    return import_flat(flat_with(200))


def evaluator(made: ImportedDesign) -> FlatEvaluator:
    return FlatEvaluator(made.flat, np.full(made.flat.netlist.num_nodes, -1, np.int32), made.design)


def core(flat: FlatDesign) -> Core:
    return with_slivers(Core(CORE.width, CORE.height, CORE.x_low, CORE.y_low), flat, flat.placement)


def between(found: CellPlacement, first: int) -> int:
    """Returns the number of cells whose centres lie between macro `first` and the next one."""
    x, y = found.placement.x[3:] - CORE.x_low, found.placement.y[3:] - CORE.y_low
    return int(((x > MACROS[first, 2]) & (x < MACROS[first + 1, 0]) & (y < 12)).sum())


def test_equal_short_runs_of_consecutive_rows_are_one_sliver() -> None:
    found = core(flat_with(200))
    assert found.slivers == SLIVERS and found.blockages == ()
    assert core(flat_with(200, rows=0)).slivers == ()


def test_cells_are_spread_into_a_gap_of_30_sites_and_not_of_10(monkeypatch: pytest.MonkeyPatch) -> None:
    made = imported()
    found, _ = evaluator(made).shorter_spread(made.design.initial)
    assert found.converged and between(found, 0) == 0 and between(found, 1) > 20
    assert between(evaluator(made).spread(made.design.initial), 0) == 0
    monkeypatch.setattr("placement.flat.flat_evaluator.with_slivers", lambda core, *_: core)
    assert between(evaluator(made).shorter_spread(made.design.initial)[0], 0) > 10


def test_slivers_are_open_where_the_cells_need_them_or_diverge(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[int, float]] = []

    def diverge(*arguments: Any, settings: PlacerSettings, **_: object) -> CellPlacement:
        tried.append((len(arguments[2].blockages), settings.density))
        raise DesignError("diverged")

    monkeypatch.setattr(global_placement, "place_cells", diverge)
    most = int(DENSITY * (FREE - CLOSED))  # cells of 1 µm²
    for cells, closed in ((most, True), (most + 1, False)):
        flat = flat_with(cells)
        tried.clear()
        with pytest.raises(DesignError, match="diverged"):
            spread_cells(flat.netlist, flat.placement, core(flat), channel=0.0, attempts=[PlacerSettings()])
        open_core = (0, pytest.approx(max(DENSITY, cells / FREE / MOST_UTILIZATION)))
        closed_core = (2, pytest.approx(cells / (FREE - CLOSED) / MOST_UTILIZATION))
        assert tried == [closed_core] * closed + [open_core, (0, 1.0)]
