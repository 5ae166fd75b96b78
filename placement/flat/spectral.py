"""The electric field of a charge density on a grid of bins, by cosine and sine transforms.

Poisson's equation ∇²ψ = −ρ with no field across the boundary is diagonal in the cosine basis (Lu et al.: "ePlace:
Electrostatics-based placement using fast Fourier transform and Nesterov's method", ACM TODAES 2015, section 5).

Axis legend: X bins across, Y bins up, K any leading axes, N samples along the last axis.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Spectrum(NamedTuple):
    """What turns the cosine coefficients of a density into those of its field.

    Attributes:
        across: float32 [X, Y], w_u / (w_u² + w_v²), µm.
        up: float32 [X, Y], w_v / (w_u² + w_v²), µm; w_u = πu / width, w_v = πv / height.
    """

    across: jax.Array
    up: jax.Array


def spectrum(bins: tuple[int, int], width: float, height: float) -> Spectrum:
    """The factors for a grid of `bins` (X, Y) over a core of `width` × `height` µm."""
    u = np.pi * np.arange(bins[0])[:, None] / width
    v = np.pi * np.arange(bins[1])[None, :] / height
    square = u**2 + v**2
    square[0, 0] = 1.0  # the mean has no field
    return Spectrum(jnp.asarray(u / square, jnp.float32), jnp.asarray(v / square, jnp.float32))


def field(density: jax.Array, factors: Spectrum) -> tuple[jax.Array, jax.Array]:
    """The field −∇ψ of a density.

    Args:
        density: float32 [X, Y], charge per area.
        factors: of the same grid.

    Returns:
        float32 [X, Y] each, the field's parts across and up, charge per area · µm.
    """
    coefficients = cosine(cosine(density.T).T)  # [X, Y]
    across = inverse_sine(inverse_cosine(coefficients * factors.across).T).T
    up = inverse_sine(inverse_cosine((coefficients * factors.up).T).T)
    return across, up


def cosine(samples: jax.Array) -> jax.Array:
    """The cosine transform (DCT-II) along the last axis, X_k = 2 Σ x_n cos(πk(2n+1)/2N); float32 [K, N] → [K, N].

    By one real FFT of the samples in another order (Makhoul: "A fast cosine transform in one and two dimensions",
    IEEE TASSP 1980). N must be even.
    """
    size = samples.shape[-1]
    ordered = jnp.concatenate([samples[..., ::2], samples[..., ::-2]], axis=-1)
    half = jnp.fft.rfft(ordered) * _turn(size)
    return jnp.concatenate([2 * half.real, -2 * half.imag[..., -2:0:-1]], axis=-1)


def inverse_cosine(coefficients: jax.Array) -> jax.Array:
    """The inverse of `cosine` along the last axis; float32 [K, N] → [K, N]."""
    size = coefficients.shape[-1]
    middle = size // 2
    mirrored = jnp.concatenate(
        [jnp.zeros_like(coefficients[..., :1]), coefficients[..., : middle - 1 : -1]], axis=-1
    )  # X_{N−k}, k of 0 to N/2
    half = 0.5 * (coefficients[..., : middle + 1] - 1j * mirrored) * _turn(size).conj()
    ordered = jnp.fft.irfft(half, size)
    pairs = jnp.stack([ordered[..., :middle], ordered[..., : middle - 1 : -1]], axis=-1)
    return pairs.reshape(coefficients.shape)


def inverse_sine(coefficients: jax.Array) -> jax.Array:
    """Σ over k of the coefficients as `inverse_cosine` weighs them, times sin(πk(2n+1)/2N); float32 [K, N] → [K, N]."""
    size = coefficients.shape[-1]
    turned = jnp.concatenate(
        [jnp.zeros_like(coefficients[..., :1]), coefficients[..., :0:-1]], axis=-1
    )  # X_{N−k}: sin(πk(2n+1)/2N) = (−1)ⁿ cos(π(N−k)(2n+1)/2N)
    signs = np.where(np.arange(size) % 2, -1, 1).astype(np.float32)
    return inverse_cosine(turned) * signs


def _turn(size: int) -> np.ndarray:
    """exp(−iπk/2N), complex64 [N/2+1]."""
    return np.exp(-0.5j * np.pi * np.arange(size // 2 + 1) / size).astype(np.complex64)
