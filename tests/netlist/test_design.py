"""Canvases, netlists and placements that are rejected at construction, and that others have a finite cost."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from placement.engine.costs import proxy_cost
from placement.engine.soft import SOFT_PLACERS, place_soft_macros
from placement.netlist.constraints import ALL_ORIENTATIONS
from placement.netlist.design import LARGEST, SMALLEST, Design, NodeKind, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from tests.support.designs import Node, build, four_macros, random_design, square_canvas


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"rows": 60_000, "columns": 60_000},
            "60000 rows and 60000 columns is too fine; .* up to 32768 of each",
        ),
        ({"rows": 2**15 + 1}, "a grid of 32769 rows and 5 columns"),
        ({"rows": 2**12, "columns": 2**12 + 1}, "a grid of 4096 rows and 4097 columns.* and 16777216 gcells"),
        ({"rows": 10**20}, "canvas rows: 100000000000000000000 must be an integer"),
        ({"width": 1e300}, r"canvas width: 1e\+300 must be a number in \[1e-09, 1e\+09\]"),
        ({"height": 1e-300}, "canvas height: 1e-300"),
        ({"routes_vertical": 1e-300}, "canvas routes_vertical: 1e-300"),
        ({"routes_horizontal": float("nan")}, "canvas routes_horizontal: nan"),
        ({"macro_routes_vertical": 1e10}, "canvas macro_routes_vertical: 10000000000.0"),
    ],
)
def test_a_canvas_that_the_engine_cannot_hold_is_rejected(changes, message) -> None:
    with pytest.raises(DesignError, match=message):
        dataclasses.replace(four_macros().canvas, **changes)


@pytest.mark.parametrize(
    ("width", "height", "stands", "may", "sides"),
    [
        (12.0, 20.0, Orientation.N, ALL_ORIENTATIONS, None),
        (12.0, 20.0, Orientation.FE, ALL_ORIENTATIONS, "16.0 × 10.0"),
        (12.0, 20.0, Orientation.FE, 0b1111, None),  # it will be rotated to N
        (20.0, 12.0, Orientation.FE, ALL_ORIENTATIONS, None),
        (20.0, 12.0, Orientation.N, ALL_ORIENTATIONS, "10.0 × 16.0"),
        (20.0, 12.0, Orientation.N, 0b11110000, None),
        (20.0, 12.0, Orientation.FE, 0b1111, "10.0 × 16.0"),
    ],
)
def test_a_macro_fits_the_canvas_as_it_is_turned(width, height, stands, may, sides) -> None:
    """A macro of 10 × 16 µm in its own or in a required orientation."""
    node = Node("ram", NodeKind.HARD, 6.0, 6.0, 10.0, 16.0, stands)
    design = build("one", square_canvas(), [node], [])
    constraints = dataclasses.replace(design.constraints, orientations=np.array([may]))
    canvas = dataclasses.replace(design.canvas, width=width, height=height)
    if sides is None:
        dataclasses.replace(design, canvas=canvas, constraints=constraints)
        return
    with pytest.raises(DesignError, match=f"macro 'ram' of {sides} µm is larger than the canvas"):
        dataclasses.replace(design, canvas=canvas, constraints=constraints)


@pytest.mark.parametrize("value", [1e300, float("inf"), float("nan"), -1e300])
def test_a_number_beyond_the_bounds_is_rejected_with_its_value(value) -> None:
    design = four_macros()
    for field in ("width", "height", "pin_dx", "pin_dy", "net_weight"):
        values = getattr(design.netlist, field).copy()
        values[1] = value
        with pytest.raises(DesignError, match=re.escape(f"{field}: {value} (index 1) must be in")):
            dataclasses.replace(design.netlist, **{field: values})
    for field in ("x", "y"):
        values = getattr(design.initial, field).copy()
        values[2] = value
        with pytest.raises(DesignError, match=re.escape(f"placement {field}: {value} (index 2) must be in")):
            dataclasses.replace(design.initial, **{field: values})


def extreme(seed: int) -> Design:
    """Returns a random design in which half of the numbers are as large or as small as allowed."""
    generator = np.random.default_rng(seed)
    design = random_design(seed, hard=3, soft=4)
    netlist, canvas = design.netlist, design.canvas
    soft = netlist.kind == NodeKind.SOFT

    def some(count: int, *bounds: float) -> np.ndarray:
        return np.where(generator.random(count) < 0.5, generator.choice(bounds, count), generator.random(count) * 30)

    sizes = {name: np.where(soft, some(len(soft), 0, LARGEST), getattr(netlist, name)) for name in ("width", "height")}
    offsets = {name: some(netlist.num_pins, -LARGEST, LARGEST) for name in ("pin_dx", "pin_dy")}
    places = {name: some(netlist.num_nodes, -LARGEST, LARGEST) for name in ("x", "y")}
    tracks = {f"routes_{way}": generator.choice([SMALLEST, LARGEST]) for way in ("horizontal", "vertical")}
    tracks |= {f"macro_{name}": generator.choice([0, LARGEST]) for name in tuple(tracks)}
    sides = {name: generator.choice([LARGEST, getattr(canvas, name)]) for name in ("width", "height")}
    return dataclasses.replace(
        design,
        netlist=dataclasses.replace(netlist, **sizes, **offsets, net_weight=some(netlist.num_nets, 0, LARGEST)),
        canvas=dataclasses.replace(canvas, **tracks, **sides),
        initial=dataclasses.replace(design.initial, **places),
    )


@pytest.mark.parametrize("seed", range(12))
def test_within_the_bounds_every_cost_is_finite(seed: int) -> None:
    design = extreme(seed)
    assert np.isfinite(proxy_cost(design)).all()
    for placer in SOFT_PLACERS:
        assert np.isfinite(proxy_cost(design, place_soft_macros(design, design.initial, placer))).all(), placer


def test_representations_are_one_line() -> None:
    design = load("toy6")
    assert repr(design) == "Design('toy6', 6 hard macros, 2 ports, 13 nets, 240 × 240 µm, 4 × 4 gcells)"
    assert repr(design.netlist) == "Netlist(6 hard macros, 2 ports, 13 nets, 32 pins)"
    assert repr(design.canvas) == "Canvas(240 × 240 µm, 4 × 4 gcells, 1 and 1 tracks per µm)"
    assert repr(design.initial) == "Placement(8 nodes, 8 placed, 2 fixed)"
    assert len(repr(load("clustered120"))) < 120
