"""The evaluator in a process of its own: greedy episodes with every so-many-th version of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.distributed.cluster import measuring
from placement.distributed.cluster.link import Link
from placement.distributed.cluster.player import INCARNATION_BITS, Player
from placement.distributed.cluster.role import find

if TYPE_CHECKING:
    from placement.netlist.design import Design
    from placement.ppo.trajectory import Episode

EVALUATOR = 1 << 22
"""Stands where an episode's identity has its actor's number: not to be learned from."""
LOOK_SECONDS = 0.5
WRITE_SECONDS = 3600.0


def is_evaluation(episode: Episode) -> bool:
    """Whether an episode was played to see how good the policy is, not to learn from."""
    return int(episode.identity[0]) >> INCARNATION_BITS == EVALUATOR


class EvaluatorProcess(Player):
    """The evaluator. What it finds travels like any episode, so that nothing can be claimed that was not played."""

    def play(self, link: Link, designs: list[Design]) -> None:
        """Evaluates until told to stop."""
        from placement.distributed.actor import whole_episode
        from placement.distributed.rollout import Network, play
        from placement.distributed.seeds import Role as Seeded
        from placement.distributed.seeds import role_key
        from placement.engine.pool import EnvironmentPool
        from placement.modelcache.base import StoreClosed, StoreTimeout
        from placement.replay.base import ReplayClosed

        config = self.config
        agent = find(self.makers.agent)(config.policy, designs)
        store, writer = self.store(link, agent.init(0)), self.writer(link, designs)
        self.ends_with(store.close, writer.close)
        pool = EnvironmentPool(designs, len(designs), env=config.env, design_of_env=range(len(designs)))
        key = role_key(config.seed, Seeded.EVALUATOR)
        link.measure = lambda: {**measuring.reader(store.statistics()), **writer.measures()}
        link.ready()
        wanted, count = 0, 0
        try:
            while not self._stop.is_set():
                try:
                    snapshot = store.wait_for(wanted, timeout=LOOK_SECONDS)
                except StoreTimeout:
                    continue
                wanted = snapshot.version + config.runtime.evaluate_every
                network = Network(snapshot.parameters, agent.embed(snapshot.parameters))
                played = play(agent, pool, network, key, greedy=True, stopped=self._stop.is_set)
                for env in range(pool.num_envs if played is not None else 0):
                    assert played is not None
                    identity = np.array([(EVALUATOR << INCARNATION_BITS) | link.incarnation, count], np.int64)
                    count += 1
                    episode = whole_episode(played, env, identity=identity, version=snapshot.version)
                    writer.write(episode, timeout=WRITE_SECONDS)
        except (StoreClosed, ReplayClosed):
            if not self._stop.is_set():
                raise
