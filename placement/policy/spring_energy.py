"""What the springs hold of the placed macros, found without looking at each pair of macros for every sample.

With the sequential pulls (`placement.policy.influence`) the least energy of the springs, given what is placed, is a sum
over the placed macros of stiffness · (place - target)². A macro's target depends only on those placed before it. So a
step adds one term, and the terms of an episode are the same for all of its steps.

Axis legend: G designs, T macros to place (padded), B samples or episodes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from placement.engine.observation import Observation
from placement.policy.graph_inputs import GraphInputs

_TOGETHER = 16
"""Samples whose [T, T] pulls are looked up at a time where several designs are mixed."""


def spring_energy(inputs: GraphInputs, observation: Observation) -> jax.Array:
    """float32 [B, 2], x and y: the springs' least energy given what is placed, over that of uniformly random spots.

    Takes O(T²) for each sample, whatever the number of designs.
    """
    design, placed = jnp.asarray(observation.design), jnp.asarray(observation.step)
    done = jnp.arange(inputs.order.shape[1])[None] < jnp.minimum(placed, inputs.macros[design])[:, None]
    return jnp.sum(_terms(inputs, design, _positions(observation)) * done[:, :, None], axis=1)


def next_energy(inputs: GraphInputs, observation: Observation, held: jax.Array) -> jax.Array:
    """`spring_energy` from that of the step before, in O(T): float32 [B, 2].

    Args:
        inputs: the designs' constants.
        observation: of B environments. Where no macro is placed, the energy is 0.
        held: float32 [B, 2], the energies one step before, of the same environments.
    """
    design, placed = jnp.asarray(observation.design), jnp.asarray(observation.step)
    last = jnp.clip(placed, 1, inputs.macros[design]) - 1
    position = _positions(observation)
    place = jnp.take_along_axis(position, last[:, None, None], axis=1)[:, 0]
    target = jnp.einsum("bt,bta->ba", inputs.pull[design, 1, last], position) + inputs.pull_fixed[design, 1, last]
    added = (inputs.stiffness[design, 1, last] / _scale(inputs, design))[:, None] * (place - target) ** 2
    return jnp.where(placed[:, None] > 0, jnp.asarray(held) + added, 0.0)


def episode_energies(inputs: GraphInputs, observation: Observation, lengths: jax.Array) -> jax.Array:
    """`spring_energy` of all steps of whole episodes, in O(T) for each.

    Args:
        inputs: the designs' constants.
        observation: axes [B, T] before those of a step.
        lengths: int32 [B], actions taken.

    Returns:
        float32 [B, T, 2]; past an episode's length whatever.
    """
    terms = energy_terms(inputs, observation, lengths)
    return jnp.cumsum(terms, axis=1) - terms


def energy_terms(inputs: GraphInputs, observation: Observation, lengths: jax.Array) -> jax.Array:
    """What each macro of whole episodes adds to `spring_energy`: float32 [B, T, 2]; arguments of `episode_energies`.

    It means nothing at macros that no step of the episode sees placed.
    """
    last = jnp.maximum(jnp.asarray(lengths) - 1, 0)[:, None]
    ends = [jnp.take_along_axis(jnp.asarray(array), last[:, :, None], axis=1)[:, 0] for array in observation[-2:]]
    return _terms(inputs, jnp.asarray(observation.design)[:, 0], jnp.stack(ends, axis=2))


def _positions(observation: Observation) -> jax.Array:
    return jnp.stack([jnp.asarray(observation.x), jnp.asarray(observation.y)], axis=2)


def _scale(inputs: GraphInputs, design: jax.Array) -> jax.Array:
    """float32 [B]: what the springs hold of uniformly random spots."""
    return inputs.stiffness[design, 1].sum(axis=1) / 6


def _terms(inputs: GraphInputs, design: jax.Array, position: jax.Array) -> jax.Array:
    """Each macro's term, float32 [B, T, 2]; it means nothing at those that are not placed.

    Args:
        inputs: the designs' constants.
        design: int32 [B].
        position: float32 [B, T, 2].
    """
    if len(inputs.macros) == 1:
        targets = jnp.einsum("st,bta->bsa", inputs.pull[0, 1], position)
    else:
        targets = jax.lax.map(
            lambda one: jnp.einsum("st,ta->sa", inputs.pull[one[0], 1], one[1]),
            (design, position),
            batch_size=_TOGETHER,
        )
    stiffness = inputs.stiffness[design, 1] / _scale(inputs, design)[:, None]
    return stiffness[:, :, None] * (position - targets - inputs.pull_fixed[design, 1]) ** 2
