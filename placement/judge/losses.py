"""What the judge is trained to make small.

Axis legend: B placements of one design, G cells of a map across and up.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax

from placement.judge.network import Array, Prediction

TEMPERATURE = 0.02
"""Difference of two log wirelengths that counts as one."""
_LEVEL, _OVERFLOW, _MAPS = 0.1, 0.5, 0.2  # weights of the losses beside the ranks


def pair_loss(predicted: jax.Array, actual: jax.Array) -> jax.Array:
    """How badly pairs of placements are ordered: log(1 + exp(−d)) of each pair, d the predicted difference.

    Differences are taken in the direction of the actual ones, over `TEMPERATURE`. Pairs whose actual difference is
    below that count for less, in proportion.

    Args:
        predicted: float32 [B].
        actual: float32 [B].

    Returns:
        float32, the mean over the pairs by what they count; 0 where no two differ.
    """
    difference = (actual[:, None] - actual) / TEMPERATURE
    weight = jnp.minimum(jnp.abs(difference), 1.0)
    wrong = jax.nn.softplus(-jnp.sign(difference) * (predicted[:, None] - predicted) / TEMPERATURE)
    return jnp.sum(weight * wrong) / jnp.maximum(jnp.sum(weight), 1e-6)


def judge_loss(prediction: Prediction, wirelength: Array, overflow: Array, maps: Array) -> jax.Array:
    """Of a design's placements; `wirelength`, `overflow` [B] and `maps` [B, G, G, 2] as `Targets` has them."""
    deviation = jnp.maximum(jnp.std(wirelength), TEMPERATURE)
    error = prediction.wirelength - wirelength
    centred = (error - error.mean()) / deviation
    return (
        pair_loss(prediction.wirelength, wirelength)
        + optax.huber_loss(centred, delta=1.0).mean()
        + _LEVEL * optax.huber_loss(error / 0.1, delta=1.0).mean()
        + _OVERFLOW * optax.huber_loss((prediction.overflow - overflow) / 0.1, delta=1.0).mean()
        + _MAPS * optax.huber_loss((prediction.maps - maps) / 0.2, delta=1.0).mean()
    )
