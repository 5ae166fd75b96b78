"""The placer's sums compared with loops and finite differences, its field with a direct solve, and its descent."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from placement.flat import _native, electrostatic
from placement.flat.electrostatic import PlacerSettings, Poisson, Progress, _Descent, _Forces, diverged, place
from placement.flat.grid import Charges, Grid, blocked_share, density_overflow
from placement.flat.problem import Core, FlatProblem, flat_problem
from placement.netlist.errors import DesignError
from placement.netlist.generators.flat import FlatOptions, flat_draft

GRID = Grid(16, 8, 32.0, 24.0)  # bins of 2 × 3 µm


@functools.cache
def small(cells: int = 150) -> FlatProblem:
    made = flat_draft(FlatOptions(cells=cells, macros=4, ports=8, macro_pins=12), seed=1)
    return flat_problem(made.netlist, made.placement, Core(width=made.width, height=made.height))


def smooth_length(problem: FlatProblem, at: np.ndarray, gamma: float) -> float:
    """Returns the weighted-average wirelength, net by net, as defined in the paper."""
    nets, total = problem.nets, 0.0
    for axis, offset in enumerate((nets.pin_x, nets.pin_y)):
        node = np.append(at[axis], 0.0)
        for net in range(len(nets.weight)):
            pins = slice(nets.start[net], nets.start[net + 1])
            v = node[nets.pin_cell[pins]] + offset[pins].astype(np.float64)
            up, down = np.exp((v - v.max()) / gamma), np.exp((v.min() - v) / gamma)
            total += float(nets.weight[net]) * ((v * up).sum() / up.sum() - (v * down).sum() / down.sum())
    return total


@pytest.mark.parametrize("gamma", [0.5, 4.0, 200.0])
def test_gradient_against_finite_differences(gamma: float) -> None:
    problem, step = small(), 1e-4
    at = np.random.default_rng(1).uniform(0, problem.core.width, (2, len(problem.cells)))
    found = np.empty((2, len(problem.cells)), np.float32)
    nets = _native.Wirelength(len(problem.cells), *problem.nets)
    length = nets.gradient(*at.astype(np.float32), 1 / gamma, *found)
    for axis, cell in ((0, 3), (1, 3), (0, 77), (1, 149), (0, 0)):
        moved = [at.copy(), at.copy()]
        moved[0][axis, cell] -= step
        moved[1][axis, cell] += step
        slope = (smooth_length(problem, moved[1], gamma) - smooth_length(problem, moved[0], gamma)) / (2 * step)
        assert found[axis, cell] == pytest.approx(slope, abs=5e-4)
    if gamma == 0.5:  # close to half perimeters
        assert length == pytest.approx(smooth_length(problem, at, 1e-3), rel=1e-5)


def spread(width: np.ndarray, height: np.ndarray, at: np.ndarray) -> np.ndarray:
    onto = np.zeros((16, 8), np.float32)
    Charges(width, height, GRID).add(at.astype(np.float32), onto)
    return onto


def test_one_rectangle_by_hand() -> None:
    # 4 × 6 µm are 2 × 2 bins; at bin coordinates (3.25, 4) they cover a quarter less of column 2 and a quarter more of
    # column 4.
    expected = np.zeros((16, 8))
    expected[2:5, 3:5] = np.array([0.75, 1.0, 0.25])[:, None]
    found = spread(np.array([4.0]), np.array([6.0]), np.array([[3.25], [4.0]]))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_small_cell_keeps_its_charge_over_root_two_bins() -> None:
    found = spread(np.array([0.5]), np.array([0.3]), np.array([[5.5], [2.5]]))
    assert found.sum() == pytest.approx(0.5 * 0.3 / 6.0, rel=1e-5)
    assert (found[4:7, 1:4] > 0).all() and (found > 0).sum() == 9


def test_charges_and_their_forces_against_loops() -> None:
    """Rectangles, some of which extend beyond the edge, one by one and bin by bin."""
    rng, count = np.random.default_rng(3), 60
    at = np.stack([rng.uniform(-0.5, 16.5, count), rng.uniform(-0.5, 8.5, count)])
    width, height = rng.uniform(0.3, 9.0, count), rng.uniform(0.3, 7.0, count)
    maps = rng.random((2, 16, 8)).astype(np.float32)
    density, force = np.zeros((16, 8)), np.zeros((2, count))
    for n in range(count):
        sides = max(width[n] / 2, np.sqrt(2)), max(height[n] / 3, np.sqrt(2))
        charge = width[n] * height[n] / 6
        for i in range(16):
            for j in range(8):
                across = min(at[0, n] + sides[0] / 2, i + 1) - max(at[0, n] - sides[0] / 2, i)
                up = min(at[1, n] + sides[1] / 2, j + 1) - max(at[1, n] - sides[1] / 2, j)
                share = charge * max(across, 0.0) * max(up, 0.0) / (sides[0] * sides[1])
                density[i, j] += share
                force[:, n] += share * maps[:, i, j]
    np.testing.assert_allclose(spread(width, height, at), density, rtol=1e-4, atol=1e-5)
    found = Charges(width, height, GRID).force(at.astype(np.float32), *maps)
    np.testing.assert_allclose(found, force, rtol=1e-4, atol=1e-5)


def test_blocked_share_by_hand() -> None:
    boxes = np.array([[1.0, 0.0, 4.0, 3.0], [30.0, 21.0, 40.0, 30.0]])
    share = blocked_share(boxes, GRID)
    assert share[0, 0] == pytest.approx(0.5) and share[1, 0] == pytest.approx(1.0)
    assert share[15, 7] == pytest.approx(1.0)
    assert share.sum() == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("count", "x", "y", "free", "expected"),
    [
        (2, 8.0, 12.0, 1.0, 0.0),  # two cells of one bin's area in the middle of two by two bins
        (2, 9.0, 13.5, 1.0, 0.0),  # in the middle of one: each is drawn √2 × √2 bins, half of it in that bin
        (4, 9.0, 13.5, 1.0, (4 * 0.5 - 1) / 4),
        (1, 9.0, 13.5, 0.0, 1.0),
    ],
)
def test_overflow_by_hand(count: int, x: float, y: float, free: float, expected: float) -> None:
    cells: Any = SimpleNamespace(width=np.full(count, 2.0), height=np.full(count, 3.0))
    at = np.array([[x], [y]]) * np.ones(count)
    assert density_overflow(cells, at, np.full((16, 8), free), GRID) == pytest.approx(expected, abs=1e-6)


def test_field_of_one_wave() -> None:
    # ρ = cos(2πx/W) cos(πy/H) has ψ = ρ / (w² + v²) and the field −∇ψ = (w sin cos, v cos sin) / (w² + v²).
    width, height = 40.0, 10.0
    x, y = (np.arange(32) + 0.5) * width / 32, (np.arange(16) + 0.5) * height / 16
    w, v = 2 * np.pi / width, np.pi / height
    density = np.outer(np.cos(w * x), np.cos(v * y)).astype(np.float32)
    across, up = Poisson(Grid(32, 16, width, height)).field(density)
    np.testing.assert_allclose(across, w * np.outer(np.sin(w * x), np.cos(v * y)) / (w**2 + v**2), atol=1e-4)
    np.testing.assert_allclose(up, v * np.outer(np.cos(w * x), np.sin(v * y)) / (w**2 + v**2), atol=1e-4)


def test_field_against_a_direct_solve() -> None:
    """A smooth density on a fine grid, where the directly solved five-point Laplacian is nearly exact."""
    size, side = 48, 10.0
    step = side / size
    at = (np.arange(size) + 0.5) * step
    blob = np.exp(-((at[:, None] - 4.0) ** 2 + (at[None, :] - 6.5) ** 2) / 2)
    second = np.diag(np.full(size, -2.0)) + np.diag(np.ones(size - 1), 1) + np.diag(np.ones(size - 1), -1)
    second[0, 0] = second[-1, -1] = -1.0  # no field across the edge
    laplacian = (np.kron(second, np.eye(size)) + np.kron(np.eye(size), second)) / step**2
    charge = (blob - blob.mean()).ravel()
    # With the potential of one bin fixed at zero, the matrix is regular.
    potential = np.linalg.solve(laplacian[1:, 1:], -charge[1:])
    psi = np.concatenate([[0.0], potential]).reshape(size, size)
    expected = -np.gradient(psi, step, axis=0), -np.gradient(psi, step, axis=1)
    found = Poisson(Grid(size, size, side, side)).field(blob.astype(np.float32))
    inner = slice(2, -2)
    for ours, direct in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours[inner, inner], direct[inner, inner], atol=0.01 * np.abs(direct).max())


@pytest.mark.parametrize(
    ("length", "overflow", "dropped"), [(1.0, 1.0, False), (0.9, 0.9, True), (0.9, 1.1, False), (1.1, 0.9, False)]
)
def test_momentum_is_dropped_where_wirelength_and_overflow_rise_together(
    length: float, overflow: float, dropped: bool
) -> None:
    """The step is always the same; the forces before it differ."""

    def next_one(before: _Forces | None) -> _Descent:
        """Returns the seventh iteration of cells scattered over the core, after a previous one with `before`."""
        problem = small(300)
        model, _ = electrostatic._prepared(problem, PlacerSettings(), None, None)
        core = np.array([[problem.core.width], [problem.core.height]])
        at = np.random.default_rng(0).uniform(0, core, (2, len(model.charges.charge)))
        descent = _Descent(model, at, growth=1.03, balance=1e-2)
        for _ in range(5):
            assert descent.advance()
        if before:
            descent.forces = descent.forces._replace(length=before.length, overflow=before.overflow)
        assert descent.advance()
        return descent

    after = next_one(None).forces
    before = after._replace(length=length * after.length, overflow=overflow * after.overflow)
    assert (next_one(before).momentum == 1.0) == dropped


def test_cells_that_diverge_are_noticed() -> None:
    best = Progress(100, 2.0e6, 0.3)
    assert diverged(Progress(200, 5.0e6, 0.45), best)
    assert not diverged(Progress(200, 5.0e6, 0.35), best)
    assert not diverged(Progress(200, 2.5e6, 0.6), best)


def test_cells_that_diverge_are_placed_again_with_slower_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    growths: list[float] = []

    def descend(descent: _Descent, *_: object) -> None:
        growths.append(descent._growth)

    monkeypatch.setattr(electrostatic, "_descend", descend)
    with pytest.raises(DesignError, match=r"the cells diverged 3 times, .* of 1\.02.* too narrow for a density of 1;"):
        place(small(), PlacerSettings(growth=1.08))
    assert growths == pytest.approx([1.08, 1.04, 1.02])


def test_positions_that_are_not_finite_are_a_divergence() -> None:
    problem = small()
    model, at = electrostatic._prepared(problem, PlacerSettings(), None, None)
    descent = _Descent(model, at, growth=1.03, balance=1e-4)
    descent._gradient = np.full_like(descent._gradient, np.nan)
    assert not descent.advance()


def test_settings_and_starts_out_of_range_are_rejected() -> None:
    for name, value in (("overflow", 0.0), ("density", 1.1), ("iterations", 0), ("growth", 1.0), ("balance", 0.0)):
        with pytest.raises(DesignError, match=f"^{name}: "):
            PlacerSettings(**{name: value})  # type: ignore[arg-type]
    with pytest.raises(DesignError, match=r"start: shape \(2, 3\), expected \(2, 150\)"):
        place(small(), PlacerSettings(), start=np.zeros((2, 3)))
    with pytest.raises(DesignError, match="start: every coordinate must be finite"):
        place(small(), PlacerSettings(), start=np.full((2, 150), np.nan))
