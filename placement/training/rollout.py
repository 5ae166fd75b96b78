"""Plays one episode in every environment of a pool.

Axis legend: B environments, T macros to place (the longest design's).
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from placement.engine.observation import Observation
from placement.engine.pool import EnvironmentPool
from placement.engine.pool_types import Result
from placement.episode import Episode, signature, stack_episodes
from placement.policy.agent import Decision

STEP_SECONDS = 600.0
"""That a batch of environments may take for a step before the rollout gives up."""


class EmbeddedParameters(NamedTuple):
    """The policy network as `Agent.act` takes it.

    Attributes:
        parameters: pytree of arrays.
        embeddings: what `agent.embed(parameters)` gave.
    """

    parameters: Any
    embeddings: Any


class Acting(Protocol):
    """Who picks actions, as `placement.policy.agent.Agent` does."""

    def act(
        self,
        params: Any,
        embeddings: Any,
        observation: Observation,
        key: Any,
        *,
        greedy: bool = False,
        held: Any = None,
    ) -> Decision:
        """See `Agent.act`."""


def play(
    agent: Acting,
    pool: EnvironmentPool,
    network: EmbeddedParameters,
    key: jax.Array,
    *,
    greedy: bool = False,
    on_end: Callable[[int, np.ndarray], None] = lambda env, costs: None,
    stopped: Callable[[], bool] = lambda: False,
    parts: int = 1,
) -> Episode | None:
    """Resets the pool and plays until every environment's first episode has ended.

    An environment whose episode ends earlier than others' begins a new one, as the pool does; that one is thrown away.

    With several parts the pool's threads step the environments of some, while `agent` decides for those of another.
    Each part's environments always stand together in one batch, so what is played does not depend on the threads.

    Args:
        agent: picks the actions.
        pool: B environments, in synchronous mode.
        network: parameters and embeddings.
        key: JAX random key, consumed.
        greedy: take the likeliest action instead of drawing one.
        on_end: called with the environment and its costs (float64 [5]) when its episode ends with everything placed,
            while `pool.placement` still gives that episode's placement.
        stopped: asked at every step.
        parts: batches that the environments are split into; divides B.

    Returns:
        The episodes as one, axis B before each field's own, with identity and version 0; None if `stopped()` became
        true before the last one ended.

    Raises:
        ValueError: `parts` does not divide B.
        TimeoutError: a batch took more than `STEP_SECONDS` for a step.
    """
    groups = _groups(pool, key, parts)
    lane = _InStep(pool) if parts == 1 else pool
    for group in groups:
        lane.async_reset(group.envs)
    in_flight = collections.deque(groups)
    while in_flight:
        result = lane.recv(STEP_SECONDS)
        group = in_flight.popleft()
        if group.take(result, on_end):
            continue
        if stopped():
            for _ in in_flight:
                lane.recv(STEP_SECONDS)
            return None
        lane.send(group.decide(agent, network, result[0], greedy=greedy), group.envs)
        in_flight.append(group)
    return _joined([group.played for group in groups])


class _InStep:
    """A pool's `send` and `recv` where nothing is to overlap: all work is done by the calling thread, in `send`."""

    def __init__(self, pool: EnvironmentPool) -> None:
        self._pool = pool
        self._result: Result | None = None

    def async_reset(self, envs: np.ndarray) -> None:
        observation, info = self._pool.reset(envs)
        nothing = np.zeros(len(envs), np.bool_)
        self._result = observation, nothing.astype(np.float32), nothing, nothing, info

    def send(self, actions: np.ndarray, envs: np.ndarray) -> None:
        self._result = None  # gives the batch's memory back
        self._result = self._pool.step(actions, envs)

    def recv(self, timeout: float) -> Result:
        assert self._result is not None
        return self._result


class _Group:
    """Environments that step together.

    Args:
        envs: int32 [B], their numbers in the pool.
        designs: int32 [B].
        keys: uint32 [T, …], random keys of the steps.

    Attributes:
        played: their episodes as one.
    """

    def __init__(self, envs: np.ndarray, designs: np.ndarray, keys: np.ndarray) -> None:
        self.envs, self._keys = envs, keys
        self._running, self._held = np.ones(len(envs), np.bool_), np.zeros((len(envs), 2), np.float32)
        self._decision: Decision | None = None
        self._step = 0
        self.played = _blank(designs, len(keys))

    def take(self, result: Result, on_end: Callable[[int, np.ndarray], None]) -> bool:
        """Notes what a step brought, or only looks at a first observation; whether all episodes have ended."""
        if self._decision is None:
            return False
        _note(self.played, self._running, self._step, self._decision, result)
        self._step += 1
        ended = self._running & result[2]
        for row in np.flatnonzero(ended & ~result[4]["dead_end"]):
            on_end(int(self.envs[row]), self.played.costs[row])
        self._running &= ~ended
        if self._step == len(self._keys) and self._running.any():
            raise RuntimeError(f"{int(self._running.sum())} episodes have not ended after {self._step} steps")
        return not self._running.any()

    def decide(
        self, agent: Acting, network: EmbeddedParameters, observation: dict[str, np.ndarray], *, greedy: bool
    ) -> np.ndarray:
        """The next actions, int32 [B]."""
        seen, key = Observation(**observation), self._keys[self._step]
        self._decision = agent.act(*network, seen, key, greedy=greedy, held=self._held)
        self._held = self._decision.held
        return self._decision.actions


def _groups(pool: EnvironmentPool, key: jax.Array, parts: int) -> list[_Group]:
    """The pool's environments in so many groups; one alone draws from `key` itself."""
    if parts < 1 or pool.num_envs % parts:
        raise ValueError(f"{pool.num_envs} environments cannot be split into {parts} equal parts")
    envs = np.arange(pool.num_envs, dtype=np.int32).reshape(parts, -1)
    designs = np.array(pool.config.design_of_env, np.int32)
    own = [key] if parts == 1 else [jax.random.fold_in(key, part) for part in range(parts)]
    keys = [np.asarray(jax.random.key_data(jax.random.split(one, pool.spec.steps))) for one in own]
    return [_Group(mine, designs[mine], its) for mine, its in zip(envs, keys, strict=True)]


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


def _joined(parts: Sequence[Episode]) -> Episode:
    """Episodes along axis B, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    return Episode(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))
