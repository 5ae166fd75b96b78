"""The constants of a small design by hand, electrostatic positions, and padding."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import numpy as np
import pytest

from placement.flat.clusters import place_design
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.policy.inputs import graph_inputs, stack
from tests.support.designs import Node, NodeKind, build, four_macros, random_design, square_canvas


def test_sizes_grid_and_aspect_of_a_small_design() -> None:
    inputs = graph_inputs(four_macros())  # large, middle and small, and a fixed one
    assert inputs.macros == 3
    np.testing.assert_allclose(inputs.size, [[0.4, 0.2], [0.2, 0.32], [0.16, 0.12]])
    wide = random_design(1, hard=3, canvas=square_canvas(9, 7))
    inputs = graph_inputs(wide)
    np.testing.assert_array_equal(inputs.grid, [wide.canvas.rows, wide.canvas.columns])
    assert inputs.aspect[0] / inputs.aspect[1] == pytest.approx(wide.canvas.width / wide.canvas.height)
    assert inputs.aspect.sum() == pytest.approx(2)


def test_a_design_with_nothing_to_place_is_rejected() -> None:
    design = build("fixed", square_canvas(), [Node("m", NodeKind.HARD, 25.0, 25.0, 5.0, 5.0, fixed=True)], [])
    with pytest.raises(ValueError, match="there is nothing to place"):
        graph_inputs(design)


def test_electrostatic_places_are_found_once_for_every_grid_and_order(monkeypatch: pytest.MonkeyPatch) -> None:
    design, calls = random_design(3, hard=6, soft=8), []

    def counted(one: Design) -> Placement:
        calls.append(one)
        return place_design(one)

    monkeypatch.setattr("placement.policy.inputs.place_design", counted)
    assert np.isnan(graph_inputs(design).electrostatic).all()
    assert not calls
    found = graph_inputs(design, electrostatic=True).electrostatic
    placed, macros = place_design(design), design.placing_order
    np.testing.assert_allclose(found[:, 0], placed.x[macros] / design.canvas.width, rtol=1e-6)
    np.testing.assert_allclose(found[:, 1], placed.y[macros] / design.canvas.height, rtol=1e-6)
    finer = design.with_actions(2)
    np.testing.assert_array_equal(graph_inputs(finer, electrostatic=True).electrostatic, found)
    assert len(calls) == 1
    held = dataclasses.replace(design.initial, fixed=design.initial.fixed | (np.arange(len(placed.x)) == macros[0]))
    graph_inputs(
        dataclasses.replace(design, initial=held.moved(macros[:1], placed.x[macros[:1]], placed.y[macros[:1]])),
        electrostatic=True,
    )
    assert len(calls) == 2


def test_electrostatic_places_go_with_their_design() -> None:
    design = random_design(5, hard=4, soft=4)
    assert np.isfinite(graph_inputs(design, electrostatic=True).electrostatic).all()
    netlist = weakref.ref(design.netlist)
    del design
    gc.collect()
    assert netlist() is None


def test_without_room_there_are_no_electrostatic_places(monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(design: Design) -> Placement:
        raise DesignError("no room")

    monkeypatch.setattr("placement.policy.inputs.place_design", reject)
    assert np.isnan(graph_inputs(random_design(4), electrostatic=True).electrostatic).all()


def test_stacking_pads_with_zeros() -> None:
    one = graph_inputs(four_macros())
    both = stack([one, one], macros=9)
    assert both.target_weights.shape == (2, 2, 9, 9)
    np.testing.assert_array_equal(both.macros, [3, 3])
    np.testing.assert_array_equal(both.target_weights[1, :, :3, :3], one.target_weights)
    assert not both.target_weights[:, :, 3:].any() and not both.size[:, 3:].any()
