"""The actor in a process of its own: a pool of environments with local inference on the CPU."""

from __future__ import annotations

from placement.runtimes.ray import host_assignment
from placement.runtimes.ray.coordinator_client import CoordinatorClient
from placement.runtimes.ray.rollout_worker import RolloutWorker


class ActorProcess(RolloutWorker):
    """An actor: reads parameters from a cache, writes episodes to a shard, and asks nobody how many."""

    def play(self, coordinator: CoordinatorClient) -> None:
        """Plays until told to stop."""
        import jax

        from placement.engine.pool import make_pool
        from placement.runtimes.ray.episode_credits import CreditedSchedule, EpisodeCredits
        from placement.training.actor import Actor, ActorContext
        from placement.training.episode_identity import INCARNATION_BITS
        from placement.training.inference import LocalInference
        from placement.utils.seeds import SeedRole, role_key

        config, runtime, number = self.config, self.config.runtime, self.who.number
        incarnation = coordinator.incarnation
        credits = EpisodeCredits(
            episodes_per_iteration=host_assignment.share(config), max_staleness=runtime.max_staleness
        )
        schedule = CreditedSchedule(
            self.store,
            credits if runtime.staleness == "wait" else None,
            actors=lambda: coordinator.reply.actors,
            shortfall=lambda: coordinator.reply.shortfall,
        )
        pool = make_pool(self.designs, runtime.envs_per_actor, config=config.env, num_threads=runtime.env_threads)
        key = role_key(config.seed, SeedRole.ACTOR, number)
        # No two starts draw the same: an episode that is played again after a restart would be counted twice.
        for part in (incarnation >> 20, incarnation & (2**20 - 1)):
            key = jax.random.fold_in(key, part)
        # Nobody is told of good placements: they travel with the episodes, and the learner finds them.
        context = ActorContext(LocalInference(self.agent), schedule, self.store, self.writer, best=None)
        identity = (number << INCARNATION_BITS) | incarnation
        actor = Actor(identity, context, pool, key=key, parts=runtime.env_batches)
        coordinator.ready()
        actor.run(self._stop)
