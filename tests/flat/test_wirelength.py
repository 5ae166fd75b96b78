"""Wirelength: half perimeters by hand, the gradient against finite differences, the engine against JAX."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from placement.flat import native_sums, wirelength
from placement.flat.core import Core
from placement.flat.problem import FlatProblem, flat_problem
from placement.netlist.design import Netlist, NodeKind, Orientation, Placement
from placement.netlist.generators.flat import FlatOptions, flat_draft


def drawn(seed: int = 1) -> tuple[FlatProblem, np.ndarray]:
    """A small problem and random places of its cells, float64 [2, M]."""
    made = flat_draft(FlatOptions(cells=150, macros=4, ports=8, macro_pins=12), seed=seed)
    problem = flat_problem(made.netlist, made.placement, Core(width=made.width, height=made.height))
    return problem, np.random.default_rng(seed).uniform(0, made.width, (2, 150))


def smooth_length(problem: FlatProblem, at: np.ndarray, gamma: float) -> float:
    """The weighted-average wirelength, net by net, as the paper writes it."""
    nets, total = problem.nets, 0.0
    for axis, offset in enumerate((nets.pin_x, nets.pin_y)):
        node = np.append(at[axis], 0.0)
        for net in range(len(nets.weight)):
            pins = slice(nets.start[net], nets.start[net + 1])
            v = node[nets.pin_cell[pins]] + offset[pins].astype(np.float64)
            up, down = np.exp((v - v.max()) / gamma), np.exp((v.min() - v) / gamma)
            total += float(nets.weight[net]) * ((v * up).sum() / up.sum() - (v * down).sum() / down.sum())
    return total


@pytest.mark.parametrize("native", [False, True])
def test_gradient_against_finite_differences(native: bool) -> None:
    if native and not native_sums.available():
        pytest.skip("the engine was built without XLA's headers")
    problem, at = drawn()
    gamma, step = 4.0, 1e-4
    x, y = jnp.asarray(at, jnp.float32)
    if native:
        nets = jax.tree.map(jnp.asarray, problem.nets)
        found = jax.jit(native_sums.weighted_average)(nets, x, y, jnp.float32(1 / gamma))
    else:
        nets = wirelength.blocked_nets(problem.nets)
        found = jax.jit(wirelength.weighted_average)(nets, x, y, jnp.float32(1 / gamma))
    for axis, cell in ((0, 3), (1, 3), (0, 77), (1, 149), (0, 0)):
        moved = [at.copy(), at.copy()]
        moved[0][axis, cell] -= step
        moved[1][axis, cell] += step
        slope = (smooth_length(problem, moved[1], gamma) - smooth_length(problem, moved[0], gamma)) / (2 * step)
        assert float(found[axis][cell]) == pytest.approx(slope, abs=2e-4)


def test_engine_and_jax_agree_for_all_cells() -> None:
    if not native_sums.available():
        pytest.skip("the engine was built without XLA's headers")
    problem, at = drawn(2)
    x, y = jnp.asarray(at, jnp.float32)
    blocked, in_jax = wirelength.blocked_nets(problem.nets), jax.jit(wirelength.weighted_average)
    for gamma in (0.3, 5.0, 200.0):
        per_gamma = jnp.float32(1 / gamma)
        ours = jax.jit(native_sums.weighted_average)(problem.nets, x, y, per_gamma)
        theirs = in_jax(blocked, x, y, per_gamma)
        for first, second in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(first, second, rtol=2e-4, atol=2e-4)


def three_nodes() -> tuple[Netlist, Placement]:
    """A macro of 4 × 2 µm with a pin at (1, 0.5), a cell, a port; nets {pin, cell} of weight 2, {pin, cell, port}."""
    netlist = Netlist(
        names=("m", "c", "p"),
        kind=np.array([NodeKind.HARD, NodeKind.CELL, NodeKind.PORT]),
        width=np.array([4.0, 1.0, 0.0]),
        height=np.array([2.0, 1.0, 0.0]),
        file_index=np.array([0, 2, 3]),
        pin_node=np.array([0, 1, 2]),
        pin_dx=np.array([1.0, 0.0, 0.0]),
        pin_dy=np.array([0.5, 0.0, 0.0]),
        net_weight=np.array([2.0, 1.0]),
        net_start=np.array([0, 2, 5]),
        net_pins=np.array([0, 1, 0, 1, 2]),
    )
    kinds = netlist.kind
    placement = Placement(
        x=np.array([5.0, 9.0, 0.0]),
        y=np.array([5.0, 1.0, 7.0]),
        orientation=np.array([Orientation.S, 0, 0]),
        placed=np.ones(3, bool),
        fixed=kinds != NodeKind.CELL,
    )
    return netlist, placement


def test_half_perimeter_by_hand() -> None:
    netlist, placement = three_nodes()
    # Turned by S the pin stands at (4, 4.5): 5 + 3.5 to the cell, twice; the box with the port is 9 × 6.
    assert wirelength.half_perimeter(netlist, placement) == pytest.approx(2 * 8.5 + 15.0)


def test_a_fixed_cell_is_a_fixed_pin() -> None:
    netlist, placement = three_nodes()
    frozen = dataclasses.replace(placement, fixed=np.ones(3, bool))
    problem = flat_problem(netlist, placement, Core(width=10.0, height=10.0))
    np.testing.assert_allclose(problem.nets.pin_x, [4.0, 0.0, 4.0, 0.0, 0.0])
    np.testing.assert_array_equal(problem.nets.pin_cell, [1, 0, 1, 0, 1])
    with pytest.raises(ValueError, match="no standard cells to place"):
        flat_problem(netlist, frozen, Core(width=10.0, height=10.0))
