"""The spectral field against SciPy's transforms, a direct solve, and a field known in closed form."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.fft

from placement.flat import spectral


@pytest.mark.parametrize("size", [8, 32])
def test_transforms_agree_with_scipy(size: int) -> None:
    samples = np.random.default_rng(0).normal(size=(5, size)).astype(np.float32)
    np.testing.assert_allclose(spectral.cosine(jnp.asarray(samples)), scipy.fft.dct(samples), atol=2e-5)
    np.testing.assert_allclose(spectral.inverse_cosine(jnp.asarray(samples)), scipy.fft.idct(samples), atol=2e-6)
    n, k = np.arange(size)[:, None], np.arange(size)[None, :]
    sines = np.sin(np.pi * k * (2 * n + 1) / (2 * size))
    np.testing.assert_allclose(spectral.inverse_sine(jnp.asarray(samples)), samples @ sines.T / size, atol=2e-5)


def test_field_of_one_wave() -> None:
    # ρ = cos(2πx/W) cos(πy/H) has ψ = ρ / (w² + v²) and the field −∇ψ = (w sin cos, v cos sin) / (w² + v²).
    width, height = 40.0, 10.0
    x, y = (np.arange(32) + 0.5) * width / 32, (np.arange(16) + 0.5) * height / 16
    w, v = 2 * np.pi / width, np.pi / height
    density = np.outer(np.cos(w * x), np.cos(v * y))
    across, up = jax.jit(spectral.field)(jnp.asarray(density, jnp.float32), spectral.spectrum((32, 16), width, height))
    np.testing.assert_allclose(across, w * np.outer(np.sin(w * x), np.cos(v * y)) / (w**2 + v**2), atol=1e-4)
    np.testing.assert_allclose(up, v * np.outer(np.cos(w * x), np.sin(v * y)) / (w**2 + v**2), atol=1e-4)


def test_field_against_a_direct_solve() -> None:
    """A smooth density on a fine grid, where the five-point Laplacian solved directly is nearly exact."""
    size, side = 48, 10.0
    step = side / size
    at = (np.arange(size) + 0.5) * step
    blob = np.exp(-((at[:, None] - 4.0) ** 2 + (at[None, :] - 6.5) ** 2) / 2)
    second = np.diag(np.full(size, -2.0)) + np.diag(np.ones(size - 1), 1) + np.diag(np.ones(size - 1), -1)
    second[0, 0] = second[-1, -1] = -1.0  # no field across the edge
    laplacian = (np.kron(second, np.eye(size)) + np.kron(np.eye(size), second)) / step**2
    charge = (blob - blob.mean()).ravel()
    # With one bin at zero the matrix is regular.
    potential = np.linalg.solve(laplacian[1:, 1:], -charge[1:])
    psi = np.concatenate([[0.0], potential]).reshape(size, size)
    expected = -np.gradient(psi, step, axis=0), -np.gradient(psi, step, axis=1)
    found = jax.jit(spectral.field)(jnp.asarray(blob, jnp.float32), spectral.spectrum((size, size), side, side))
    inner = slice(2, -2)
    for ours, direct in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            np.asarray(ours)[inner, inner], direct[inner, inner], atol=0.01 * np.abs(direct).max()
        )
