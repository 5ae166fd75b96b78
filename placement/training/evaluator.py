"""The evaluator: what given parameters do, greedily and sampled, on each design."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from placement.config import EnvConfig
from placement.engine.costs import Costs
from placement.engine.observation import Observation
from placement.engine.pool import EnvironmentPool, make_pool
from placement.episode import Episode
from placement.netlist.design import Design, Placement
from placement.policy.agent import Agent
from placement.training.rollout import EmbeddedParameters, play


class Evaluation(NamedTuple):
    """One episode of an evaluation.

    Attributes:
        design: index of the design.
        greedy: whether the likeliest actions were taken, or actions were drawn.
        dead_end: whether a macro had no legal cell left.
        costs: exact costs at the end; None at a dead end.
        placement: at the end; None at a dead end.
        actions: the cells chosen, row · columns + column.
    """

    design: int
    greedy: bool
    dead_end: bool
    costs: Costs | None
    placement: Placement | None
    actions: tuple[int, ...]


class Evaluator:
    """Plays evaluation episodes on a fixed list of designs.

    Args:
        agent: made for the same designs.
        designs: to be evaluated.
        env: the environment's settings.
        samples: episodes drawn on each design beside the greedy one, at a call.
    """

    def __init__(self, agent: Agent, designs: Sequence[Design], *, env: EnvConfig, samples: int = 0) -> None:
        self._agent = agent
        which = [np.repeat(np.arange(len(designs)), each).tolist() for each in (1, samples) if each]
        self._pools = [make_pool(designs, len(of), config=env, num_threads=1, design_of_env=of) for of in which]

    def evaluate(
        self, parameters: Any, key: jax.Array, *, stopped: Callable[[], bool] = lambda: False
    ) -> list[Evaluation]:
        """The greedy episode of each design, then the samples, by design; nothing once `stopped()` is true.

        `key` is a JAX random key, consumed.
        """
        network = EmbeddedParameters(parameters, self._agent.embed(parameters))
        evaluations = []
        for pool, greedy, its_key in zip(self._pools, (True, False), jax.random.split(key), strict=False):
            placements: dict[int, Placement] = {}

            def on_end(
                env: int, costs: np.ndarray, pool: EnvironmentPool = pool, kept: dict[int, Placement] = placements
            ) -> None:
                kept[env] = pool.placement(env)

            played = play(self._agent, pool, network, its_key, greedy=greedy, on_end=on_end, stopped=stopped)
            if played is None:
                return []
            evaluations += [_evaluation(played, env, greedy, placements.get(env)) for env in range(pool.num_envs)]
        return evaluations

    def finite(self, parameters: Any) -> bool:
        """Whether what the network says at the beginning of each design's episode are finite numbers."""
        network = EmbeddedParameters(parameters, self._agent.embed(parameters))
        observation, _ = self._pools[0].reset()
        decision = self._agent.act(*network, Observation(**observation), jax.random.key(0), greedy=True)
        return bool(np.isfinite(decision.log_probabilities).all() and np.isfinite(decision.values).all())


def _evaluation(played: Episode, env: int, greedy: bool, placement: Placement | None) -> Evaluation:
    dead_end = bool(played.dead_end[env])
    length = int(played.length[env])
    return Evaluation(
        design=int(played.design[env]),
        greedy=greedy,
        dead_end=dead_end,
        costs=None if dead_end else Costs(*(float(cost) for cost in played.costs[env])),
        placement=placement,
        actions=tuple(int(action) for action in played.actions[env, :length]),
    )
