"""The learner for designs that are drawn from a distribution and seen once: a design's episodes are compared.

The statistics that a `Learner` keeps for each design would come too late here. A reward is therefore taken relative to
the mean of its design's episodes in the iteration (the group's mean: Shao et al. 2024, "DeepSeekMath", section 4.1), in
units of a single running deviation. All designs share the baseline's weights, which describe how cells compare with
others.

An episode's `design` is its number in the distribution; the design is generated again if it is no longer in memory.

Axis legend: B episodes, T steps (of the largest design that can be drawn), G designs of an iteration.
"""

from __future__ import annotations

import math

import jax
import numpy as np
from jax.sharding import Mesh

from placement.config import EPISODES_PER_DESIGN, EnvConfig, PolicyConfig, PPOConfig
from placement.engine.drawn_designs import DrawnDesigns
from placement.engine.observation import Observation
from placement.engine.state import EpisodeRenderer
from placement.episode import Episode, stack_episodes
from placement.policy.inputs import stack_drawn
from placement.ppo.learner import Hosts, Learner, Prepared, joined, put, replicated


class DrawnLearner(Learner):
    """A `Learner`, as the only learner host, for episodes whose `design` is a number in `designs`."""

    def __init__(
        self,
        policy_config: PolicyConfig,
        ppo_config: PPOConfig,
        env_config: EnvConfig,
        designs: DrawnDesigns,
        *,
        seed: int,
        mesh: Mesh | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        """See `Learner`."""
        super().__init__(policy_config, ppo_config, env_config, [designs[0]], seed=seed, mesh=mesh, hosts=hosts)
        self._drawn, self._electrostatic = designs, policy_config.electrostatic_bias != 0
        self._renderer = EpisodeRenderer([designs[0]], designs.shape)
        self._steps = self._renderer.spec.steps

    def render(self, episodes: list[Episode], buffer: Observation, *, at: int = 0) -> None:
        """See `Learner`."""
        self._check(episodes)
        batch, designs = stack_episodes(episodes), _numbers(episodes)
        rows = Observation(*(array[at : at + len(episodes)] for array in buffer))
        renderer = EpisodeRenderer([self._drawn[number] for number in designs], self._drawn.shape)
        renderer.render(np.searchsorted(designs, batch.design), batch.actions, batch.length, out=rows)

    def load(self, episodes: list[Episode], buffer: Observation) -> Prepared:
        """See `Learner`."""
        numbers, batch = _numbers(episodes), stack_episodes(episodes)
        batch = batch._replace(design=np.searchsorted(numbers, batch.design).astype(np.int32))
        buffer.design[:] = batch.design[:, None]
        designs = [self._drawn[number] for number in numbers]
        usual = math.ceil(len(episodes) / EPISODES_PER_DESIGN)
        count = math.ceil(len(designs) / usual) * usual  # more only if episodes of several actors mix
        bounds = self._drawn.distribution.bounds
        inputs = stack_drawn(designs, bounds, count=count, electrostatic=self._electrostatic)
        flat = put(jax.tree.map(joined, buffer), replicated(self._mesh))
        return Prepared(batch, flat, self._constants_of(designs, inputs))

    def _credited(self, batch: Episode) -> Episode:
        """Subtracts the mean of their design's complete episodes from the rewards; `design` becomes 0 everywhere."""
        reward, placed = batch.reward.copy(), ~batch.dead_end
        for which in np.unique(batch.design):
            mine = batch.design == which
            if (mine & placed).any():
                reward[mine] -= batch.reward[mine & placed].mean()
        return batch._replace(reward=reward, design=np.zeros_like(batch.design))

    def _check(self, episodes: list[Episode]) -> None:
        if not episodes:
            raise ValueError("update: at least one episode is needed")
        for episode in episodes:
            if episode.actions.shape != (self._steps,):
                raise ValueError(f"episode of {episode.actions.shape[0]} steps: the largest design takes {self._steps}")


def _numbers(episodes: list[Episode]) -> list[int]:
    """Returns the designs of the episodes, each once, in ascending order."""
    return sorted({int(episode.design) for episode in episodes})
