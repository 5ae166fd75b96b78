"""Well-formed episodes for tests of their transport."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import numpy as np

from placement.config import EnvConfig
from placement.engine.observation import Observation
from placement.engine.pool import make_pool
from placement.episode import Episode, signature
from placement.netlist.design import Design
from placement.policy.agent import Agent, Params

STEPS = 6
NEWEST = np.iinfo(np.int32).max
"""A model version above any learner's: its episodes are not from an older policy."""


def episode(count: int, *, actor: int = 0, version: int = 0, steps: int = STEPS) -> Episode:
    """Returns a well-formed episode of full length whose identity is (actor, count)."""
    return signature(steps)._replace(
        identity=np.array([actor, count], np.int64),
        version=np.array(version, np.int32),
        length=np.array(steps, np.int32),
        actions=np.arange(steps, dtype=np.int32),
        log_probabilities=np.full(steps, -1.5, np.float32),
        reward=np.array(-0.75, np.float32),
        costs=np.array([100.0, 0.1, 0.5, 0.8, 0.75]),
    )


def counts(episodes: list[Episode]) -> list[int]:
    """Returns the second component of each episode's identity."""
    return [int(item.identity[1]) for item in episodes]


def played_episodes(
    designs: list[Design],
    count: int,
    seed: int,
    *,
    env: EnvConfig,
    played_by: tuple[Agent, Params] | None = None,
    bonus: int = 0,
    version: int = NEWEST,
) -> list[Episode]:
    """Returns legal episodes, random unless an agent plays. With `bonus`, each action in a column below it pays 1."""
    pool = make_pool(designs, count, config=env, num_threads=1)
    (observation, _), steps = pool.reset(), pool.spec.steps
    player = None if played_by is None else (*played_by, played_by[0].embed(played_by[1]))
    batch = signature(steps)
    batch = Episode(*(np.repeat(value[None], count, axis=0) for value in batch))
    batch.identity[:, 1] = np.arange(seed * count, (seed + 1) * count)
    batch.actions[:] = -1
    batch.version[:] = version
    batch.design[:] = pool.config.design_of_env
    running = np.ones(count, bool)
    for step in range(steps):
        if player is not None:
            agent, params, embeddings = player
            key = jax.random.key(seed * steps + step)
            taken, chances, _ = agent.act(params, embeddings, Observation(**observation), key)
        else:
            taken, chances = _at_random(np.random.default_rng([seed, step]), observation["mask"].reshape(count, -1))
        batch.actions[running, step], batch.log_probabilities[running, step] = taken[running], chances[running]
        batch.length[running] = step + 1
        observation, reward, terminated, _, info = pool.step(taken)
        ended = running & terminated
        for field, values in (("reward", reward), ("costs", info["costs"]), ("dead_end", info["dead_end"])):
            getattr(batch, field)[ended] = values[ended]
        running &= ~ended
    if bonus:
        batch.reward[:] = ((batch.actions >= 0) & (batch.actions % pool.spec.columns < bonus)).sum(axis=1)
    return [Episode(*(np.array(field[index]) for field in batch)) for index in range(count)]


def chances_of(agent: Agent, params: Params, designs: list[Design], episode: Episode, *, env: EnvConfig) -> np.ndarray:
    """Returns log-probabilities of an episode's actions under the parameters, float32 [length]."""
    pool = make_pool(designs, 1, config=env, design_of_env=[int(episode.design)])
    (observation, _), embeddings, found = pool.reset(), agent.embed(params), []
    decide = _compiled(agent)
    for action in episode.actions[: episode.length]:
        logits = decide(params, embeddings, agent.network.inputs, Observation(**observation))
        found.append(jax.nn.log_softmax(logits.reshape(-1))[int(action)])
        observation = pool.step([action])[0]
    return np.array(found)


@functools.cache
def _compiled(agent: Agent) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """Returns the agent's decision, compiled once for all episodes."""
    return jax.jit(agent.network.decide)


def _at_random(generator: np.random.Generator, legal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns a legal action per row and its log-probability; 0 if there is none."""
    taken = np.array([generator.choice(np.flatnonzero(row)) if row.any() else 0 for row in legal], np.int32)
    return taken, -np.log(np.maximum(legal.sum(axis=1), 1.0)).astype(np.float32)
