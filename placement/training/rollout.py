"""Plays episodes, one in every environment of a pool, and evaluates parameters with them.

An episode's identity is int64 [2]: (actor's number << 40 | its process's incarnation, the episode's count in it). The
evaluator has its own number among the actors.

Axis legend: B environments, T macros to place (the longest design's).
"""

import collections
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from placement.config import EnvConfig
from placement.engine.costs import Costs
from placement.engine.observation import Observation, Result
from placement.engine.pool import EnvironmentPool, make_pool
from placement.episode import Episode, signature, stack_episodes
from placement.netlist.design import Design, Placement
from placement.policy.agent import Acting, Agent, Decision, EmbeddedParameters

STEP_SECONDS = 600.0  # timeout of a step of a batch of environments, in seconds
INCARNATION_BITS = 40
EVALUATOR = 1 << 22  # the actor's number in the identity of an evaluation's episode, which is not learned from


def play(
    agent: Acting,
    pool: EnvironmentPool,
    network: EmbeddedParameters,
    key: jax.Array,
    *,
    greedy: bool = False,
    on_end: Callable[[int, np.ndarray], None] = lambda env, costs: None,
    stopped: Callable[[], bool] = lambda: False,
    batches: int = 1,
) -> Episode | None:
    """Resets the pool and plays until every environment's first episode has ended.

    If an environment's episode ends before the others', the pool begins a new one, which is discarded.

    With several batches the pool's threads step the environments of some while `agent` decides for those of another.
    Each batch always contains the same environments, so the episodes do not depend on the threads.

    Args:
        agent: picks the actions.
        pool: B environments, in synchronous mode.
        network: parameters and embeddings.
        key: JAX random key, consumed.
        greedy: whether to take the most probable action instead of drawing one.
        on_end: called with the environment and its costs (float64 [5]) when its episode ends with all macros placed,
            while `pool.placement` still returns that episode's placement.
        stopped: called at every step.
        batches: number of batches that the environments are split into; divides B, else ValueError.

    Returns:
        The episodes as one, axis B before each field's own, with identity and version 0; None if `stopped()` became
        true before the last one ended.
    """
    groups = _groups(pool, key, batches)
    lane = _InStep(pool) if batches == 1 else pool
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


def whole_episode(played: Episode, env: int, *, identity: tuple[int, int], version: int) -> Episode:
    """Environment `env`'s episode from the result of `play`, drawn with the model's `version`, ready to be sent."""
    episode = Episode(*(np.array(field[env]) for field in played))
    return episode._replace(identity=np.array(identity, np.int64), version=np.array(version, np.int32))


def actor_of(identity: int) -> int:
    """The actor's number, or `EVALUATOR`, from an identity's first number."""
    return identity >> INCARNATION_BITS


def is_evaluation(episode: Episode) -> bool:
    """Whether an episode was played to evaluate the policy and not to learn from."""
    return actor_of(int(episode.identity[0])) == EVALUATOR


class _InStep:
    """A pool's `send` and `recv` without overlap: all work is done in `async_reset` and `send`."""

    def __init__(self, pool: EnvironmentPool) -> None:
        self._pool = pool
        self._result: Result | None = None

    def async_reset(self, envs: np.ndarray) -> None:
        observation, info = self._pool.reset(envs)
        nothing = np.zeros(len(envs), np.bool_)
        self._result = observation, nothing.astype(np.float32), nothing, nothing, info

    def send(self, actions: np.ndarray, envs: np.ndarray) -> None:
        self._result = None  # This frees the batch's memory.
        self._result = self._pool.step(actions, envs)

    def recv(self, timeout: float) -> Result:
        assert self._result is not None
        return self._result


class _Group:
    """Environments (int32 [B], their numbers in the pool) that step together; `played` are their episodes as one.

    `designs` are int32 [B], and `keys`, uint32 [T, …], the random keys of the steps.
    """

    def __init__(self, envs: np.ndarray, designs: np.ndarray, keys: np.ndarray) -> None:
        self.envs, self._keys = envs, keys
        self._running, self._energy = np.ones(len(envs), np.bool_), np.zeros((len(envs), 2), np.float32)
        self._decision: Decision | None = None
        self._step = 0
        self.played = _blank(designs, len(keys))

    def take(self, result: Result, on_end: Callable[[int, np.ndarray], None]) -> bool:
        """Records a step (the first result is an observation alone); returns whether all episodes have ended."""
        if self._decision is None:
            return False
        ended = self._running & result[2]
        _note(self.played, self._running, ended, self._step, self._decision, result)
        self._step += 1
        for row in np.flatnonzero(ended & ~result[4]["dead_end"]):
            on_end(int(self.envs[row]), self.played.costs[row])
        self._running &= ~ended
        if self._step == len(self._keys) and self._running.any():
            raise RuntimeError(f"{int(self._running.sum())} episodes have not ended after {self._step} steps")
        return not self._running.any()

    def decide(
        self, agent: Acting, network: EmbeddedParameters, observation: dict[str, np.ndarray], *, greedy: bool
    ) -> np.ndarray:
        seen, key = Observation(**observation), self._keys[self._step]
        self._decision = agent.act(*network, seen, key, greedy=greedy, energy=self._energy)
        self._energy = self._decision.energy
        return self._decision.actions


def _groups(pool: EnvironmentPool, key: jax.Array, batches: int) -> list[_Group]:
    """The pool's environments in groups; a single group draws from `key` itself."""
    if batches < 1 or pool.num_envs % batches:
        raise ValueError(f"{pool.num_envs} environments cannot be split into {batches} equal batches")
    envs = np.arange(pool.num_envs, dtype=np.int32).reshape(batches, -1)
    designs = np.array(pool.config.design_of_env, np.int32)
    own = [key] if batches == 1 else [jax.random.fold_in(key, batch) for batch in range(batches)]
    keys = [np.asarray(jax.random.key_data(jax.random.split(one, pool.spec.steps))) for one in own]
    return [_Group(mine, designs[mine], its) for mine, its in zip(envs, keys, strict=True)]


def _note(
    played: Episode, running: np.ndarray, ended: np.ndarray, step: int, decision: Decision, result: Result
) -> None:
    """Writes one step of the `running` environments (bool [B]) into `played`, and the results of the `ended` ones."""
    played.actions[running, step] = decision.actions[running]
    played.log_probabilities[running, step] = decision.log_probabilities[running]
    if not ended.any():
        return
    _, reward, _, _, info = result
    played.length[ended] = step + 1
    played.dead_end[ended], played.reward[ended] = info["dead_end"][ended], reward[ended]
    played.costs[ended] = info["costs"][ended]


def _blank(design: np.ndarray, steps: int) -> Episode:
    """Episodes of these designs (int32 [B]) before their first action, as one."""
    blank = stack_episodes([signature(steps)] * len(design))._replace(design=design)
    blank.actions.fill(-1)
    blank.costs.fill(np.nan)
    return blank


def _joined(groups: Sequence[Episode]) -> Episode:
    if len(groups) == 1:
        return groups[0]
    return Episode(*(np.concatenate(fields) for fields in zip(*groups, strict=True)))


class Evaluation(NamedTuple):
    """One episode of an evaluation, with the index of its design; exact costs and placement are None at a dead end."""

    design: int
    greedy: bool
    costs: Costs | None
    placement: Placement | None

    @property
    def dead_end(self) -> bool:
        return self.costs is None


class Evaluator:
    """Plays evaluation episodes on the designs of `agent`: for each a greedy one, and `samples` drawn ones."""

    def __init__(self, agent: Agent, designs: Sequence[Design], *, env: EnvConfig, samples: int = 0) -> None:
        self._agent = agent
        which = [np.repeat(np.arange(len(designs)), each).tolist() for each in (1, samples) if each]
        self._pools = [make_pool(designs, len(of), config=env, num_threads=1, design_of_env=of) for of in which]

    def evaluate(
        self, parameters: Any, key: jax.Array, *, stopped: Callable[[], bool] = lambda: False
    ) -> list[Evaluation]:
        """Returns the greedy episode of each design, then the samples, by design; empty once `stopped()` is true.

        `key` is a JAX random key, consumed.
        """
        network, evaluations = self._network(parameters), []
        for pool, greedy, its_key in zip(self._pools, (True, False), jax.random.split(key), strict=False):
            found: dict[int, tuple[Costs, Placement]] = {}

            def on_end(env: int, costs: np.ndarray, pool: EnvironmentPool = pool, found: Any = found) -> None:
                found[env] = Costs(*costs.tolist()), pool.placement(env)

            if play(self._agent, pool, network, its_key, greedy=greedy, on_end=on_end, stopped=stopped) is None:
                return []
            for env, design in enumerate(pool.config.design_of_env):
                evaluations.append(Evaluation(design, greedy, *found.get(env, (None, None))))
        return evaluations

    def episodes(self, parameters: Any, key: jax.Array) -> Episode:
        """The samples of each design as one `Episode` with the axis B first; `key` is consumed."""
        found = play(self._agent, self._pools[-1], self._network(parameters), key)
        assert found is not None
        return found

    def finite(self, parameters: Any) -> bool:
        """Whether the network's outputs at the beginning of each design's episode are finite."""
        observation, _ = self._pools[0].reset()
        # The arguments have the types of `play`, so that nothing is compiled for this call alone.
        observed, key = Observation(**observation), np.zeros(2, np.uint32)
        energy = np.zeros((len(observed.step), 2), np.float32)
        decision = self._agent.act(*self._network(parameters), observed, key, greedy=True, energy=energy)
        return bool(np.isfinite(decision.log_probabilities).all())

    def _network(self, parameters: Any) -> EmbeddedParameters:
        return EmbeddedParameters(parameters, self._agent.embed(parameters))
