"""The evaluator in a process of its own: greedy episodes with every so-many-th version of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.runtimes.ray import telemetry
from placement.runtimes.ray.coordinator_client import CoordinatorClient
from placement.runtimes.ray.role_process import find
from placement.runtimes.ray.rollout_worker import RolloutWorker

if TYPE_CHECKING:
    from placement.netlist.design import Design

LOOK_SECONDS = 0.5
WRITE_SECONDS = 3600.0


class EvaluatorProcess(RolloutWorker):
    """The evaluator. What it finds travels like any episode, so that nothing can be claimed that was not played."""

    def play(self, coordinator: CoordinatorClient, designs: list[Design]) -> None:
        """Evaluates until told to stop."""
        from placement.engine.pool import make_pool
        from placement.modelcache.base import StoreClosed, StoreTimeout
        from placement.replay.base import ReplayClosed
        from placement.training.actor import whole_episode
        from placement.training.episode_identity import EVALUATOR, INCARNATION_BITS
        from placement.training.rollout import EmbeddedParameters, play
        from placement.training.seeds import SeedRole, role_key

        config = self.config
        agent = find(self.makers.agent)(config.policy, designs)
        store, writer = self.store(coordinator, agent.init(0)), self.writer(coordinator, designs)
        self.ends_with(store.close, writer.close)
        pool = make_pool(designs, len(designs), config=config.env, num_threads=1)
        key = role_key(config.seed, SeedRole.EVALUATOR)
        coordinator.measure = lambda: {**telemetry.reader(store.statistics()), **writer.measures()}
        coordinator.ready()
        wanted, count = 0, 0
        try:
            while not self._stop.is_set():
                try:
                    snapshot = store.wait_for(wanted, timeout=LOOK_SECONDS)
                except StoreTimeout:
                    continue
                wanted = snapshot.version + config.runtime.evaluate_every
                network = EmbeddedParameters(snapshot.parameters, agent.embed(snapshot.parameters))
                played = play(agent, pool, network, key, greedy=True, stopped=self._stop.is_set)
                for env in range(pool.num_envs if played is not None else 0):
                    assert played is not None
                    identity = np.array([(EVALUATOR << INCARNATION_BITS) | coordinator.incarnation, count], np.int64)
                    count += 1
                    episode = whole_episode(played, env, identity=identity, version=snapshot.version)
                    writer.write(episode, timeout=WRITE_SECONDS)
        except (StoreClosed, ReplayClosed):
            if not self._stop.is_set():
                raise
