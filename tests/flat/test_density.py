"""Charge on bins: by hand, JAX against the engine, and the field against finite differences of the energy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from placement.flat import density, native_sums
from placement.flat.grid import Grid, blocked_share, density_overflow

GRID = Grid(16, 8, 32.0, 24.0)  # bins of 2 × 3 µm


def some_rectangles(rng: np.random.Generator, count: int = 60) -> tuple[np.ndarray, ...]:
    """x, y in bins, width and height in µm; some reach beyond the edge."""
    return (
        rng.uniform(-0.5, 16.5, count),
        rng.uniform(-0.5, 8.5, count),
        rng.uniform(0.3, 9.0, count),
        rng.uniform(0.3, 7.0, count),
    )


def test_one_rectangle_by_hand() -> None:
    # 4 × 6 µm are 2 × 2 bins; around bin coordinates (3.25, 4) they cover a quarter less of column 2 and more of 4.
    drawn = density.shapes(np.array([4.0]), np.array([6.0]), GRID)
    x, y = jnp.array([3.25], jnp.float32), jnp.array([4.0], jnp.float32)
    found = np.asarray(density.spread(drawn, x, y, jnp.zeros((16, 8), jnp.float32)))
    expected = np.zeros((16, 8))
    expected[2:5, 3:5] = np.array([0.75, 1.0, 0.25])[:, None]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_small_cell_keeps_its_charge_over_root_two_bins() -> None:
    drawn = density.shapes(np.array([0.5]), np.array([0.3]), GRID)
    x, y = jnp.array([5.5], jnp.float32), jnp.array([2.5], jnp.float32)
    found = np.asarray(density.spread(drawn, x, y, jnp.zeros((16, 8), jnp.float32)))
    assert found.sum() == pytest.approx(0.5 * 0.3 / 6.0, rel=1e-5)
    assert (found[4:7, 1:4] > 0).all() and (found > 0).sum() == 9


def test_the_engine_agrees_with_jax() -> None:
    if not native_sums.available():
        pytest.skip("the engine was built without XLA's headers")
    rng = np.random.default_rng(3)
    x, y, width, height = some_rectangles(rng)
    drawn = density.shapes(width, height, GRID)
    x, y = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)
    onto = jnp.asarray(rng.random((16, 8)), jnp.float32)
    maps = [jnp.asarray(rng.random((16, 8)), jnp.float32) for _ in range(2)]
    np.testing.assert_allclose(
        native_sums.spread(drawn, x, y, onto), jax.jit(density.spread)(drawn, x, y, onto), rtol=1e-5, atol=1e-5
    )
    for ours, theirs in zip(
        native_sums.gather(drawn, x, y, *maps), jax.jit(density.gather)(drawn, x, y, *maps), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_blocked_share_by_hand() -> None:
    boxes = np.array([[1.0, 0.0, 4.0, 3.0], [30.0, 21.0, 40.0, 30.0]])
    share = blocked_share(boxes, GRID)
    assert share[0, 0] == pytest.approx(0.5) and share[1, 0] == pytest.approx(1.0)
    assert share[15, 7] == pytest.approx(1.0)
    assert share.sum() == pytest.approx(2.5)


def test_overflow_by_hand() -> None:
    # Two cells of one bin's area in the same two-by-two bins' middle: nothing is over. In one bin's middle: much.
    sizes = (np.full(2, 2.0), np.full(2, 3.0))
    free = np.ones((16, 8))
    apart = density_overflow(np.array([8.0, 8.0]), np.array([12.0, 12.0]), sizes, free, grid=GRID)
    assert apart == 0.0
    together = density_overflow(np.array([9.0, 9.0]), np.array([13.5, 13.5]), sizes, free, grid=GRID)
    # Each is drawn √2 × √2 bins with charge 1: half of it is in the middle bin, which then holds exactly 2 · ½ = 1.
    assert together == pytest.approx(0.0, abs=1e-9)
    four = density_overflow(np.full(4, 9.0), np.full(4, 13.5), (np.full(4, 2.0), np.full(4, 3.0)), free, grid=GRID)
    assert four == pytest.approx((4 * 0.5 - 1) / 4)
    blocked = density_overflow(np.array([9.0]), np.array([13.5]), (sizes[0][:1], sizes[1][:1]), free * 0, grid=GRID)
    assert blocked == pytest.approx(1.0)
