"""The flat check on small generated designs: cells end where they may, near what they are wired to."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

from placement.flat import global_placement
from placement.flat.check import FlatResult, flat_check
from placement.flat.core import Core
from placement.flat.global_placement import PlacerSettings, Progress, diverged, use_native
from placement.flat.grid import blocked_share, grid_for, used_share
from placement.flat.problem import fixed_rectangles, flat_problem
from placement.flat.wirelength import half_perimeter
from placement.netlist.design import Netlist, NodeKind, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.generators.flat import FlatDraft, FlatOptions, flat_draft

QUICK = PlacerSettings(growth=1.1)


@functools.cache
def made() -> FlatDraft:
    return flat_draft(FlatOptions(cells=600, macros=5, ports=16, macro_pins=16), seed=2)


def core(**more: object) -> Core:
    return Core(width=made().width, height=made().height, **more)  # type: ignore[arg-type]


@functools.cache
def checked(native: bool | None = None) -> FlatResult:
    return flat_check(made().netlist, made().placement, core(), settings=dataclasses.replace(QUICK, native=native))


def test_cells_end_in_free_room() -> None:
    found = checked()
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
    """Against the same places dealt out at random: the density stays, the wirelength must not."""
    found, cells = checked(), np.flatnonzero(made().netlist.kind == NodeKind.CELL)
    dealt = np.random.default_rng(0).permutation(cells)
    at_random = found.placement.moved(cells, found.placement.x[dealt], found.placement.y[dealt])
    assert found.wirelength < 0.6 * half_perimeter(made().netlist, at_random)


@pytest.mark.skipif(not use_native(None), reason="the engine was built without XLA's headers, or JAX is on no CPU")
def test_jax_and_the_engine_place_alike() -> None:
    assert checked(False).wirelength == pytest.approx(checked().wirelength, rel=0.03)
    assert checked(False).converged


def test_one_seed_gives_one_placement() -> None:
    again = flat_check(made().netlist, made().placement, core(), settings=QUICK)
    np.testing.assert_array_equal(again.placement.x, checked().placement.x)
    np.testing.assert_array_equal(again.placement.y, checked().placement.y)


def test_beginning_from_a_neighbour_takes_fewer_iterations() -> None:
    warm = flat_check(made().netlist, made().placement, core(), settings=QUICK, start=checked().placement)
    assert warm.converged
    assert warm.iterations < checked().iterations
    assert warm.wirelength < 1.05 * checked().wirelength


def test_a_core_elsewhere_moves_everything() -> None:
    design = made()
    moved = dataclasses.replace(design.placement, x=design.placement.x + 100.0, y=design.placement.y - 40.0)
    found = flat_check(
        design.netlist, moved, Core(width=design.width, height=design.height, x=100.0, y=-40.0), settings=QUICK
    )
    assert found.wirelength == pytest.approx(checked().wirelength, rel=0.03)


def test_how_a_file_turned_the_cells_changes_nothing() -> None:
    design, turned = made(), made().placement.orientation.copy()
    turned[np.flatnonzero(design.netlist.kind == NodeKind.CELL)[::2]] = Orientation.FS
    # Pins off the cells' centres, else no turn is seen.
    high = np.where(design.netlist.kind[design.netlist.pin_node] == NodeKind.CELL, 0.6, design.netlist.pin_dy)
    netlist = dataclasses.replace(design.netlist, pin_dy=high)
    plain = flat_check(netlist, design.placement, core(), settings=QUICK)
    found = flat_check(netlist, dataclasses.replace(design.placement, orientation=turned), core(), settings=QUICK)
    assert found.wirelength == plain.wirelength
    np.testing.assert_array_equal(found.placement.orientation, plain.placement.orientation)


def test_each_side_of_a_macro_keeps_its_halo() -> None:
    """Left, bottom, right, top as it is turned: E brings the left side up, FE the left side down."""
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
    found = flat_check(design.netlist, design.placement, wide, settings=QUICK)
    problem = flat_problem(design.netlist, design.placement, wide)
    grid = grid_for(problem)
    used = used_share(
        found.placement.x[problem.cells],
        found.placement.y[problem.cells],
        (problem.width, problem.height),
        grid=grid,
    )
    blocked = blocked_share(problem.fixed, grid) > 0.999
    assert blocked.sum() > 10
    assert used[blocked].sum() < 0.08 * used.sum()


def test_progress_and_stopping() -> None:
    seen: list[Progress] = []
    found = flat_check(
        made().netlist, made().placement, core(), settings=QUICK, report=seen.append, stopped=lambda: len(seen) == 2
    )
    assert [progress.iteration for progress in seen] == [10, 20]
    assert found.iterations == 20 and not found.converged
    limited = flat_check(made().netlist, made().placement, core(), settings=dataclasses.replace(QUICK, iterations=15))
    assert limited.iterations == 15 and not limited.converged


def test_cells_that_fly_apart_are_noticed() -> None:
    best = Progress(100, 2.0e6, 0.3)
    assert diverged(Progress(200, 5.0e6, 0.45), best)
    assert diverged(Progress(200, float("nan"), 0.2), best)
    assert not diverged(Progress(200, 5.0e6, 0.35), best)
    assert not diverged(Progress(200, 2.5e6, 0.6), best)


def test_cells_that_never_come_to_rest_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_placement, "diverged", lambda now, best: True)
    with pytest.raises(DesignError, match=r"the cells flew apart 3 times, .* too narrow for a density of 1; give"):
        flat_check(made().netlist, made().placement, core(), settings=QUICK)


def test_a_density_limit_spreads_the_cells() -> None:
    loose = flat_check(made().netlist, made().placement, core(), settings=dataclasses.replace(QUICK, density=0.7))
    assert loose.converged
    assert loose.wirelength > checked().wirelength
    with pytest.raises(DesignError, match=r"that they may fill"):
        flat_check(made().netlist, made().placement, core(), settings=dataclasses.replace(QUICK, density=0.3))


def test_an_interruption_gets_out() -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flat_check(made().netlist, made().placement, core(), settings=QUICK, report=interrupt)


def test_a_net_of_100_000_pins_is_left_out() -> None:
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
    found = flat_check(with_clock, design.placement, core(), settings=QUICK)
    np.testing.assert_array_equal(found.placement.x, checked().placement.x)
    assert found.wirelength == checked().wirelength


def refuse(netlist: Netlist | None = None, where: Core | None = None, **placement: np.ndarray) -> None:
    flat_check(
        netlist or made().netlist, dataclasses.replace(made().placement, **placement), where or core(), settings=QUICK
    )


def test_refusals() -> None:
    design = made()
    placed = design.placement.placed.copy()
    placed[1] = False
    with pytest.raises(DesignError, match=r"macro 'macro1' has no position \(1 such nodes\)"):
        refuse(placed=placed)
    with pytest.raises(DesignError, match=r"the 600 cells cover .* µm², more than the .* µm² that macros"):
        refuse(where=core(blockages=((0.0, 0.0, design.width, 0.9 * design.height),)))
    with pytest.raises(DesignError, match=r"'cell3' of 500\.0 × 1\.4 µm is larger than the core"):
        wide = design.netlist.width.copy()
        wide[list(design.netlist.names).index("cell3")] = 500.0
        refuse(dataclasses.replace(design.netlist, width=wide))
    with pytest.raises(DesignError, match="is a soft macro, a cluster of cells"):
        kind = design.netlist.kind.copy()
        kind[-1] = NodeKind.SOFT
        refuse(dataclasses.replace(design.netlist, kind=kind))
    with pytest.raises(DesignError, match="no standard cells to place"):
        refuse(fixed=np.ones(len(placed), bool))
    with pytest.raises(DesignError, match="inside out"):
        core(blockages=((5.0, 0.0, 1.0, 1.0),))
    with pytest.raises(DesignError, match=r"halo: -1.0 µm must be at least 0"):
        core(halo=-1.0)
    with pytest.raises(DesignError, match=r"halo: shape \(3, 2\), expected one number or \[nodes, 4\]"):
        core(halo=np.zeros((3, 2)))
    with pytest.raises(DesignError, match="halos of 3 nodes for a netlist of 621"):
        refuse(where=core(halo=np.zeros((3, 4))))
    with pytest.raises(DesignError, match="bins: 100"):
        PlacerSettings(bins=(100, 64))
    with pytest.raises(DesignError, match=r"start: cell 'cell0' has no position \(600 such cells\)"):
        flat_check(design.netlist, design.placement, core(), start=design.placement)
