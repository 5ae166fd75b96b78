"""Plays one episode in every environment of a pool.

Axis legend: B environments, T macros to place (the longest design's).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from placement.engine.observation import Observation
from placement.engine.pool import EnvironmentPool
from placement.engine.pool_types import Result
from placement.policy.agent import Agent, Decision
from placement.ppo.trajectory import Episode, signature, stack_episodes


class EmbeddedParameters(NamedTuple):
    """The policy network as `Agent.act` takes it.

    Attributes:
        parameters: pytree of arrays.
        embeddings: what `agent.embed(parameters)` gave.
    """

    parameters: Any
    embeddings: Any


def play(
    agent: Agent,
    pool: EnvironmentPool,
    network: EmbeddedParameters,
    key: jax.Array,
    *,
    greedy: bool = False,
    on_end: Callable[[int, np.ndarray], None] = lambda env, costs: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Episode | None:
    """Resets the pool and plays until every environment's first episode has ended.

    An environment whose episode ends earlier than others' begins a new one, as the pool does; that one is thrown away.

    Args:
        agent: picks the actions.
        pool: B environments, in synchronous mode.
        network: parameters and embeddings.
        key: JAX random key, consumed.
        greedy: take the likeliest action instead of drawing one.
        on_end: called with the environment and its costs (float64 [5]) when its episode ends with everything placed,
            while `pool.placement` still gives that episode's placement.
        stopped: asked at every step.

    Returns:
        The episodes as one, axis B before each field's own, with identity and version 0; None if `stopped()` became
        true before the last one ended.
    """
    observation, _ = pool.reset()
    steps = pool.spec.steps
    played = _blank(observation["design"], steps)
    running = np.ones(pool.num_envs, np.bool_)
    keys = jax.random.split(key, steps)
    for step in range(steps):
        if stopped():
            return None
        decision = agent.act(*network, Observation(**observation), keys[step], greedy=greedy)
        result = pool.step(decision.actions)
        _note(played, running, step, decision, result)
        observation, _, terminated, _, info = result
        ended = running & terminated
        for env in np.flatnonzero(ended & ~info["dead_end"]):
            on_end(int(env), played.costs[env])
        running &= ~ended
        if not running.any():
            return played
    raise RuntimeError(f"{int(running.sum())} episodes have not ended after {steps} steps")


def _note(played: Episode, running: np.ndarray, step: int, decision: Decision, result: Result) -> None:
    """Writes one step of the running environments (bool [B]) into `played`."""
    played.actions[running, step] = decision.actions[running]
    played.log_probabilities[running, step] = decision.log_probabilities[running]
    played.values[running, step] = decision.values[running]
    played.length[running] = step + 1
    _, reward, _, _, info = result
    played.dead_end[running], played.reward[running] = info["dead_end"][running], reward[running]
    played.costs[running] = info["costs"][running]


def _blank(design: np.ndarray, steps: int) -> Episode:
    """Episodes of these designs (int32 [B]) before their first action, as one."""
    blank = stack_episodes([signature(steps)] * len(design))._replace(design=design)
    blank.actions.fill(-1)
    blank.costs.fill(np.nan)
    return blank
