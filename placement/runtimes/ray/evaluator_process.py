"""The evaluator in a process of its own: greedy episodes with every so-many-th version of the parameters."""

from __future__ import annotations

from placement.runtimes.ray.coordinator_client import CoordinatorClient
from placement.runtimes.ray.rollout_worker import RolloutWorker

LOOK_SECONDS = 0.5
WRITE_SECONDS = 3600.0


class EvaluatorProcess(RolloutWorker):
    """The evaluator. What it finds travels like any episode, so that nothing can be claimed that was not played."""

    def play(self, coordinator: CoordinatorClient) -> None:
        """Evaluates until told to stop."""
        from placement.engine.pool import make_pool
        from placement.modelcache.store import StoreTimeout
        from placement.training.actor import whole_episode
        from placement.training.episode_identity import EVALUATOR, INCARNATION_BITS
        from placement.training.rollout import EmbeddedParameters, play
        from placement.utils.seeds import SeedRole, role_key

        config, agent, designs = self.config, self.agent, self.designs
        pool = make_pool(designs, len(designs), config=config.env, num_threads=1)
        key, start = role_key(config.seed, SeedRole.EVALUATOR), coordinator.incarnation
        wanted, count = 0, 0
        coordinator.ready()
        while not self._stop.is_set():
            try:
                snapshot = self.store.wait_for(wanted, timeout=LOOK_SECONDS)
            except StoreTimeout:
                continue
            wanted = snapshot.version + config.runtime.evaluate_every
            network = EmbeddedParameters(snapshot.parameters, agent.embed(snapshot.parameters))
            played = play(agent, pool, network, key, greedy=True, stopped=self._stop.is_set)
            if played is None:
                return
            for env in range(pool.num_envs):
                identity = (EVALUATOR << INCARNATION_BITS) | start, count
                count += 1
                episode = whole_episode(played, env, identity=identity, version=snapshot.version)
                self.writer.write(episode, timeout=WRITE_SECONDS)
