"""Soft macros avoid placement blockages with every placer."""

from __future__ import annotations

import numpy as np
import pytest

from placement.engine.soft import SOFT_PLACERS, place_soft_macros
from placement.netlist.design import Design, Placement
from placement.netlist.generators.clustered import clustered
from tests.support.constrained_designs import constrained


@pytest.fixture(scope="module")
def design() -> Design:
    return clustered(seed=5, hard=12, soft=40, ports=20, name="clustered12")


def on_them(design: Design, placement: Placement) -> int:
    """Returns the number of centres of soft macros on blockages."""
    x, y = placement.x[design.netlist.soft, None], placement.y[design.netlist.soft, None]
    left, low, right, high = design.constraints.blockages.T
    return int(((x > left + 1e-6) & (x < right - 1e-6) & (y > low + 1e-6) & (y < high - 1e-6)).any(axis=1).sum())


@pytest.mark.parametrize("placer", SOFT_PLACERS)
def test_no_centre_stays_on_a_blockage(design: Design, placer: str) -> None:
    """Two adjacent blockages: the nearest edge of one may lie within the other."""
    canvas = design.canvas
    boxes = np.array([[0.3, 0.3, 0.5, 0.7], [0.45, 0.4, 0.7, 0.6]]) * canvas.width
    blocked = constrained(design, blockages=boxes)
    free = place_soft_macros(design, design.initial, placer)
    assert on_them(blocked, free) > 5
    found = place_soft_macros(blocked, design.initial, placer)
    assert on_them(blocked, found) == 0
    soft = design.netlist.soft
    for at, side, extent in (
        (found.x, design.netlist.width, canvas.width),
        (found.y, design.netlist.height, canvas.height),
    ):
        assert (at[soft] - side[soft] / 2 > -1e-6).all() and (at[soft] + side[soft] / 2 < extent + 1e-6).all()


def test_where_no_edge_is_free_centres_stay(design: Design) -> None:
    whole = constrained(design, blockages=np.array([[0.0, 0.0, design.canvas.width, design.canvas.height]]))
    found = place_soft_macros(whole, design.initial)
    assert on_them(whole, found) == len(design.netlist.soft)
