"""What an episode has been like before each step, in a few dozen numbers: what its baseline is predicted from.

The last macros and the soft macros decide much of an episode's cost, and what stands already hardly tells episodes of
one policy apart. What tells them apart is how each macro's cell compared with the other cells when it was chosen. So
the numbers are sums of that over the macros placed so far. They depend on what happened before the step only, so a
baseline made of them leaves the policy's gradient unbiased.

Axis legend: B episodes, T steps (of the longest design), G designs, K numbers of a placed macro, H features.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from placement.config import PolicyConfig
from placement.engine.observation import MAPS, Observation
from placement.netlist.design import Design
from placement.netlist.graph import net_members
from placement.policy.features import GLOBALS, PRIORS, energy_terms, grid_features, situation
from placement.policy.inputs import GraphInputs

RECENT = 8
"""Macros that the second of the sums looks back over."""
_AROUND = slice(13, 20)
"""The channels that say what is around a cell: closed neighbours, density near and far, open cells."""
_WAVES = 3
"""Cosines per axis that say where a macro stands."""
_PLACED = len(PRIORS) + (_AROUND.stop - _AROUND.start) + 1 + 2 + 2 * _WAVES
"""K."""
FEATURES = 2 * _PLACED + GLOBALS
"""H."""


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
        config: says what the policy is shown.
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
        features = grid_features(seen, situation(inputs, seen, held), config)
        wire = jnp.asarray(seen.maps)[:, MAPS.index("wire_mask")][:, None].astype(jnp.float32)
        shown = jnp.concatenate([features.priors[:, : len(PRIORS)], features.channels[:, _AROUND], wire], axis=1)
        there = jnp.take_along_axis(shown.reshape(steps, shown.shape[1], -1), chosen[:, None, None], axis=2)[:, :, 0]
        share = wire_shares[jnp.asarray(seen.design)[0]]
        there = there.at[:, -1].multiply(share * len(share))
        return jnp.concatenate([there, added, _waves(seen, length)], axis=1), features.globals

    given = (by_episode, energy.reshape(episodes, steps, 2), actions, terms, lengths)
    placed, state = jax.lax.map(one, given, batch_size=_episodes_at_once())
    placed = placed * inside[:, :, None]
    before = jnp.cumsum(placed, axis=1) - placed
    earlier = jnp.pad(before, ((0, 0), (RECENT, 0), (0, 0)))[:, :steps]
    return jnp.concatenate([before, before - earlier, state], axis=2)


def _episodes_at_once() -> int | None:
    """Whose maps are looked at in one go: an accelerator works through small pieces slowly. None: one by one."""
    return None if jax.default_backend() == "cpu" else 16


def _waves(seen: Observation, length: jax.Array) -> jax.Array:
    """float32 [T, 2 · waves]: where each macro of one episode stands, from its last observation."""
    last = jnp.maximum(length - 1, 0)
    place = jnp.stack([jnp.asarray(seen.x)[last], jnp.asarray(seen.y)[last]], axis=1)
    angle = jnp.pi * place[:, :, None] * jnp.arange(1, _WAVES + 1, dtype=jnp.float32)
    return jnp.cos(angle).reshape(len(place), -1)


def wire_shares(designs: Sequence[Design], steps: int) -> np.ndarray:
    """float32 [G, T]: summed weight of each macro's nets over that of all nets, in placing order.

    What the wire mask shows of a cell, times this, is the wirelength cost that placing the macro there adds.
    """
    result = np.zeros((len(designs), steps), np.float32)
    for index, design in enumerate(designs):
        net, node = net_members(design)
        weight = np.bincount(node, design.netlist.net_weight[net], design.netlist.num_nodes)
        order = design.placing_order
        result[index, : len(order)] = weight[order] / max(float(design.netlist.net_weight.sum()), 1e-30)
    return result
