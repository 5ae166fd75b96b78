"""Cells spread for the router: off the straps, no denser than asked; where that cannot be, as near to it as can."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
import pytest

from placement.flat import routable
from placement.flat.check import FlatResult, flat_check
from placement.flat.core import Core
from placement.flat.global_placement import PlacerSettings, Progress
from placement.flat.routable import NO_ROOM, cell_utilization, spread_cells, straps_of
from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.generators.flat import FlatDraft, FlatOptions, flat_draft
from placement.netlist.pdn_channel import DENSITY, PDN_CHANNEL

SETTINGS = PlacerSettings(growth=1.05)


class Both(NamedTuple):
    """The cells as near to each other as they may be, and spread."""

    dense: FlatResult
    spread: FlatResult


@functools.cache
def made() -> FlatDraft:
    return flat_draft(FlatOptions(cells=1500, macros=8, ports=16, macro_pins=16, cell_utilization=0.3), seed=2)


def core(**more: object) -> Core:
    return Core(width=made().width, height=made().height, **more)  # type: ignore[arg-type]


def wall() -> Placement:
    """The macros in two columns in the middle, 3 µm between them: they divide the core."""
    netlist, placed = made().netlist, made().placement
    x, y = placed.x.copy(), placed.y.copy()
    for column, macros in enumerate(netlist.hard.reshape(2, 4)):
        x[macros] = made().width / 2 + (column - 0.5) * (netlist.width[macros].max() + 4)
        y[macros] = (np.arange(4) + 0.5) * made().height / 4
    return dataclasses.replace(placed, x=x, y=y)


@functools.cache
def found(divided: bool) -> Both:
    netlist, placement = made().netlist, wall() if divided else made().placement
    dense = flat_check(netlist, placement, core(), settings=SETTINGS)
    return Both(dense, spread_cells(netlist, placement, core(), settings=SETTINGS))


ROW = Core(width=50.0, height=14.0)


def row_of_macros(cells: int) -> tuple[Netlist, Placement]:
    """Four macros of 10 by 10 µm in a row in the middle of `ROW`, cells of 1 by 1 µm in a chain."""
    count = cells + 4
    hard = np.arange(count) >= cells
    side = np.where(hard, 10.0, 1.0)
    netlist = Netlist(
        names=tuple(f"n{node}" for node in range(count)),
        kind=np.where(hard, NodeKind.HARD, NodeKind.CELL).astype(np.int8),
        width=side,
        height=side,
        file_index=np.arange(count),
        pin_node=np.repeat(np.arange(cells), 2),
        pin_dx=np.zeros(2 * cells),
        pin_dy=np.zeros(2 * cells),
        net_weight=np.ones(cells - 1),
        net_start=2 * np.arange(cells),
        net_pins=np.arange(2 * cells - 2) + 1,
    )
    x = np.concatenate([np.full(cells, 25.0), 7.0 + 12.0 * np.arange(4)])
    everywhere = np.ones(count, bool)
    return netlist, Placement(x, np.full(count, 7.0), np.zeros(count, np.int8), placed=everywhere, fixed=hard)


def near_macros(placed: Placement, margin: float) -> float:
    """Share of the cells whose centres are nearer than `margin` µm to a macro."""
    netlist, cells = made().netlist, np.setdiff1d(np.arange(made().netlist.num_nodes), made().netlist.hard)
    cells = cells[placed.y[cells] > 0]
    near = np.zeros(len(cells), bool)
    for macro in netlist.hard:
        aside = abs(placed.x[cells] - placed.x[macro]) - netlist.width[macro] / 2
        above = abs(placed.y[cells] - placed.y[macro]) - netlist.height[macro] / 2
        near |= np.maximum(aside, above) < margin
    return float(near.mean())


def test_a_wall_of_macros_costs_wire_once_the_cells_must_spread() -> None:
    """Dense, the cells stand in the slivers between the macros, and the wall costs next to nothing."""
    edge, divided = found(False), found(True)
    assert divided.dense.wirelength < 1.1 * edge.dense.wirelength
    assert divided.spread.wirelength > 1.15 * edge.spread.wirelength
    for both in (edge, divided):
        assert both.spread.converged and both.spread.wirelength > both.dense.wirelength


def test_cells_keep_off_the_straps_as_far_as_there_is_room() -> None:
    """Straps of 10 µm leave no room among macros of 25 µm; of 5 µm they do."""
    divided = found(True)
    assert near_macros(divided.dense.placement, PDN_CHANNEL / 2 - 1.5) > 0.1
    assert near_macros(divided.spread.placement, PDN_CHANNEL / 2 - 1.5) < 0.03


def test_no_room_for_straps_is_no_error_and_no_room_at_all_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every room that is tried, in turn, with a check that fails: nothing is tried that cannot hold the cells."""
    tried: list[tuple[float, float]] = []

    def fails(*arguments: object, settings: PlacerSettings, **_: object) -> FlatResult:
        room = arguments[2]
        assert isinstance(room, Core)
        tried.append((float(np.max(room.halo)), settings.density))
        raise DesignError("flew apart")

    monkeypatch.setattr(routable, "flat_check", fails)
    with pytest.raises(DesignError, match="flew apart"):
        spread_cells(made().netlist, wall(), core())
    assert tried == [(5.0, DENSITY), (2.5, DENSITY), (0.0, 1.0)]
    tried.clear()
    with pytest.raises(DesignError, match="flew apart"):  # halos of the user's own count where they are larger
        spread_cells(made().netlist, wall(), core(halo=6.0))
    assert [halo for halo, _ in tried] == [6.0] * len(tried)
    tried.clear()
    with pytest.raises(DesignError, match="flew apart"):
        spread_cells(made().netlist, wall(), core(), straps=0.0)
    assert tried == [(0.0, DENSITY), (0.0, 1.0)]
    tried.clear()
    tight = dataclasses.replace(core(), blockages=((0.0, 0.0, 0.3 * made().width, made().height),))
    with pytest.raises(DesignError, match="flew apart"):
        spread_cells(made().netlist, wall(), tight)
    (straps, share), *_, last = tried
    assert straps <= 5.0 and DENSITY < share < 1.0 and last == (0.0, 1.0)


def test_straps_get_as_little_less_as_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Straps of w µm leave 700 - 4 (10 + 2w)² µm² of the row's core; cells may fill nine tenths of that."""
    tried: list[tuple[float, float]] = []

    def check(*arguments: Any, settings: PlacerSettings, **_: object) -> FlatResult:
        tried.append((float(np.max(arguments[2].halo)), settings.density))
        return found(False).spread

    monkeypatch.setattr(routable, "flat_check", check)
    for cells, straps, density in ((60, 1.0, DENSITY), (100, 1.0, 100 / 0.9 / 124), (200, None, 1.0), (290, 0.0, 1.0)):
        tried.clear()
        netlist, placement = row_of_macros(cells)
        spread_cells(netlist, placement, ROW, straps=1.0)
        as_wide_as_will_do = (np.sqrt((700 - cells / 0.9) / 4) - 10) / 2
        assert tried == [pytest.approx((as_wide_as_will_do if straps is None else straps, density), abs=2e-3)]
        assert cell_utilization(netlist, placement, ROW, straps=1.0) == pytest.approx(cells / 124)
        assert cell_utilization(netlist, placement, ROW, straps=9.0) == NO_ROOM


def test_the_straps_are_the_design_s_and_not_the_placement_s() -> None:
    netlist = made().netlist
    cells = float((netlist.width * netlist.height)[netlist.kind == NodeKind.CELL].sum())
    sides = netlist.width[netlist.hard]
    for straps in (10.0, 5.0):
        enough = np.sqrt(((sides + straps) ** 2).sum() + cells / 0.49)  # macros are squares
        assert straps_of(netlist, Core(width=enough + 0.01, height=enough)) == straps
        assert straps_of(netlist, Core(width=enough - 0.01, height=enough)) < straps


def test_scattered_cells_are_stopped_and_placed_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond twice the dense wirelength an attempt ends; so does it at its last iteration without the goal."""
    true, growths = found(False).spread, []
    dense = found(False).dense._replace(wirelength=100.0)

    def check(*_: object, settings: PlacerSettings, start: Any, report: Any, stopped: Any) -> FlatResult:
        growths.append((settings.growth, start))
        length, goal = attempts.pop(0)
        report(Progress(10, length, 0.5))
        return true._replace(wirelength=length, converged=goal and not stopped(), seconds=1.0)

    monkeypatch.setattr(routable, "flat_check", check)
    for given, expected, converged in (
        ([(199.0, True)], 199.0, True),
        ([(300.0, True), (150.0, True)], 150.0, True),
        ([(150.0, False), (160.0, True)], 160.0, True),
        ([(300.0, True), (310.0, True)], 310.0, False),
    ):
        growths.clear()
        attempts, count = list(given), len(given)
        again = spread_cells(made().netlist, made().placement, core(), dense=dense, settings=SETTINGS)
        assert (again.wirelength, again.converged, again.seconds) == (expected, converged, count)
        assert growths == [(1.05, dense.placement), (1.025, None)][:count]


def test_a_stop_is_no_scattering(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, dense = [], found(False).dense

    def check(*_: object, **__: object) -> FlatResult:
        calls.append(1)
        return found(False).spread._replace(converged=False)

    monkeypatch.setattr(routable, "flat_check", check)
    spread_cells(made().netlist, made().placement, core(), dense=dense, settings=SETTINGS, stopped=lambda: True)
    assert len(calls) == 1
