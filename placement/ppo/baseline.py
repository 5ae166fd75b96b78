"""The baseline of the advantages: a prediction of the reward before each step, from the episode so far.

One reward per episode is too little for a value head trained by gradient steps, which sees each episode once: it
explained nothing on every design tried. The episodes of one policy differ in how each macro's cell compared with the
other cells when it was chosen. The features are therefore sums of these comparisons over the macros placed so far
(`history_features`). They depend only on the past of the step, so a baseline computed from them leaves the policy's
gradient unbiased.

`predicted` is a ridge regression of the rewards on these features in closed form, which uses every episode fully, for
each design and eighth of an episode. Features and rewards are relative to their means over the iteration's episodes at
the same step, so neither the step nor the policy's progress has to be explained. The weight of older iterations decays.

Axis legend: B episodes, T steps (of the longest design), G designs, S segments of an episode, K numbers of a placed
macro, H features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from placement.config import PolicyConfig
from placement.engine.observation import Observation
from placement.episode import Episode
from placement.netlist.design import Design
from placement.netlist.graph import net_members
from placement.policy.features import AT_CELL, GLOBALS, cell_features, situation
from placement.policy.inputs import GraphInputs

RECENT = 8
"""Number of macros in the second sum, which covers the most recent ones only."""
_WAVES = 3
"""Cosines per axis of a macro's position."""
_PLACED = AT_CELL + 2 + 2 * _WAVES
"""K, the number of values of a placed macro."""
FEATURES = 2 * _PLACED + GLOBALS
"""H, the number of features."""
SEGMENTS = 8
"""S: an episode is divided into this many segments of equal length, each with its own weights."""
_MEMORY = 0.8
"""Factor by which the weight of an iteration's episodes decays per iteration."""
_RIDGE = 300.0
"""Strength of the ridge, in steps of episodes."""
_LIMIT = 2.0
"""Maximum difference of predictions from the mean, in deviations, because early weights may be extreme."""
_LEAST_DEVIATION = 1e-4
"""Deviation up to which features are omitted: float32 sums vary this much by rounding alone."""
_PRIOR_EPISODES = 4.0
"""Weight of the running mean of a design's rewards, in episodes, compared with the iteration's own."""


class Regression(NamedTuple):
    """Sums over the steps of all episodes so far; part of the learner's state.

    Attributes:
        gram: float32 [G, S, H, H], sums of products of features.
        moment: float32 [G, S, H], sums of features times reward.
        steps: float32 [G, S], number of steps.
    """

    gram: np.ndarray
    moment: np.ndarray
    steps: np.ndarray


def no_episodes(designs: int, features: int = FEATURES) -> Regression:
    """Returns the state before any episode, with G = `designs` and H = `features`."""
    return Regression(
        np.zeros((designs, SEGMENTS, features, features), np.float32),
        np.zeros((designs, SEGMENTS, features), np.float32),
        np.zeros((designs, SEGMENTS), np.float32),
    )


def predicted(
    state: Regression,
    features: np.ndarray,
    rewards: np.ndarray,
    batch: Episode,
    *,
    macros: np.ndarray,
    unit: np.ndarray,
) -> tuple[np.ndarray, Regression]:
    """Predicts the rewards before each step with earlier iterations' weights, and adds these episodes to the state.

    Args:
        state: of the previous iterations; if it has a single design, all designs share its weights.
        features: float32 [B, T, H].
        rewards: float32 [B], of the whole episodes, minus the running mean of their design, over its deviation.
        batch: the episodes.
        macros: int [designs], number of macros of each design in `batch`.
        unit: float [G], the deviation of each design's rewards, over that of the previous iteration. The state is
            converted to the new unit. The larger the earlier deviation, the less the state counts.

    Returns:
        (float32 [B, T], 0 past the lengths; the new state).
    """
    values = np.zeros(features.shape[:2], np.float32)
    state = _aged(state, np.maximum(np.asarray(unit, np.float32), 1e-6))
    gram, moment, count = (array.copy() for array in state)
    shares = len(state.gram) == 1
    steps = np.arange(features.shape[1])
    for which in np.unique(batch.design):
        mine = np.flatnonzero((batch.design == which) & (batch.length > 0))
        if not len(mine):
            continue
        inside = steps[None] < batch.length[mine, None]
        about, left, mean = _centred(features[mine], rewards[mine], inside)
        segment = np.minimum(steps * SEGMENTS // int(macros[which]), SEGMENTS - 1)
        own = 0 if shares else which
        weights = _weights(*(array[own] for array in state))[segment]
        guess = np.clip((about * weights).sum(axis=2), -_LIMIT, _LIMIT)
        values[mine] = np.where(inside, mean + guess, 0)
        for index in range(SEGMENTS):
            rows = about[:, segment == index].reshape(-1, features.shape[2])
            gram[own, index] += rows.T @ rows
            moment[own, index] += rows.T @ left[:, segment == index].ravel()
            count[own, index] += inside[:, segment == index].sum()
    return values, Regression(gram, moment, count)


def _aged(state: Regression, unit: np.ndarray) -> Regression:
    """Returns the state one iteration later, for rewards in units `unit` (float32 [G]) times as large."""
    kept = _MEMORY * np.minimum(unit, 1) ** 2
    gram, moment, count = state
    return Regression(gram * kept[:, None, None, None], moment * (kept / unit)[:, None, None], count * kept[:, None])


def _centred(
    features: np.ndarray, rewards: np.ndarray, inside: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features [B, T, H] and rewards [B, T] minus their means at each step, 0 outside; and the rewards' means [T]."""
    alive = np.maximum(inside.sum(axis=0), 1).astype(np.float32)
    counted = inside[:, :, None].astype(np.float32)
    about = (features - (features * counted).sum(axis=0) / alive[:, None]) * counted
    total = rewards @ inside
    left = (rewards[:, None] - total / alive) * inside
    return about, left.astype(np.float32), (total / (alive + _PRIOR_EPISODES)).astype(np.float32)


def _weights(gram: np.ndarray, moment: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Returns the ridge regression's weights on features of deviation 1, float32 [S, H]; 0 before any episode."""
    deviation = np.sqrt(np.diagonal(gram, axis1=1, axis2=2) / np.maximum(count, 1)[:, None])
    scale = np.where(deviation > _LEAST_DEVIATION, 1 / np.maximum(deviation, _LEAST_DEVIATION), 0).astype(np.float64)
    matrix = gram * scale[:, :, None] * scale[:, None] + _RIDGE * np.eye(scale.shape[1])
    # numpy.linalg.solve would wake BLAS's threads, which takes longer than the solution.
    found = [cho_solve(cho_factor(one), right) for one, right in zip(matrix, moment * scale, strict=True)]
    return (np.stack(found) * scale).astype(np.float32)


def history_features(
    config: PolicyConfig,
    inputs: GraphInputs,
    wire_shares: jax.Array,
    observation: Observation,
    energy: jax.Array,
    actions: jax.Array,
    lengths: jax.Array,
) -> jax.Array:
    """Returns sums over all placed macros and over the last `RECENT`, and the state's globals, float32 [B, T, H].

    Args:
        config: the policy's settings.
        inputs: the designs' constants.
        wire_shares: float32 [G, T], see `wire_shares`.
        observation: with axis B · T before those of a single observation.
        energy: float32 [B · T, 2], see `placement.policy.features.spring_energy`.
        actions: int32 [B, T], any legal number past an episode's length.
        lengths: int32 [B], steps of each episode.
    """
    episodes, steps = actions.shape
    by_episode = jax.tree.map(lambda array: array.reshape(episodes, steps, *array.shape[1:]), observation)
    energy = energy.reshape(episodes, steps, 2)
    terms = jnp.diff(energy, axis=1, append=energy[:, -1:])  # no step has seen the last macro placed
    inside = jnp.arange(steps)[None] < lengths[:, None]

    def one(
        given: tuple[Observation, jax.Array, jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array]:
        seen, held, chosen, added, length = given
        there, state = cell_features(seen, situation(inputs, seen, held), config, chosen)
        share = wire_shares[jnp.asarray(seen.design)[0]]
        there = there.at[:, -1].multiply(share * len(share))
        return jnp.concatenate([there, added, _waves(seen, length)], axis=1), state

    given = (by_episode, energy, actions, terms, lengths)
    placed, state = jax.lax.map(one, given, batch_size=_episodes_at_once())
    placed = placed * inside[:, :, None]
    before = jnp.cumsum(placed, axis=1) - placed
    earlier = jnp.pad(before, ((0, 0), (RECENT, 0), (0, 0)))[:, :steps]
    return jnp.concatenate([before, before - earlier, state], axis=2)


def _episodes_at_once() -> int | None:
    """Number of episodes whose maps are processed at once: small batches are slow on accelerators. None: one by one."""
    return None if jax.default_backend() == "cpu" else 16


def _waves(seen: Observation, length: jax.Array) -> jax.Array:
    """Returns cosines of each macro's position in one episode, from its last observation, float32 [T, 2 · waves]."""
    last = jnp.maximum(length - 1, 0)
    place = jnp.stack([jnp.asarray(seen.x)[last], jnp.asarray(seen.y)[last]], axis=1)
    angle = jnp.pi * place[:, :, None] * jnp.arange(1, _WAVES + 1, dtype=jnp.float32)
    return jnp.cos(angle).reshape(len(place), -1)


def wire_shares(designs: Sequence[Design], steps: int) -> np.ndarray:
    """Returns the summed weight of each macro's nets over that of all nets, float32 [G, T], in placing order.

    The wire mask at a cell times this share is the wirelength cost that placing the macro there adds.
    """
    result = np.zeros((len(designs), steps), np.float32)
    for index, design in enumerate(designs):
        net, node = net_members(design)
        weight = np.bincount(node, design.netlist.net_weight[net], design.netlist.num_nodes)
        order = design.placing_order
        result[index, : len(order)] = weight[order] / max(float(design.netlist.net_weight.sum()), 1e-30)
    return result
