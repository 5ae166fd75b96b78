"""From a network's score of every cell to the logits that actions are drawn with.

Axis legend: B samples, R grid rows, C grid columns.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

ILLEGAL = -1e9
"""Logit of an illegal cell: finite, and its probability is exactly 0."""


def masked_logits(logits: jax.Array, valid: jax.Array, legal: jax.Array, *, floor: float) -> jax.Array:
    """The logits with illegal cells ruled out.

    With a floor, the published recipe's order: a softmax over all cells, illegal ones too, plus the floor, and only
    then the mask. The probability of illegal cells is lost. The less is left for the legal cells, the nearer they are
    to uniform.

    Args:
        logits: float32 [B, R, C].
        valid: [B, R, C], not 0 on the design's grid; padding takes no part in the softmax.
        legal: bool [B, R, C].
        floor: added to every cell's probability; 0 = none.

    Returns:
        float32 [B, R, C], `ILLEGAL` where the cell is illegal.
    """
    if floor > 0:
        everywhere = jnp.where(valid != 0, logits, ILLEGAL)
        logits = jnp.log(jax.nn.softmax(everywhere, axis=(1, 2)) + floor)
    return jnp.where(legal, logits, ILLEGAL)
