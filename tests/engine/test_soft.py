"""The soft-macro placers: inside the canvas, deterministic, hard macros untouched, better than a heap in the middle."""

from __future__ import annotations

import numpy as np
import pytest

from placement.engine import _native
from placement.engine.native_design import native_design
from placement.engine.soft import SOFT_PLACERS, place_soft_macros
from placement.netlist.design import Design, NodeKind, Orientation, Placement
from placement.testing.designs import Node, random_design, random_placement

every_placer = pytest.mark.parametrize("placer", SOFT_PLACERS)


def _movable(design: Design) -> np.ndarray:
    soft = design.netlist.soft
    return soft[~design.initial.fixed[soft]]


def _sizes(design: Design, placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    turned = placement.orientation >= Orientation.E
    width, height = design.netlist.width, design.netlist.height
    return np.where(turned, height, width), np.where(turned, width, height)


def _check_inside(design: Design, placement: Placement) -> None:
    movable = _movable(design)
    for centre, size, side in zip(
        (placement.x, placement.y),
        _sizes(design, placement),
        (design.canvas.width, design.canvas.height),
        strict=True,
    ):
        half = np.minimum(size[movable], side) / 2
        tolerance = 1e-5 * side
        assert (centre[movable] >= half - tolerance).all()
        assert (centre[movable] <= side - half + tolerance).all()


def _hard(name: str, x: float, y: float, side: float = 20.0) -> Node:
    return Node(name, NodeKind.HARD, x, y, side, side)


def _soft(name: str, width: float = 10.0, height: float = 10.0) -> Node:
    return Node(name, NodeKind.SOFT, 0.0, 0.0, width, height)


@every_placer
@pytest.mark.parametrize("seed", range(12))
def test_random_designs(placer: str, seed: int) -> None:
    design = random_design(seed)
    start = random_placement(design, seed + 100)
    placed = place_soft_macros(design, start, placer)
    movable = _movable(design)
    _check_inside(design, placed)
    assert np.isfinite(placed.x).all() and np.isfinite(placed.y).all()
    others = np.setdiff1d(np.arange(design.netlist.num_nodes), movable)
    for before, after in ((start.x, placed.x), (start.y, placed.y), (start.orientation, placed.orientation)):
        np.testing.assert_array_equal(before[others], after[others])
    np.testing.assert_array_equal(start.fixed, placed.fixed)


@every_placer
def test_result_depends_on_the_hard_macros_only(placer: str) -> None:
    design = random_design(3)
    start = random_placement(design, 5)
    movable = _movable(design)
    assert len(movable) > 1
    first = place_soft_macros(design, start, placer)
    elsewhere = start.moved(movable, start.x[movable][::-1].copy(), start.y[movable] * 0.5)
    assert place_soft_macros(design, elsewhere, placer) == first


@every_placer
def test_one_instance_forgets_between_calls(placer: str) -> None:
    design = random_design(4)
    instance = _native.SoftPlacer(placer, native_design(design))
    expected = place_soft_macros(design, random_placement(design, 1), placer)
    for seed in (2, 1):
        start = random_placement(design, seed)
        x, y = start.x.copy(), start.y.copy()
        instance.place(x, y, start.orientation)
    np.testing.assert_array_equal(x, expected.x)
    np.testing.assert_array_equal(y, expected.y)


def test_unknown_placer_names_the_choices() -> None:
    design = random_design(0)
    with pytest.raises(ValueError, match=r"'gravity'.*force_directed"):
        place_soft_macros(design, design.initial, "gravity")
