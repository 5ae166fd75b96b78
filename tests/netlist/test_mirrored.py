"""Mirror images of designs cost what the designs cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from placement.cli.main import main
from placement.engine.costs import proxy_cost
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from placement.netlist.mirrored import AXES, mirrored, mirrored_placement
from tests.support.designs import four_macros, random_design, random_placement, square_canvas


@pytest.mark.parametrize("axis", AXES)
def test_wirelength_and_density_stay(axis: str) -> None:
    design = random_design(5, hard=8, soft=6, ports=5, nets=40, canvas=square_canvas(7, 6))
    image = mirrored(design, axis)
    placement = random_placement(design, 1)
    seen = proxy_cost(image, mirrored_placement(design, placement, axis))
    there = proxy_cost(design, placement)
    assert seen.wirelength == pytest.approx(there.wirelength, rel=1e-9)
    assert seen.density_cost == pytest.approx(there.density_cost, rel=1e-9)
    assert seen.congestion_cost == pytest.approx(there.congestion_cost, rel=0.2)


@pytest.mark.parametrize("axis", AXES)
def test_twice_is_the_same_again(axis: str) -> None:
    design = four_macros()
    again = mirrored(mirrored(design, axis), axis)
    np.testing.assert_allclose(again.initial.x, design.initial.x, atol=1e-9)
    np.testing.assert_array_equal(again.initial.orientation, design.initial.orientation)


def test_left_and_right_by_hand() -> None:
    image = mirrored(four_macros(), "x").initial
    # port at the left edge, "large" N at x 15 → 35 as FN, "small" E → W turned over: FE
    assert (image.x[0], image.x[2], image.orientation[2]) == (50.0, 35.0, 1)
    assert image.orientation[4] == 5


def test_the_command_writes_a_design(tmp_path: Path) -> None:
    assert main(["mirror", "toy6", "--axis", "y", "--out", str(tmp_path / "flipped")]) == 0
    flipped, design = load(tmp_path / "flipped"), load("toy6")
    np.testing.assert_allclose(flipped.initial.y, design.canvas.height - design.initial.y)
    assert flipped.name == "flipped"


def test_other_axes_are_refused() -> None:
    with pytest.raises(DesignError, match="axis='z'"):
        mirrored(four_macros(), "z")
