"""Graph features by hand on a small design, and padding."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import numpy as np
import pytest

from placement.flat.clusters import place_design
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.statistics import statistics
from placement.policy.inputs import NODE_FEATURES, graph_inputs, stack
from tests.support.designs import Net, Node, NodeKind, build, four_macros, random_design, square_canvas


def test_nodes_edges_and_order_of_a_hand_made_design() -> None:
    inputs = graph_inputs(four_macros())
    # Graph nodes: large 0, middle 1, small 2, kept 3, cluster 4, ports by gcell: right 5, left 6.
    assert inputs.nodes.shape == (7, NODE_FEATURES)
    np.testing.assert_array_equal(inputs.nodes[:, :3].argmax(axis=1), [0, 0, 0, 0, 1, 2, 2])
    expected = {(0, 6), (0, 1), (0, 4), (2, 4), (3, 4), (4, 5), (1, 2)}
    assert {tuple(sorted(edge)) for edge in inputs.edges.tolist()} == expected
    np.testing.assert_array_equal(inputs.order, [0, 1, 2])
    np.testing.assert_allclose(inputs.size, [[0.4, 0.2], [0.2, 0.32], [0.16, 0.12]])
    np.testing.assert_array_equal(inputs.nodes[:, 8], [0, 0, 0, 1, 0, 1, 1])
    np.testing.assert_allclose(inputs.nodes[3, 9:11], [0.8, -0.8], atol=1e-6)
    weights = np.expm1(inputs.edge_weight) * np.array([1, 2, 2, 0.5, 0.5, 0.5, 1]).mean()
    by_edge = dict(zip(map(tuple, inputs.edges.tolist()), weights, strict=True))
    assert by_edge[0, 1] == pytest.approx(2.0)
    assert by_edge[2, 4] == pytest.approx(0.5)


def test_ports_of_one_gcell_share_a_node_and_their_edges_merge() -> None:
    nodes = [
        Node("a", NodeKind.PORT, 0.0, 1.0),
        Node("b", NodeKind.PORT, 0.0, 3.0),
        Node("m", NodeKind.HARD, 25.0, 25.0, 5.0, 5.0),
        Node("o", NodeKind.HARD, 25.0, 25.0, 4.0, 4.0),
    ]
    nets = [Net([("a", 0, 0), ("m", 0, 0)], 3.0), Net([("b", 0, 0), ("m", 0, 0)]), Net([("o", 0, 0), ("m", 0, 0)], 4.0)]
    inputs = graph_inputs(build("ports", square_canvas(), nodes, nets))
    assert len(inputs.nodes) == 3
    np.testing.assert_allclose(inputs.nodes[2, 9:11], [-1.0, -0.92], atol=1e-6)
    np.testing.assert_allclose(inputs.edge_weight, np.log(2))


@pytest.mark.parametrize("seed", range(3))
def test_the_description_shows_the_graph_that_the_policy_sees(seed: int) -> None:
    design = random_design(seed)  # with standard cells, repeated nets and ports beyond the edge
    inputs, figures = graph_inputs(design), statistics(design)
    assert (figures.graph_nodes, figures.graph_edges) == (inputs.node_mask.sum(), inputs.edge_mask.sum())
    neighbours = np.expm1(4 * inputs.nodes[:, 6])
    hard = inputs.nodes[:, 0] == 1
    assert figures.mean_neighbours["hard"] == pytest.approx(neighbours[hard].mean(), rel=1e-5)


def test_a_design_with_nothing_to_place_is_refused() -> None:
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
    def refuse(design: Design) -> Placement:
        raise DesignError("no room")

    monkeypatch.setattr("placement.policy.inputs.place_design", refuse)
    assert np.isnan(graph_inputs(random_design(4), electrostatic=True).electrostatic).all()


def test_stacking_pads_to_buckets_with_zero_masks() -> None:
    one = graph_inputs(four_macros())
    both = stack([one, one], macros=9, node_bucket=16, edge_bucket=32)
    assert both.nodes.shape == (2, 16, NODE_FEATURES)
    assert both.edges.shape == (2, 32, 2)
    assert both.target_weights.shape == (2, 2, 9, 9)
    assert both.node_mask.sum() == 14
    assert both.edge_mask.sum() == 14
    np.testing.assert_array_equal(both.macros, [3, 3])
    np.testing.assert_array_equal(both.target_weights[1, :, :3, :3], one.target_weights)
