"""The actor in a process of its own: a pool of environments with local inference on the CPU."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from placement.runtimes.ray import host_assignment, telemetry
from placement.runtimes.ray.coordinator_client import CoordinatorClient
from placement.runtimes.ray.role_process import find
from placement.runtimes.ray.rollout_worker import RolloutWorker

if TYPE_CHECKING:
    from placement.engine.costs import Costs
    from placement.netlist.design import Design, Placement


class ActorProcess(RolloutWorker):
    """An actor: reads parameters from a cache, writes episodes to a shard, and asks nobody how many."""

    def play(self, coordinator: CoordinatorClient, designs: list[Design]) -> None:
        """Plays until told to stop."""
        import jax

        from placement.engine.pool import make_pool
        from placement.runtimes.ray.episode_credits import CreditedSchedule, EpisodeCredits
        from placement.training.actor import Actor, ActorContext
        from placement.training.episode_identity import INCARNATION_BITS
        from placement.training.seeds import SeedRole, role_key

        config, runtime, number = self.config, self.config.runtime, self.who.number
        agent = find(self.makers.agent)(config.policy, designs)
        store, writer = self.store(coordinator, agent.init(0)), self.writer(coordinator, designs)
        credits = EpisodeCredits(
            episodes_per_iteration=host_assignment.share(config), max_staleness=runtime.max_staleness
        )
        schedule = CreditedSchedule(
            store,
            credits if runtime.staleness == "wait" else None,
            actors=lambda: coordinator.reply.actors,
            shortfall=lambda: coordinator.reply.shortfall,
        )
        self.ends_with(schedule.close, store.close, writer.close)
        pool = make_pool(designs, runtime.envs_per_actor, config=config.env, num_threads=1)
        # No two starts draw the same: an episode that is played again after a restart would be counted twice.
        key = role_key(config.seed, SeedRole.ACTOR, number)
        key = jax.random.fold_in(
            jax.random.fold_in(key, coordinator.incarnation >> 20), coordinator.incarnation & (2**20 - 1)
        )
        identity = (number << INCARNATION_BITS) | coordinator.incarnation
        actor = Actor(identity, ActorContext(agent, schedule, store, writer, _NoBest()), pool, key=key)
        coordinator.measure = lambda: {**telemetry.reader(store.statistics()), **writer.measures()}
        coordinator.ready()
        actor.run(self._stop)


class _NoBest:
    """Best placements travel with the episodes; the learner finds them."""

    def limit(self, design: int) -> float:
        """Nothing is worth reporting."""
        return -math.inf

    def report(self, design: int, costs: Costs, placement: Placement, *, origin: str) -> bool:
        """Never called."""
        return False
