"""In which order macros are placed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from placement.netlist.design import Design, NodeKind
from placement.netlist.errors import DesignError
from placement.policy import order as module
from placement.policy.order import ordered
from tests.support.designs import Net, Node, build, random_design, square_canvas


@pytest.fixture(scope="module")
def design() -> Design:
    return random_design(4, hard=7, soft=4, ports=3, nets=30, canvas=square_canvas(8, 8))


def test_area_is_the_default(design: Design) -> None:
    again = ordered(ordered(design, "connected"), "area")
    np.testing.assert_array_equal(again.placing_order, design.placing_order)


def test_connected_places_each_macro_once_beside_its_partners(design: Design) -> None:
    order = ordered(design, "connected").placing_order
    assert sorted(order) == sorted(design.placing_order)
    assert order.tolist() != design.placing_order.tolist()


def test_a_chain_is_followed_from_its_strongest_macro() -> None:
    """b is joined most strongly, to c directly; a follows by way of a soft macro, d by a weak net from a."""
    sizes = {"d": 9.0, "a": 8.0, "b": 7.0, "c": 6.0}
    nodes = [Node("port", NodeKind.PORT, 0.0, 5.0)]
    nodes += [Node(name, NodeKind.HARD, 25.0, 25.0, size, size) for name, size in sizes.items()]
    nodes.append(Node("soft", NodeKind.SOFT, 25.0, 25.0, 5.0, 5.0))
    joined = [("c", "b", 5.0), ("b", "soft", 2.0), ("soft", "a", 2.0), ("a", "d", 0.5), ("port", "d", 9.0)]
    nets = [Net([(one, 0, 0), (other, 0, 0)], weight) for one, other, weight in joined]
    design = ordered(build("chain", square_canvas(), nodes, nets), "connected")
    assert [design.netlist.names[node] for node in design.placing_order] == ["b", "c", "a", "d"]


def test_an_order_of_other_nodes_is_refused(design: Design) -> None:
    with pytest.raises(DesignError, match="order: must name each movable hard macro once"):
        dataclasses.replace(design, order=(0,))


def test_unknown_orders_are_refused(design: Design) -> None:
    with pytest.raises(ValueError, match="order='size'"):
        ordered(design, "size")


def test_the_sparse_way_gives_the_same_order(monkeypatch: pytest.MonkeyPatch, design: Design) -> None:
    dense = ordered(design, "connected").order
    monkeypatch.setattr(module, "_LARGEST_DENSE", 0)
    assert ordered(design, "connected").order == dense
