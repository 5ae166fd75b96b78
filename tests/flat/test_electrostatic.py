"""Macros and clusters placed together: against JAX's placer, by hand, and where there is no room."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from placement.flat import electrostatic, objective, spectral
from placement.flat.core import Core
from placement.flat.electrostatic import place_clusters, spread_clusters
from placement.flat.global_placement import use_native
from placement.flat.grid import blocked_share, grid_for
from placement.netlist.design import Design, NodeKind, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.load import load


@pytest.fixture(scope="module")
def clustered() -> Design:
    return load("clustered40")


def core_of(design: Design) -> Core:
    return Core(design.canvas.width, design.canvas.height)


def test_forces_are_those_of_the_placer_in_jax(clustered: Design) -> None:
    problem = electrostatic._upright(clustered.netlist, clustered.initial, core_of(clustered))
    grid = grid_for(problem)
    free = 1 - blocked_share(problem.fixed, grid)
    side = 1.5 * np.sqrt(grid.bin_area)
    count = len(problem.cells) + 50
    ours = electrostatic._Model(problem, grid, free, side, count)
    theirs = objective.model(problem, grid, fillers=np.full(50, side), density_limit=1.0, native=use_native(None))
    rng = np.random.default_rng(0)
    at = ours.within((rng.random((2, count)) * [[grid.width], [grid.height]]).astype(np.float32))
    np.testing.assert_allclose(at, objective.within(theirs, jnp.asarray(at)), rtol=1e-6)
    found, expected = ours.forces(at, 0.02), objective.forces(theirs, jnp.asarray(at), jnp.float32(0.02))
    assert found.length == pytest.approx(float(expected.length), rel=1e-6)
    assert found.overflow == pytest.approx(float(expected.overflow), rel=1e-5)
    np.testing.assert_allclose(found.wirelength, expected.wirelength, rtol=1e-4, atol=1e-4)
    scale = float(np.abs(expected.density).max())
    np.testing.assert_allclose(found.density / scale, expected.density / scale, atol=1e-5)


def test_the_field_is_that_of_jax() -> None:
    density = np.random.default_rng(1).random((16, 32)).astype(np.float32)
    model = object.__new__(electrostatic._Model)
    factors = spectral.spectrum((16, 32), 40.0, 50.0)
    model._across, model._up = np.asarray(factors.across), np.asarray(factors.up)
    for found, expected in zip(model._field(density), spectral.field(jnp.asarray(density), factors), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_macros_come_to_stand_apart_and_near_their_nets(clustered: Design) -> None:
    netlist, hard = clustered.netlist, clustered.netlist.hard
    placed = place_clusters(netlist, clustered.initial, core_of(clustered), seed=0)
    assert placed.placed.all()
    low_x, low_y = placed.x[hard] - netlist.width[hard] / 2, placed.y[hard] - netlist.height[hard] / 2
    assert low_x.min() >= -1e-3 and low_y.min() >= -1e-3
    assert (low_x + netlist.width[hard]).max() <= clustered.canvas.width + 1e-3
    assert (low_y + netlist.height[hard]).max() <= clustered.canvas.height + 1e-3
    # Pairs of hard macros overlap by a small part of their area: the legaliser moves them little.
    across = np.minimum.outer(low_x + netlist.width[hard], low_x + netlist.width[hard]) - np.maximum.outer(low_x, low_x)
    up = np.minimum.outer(low_y + netlist.height[hard], low_y + netlist.height[hard]) - np.maximum.outer(low_y, low_y)
    shared = np.triu(np.clip(across, 0, None) * np.clip(up, 0, None), 1).sum()
    assert shared < 0.05 * (netlist.width[hard] * netlist.height[hard]).sum()
    again = place_clusters(netlist, clustered.initial, core_of(clustered), seed=0)
    np.testing.assert_array_equal(placed.x, again.x)
    mixed, rng = placed, np.random.default_rng(0)
    for nodes in (hard, netlist.soft):
        dealt = rng.permutation(nodes)
        mixed = mixed.moved(nodes, placed.x[dealt], placed.y[dealt])
    assert length(clustered, placed.x, placed.y) < 0.7 * length(clustered, mixed.x, mixed.y)


def length(design: Design, x: np.ndarray, y: np.ndarray) -> float:
    """Weighted half perimeters by a plain loop, pins as they are in orientation N; µm."""
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
    placed = place_clusters(netlist, initial, core_of(clustered))
    assert (placed.x[held], placed.y[held]) == (netlist.width[held], netlist.height[held])
    others = netlist.hard[1:]
    across = (netlist.width[others] + netlist.width[held]) / 2 - np.abs(placed.x[others] - placed.x[held])
    up = (netlist.height[others] + netlist.height[held]) / 2 - np.abs(placed.y[others] - placed.y[held])
    assert (np.clip(across, 0, None) * np.clip(up, 0, None)).max() < 0.1 * netlist.width[held] * netlist.height[held]


def test_turned_macros_are_as_wide_as_they_are_high(clustered: Design) -> None:
    """A design whose macros all lie on their side is one whose macros are drawn so."""
    netlist = clustered.netlist
    hard = netlist.kind == NodeKind.HARD
    turned = dataclasses.replace(
        clustered.initial, orientation=np.where(hard, Orientation.E, Orientation.N).astype(np.int8)
    )
    width, height = np.where(hard, [netlist.height, netlist.width], [netlist.width, netlist.height])
    own = hard[netlist.pin_node]
    dx, dy = np.where(own, [netlist.pin_dy, -netlist.pin_dx], [netlist.pin_dx, netlist.pin_dy])  # E: y to x, x to -y
    drawn = dataclasses.replace(netlist, width=width, height=height, pin_dx=dx, pin_dy=dy)
    first = place_clusters(netlist, turned, core_of(clustered))
    second = place_clusters(drawn, clustered.initial, core_of(clustered))
    np.testing.assert_allclose(first.x, second.x, atol=1e-6)
    np.testing.assert_allclose(first.y, second.y, atol=1e-6)
    assert (first.orientation == turned.orientation).all()


def test_clusters_spread_around_macros_that_stand(clustered: Design) -> None:
    netlist, initial = clustered.netlist, clustered.initial
    rng = np.random.default_rng(3)
    hard, soft = netlist.hard, netlist.soft
    stands = initial.moved(
        hard,
        rng.uniform(0.2, 0.8, len(hard)) * clustered.canvas.width,
        rng.uniform(0.2, 0.8, len(hard)) * clustered.canvas.height,
    )
    placed = spread_clusters(netlist, stands, core_of(clustered))
    np.testing.assert_array_equal(placed.x[hard], stands.x[hard])
    np.testing.assert_array_equal(placed.fixed, stands.fixed)
    assert placed.placed.all()
    shaken = placed.moved(soft, *(rng.permutation(one[soft]) for one in (placed.x, placed.y)))
    assert length(clustered, placed.x, placed.y) < 0.7 * length(clustered, shaken.x, shaken.y)
    again = spread_clusters(
        netlist, stands.moved(soft, np.full(len(soft), 1.0), np.full(len(soft), 1.0)), core_of(clustered)
    )
    np.testing.assert_array_equal(placed.x, again.x)  # where soft macros stood is not read


def test_clusters_may_begin_as_they_stand(clustered: Design) -> None:
    netlist, initial = clustered.netlist, clustered.initial
    soft, width = netlist.soft, clustered.canvas.width
    anew = spread_clusters(netlist, initial, core_of(clustered))
    turned = anew.moved(soft, width - anew.x[soft], anew.y[soft])
    first, second = (spread_clusters(netlist, start, core_of(clustered), standing=True) for start in (initial, turned))
    assert np.hypot(first.x - second.x, first.y - second.y)[soft].mean() > 1.0
    middle = initial.moved(soft, np.full(len(soft), width / 2), np.full(len(soft), clustered.canvas.height / 2))
    apart = spread_clusters(netlist, middle, core_of(clustered), standing=True)
    assert apart.x[soft].std() > 0.8 * anew.x[soft].std()
    for placed, start in ((first, initial), (second, turned)):
        assert length(clustered, placed.x, placed.y) < 1.2 * length(clustered, anew.x, anew.y)
        np.testing.assert_array_equal(placed.x[netlist.hard], start.x[netlist.hard])


def test_clusters_without_macros_to_place_are_refused(clustered: Design) -> None:
    held = dataclasses.replace(clustered.initial, fixed=np.ones(clustered.netlist.num_nodes, bool))
    with pytest.raises(DesignError):
        spread_clusters(clustered.netlist, held, core_of(clustered))


def test_no_room_is_said(clustered: Design) -> None:
    with pytest.raises(DesignError, match=r"cover .* more than|larger than the core"):
        place_clusters(
            clustered.netlist, clustered.initial, Core(clustered.canvas.width / 3, clustered.canvas.height / 3)
        )


def test_macros_that_found_no_place_are_tried_again_and_then_refused(
    clustered: Design, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(electrostatic, "ITERATIONS", 5)
    with pytest.raises(DesignError, match=r"still overlapped by \d+% of their area after 5 iterations"):
        place_clusters(clustered.netlist, clustered.initial, core_of(clustered))
