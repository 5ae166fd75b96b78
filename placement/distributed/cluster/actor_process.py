"""The actor in a process of its own: a pool of environments with local inference on the CPU."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from placement.distributed.cluster import measuring, sharing
from placement.distributed.cluster.link import Link
from placement.distributed.cluster.player import INCARNATION_BITS, Player
from placement.distributed.cluster.role import find

if TYPE_CHECKING:
    from placement.engine.costs import Costs
    from placement.netlist.design import Design, Placement


class ActorProcess(Player):
    """An actor: reads parameters from a cache, writes episodes to a shard, and asks nobody how many."""

    def play(self, link: Link, designs: list[Design]) -> None:
        """Plays until told to stop."""
        import jax

        from placement.distributed.actor import Actor, Surroundings
        from placement.distributed.cluster.throttle import Purse, Throttle
        from placement.distributed.seeds import Role as Seeded
        from placement.distributed.seeds import role_key, role_seed
        from placement.engine.pool import EnvironmentPool

        config, runtime, number = self.config, self.config.runtime, self.who.number
        agent = find(self.makers.agent)(config.policy, designs)
        store, writer = self.store(link, agent.init(0)), self.writer(link, designs)
        purse = Purse(episodes_per_iteration=sharing.share(config), max_staleness=runtime.max_staleness)
        throttle = Throttle(
            store,
            purse if runtime.staleness == "wait" else None,
            actors=lambda: link.orders.actors,
            hunger=lambda: link.orders.hunger,
        )
        self.ends_with(throttle.close, store.close, writer.close)
        seed = role_seed(config.seed, Seeded.ACTOR, number)
        pool = EnvironmentPool(designs, runtime.envs_per_actor, env=config.env, seed=seed)
        # No two starts draw the same: an episode that is played again after a restart would be counted twice.
        key = role_key(config.seed, Seeded.ACTOR, number)
        key = jax.random.fold_in(jax.random.fold_in(key, link.incarnation >> 20), link.incarnation & (2**20 - 1))
        identity = (number << INCARNATION_BITS) | link.incarnation
        actor = Actor(identity, Surroundings(agent, throttle, store, writer, _NoBest()), pool, key=key)
        link.measure = lambda: {**measuring.reader(store.statistics()), **writer.measures()}
        link.ready()
        actor.run(self._stop)


class _NoBest:
    """Best placements travel with the episodes; the learner finds them."""

    def limit(self, design: int) -> float:
        """Nothing is worth reporting."""
        return -math.inf

    def report(self, design: int, costs: Costs, placement: Placement, *, origin: str) -> bool:
        """Never called."""
        return False
