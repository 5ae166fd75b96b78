"""Beam search with a policy: the most promising beginnings of an episode are extended.

Each of the W kept beginnings is extended by its K likeliest actions. Of these W · K, the W best are kept. The score is
the log-probability plus the predicted value.

Axis legend: W beginnings, K branches, B = W · K environments, A = rows · columns gcells.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from placement.config import EnvConfig
from placement.engine.costs import Costs
from placement.engine.observation import Observation
from placement.engine.pool import EnvironmentPool, make_pool
from placement.netlist.design import Design
from placement.policy.agent import Agent
from placement.training.evaluator import Evaluation
from placement.training.rollout import EmbeddedParameters

BRANCHES = 2
"""K."""
STEP_SECONDS = 600.0
"""That the engine may take for one step of all environments; the last one places the soft macros."""


class Beginning(NamedTuple):
    """The first actions of an episode.

    Attributes:
        actions: row · columns + column of each macro.
        log_probability: of all of them together.
        state: of the environment after them.
        choices: float32 [A], log-probability of each next action, -inf where illegal.
    """

    actions: tuple[int, ...]
    log_probability: float
    state: bytes
    choices: np.ndarray


class Continued(NamedTuple):
    """A beginning with one more action, not taken yet: whose, which, and the log-probability of all of them."""

    parent: Beginning
    action: int
    log_probability: float


class BeamSearch:
    """Searches for cheap placements of one design.

    Args:
        agent: made for `design` alone.
        design: to be placed.
        env: the environment's settings.
        width: W.
        value_weight: of the value (in standard deviations of the reward) beside the log-probability.
    """

    def __init__(self, agent: Agent, design: Design, *, env: EnvConfig, width: int, value_weight: float = 1.0) -> None:
        self._agent, self._design, self._env = agent, design, env
        self._width, self._value_weight = width, value_weight
        self._look = jax.jit(functools.partial(_look, agent))

    def search(self, parameters: Any) -> list[Evaluation]:
        """The episodes of the beginnings that were kept to the end. If all came to dead ends: one of those."""
        network = EmbeddedParameters(parameters, self._agent.embed(parameters))
        with make_pool(self._design, self._width * BRANCHES, config=self._env) as pool:
            pool.reset(timeout=STEP_SECONDS)
            choices, _ = self._decisions(network, pool)
            kept = [Beginning((), 0.0, pool.snapshot(0), choices[0])]
            for _ in range(len(self._design.placing_order) - 1):
                kept, last = self._advanced(network, pool, _continued(kept)), kept
                if not kept:
                    return [Evaluation(0, False, True, None, None, last[0].actions)]
            return _ended(pool, _continued(kept))

    def _advanced(
        self, network: EmbeddedParameters, pool: EnvironmentPool, continued: list[Continued]
    ) -> list[Beginning]:
        """Takes the actions and keeps the W best results; nothing where all are dead ends."""
        dead_end, _ = _step(pool, continued)
        choices, values = self._decisions(network, pool)
        score = np.array([one.log_probability for one in continued]) + self._value_weight * values[: len(continued)]
        score[dead_end] = -np.inf
        best = np.argsort(-score, kind="stable")[: self._width]
        return [
            Beginning(
                (*continued[index].parent.actions, continued[index].action),
                continued[index].log_probability,
                pool.snapshot(int(index)),
                choices[index],
            )
            for index in best
            if not dead_end[index]
        ]

    def _decisions(self, network: EmbeddedParameters, pool: EnvironmentPool) -> tuple[np.ndarray, np.ndarray]:
        """Log-probabilities float32 [B, A] and values float32 [B] in the present states of all environments."""
        observation = Observation(**pool.observe()[0])
        choices, values = self._look(*network, self._agent.network.inputs, observation)
        return np.asarray(choices), np.asarray(values)


def _look(
    agent: Agent, parameters: Any, embeddings: Any, inputs: Any, observation: Observation
) -> tuple[jax.Array, jax.Array]:
    """Log-probabilities float32 [B, A], -inf where illegal, and values float32 [B]."""
    logits, values = agent.network.decide(parameters, embeddings, inputs, observation)
    flat = jax.nn.log_softmax(logits.reshape(len(logits), -1))
    legal = jnp.asarray(observation.mask).reshape(flat.shape) != 0
    return jnp.where(legal, flat, -jnp.inf), values


def _continued(kept: list[Beginning]) -> list[Continued]:
    """Each beginning with each of its K likeliest next actions."""
    result = []
    for parent in kept:
        for action in np.argsort(-parent.choices, kind="stable")[:BRANCHES]:
            if np.isfinite(parent.choices[action]):
                result.append(Continued(parent, int(action), parent.log_probability + float(parent.choices[action])))
    return result


def _step(pool: EnvironmentPool, continued: list[Continued]) -> tuple[np.ndarray, np.ndarray]:
    """Takes each action after its beginning, in the first environments; dead_end bool [·], costs float64 [·, 5]."""
    for env, one in enumerate(continued):
        pool.restore(env, one.parent.state)
    actions = np.array([one.action for one in continued], np.int32)
    info = pool.step(actions, np.arange(len(continued), dtype=np.int32), timeout=STEP_SECONDS)[4]
    return np.array(info["dead_end"]), np.array(info["costs"])


def _ended(pool: EnvironmentPool, continued: list[Continued]) -> list[Evaluation]:
    """Takes the last actions."""
    dead_end, costs = _step(pool, continued)
    return [
        Evaluation(
            design=0,
            greedy=False,
            dead_end=bool(dead_end[env]),
            costs=None if dead_end[env] else Costs(*(float(cost) for cost in costs[env])),
            placement=None if dead_end[env] else pool.placement(env),
            actions=(*one.parent.actions, one.action),
        )
        for env, one in enumerate(continued)
    ]
