"""The baseline of the advantages: the rewards predicted before each step from what the episode has been like so far.

One reward per episode is too little for a value head that learns by gradient steps, which sees each episode once: on
every design that was tried it explained nothing. What tells episodes of one policy apart is how each macro's cell
compared with the other cells when it was chosen. So the features are sums of that over the macros placed so far
(`history_features`). They depend on what happened before the step only, so a baseline made of them leaves the policy's
gradient unbiased.

`predicted` is a ridge regression of the rewards on these features in closed form, which uses every episode fully, for
each design and eighth of an episode. Features and rewards are taken about their means over the iteration's episodes at
the same step, so neither the step nor the policy's progress has to be explained. Older iterations count less and less.

Axis legend: B episodes, T steps (of the longest design), G designs, S segments of an episode, K numbers of a placed
macro, H features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from placement.config import PolicyConfig
from placement.engine.observation import Observation
from placement.episode import Episode
from placement.netlist.design import Design
from placement.netlist.graph import net_members
from placement.policy.features import AT_CELL, GLOBALS, cell_features, energy_terms, situation
from placement.policy.inputs import GraphInputs

RECENT = 8
"""Macros that the second of the sums looks back over."""
_WAVES = 3
"""Cosines per axis of a macro's position."""
_PLACED = AT_CELL + 2 + 2 * _WAVES
"""K."""
FEATURES = 2 * _PLACED + GLOBALS
"""H."""
SEGMENTS = 8
"""S: an episode is split into so many segments of equal length, each with weights of its own."""
_MEMORY = 0.8
"""Weight of an iteration's episodes one iteration later."""
_RIDGE = 300.0
"""Strength of the ridge, in steps of episodes."""
_LIMIT = 2.0
"""Predictions differ from the mean by so many deviations at most: early weights may be wild."""
_LEAST_DEVIATION = 1e-4
"""Features that vary less are left out: sums in float32 vary so much by themselves."""
_PRIOR_EPISODES = 4.0
"""Episodes that the running mean of a design's rewards counts for beside the iteration's own."""


class Regression(NamedTuple):
    """Sums over the steps of all episodes so far; part of the learner's state.

    Attributes:
        gram: float32 [G, S, H, H], of products of features.
        moment: float32 [G, S, H], of features times reward.
        steps: float32 [G, S], how many.
    """

    gram: np.ndarray
    moment: np.ndarray
    steps: np.ndarray


def no_episodes(designs: int, features: int = FEATURES) -> Regression:
    """Before any episode, with G = `designs` and H = `features`."""
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
    """The rewards predicted before each step, from earlier iterations' weights; and the state with these episodes.

    Args:
        state: of the iterations before; where it is of a single design, all designs share its weights.
        features: float32 [B, T, H].
        rewards: float32 [B], of the whole episodes, less the running mean of their design, over its deviation.
        batch: the episodes.
        macros: int, of each design that `batch` is of.
        unit: float [G], the deviation of each design's rewards, over that of the iteration before. What was learned
            before is converted to the new unit; and the wider rewards were, the less it counts.

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
    """The state one iteration later, for rewards in units `unit` (float32 [G]) times as large."""
    kept = _MEMORY * np.minimum(unit, 1) ** 2
    gram, moment, count = state
    return Regression(gram * kept[:, None, None, None], moment * (kept / unit)[:, None, None], count * kept[:, None])


def _centred(
    features: np.ndarray, rewards: np.ndarray, inside: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features [B, T, H] and rewards [B, T] about their means at the same step, 0 outside; and the rewards' [T]."""
    alive = np.maximum(inside.sum(axis=0), 1).astype(np.float32)
    counted = inside[:, :, None].astype(np.float32)
    about = (features - (features * counted).sum(axis=0) / alive[:, None]) * counted
    total = rewards @ inside
    left = (rewards[:, None] - total / alive) * inside
    return about, left.astype(np.float32), (total / (alive + _PRIOR_EPISODES)).astype(np.float32)


def _weights(gram: np.ndarray, moment: np.ndarray, count: np.ndarray) -> np.ndarray:
    """float32 [S, H]: the ridge regression on features of deviation 1; 0 before any episode."""
    deviation = np.sqrt(np.diagonal(gram, axis1=1, axis2=2) / np.maximum(count, 1)[:, None])
    scale = np.where(deviation > _LEAST_DEVIATION, 1 / np.maximum(deviation, _LEAST_DEVIATION), 0).astype(np.float64)
    matrix = gram * scale[:, :, None] * scale[:, None] + _RIDGE * np.eye(scale.shape[1])
    return (np.linalg.solve(matrix, (moment * scale)[:, :, None])[:, :, 0] * scale).astype(np.float32)


def history_features(
    config: PolicyConfig,
    inputs: GraphInputs,
    wire_shares: jax.Array,
    observation: Observation,
    energy: jax.Array,
    actions: jax.Array,
    lengths: jax.Array,
) -> jax.Array:
    """float32 [B, T, H]: sums over all macros placed before the step, over the last `RECENT`, and the state's globals.

    Args:
        config: the policy's settings.
        inputs: the designs' constants.
        wire_shares: float32 [G, T], see `wire_shares`.
        observation: axis B · T before those of one observation.
        energy: float32 [B · T, 2], see `placement.policy.features.spring_energy`.
        actions: int32 [B, T], any legal number past an episode's length.
        lengths: int32 [B].
    """
    episodes, steps = actions.shape
    by_episode = jax.tree.map(lambda array: array.reshape(episodes, steps, *array.shape[1:]), observation)
    terms = energy_terms(inputs, by_episode, lengths)
    inside = jnp.arange(steps)[None] < lengths[:, None]

    def one(
        given: tuple[Observation, jax.Array, jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array]:
        seen, held, chosen, added, length = given
        there, state = cell_features(seen, situation(inputs, seen, held), config, chosen)
        share = wire_shares[jnp.asarray(seen.design)[0]]
        there = there.at[:, -1].multiply(share * len(share))
        return jnp.concatenate([there, added, _waves(seen, length)], axis=1), state

    given = (by_episode, energy.reshape(episodes, steps, 2), actions, terms, lengths)
    placed, state = jax.lax.map(one, given, batch_size=_episodes_at_once())
    placed = placed * inside[:, :, None]
    before = jnp.cumsum(placed, axis=1) - placed
    earlier = jnp.pad(before, ((0, 0), (RECENT, 0), (0, 0)))[:, :steps]
    return jnp.concatenate([before, before - earlier, state], axis=2)


def _episodes_at_once() -> int | None:
    """Episodes whose maps are processed together: an accelerator is slow on small batches. None: one by one."""
    return None if jax.default_backend() == "cpu" else 16


def _waves(seen: Observation, length: jax.Array) -> jax.Array:
    """float32 [T, 2 · waves]: each macro's position in one episode, from its last observation."""
    last = jnp.maximum(length - 1, 0)
    place = jnp.stack([jnp.asarray(seen.x)[last], jnp.asarray(seen.y)[last]], axis=1)
    angle = jnp.pi * place[:, :, None] * jnp.arange(1, _WAVES + 1, dtype=jnp.float32)
    return jnp.cos(angle).reshape(len(place), -1)


def wire_shares(designs: Sequence[Design], steps: int) -> np.ndarray:
    """float32 [G, T]: summed weight of each macro's nets over that of all nets, in placing order.

    The wire mask at a cell, times this, is the wirelength cost that placing the macro there adds.
    """
    result = np.zeros((len(designs), steps), np.float32)
    for index, design in enumerate(designs):
        net, node = net_members(design)
        weight = np.bincount(node, design.netlist.net_weight[net], design.netlist.num_nodes)
        order = design.placing_order
        result[index, : len(order)] = weight[order] / max(float(design.netlist.net_weight.sum()), 1e-30)
    return result
