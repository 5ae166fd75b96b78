"""Mixed-size placement of a small generated design."""

from __future__ import annotations

import dataclasses
import functools

import jax
import numpy as np

from placement.flat.core import Core
from placement.flat.global_placement import PlacerSettings
from placement.flat.mixed_size import place_mixed_size
from placement.flat.problem import flat_problem
from placement.flat.wirelength import half_perimeter
from placement.netlist.design import NodeKind, Orientation, Placement
from placement.netlist.generators.flat import FlatDraft, FlatOptions, flat_draft

QUICK = PlacerSettings(growth=1.1, iterations=400)


@functools.cache
def made() -> FlatDraft:
    return flat_draft(FlatOptions(cells=400, macros=4, ports=16, macro_pins=16), seed=2)


def start() -> Placement:
    """The draft's own placement, with one macro fixed where it is and the others free."""
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
    """The share of its bin (a tenth of the core across and up) that cells take, as the mean cell sees it."""
    draft = made()
    cells = draft.netlist.kind == NodeKind.CELL
    area = (draft.netlist.width * draft.netlist.height)[cells]
    bins = [np.linspace(0, side, 11) for side in (draft.width, draft.height)]
    taken, *_ = np.histogram2d(placement.x[cells], placement.y[cells], bins=bins, weights=area)
    return float((taken**2).sum() / taken.sum()) / (draft.width * draft.height / 100)


def test_cells_spread_to_the_density_that_is_asked_for() -> None:
    core = Core(made().width, made().height, halo=2.0)
    settings = dataclasses.replace(QUICK, density=0.5)
    spread = place_mixed_size(made().netlist, start(), core, settings=settings)
    assert crowding(spread) < 0.85 * crowding(placed())
    assert half_perimeter(made().netlist, spread) > half_perimeter(made().netlist, placed())
    full = dataclasses.replace(QUICK, density=0.01)  # no room for a hundred times their area: they get what there is
    assert np.isfinite(place_mixed_size(made().netlist, start(), core, settings=full).x).all()


def test_macros_are_placed_as_they_are_turned() -> None:
    """A macro in E is the same as one whose sides, pins and halos are written turned, in N."""
    draft, begin = made(), start()
    macro = draft.netlist.hard[2]
    halo = np.zeros((draft.netlist.num_nodes, 4))
    halo[macro] = 1.0, 3.0, 1.0, 3.0
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
    turned_core = dataclasses.replace(core, halo=np.where(halo > 0, halo[:, [1, 0, 3, 2]], halo))

    problem = flat_problem(netlist, lying, core, mixed_size=True)
    expected = flat_problem(written, begin, turned_core, mixed_size=True)
    at = np.flatnonzero(problem.cells == macro)
    np.testing.assert_allclose(problem.width[at], netlist.height[macro] + 6.0)
    np.testing.assert_array_equal(problem.width, expected.width)
    np.testing.assert_array_equal(problem.height, expected.height)
    for found, right in zip(jax.tree.leaves(problem.nets), jax.tree.leaves(expected.nets), strict=True):
        np.testing.assert_allclose(found, right, atol=1e-5)
    found = place_mixed_size(netlist, lying, core, settings=QUICK)
    assert found.orientation[macro] == Orientation.E
    assert (found.orientation[netlist.kind == NodeKind.CELL] == Orientation.N).all()
