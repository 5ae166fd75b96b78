"""Cells placed around macros, dense and spread, on small generated designs."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
import pytest

from placement.flat import global_placement
from placement.flat.electrostatic import PlacerSettings, Progress
from placement.flat.global_placement import (
    NO_WHITESPACE,
    CellPlacement,
    cell_utilization,
    place_cells,
    spread_cells,
)
from placement.flat.grid import blocked_share, grid_for, used_share
from placement.flat.problem import Core, fixed_rectangles, flat_problem, half_perimeter
from placement.netlist.design import Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.generators.flat import FlatDraft, FlatOptions, flat_draft
from placement.netlist.pdn_channel import DENSITY

QUICK = PlacerSettings(growth=1.1)


@functools.cache
def made() -> FlatDraft:
    return flat_draft(FlatOptions(cells=600, macros=5, ports=16, macro_pins=16), seed=2)


def core(**more: object) -> Core:
    return Core(width=made().width, height=made().height, **more)  # type: ignore[arg-type]


@functools.cache
def placed() -> CellPlacement:
    return place_cells(made().netlist, made().placement, core(), settings=QUICK)


def test_cells_end_in_the_whitespace() -> None:
    found = placed()
    assert found.converged and found.density_overflow <= 0.075
    design, cells = made(), made().netlist.kind == NodeKind.CELL
    x, y = found.placement.x[cells], found.placement.y[cells]
    assert (x > 0).all() and (x < design.width).all() and (y > 0).all() and (y < design.height).all()
    inside = np.zeros(len(x), bool)
    for node in design.netlist.hard:
        half = design.netlist.width[node] / 2
        inside |= (abs(x - design.placement.x[node]) < half - 2) & (abs(y - design.placement.y[node]) < half - 2)
    assert inside.mean() < 0.03
    assert found.wirelength == half_perimeter(design.netlist, found.placement)


def test_cells_end_near_what_they_are_wired_to() -> None:
    """Compared with the same positions assigned at random, the density is the same, but the wirelength is shorter."""
    found, cells = placed(), np.flatnonzero(made().netlist.kind == NodeKind.CELL)
    dealt = np.random.default_rng(0).permutation(cells)
    at_random = found.placement.moved(cells, found.placement.x[dealt], found.placement.y[dealt])
    assert found.wirelength < 0.6 * half_perimeter(made().netlist, at_random)


def test_one_seed_gives_one_placement() -> None:
    again = place_cells(made().netlist, made().placement, core(), settings=QUICK)
    np.testing.assert_array_equal(again.placement.x, placed().placement.x)
    np.testing.assert_array_equal(again.placement.y, placed().placement.y)


def test_beginning_from_a_neighbour_takes_fewer_iterations() -> None:
    settings = dataclasses.replace(QUICK, growth=1.05, balance=0.1)
    warm = place_cells(made().netlist, made().placement, core(), settings=settings, start=placed().placement)
    assert warm.converged
    assert warm.iterations < placed().iterations
    assert warm.wirelength < 1.05 * placed().wirelength


def test_a_core_elsewhere_moves_everything() -> None:
    design = made()
    moved = dataclasses.replace(design.placement, x=design.placement.x + 100.0, y=design.placement.y - 40.0)
    found = place_cells(
        design.netlist, moved, Core(width=design.width, height=design.height, x=100.0, y=-40.0), settings=QUICK
    )
    assert found.wirelength == pytest.approx(placed().wirelength, rel=0.03)


def test_how_a_file_turned_the_cells_changes_nothing() -> None:
    design, turned = made(), made().placement.orientation.copy()
    turned[np.flatnonzero(design.netlist.kind == NodeKind.CELL)[::2]] = Orientation.FS
    # The pins are off the cells' centres; otherwise rotations have no effect.
    high = np.where(design.netlist.kind[design.netlist.pin_node] == NodeKind.CELL, 0.6, design.netlist.pin_dy)
    netlist = dataclasses.replace(design.netlist, pin_dy=high)
    plain = place_cells(netlist, design.placement, core(), settings=QUICK)
    found = place_cells(netlist, dataclasses.replace(design.placement, orientation=turned), core(), settings=QUICK)
    assert found.wirelength == plain.wirelength
    np.testing.assert_array_equal(found.placement.orientation, plain.placement.orientation)


def test_each_side_of_a_macro_keeps_its_halo() -> None:
    """Left, bottom, right, top in its orientation: E turns the left side up, FE the left side down."""
    placement = made().placement
    orientation = placement.orientation.copy()
    orientation[:3] = Orientation.N, Orientation.E, Orientation.FE
    side = made().netlist.width[0]
    names = list(made().netlist.names)
    halo = np.zeros((len(names), 4))
    halo[:3] = 0.1, 0.2, 0.3, 0.4
    movable = made().netlist.kind == NodeKind.CELL
    found = fixed_rectangles(
        made().netlist,
        dataclasses.replace(placement, orientation=orientation, x=placement.x + 10.0, y=placement.y + 10.0),
        Core(width=made().width + 20.0, height=made().height + 20.0, halo=halo),
        movable=movable,
    )
    middle = np.tile(np.stack([placement.x[:4], placement.y[:4]], axis=1) + 10.0, 2)
    beyond = (found[:4] - middle) * [-1, -1, 1, 1] - side / 2
    expected = [[0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.4, 0.1], [0.4, 0.3, 0.2, 0.1], [0.0, 0.0, 0.0, 0.0]]
    np.testing.assert_allclose(beyond, expected, atol=1e-9)


def test_halos_and_blockages_keep_cells_away() -> None:
    design = made()
    side = design.width
    blockage = (0.3 * side, 0.3 * side, 0.45 * side, 0.7 * side)
    wide = core(halo=2.0, blockages=(blockage,))
    found = place_cells(design.netlist, design.placement, wide, settings=QUICK)
    problem = flat_problem(design.netlist, design.placement, wide)
    grid = grid_for(problem)
    at = np.stack([found.placement.x[problem.cells], found.placement.y[problem.cells]])
    used = used_share(problem, at, grid)
    blocked = blocked_share(problem.fixed, grid) > 0.999
    assert blocked.sum() > 10
    assert used[blocked].sum() < 0.08 * used.sum()


def test_progress_and_stopping() -> None:
    seen: list[Progress] = []
    found = place_cells(
        made().netlist, made().placement, core(), settings=QUICK, report=seen.append, stopped=lambda: len(seen) == 2
    )
    assert [progress.iteration for progress in seen] == [10, 20]
    assert found.iterations == 20 and not found.converged
    limited = place_cells(made().netlist, made().placement, core(), settings=dataclasses.replace(QUICK, iterations=15))
    assert limited.iterations == 15 and not limited.converged


def test_a_density_limit_spreads_the_cells() -> None:
    loose = place_cells(made().netlist, made().placement, core(), settings=dataclasses.replace(QUICK, density=0.7))
    assert loose.converged
    assert loose.wirelength > placed().wirelength
    with pytest.raises(DesignError, match=r"that they may fill"):
        place_cells(made().netlist, made().placement, core(), settings=dataclasses.replace(QUICK, density=0.3))


def test_an_interruption_gets_out() -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place_cells(made().netlist, made().placement, core(), settings=QUICK, report=interrupt)


def test_a_net_of_100_000_pins_is_ignored() -> None:
    design = made()
    netlist = design.netlist
    cell_pins = np.flatnonzero(netlist.kind[netlist.pin_node] == NodeKind.CELL)
    clock = np.resize(cell_pins, 100_000)
    with_clock = dataclasses.replace(
        netlist,
        net_weight=np.append(netlist.net_weight, 1.0),
        net_start=np.append(netlist.net_start, len(netlist.net_pins) + len(clock)),
        net_pins=np.concatenate([netlist.net_pins, clock]),
    )
    found = place_cells(with_clock, design.placement, core(), settings=QUICK)
    np.testing.assert_array_equal(found.placement.x, placed().placement.x)
    assert found.wirelength == placed().wirelength


def reject(netlist: Netlist | None = None, where: Core | None = None, **placement: np.ndarray) -> None:
    place_cells(
        netlist or made().netlist, dataclasses.replace(made().placement, **placement), where or core(), settings=QUICK
    )


def test_what_cannot_be_placed_is_rejected() -> None:
    design = made()
    placed = design.placement.placed.copy()
    placed[1] = False
    with pytest.raises(DesignError, match=r"macro 'macro1' has no position \(1 such nodes\)"):
        reject(placed=placed)
    with pytest.raises(DesignError, match=r"the 600 cells cover .* µm², more than the .* µm² that macros"):
        reject(where=core(blockages=((0.0, 0.0, design.width, 0.9 * design.height),)))
    with pytest.raises(DesignError, match=r"'cell3' of 500\.0 × 1\.4 µm is larger than the core"):
        wide = design.netlist.width.copy()
        wide[list(design.netlist.names).index("cell3")] = 500.0
        reject(dataclasses.replace(design.netlist, width=wide))
    with pytest.raises(DesignError, match="is a soft macro, a cluster of cells"):
        kind = design.netlist.kind.copy()
        kind[-1] = NodeKind.SOFT
        reject(dataclasses.replace(design.netlist, kind=kind))
    with pytest.raises(DesignError, match="no standard cells to place"):
        reject(fixed=np.ones(len(placed), bool))
    with pytest.raises(DesignError, match="must be x low"):
        core(blockages=((5.0, 0.0, 1.0, 1.0),))
    with pytest.raises(DesignError, match=r"halo: -1.0 µm must be at least 0"):
        core(halo=-1.0)
    with pytest.raises(DesignError, match=r"halo: shape \(3, 2\), expected one number or \[nodes, 4\]"):
        core(halo=np.zeros((3, 2)))
    with pytest.raises(DesignError, match="halos of 3 nodes for a netlist of 621"):
        reject(where=core(halo=np.zeros((3, 4))))
    with pytest.raises(DesignError, match=r"start: cell 'cell0' has no position \(600 such cells\)"):
        place_cells(design.netlist, design.placement, core(), start=design.placement)


SETTINGS = PlacerSettings(growth=1.05)
TWO = [SETTINGS, PlacerSettings(growth=1.025)]
CHANNEL = 5.0


class Both(NamedTuple):
    """The densest placement of the cells, and the spread one."""

    dense: CellPlacement
    spread: CellPlacement


@functools.cache
def roomy() -> FlatDraft:
    return flat_draft(FlatOptions(cells=1500, macros=8, ports=16, macro_pins=16, cell_utilization=0.3), seed=2)


def roomy_core(**more: object) -> Core:
    return Core(width=roomy().width, height=roomy().height, **more)  # type: ignore[arg-type]


def wall() -> Placement:
    """Places the macros in two columns in the middle, 3 µm between them: they divide the core."""
    netlist, placed = roomy().netlist, roomy().placement
    x, y = placed.x.copy(), placed.y.copy()
    for column, macros in enumerate(netlist.hard.reshape(2, 4)):
        x[macros] = roomy().width / 2 + (column - 0.5) * (netlist.width[macros].max() + 4)
        y[macros] = (np.arange(4) + 0.5) * roomy().height / 4
    return dataclasses.replace(placed, x=x, y=y)


@functools.cache
def found(divided: bool) -> Both:
    netlist, placement = roomy().netlist, wall() if divided else roomy().placement
    dense = place_cells(netlist, placement, roomy_core(), settings=SETTINGS)
    return Both(dense, spread_cells(netlist, placement, roomy_core(), channel=CHANNEL, attempts=[SETTINGS]))


ROW = Core(width=50.0, height=14.0)


def row_of_macros(cells: int) -> tuple[Netlist, Placement]:
    """Returns four macros of 10 by 10 µm in a row in the middle of `ROW`, and cells of 1 by 1 µm in a chain."""
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
    """Returns the share of the cells whose centres are closer than `margin` µm to a macro."""
    netlist, cells = roomy().netlist, np.setdiff1d(np.arange(roomy().netlist.num_nodes), roomy().netlist.hard)
    cells = cells[placed.y[cells] > 0]
    near = np.zeros(len(cells), bool)
    for macro in netlist.hard:
        aside = abs(placed.x[cells] - placed.x[macro]) - netlist.width[macro] / 2
        above = abs(placed.y[cells] - placed.y[macro]) - netlist.height[macro] / 2
        near |= np.maximum(aside, above) < margin
    return float(near.mean())


def test_a_wall_of_macros_costs_wire_once_the_cells_must_spread() -> None:
    """Dense cells lie in the slivers between the macros, and the wall adds almost no wirelength."""
    edge, divided = found(False), found(True)
    assert divided.dense.wirelength < 1.1 * edge.dense.wirelength
    assert divided.spread.wirelength > 1.15 * edge.spread.wirelength
    for both in (edge, divided):
        assert both.spread.converged and both.spread.wirelength > both.dense.wirelength


def test_cells_keep_off_the_channels_as_far_as_they_can() -> None:
    """Between macros of 25 µm, channels of 5 µm leave enough whitespace."""
    divided = found(True)
    assert near_macros(divided.dense.placement, CHANNEL - 1.5) > 0.1
    assert near_macros(divided.spread.placement, CHANNEL - 1.5) < 0.03


def test_too_little_whitespace_for_channels_is_no_error_and_none_at_all_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists every core tried by a placer that fails: none is tried that cannot hold the cells."""
    tried: list[tuple[float, float]] = []

    def fails(*arguments: object, settings: PlacerSettings, **_: object) -> CellPlacement:
        within = arguments[2]
        assert isinstance(within, Core)
        tried.append((float(np.max(within.halo)), settings.density))
        raise DesignError("diverged")

    monkeypatch.setattr(global_placement, "place_cells", fails)
    with pytest.raises(DesignError, match="diverged"):
        spread_cells(roomy().netlist, wall(), roomy_core(), channel=CHANNEL, attempts=[SETTINGS])
    assert tried == [(5.0, DENSITY), (2.5, DENSITY), (0.0, 1.0)]
    tried.clear()
    with pytest.raises(DesignError, match="diverged"):  # the user's halos apply where they are larger
        spread_cells(roomy().netlist, wall(), roomy_core(halo=6.0), channel=CHANNEL, attempts=[SETTINGS])
    assert [halo for halo, _ in tried] == [6.0] * len(tried)
    tried.clear()
    with pytest.raises(DesignError, match="diverged"):
        spread_cells(roomy().netlist, wall(), roomy_core(), channel=0.0, attempts=[SETTINGS])
    assert tried == [(0.0, DENSITY), (0.0, 1.0)]
    tried.clear()
    tight = dataclasses.replace(roomy_core(), blockages=((0.0, 0.0, 0.3 * roomy().width, roomy().height),))
    with pytest.raises(DesignError, match="diverged"):
        spread_cells(roomy().netlist, wall(), tight, channel=CHANNEL, attempts=[SETTINGS])
    (channel, share), *_, last = tried
    assert channel <= 5.0 and DENSITY < share < 1.0 and last == (0.0, 1.0)


def test_channels_shrink_as_little_as_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels of w µm leave 700 - 4 (10 + 2w)² µm² of the row's core; cells may fill nine tenths of that."""
    tried: list[tuple[float, float]] = []
    spread = found(False).spread  # before `place_cells` is replaced

    def check(*arguments: Any, settings: PlacerSettings, **_: object) -> CellPlacement:
        tried.append((float(np.max(arguments[2].halo)), settings.density))
        return spread

    monkeypatch.setattr(global_placement, "place_cells", check)
    for cells, channel, density in ((60, 1.0, DENSITY), (100, 1.0, 100 / 0.9 / 124), (200, None, 1.0), (290, 0.0, 1.0)):
        tried.clear()
        netlist, placement = row_of_macros(cells)
        spread_cells(netlist, placement, ROW, channel=1.0, attempts=[SETTINGS])
        widest = (np.sqrt((700 - cells / 0.9) / 4) - 10) / 2
        assert tried == [pytest.approx((widest if channel is None else channel, density), abs=2e-3)]
        assert cell_utilization(netlist, placement, ROW, channel=1.0) == pytest.approx(cells / 124)
        assert cell_utilization(netlist, placement, ROW, channel=9.0) == NO_WHITESPACE


def test_scattered_cells_are_stopped_and_placed_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt ends beyond twice the initial wirelength, or at its last iteration without convergence."""
    true, growths = found(False).spread, []
    start = found(False).dense.placement
    monkeypatch.setattr(global_placement, "half_perimeter", lambda *_: 100.0)

    def check(*_: object, settings: PlacerSettings, start: Any, report: Any, stopped: Any) -> CellPlacement:
        growths.append((settings.growth, start))
        length, goal = left.pop(0)
        report(Progress(10, length, 0.5))
        return true._replace(wirelength=length, converged=goal and not stopped(), seconds=1.0)

    monkeypatch.setattr(global_placement, "place_cells", check)
    for given, expected, converged in (
        ([(199.0, True)], 199.0, True),
        ([(300.0, True), (150.0, True)], 150.0, True),
        ([(150.0, False), (160.0, True)], 160.0, True),
        ([(300.0, True), (310.0, True)], 310.0, False),
    ):
        growths.clear()
        left, count = list(given), len(given)
        again = spread_cells(
            roomy().netlist, roomy().placement, roomy_core(), start=start, channel=CHANNEL, attempts=TWO
        )
        assert (again.wirelength, again.converged, again.seconds) == (expected, converged, count)
        assert growths == [(1.05, start), (1.025, None)][:count]


def test_a_stop_is_no_scattering(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def check(*_: object, **__: object) -> CellPlacement:
        calls.append(1)
        return found(False).spread._replace(converged=False)

    monkeypatch.setattr(global_placement, "place_cells", check)
    spread_cells(
        roomy().netlist,
        roomy().placement,
        roomy_core(),
        start=found(False).dense.placement,
        channel=CHANNEL,
        attempts=TWO,
        stopped=lambda: True,
    )
    assert len(calls) == 1
