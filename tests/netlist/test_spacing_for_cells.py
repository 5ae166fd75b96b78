"""The spacing that an import chooses if no file defines halos."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from placement.netlist.flat_design import FlatDesign
from placement.netlist.generators.flat import ROW_HEIGHT, SITE_WIDTH, FlatOptions, flat_on_floorplan
from placement.netlist.geometry import Rectangle
from placement.netlist.import_constraints import ConstraintSettings, constraints_of
from placement.netlist.macro_gaps import spacing_for_cells


@pytest.fixture(scope="module")
def small() -> FlatDesign:
    options = FlatOptions(cells=400, macros=4, ports=8, macro_pins=8, macro_utilization=0.2, cell_utilization=0.2)
    return flat_on_floorplan("made", options, seed=1)


@pytest.fixture(scope="module")
def flat(small: FlatDesign) -> FlatDesign:
    """Returns the design with four macros of 100 × 100 µm."""
    sides = {name: getattr(small.netlist, name).copy() for name in ("width", "height")}
    for side in sides.values():
        side[small.netlist.hard] = 100.0
    core = dataclasses.replace(small.floorplan, core=Rectangle(0.0, 0.0, 1000.0, 1000.0))
    return with_sides(dataclasses.replace(small, floorplan=core), **sides)


def with_sides(flat: FlatDesign, **sides: np.ndarray) -> FlatDesign:
    return dataclasses.replace(flat, netlist=dataclasses.replace(flat.netlist, **sides))


def spacing(flat: FlatDesign, halo: float = 0.0) -> float:
    return spacing_for_cells(flat, np.full((flat.netlist.num_nodes, 4), halo))


def test_between_halos_one_row_and_one_site_are_connected(flat: FlatDesign) -> None:
    assert spacing(flat, 1.5) == pytest.approx(3.0 + max(2 * SITE_WIDTH, 2 * ROW_HEIGHT))


def test_a_channel_has_twenty_whole_sites_wherever_it_begins(flat: FlatDesign) -> None:
    channel = spacing(flat)
    assert channel == pytest.approx(max(21 * SITE_WIDTH, 2 * ROW_HEIGHT))
    for begin in np.linspace(0, SITE_WIDTH, 50):
        first = np.ceil(begin / SITE_WIDTH - 1e-6)
        assert np.floor((begin + channel) / SITE_WIDTH + 1e-6) - first >= 20


def test_it_is_as_wide_and_as_high_as_nearly_all_cells_need(flat: FlatDesign) -> None:
    cells = flat.cells
    width, height = flat.netlist.width.copy(), flat.netlist.height.copy()
    width[cells[:10]] = 30.2 * SITE_WIDTH
    assert spacing(with_sides(flat, width=width)) == pytest.approx(32 * SITE_WIDTH)
    width[cells[:10]], width[cells[:2]] = SITE_WIDTH, 90 * SITE_WIDTH
    assert spacing(with_sides(flat, width=width)) == pytest.approx(21 * SITE_WIDTH)
    height[cells[:10]] = 3 * ROW_HEIGHT
    assert spacing(with_sides(flat, height=height)) == pytest.approx(4 * ROW_HEIGHT)


def test_a_core_that_the_macros_fill_has_none(flat: FlatDesign) -> None:
    netlist, core = flat.netlist, flat.floorplan.core
    hard = netlist.hard
    grown = np.sqrt(0.89 * core.area / (netlist.width * netlist.height)[hard].sum())
    sides = {name: getattr(netlist, name).copy() for name in ("width", "height")}
    for side in sides.values():
        side[hard] *= grown
    assert spacing(with_sides(flat, **sides)) == 0.0


def test_small_macros_have_none(flat: FlatDesign) -> None:
    hard, needed = flat.netlist.hard, 10 * spacing(flat)
    for side, wanted in ((0.99 * needed, 0.0), (1.01 * needed, spacing(flat))):
        sides = {name: getattr(flat.netlist, name).copy() for name in ("width", "height")}
        for values in sides.values():
            values[hard] = side
        assert spacing(with_sides(flat, **sides)) == wanted


def test_the_import_says_which_spacing_it_chose_unless_halos_are_zero_by_request(flat: FlatDesign) -> None:
    constraints, notices = constraints_of(flat)
    assert constraints.spacing == spacing(flat) > 0
    assert any(f"{constraints.spacing:g} µm apart, so that cells fit" in notice for notice in notices)
    constraints, notices = constraints_of(flat, ConstraintSettings(halo=(0.0, 0.0)))
    assert constraints.spacing == 0.0 and not any("apart" in notice for notice in notices)
    constraints, notices = constraints_of(flat, ConstraintSettings(halos={"macro1": (0.0, 1.5)}))
    assert constraints.spacing == spacing(flat, 1.5)
    assert any(
        f"{constraints.spacing:g} µm apart, so that the rows between their halos" in notice for notice in notices
    )


def test_the_import_says_what_has_no_rows_unless_fixed_macros_are_there(small: FlatDesign) -> None:
    def notices(share: float, *, fixed: bool) -> list[str]:
        rows, placement = small.floorplan.rows, small.placement
        cut = dataclasses.replace(small.floorplan, rows=dataclasses.replace(rows, width=rows.width * share))
        held = placement.fixed.copy()
        held[small.netlist.hard[1:]] = fixed
        held[small.netlist.hard[0]] = False
        design = dataclasses.replace(small, floorplan=cut, placement=dataclasses.replace(placement, fixed=held))
        return [notice for notice in constraints_of(design)[1] if "has no rows" in notice]

    assert notices(1.0, fixed=False) == []
    (notice,) = notices(0.9, fixed=False)
    assert "of the core has no rows" in notice and notice.split("%")[0].startswith("1")
    assert notices(0.9, fixed=True) == []  # the fixed macros cover more than the missing area
