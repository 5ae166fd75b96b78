"""The losses of proximal policy optimisation (Schulman et al. 2017), per sample.

Axis legend: B samples, A actions (grid cells).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from placement.policy.graph_inputs import Array


class Coefficients(NamedTuple):
    """Scalars, float32.

    Attributes:
        clip: ε, how far the importance ratio may leave 1 before it stops paying.
        value: weight of the value loss.
        entropy: weight of the entropy bonus.
    """

    clip: Array
    value: Array
    entropy: Array


class Samples(NamedTuple):
    """The inputs of the loss for each sample.

    Attributes:
        actions: int32 [B].
        log_probabilities: float32 [B], of the actions by the policy that the iteration began with.
        off_policy: float32 [B], that policy's probability over that of the policy which drew the action, at most 1.
        advantages: float32 [B].
        returns: float32 [B], the value head's targets.
        weights: float32 [B], 1, or 0 for padding.
    """

    actions: Array
    log_probabilities: Array
    off_policy: Array
    advantages: Array
    returns: Array
    weights: Array


class Terms(NamedTuple):
    """Scalars: the loss and its parts, each a weighted sum over the samples."""

    loss: jax.Array
    policy_loss: jax.Array
    value_loss: jax.Array
    entropy: jax.Array
    approx_kl: jax.Array
    clip_fraction: jax.Array


def clipped_policy_loss(log_ratio: jax.Array, advantages: jax.Array, clip: jax.Array) -> jax.Array:
    """-min(ρ·A, clip(ρ, 1 - ε, 1 + ε)·A), float32 [B]; equation 7.

    Args:
        log_ratio: float32 [B], log ρ.
        advantages: float32 [B].
        clip: ε.
    """
    ratio = jnp.exp(log_ratio)
    return -jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - clip, 1 + clip) * advantages)


def categorical_entropy(log_probabilities: jax.Array) -> jax.Array:
    """-Σ p·log p in nats: float32 [B, A] → float32 [B]; actions of probability 0 add nothing."""
    probabilities = jnp.exp(log_probabilities)
    return -jnp.sum(jnp.where(probabilities > 0, probabilities * log_probabilities, 0.0), axis=1)


def approximate_kl(log_ratio: jax.Array) -> jax.Array:
    """(ρ - 1) - log ρ: an unbiased, never negative estimate of KL(old, new) per sample, float32 [B]."""
    return jnp.expm1(log_ratio) - log_ratio


def ppo_terms(logits: jax.Array, values: jax.Array, samples: Samples, coefficients: Coefficients) -> Terms:
    """Loss and parts, summed with the samples' weights.

    Args:
        logits: float32 [B, A], large negative where illegal.
        values: float32 [B].
        samples: B of them.
        coefficients: weights of the parts.
    """
    log_probabilities = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(log_probabilities, samples.actions[:, None], axis=1)[:, 0]
    log_ratio = chosen - samples.log_probabilities
    policy = samples.off_policy * clipped_policy_loss(log_ratio, samples.advantages, coefficients.clip)
    value = 0.5 * (values - samples.returns) ** 2
    entropy = categorical_entropy(log_probabilities)
    clipped = (jnp.abs(jnp.expm1(log_ratio)) > coefficients.clip).astype(jnp.float32)
    loss = policy + coefficients.value * value - coefficients.entropy * entropy
    parts = (loss, policy, value, entropy, approximate_kl(log_ratio), clipped)
    return Terms(*(jnp.sum(part * samples.weights) for part in parts))
