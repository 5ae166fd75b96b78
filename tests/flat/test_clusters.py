"""Macros and clusters placed together, clusters alone, and infeasible designs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from placement.flat import clusters
from placement.flat.clusters import place_design, spacing_for_channels, spread_clusters
from placement.netlist.design import Design, NodeKind, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from tests.support.constrained_designs import constrained
from tests.support.designs import Net, Node, build, square_canvas


@pytest.fixture(scope="module")
def clustered() -> Design:
    return load("clustered40")


def test_macros_are_placed_apart_and_near_their_nets(clustered: Design) -> None:
    netlist, hard = clustered.netlist, clustered.netlist.hard
    placed = place_design(clustered)
    assert placed.placed.all()
    low_x, low_y = placed.x[hard] - netlist.width[hard] / 2, placed.y[hard] - netlist.height[hard] / 2
    assert low_x.min() >= -1e-3 and low_y.min() >= -1e-3
    assert (low_x + netlist.width[hard]).max() <= clustered.canvas.width + 1e-3
    assert (low_y + netlist.height[hard]).max() <= clustered.canvas.height + 1e-3
    # Pairs of hard macros overlap by a small part of their area, so the legaliser moves them only a little.
    across = np.minimum.outer(low_x + netlist.width[hard], low_x + netlist.width[hard]) - np.maximum.outer(low_x, low_x)
    up = np.minimum.outer(low_y + netlist.height[hard], low_y + netlist.height[hard]) - np.maximum.outer(low_y, low_y)
    shared = np.triu(np.clip(across, 0, None) * np.clip(up, 0, None), 1).sum()
    assert shared < 0.05 * (netlist.width[hard] * netlist.height[hard]).sum()
    again = place_design(clustered)
    np.testing.assert_array_equal(placed.x, again.x)
    mixed, rng = placed, np.random.default_rng(0)
    for nodes in (hard, netlist.soft):
        dealt = rng.permutation(nodes)
        mixed = mixed.moved(nodes, placed.x[dealt], placed.y[dealt])
    assert length(clustered, placed.x, placed.y) < 0.7 * length(clustered, mixed.x, mixed.y)


def length(design: Design, x: np.ndarray, y: np.ndarray) -> float:
    """Returns weighted half perimeters in µm by a plain loop, with pins in orientation N."""
    netlist, total = design.netlist, 0.0
    for net, weight in enumerate(netlist.net_weight):
        pins = netlist.net_pins[netlist.net_start[net] : netlist.net_start[net + 1]]
        nodes = netlist.pin_node[pins]
        total += weight * (np.ptp(x[nodes] + netlist.pin_dx[pins]) + np.ptp(y[nodes] + netlist.pin_dy[pins]))
    return float(total)


def test_fixed_macros_stay_and_others_keep_clear_of_them(clustered: Design) -> None:
    netlist, held = clustered.netlist, int(clustered.netlist.hard[0])
    fixed = clustered.initial.fixed.copy()
    fixed[held] = True
    initial = dataclasses.replace(
        clustered.initial.moved(np.array([held]), np.array([netlist.width[held]]), np.array([netlist.height[held]])),
        fixed=fixed,
    )
    placed = place_design(dataclasses.replace(clustered, initial=initial))
    assert (placed.x[held], placed.y[held]) == (netlist.width[held], netlist.height[held])
    others = netlist.hard[1:]
    across = (netlist.width[others] + netlist.width[held]) / 2 - np.abs(placed.x[others] - placed.x[held])
    up = (netlist.height[others] + netlist.height[held]) / 2 - np.abs(placed.y[others] - placed.y[held])
    assert (np.clip(across, 0, None) * np.clip(up, 0, None)).max() < 0.1 * netlist.width[held] * netlist.height[held]


def test_turned_macros_are_as_wide_as_they_are_high(clustered: Design) -> None:
    """A design whose macros all have orientation E equals one whose macros are defined in that orientation."""
    netlist = clustered.netlist
    hard = netlist.kind == NodeKind.HARD
    turned = dataclasses.replace(
        clustered.initial, orientation=np.where(hard, Orientation.E, Orientation.N).astype(np.int8)
    )
    width, height = np.where(hard, [netlist.height, netlist.width], [netlist.width, netlist.height])
    own = hard[netlist.pin_node]
    dx, dy = np.where(own, [netlist.pin_dy, -netlist.pin_dx], [netlist.pin_dx, netlist.pin_dy])  # E: y to x, x to -y
    drawn = dataclasses.replace(netlist, width=width, height=height, pin_dx=dx, pin_dy=dy)
    first = place_design(dataclasses.replace(clustered, initial=turned))
    second = place_design(dataclasses.replace(clustered, netlist=drawn))
    np.testing.assert_allclose(first.x, second.x, atol=1e-6)
    np.testing.assert_allclose(first.y, second.y, atol=1e-6)
    assert (first.orientation == turned.orientation).all()


def test_macros_keep_two_channels_apart_as_far_as_the_cells_have_space() -> None:
    """Nine macros of 30 × 30 µm and a cluster of 40 × 40 µm, whose cells take 800 µm² and need 1,333 of whitespace."""
    macros = [Node(f"macro{i}", NodeKind.HARD, 20.0 + i % 3 * 32, 20.0 + i // 3 * 32, 30.0, 30.0) for i in range(9)]
    cluster = Node("cluster", NodeKind.SOFT, 30.0, 30.0, 40.0, 40.0)

    def spacing(side: float, *, least: float = 0.0, blockages: Sequence[Sequence[float]] = ()) -> float:
        canvas = dataclasses.replace(square_canvas(4, 4), width=side, height=side)
        nets = [Net([("macro0", 0, 0), ("cluster", 0, 0)])]
        design = build("nine", canvas, [*macros, cluster], nets)
        return spacing_for_channels(constrained(design, blockages=np.reshape(blockages, (-1, 4))), spacing=least)

    # With a spacing of s, side² − 9 · (30 + s)² must be at least 1,333; from 20 µm in steps of 2.5 µm.
    assert spacing(156.0) == 20.0  # 24,336 − 22,500
    assert spacing(150.0) == 17.5  # 22,500 − 20,306
    assert spacing(120.0) == 7.5  # 14,400 − 12,656
    assert spacing(150.0, blockages=((0.0, 0.0, 30.0, 150.0),)) == 12.5  # 18,000 − 16,256
    assert spacing(97.0) == 0.0  # 9,409 − 8,100 is too little
    assert spacing(97.0, least=3.0) == 3.0
    assert spacing(156.0, least=25.0) == 25.0


def test_clusters_spread_around_macros(clustered: Design) -> None:
    netlist, initial = clustered.netlist, clustered.initial
    rng = np.random.default_rng(3)
    hard, soft = netlist.hard, netlist.soft
    start = initial.moved(
        hard,
        rng.uniform(0.2, 0.8, len(hard)) * clustered.canvas.width,
        rng.uniform(0.2, 0.8, len(hard)) * clustered.canvas.height,
    )
    placed = spread_clusters(clustered, start)
    np.testing.assert_array_equal(placed.x[hard], start.x[hard])
    np.testing.assert_array_equal(placed.fixed, start.fixed)
    assert placed.placed.all()
    shaken = placed.moved(soft, *(rng.permutation(one[soft]) for one in (placed.x, placed.y)))
    assert length(clustered, placed.x, placed.y) < 0.7 * length(clustered, shaken.x, shaken.y)
    again = spread_clusters(clustered, start.moved(soft, np.full(len(soft), 1.0), np.full(len(soft), 1.0)))
    np.testing.assert_array_equal(placed.x, again.x)  # the soft macros' positions are not read


def test_clusters_without_macros_to_place_are_rejected(clustered: Design) -> None:
    held = dataclasses.replace(clustered.initial, fixed=np.ones(clustered.netlist.num_nodes, bool))
    with pytest.raises(DesignError, match="no standard cells to place"):
        spread_clusters(clustered, held)


def test_a_canvas_that_is_too_small_is_reported(clustered: Design) -> None:
    canvas = clustered.canvas
    small = dataclasses.replace(canvas, width=canvas.width / 3, height=canvas.height / 3)
    with pytest.raises(DesignError, match=r"cover .* more than|larger than the core"):
        place_design(dataclasses.replace(clustered, canvas=small))


def test_macros_that_still_overlap_are_rejected(clustered: Design, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "SETTINGS", dataclasses.replace(clusters.SETTINGS, iterations=5))
    with pytest.raises(DesignError, match=r"still overlapped by \d+% of their area after 5 iterations"):
        place_design(clustered)
