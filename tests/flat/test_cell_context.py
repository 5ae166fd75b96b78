"""The flat netlist as a design whose macros move among the cells."""

from __future__ import annotations

import dataclasses
import functools
from types import SimpleNamespace

import numpy as np
import pytest

from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.search import search
from placement.annealing.starts import Start, legal
from placement.engine.costs import CostWeights, compute_costs
from placement.evaluation.mixed_size_start import wire_beyond_tracks
from placement.flat.cell_context import GCELL, cell_context, macros_of
from placement.flat.correspondence import macros_on_flat
from placement.flat.problem import half_perimeter
from placement.netlist.design import Design, NodeKind, Orientation, Placement
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Region
from placement.netlist.generators.flat import FlatOptions, flat_on_floorplan
from placement.netlist.importing import import_flat
from tests.support import chip_oracle

CHIP = CostWeights(1.0, 1.0, 30.0, "chip")


@functools.cache
def made() -> tuple[FlatDesign, Design, Placement]:
    """Returns a small flat design, its clustered one with constraints and a fixed macro, and a placement of it."""
    imported = import_flat(flat_on_floorplan("made", FlatOptions(cells=300, macros=4, ports=8, macro_pins=12), seed=3))
    design, hard = imported.design, imported.design.netlist.hard
    fixed = design.initial.fixed.copy()
    fixed[hard[0]] = True
    halo = design.constraints.halo.copy()
    halo[hard[1]] = 1.0, 0.5, 0.75, 0.25
    whole = np.array([[0.0, 0.0, design.canvas.width, design.canvas.height]])
    constraints = dataclasses.replace(
        design.constraints, halo=halo, regions=(Region("all", whole, np.array([hard[2]])),)
    )
    start = legal(dataclasses.replace(design, constraints=constraints), _spread(design), AnnealConfig())
    initial = dataclasses.replace(start, fixed=fixed)
    return imported.flat, dataclasses.replace(design, initial=initial, constraints=constraints), initial


def _spread(design: Design) -> Placement:
    """Puts the macros in the corners, soft macros in the middle."""
    hard, soft = design.netlist.hard, design.netlist.soft
    width, height = design.canvas.width, design.canvas.height
    x, y = width * np.array([0.2, 0.8, 0.2, 0.8]), height * np.array([0.2, 0.2, 0.8, 0.8])
    placed = design.initial.moved(hard, x, y)
    return placed.moved(soft, np.full(len(soft), width / 2), np.full(len(soft), height / 2))


def with_cells() -> Placement:
    """Returns the flat netlist's placement with the macros as placed, and its cells anywhere."""
    flat, design, placement = made()
    placed = macros_on_flat(flat, design.netlist, placement)
    cells = np.flatnonzero(flat.netlist.kind == NodeKind.CELL)
    core, draw = flat.floorplan.core, np.random.default_rng(0)
    return placed.moved(
        cells, draw.uniform(core.x_low, core.x_high, len(cells)), draw.uniform(core.y_low, core.y_high, len(cells))
    )


def test_it_prices_every_net_of_the_flat_netlist() -> None:
    flat, design, _ = made()
    among = cell_context(flat, design, with_cells())
    costs = compute_costs(among, among.initial, weights=CHIP)
    assert costs.wirelength == pytest.approx(half_perimeter(flat.netlist, with_cells()), rel=1e-12)
    assert among.canvas.cell_width <= GCELL and among.canvas.cell_height <= GCELL


def test_wire_beyond_tracks_is_what_all_tracks_do_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    flat, design, _ = made()
    few = dataclasses.replace(
        design.canvas,
        routes_horizontal=0.3,
        routes_vertical=0.4,
        macro_routes_horizontal=0.1,
        macro_routes_vertical=0.2,
    )
    design = dataclasses.replace(design, canvas=few)
    found = SimpleNamespace(flat=flat, placement=with_cells())
    among = cell_context(flat, design, with_cells())
    monkeypatch.setattr(chip_oracle, "USABLE", 1.0)
    expected = chip_oracle.wire_excess(among, among.initial)
    assert expected > 0
    assert wire_beyond_tracks(design, found) == pytest.approx(expected, rel=1e-9)  # type: ignore[arg-type]


def test_constraints_and_fixed_macros_are_carried_over_by_name() -> None:
    flat, design, _ = made()
    among = cell_context(flat, design, with_cells())
    names = {design.netlist.names[node]: int(node) for node in design.netlist.hard}
    for node in among.netlist.hard:
        there = names[among.netlist.names[node]]
        assert among.constraints.halo[node].tolist() == design.constraints.halo[there].tolist()
        assert among.constraints.orientations[node] == design.constraints.orientations[there]
        assert among.initial.fixed[node] == design.initial.fixed[there]
    (region,) = among.constraints.regions
    held = design.netlist.names[design.constraints.regions[0].nodes[0]]
    assert [among.netlist.names[node] for node in region.nodes] == [held]
    others = np.setdiff1d(np.arange(among.netlist.num_nodes), among.netlist.hard)
    assert among.initial.fixed[others].all() and not among.constraints.halo[others].any()


def test_a_search_moves_macros_only_and_gives_them_back() -> None:
    flat, design, placement = made()
    among = cell_context(flat, design, with_cells())
    found = search(
        among,
        [Start("given", among.initial)],
        config=AnnealConfig(initial_temperature=0.04),
        moves=3000,
        weights=CHIP,
        seed=0,
    ).placement
    cells = among.netlist.soft
    assert (found.x[cells] == among.initial.x[cells]).all() and (found.y[cells] == among.initial.y[cells]).all()
    assert compute_costs(among, found, weights=CHIP).total < compute_costs(among, weights=CHIP).total
    moved = macros_of(flat, design, placement, found)
    again = macros_on_flat(flat, design.netlist, moved)
    hard, core = flat.netlist.hard, flat.floorplan.core
    np.testing.assert_allclose(again.x[hard], found.x[hard] + core.x_low, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(again.orientation[hard], found.orientation[hard])
    fixed = design.netlist.hard[0]
    assert (moved.x[fixed], moved.y[fixed]) == (placement.x[fixed], placement.y[fixed])
    assert not (moved.orientation[design.netlist.soft] != Orientation.N).any()
