"""The actor in a process of its own: a pool of environments with local inference on the CPU."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placement.distributed.cluster import measuring
from placement.distributed.cluster.link import Link, nearest
from placement.distributed.cluster.role import Role, find, keep_off_accelerators

if TYPE_CHECKING:
    from placement.engine.costs import Costs
    from placement.netlist.design import Design, Placement

WAIT_SECONDS = 0.1
INCARNATION_BITS = 40


class ActorProcess(Role):
    """An actor: reads parameters from the nearest cache, writes episodes to the nearest shard, and asks nobody."""

    def run(self) -> None:
        """Plays until told to stop.

        Raises:
            TimeoutError: no parameters came for an hour.
        """
        keep_off_accelerators(threads=1)
        link = self.connect()
        from placement.distributed.compilation import keep_compilations
        from placement.netlist.load import load

        keep_compilations()
        designs = [load(name) for name in self.config.design]
        try:
            if _wait_for_servers(link, self.config.runtime.caches, self._stop.is_set):
                self._play(link, designs)
        finally:
            link.close()

    def _play(self, link: Link, designs: list[Design]) -> None:
        import jax

        from placement.distributed.actor import Actor, Surroundings
        from placement.distributed.cluster.throttle import Purse, Throttle
        from placement.distributed.seeds import Role as Seeded
        from placement.distributed.seeds import role_key, role_seed
        from placement.engine.pool import EnvironmentPool

        config, number = self.config, self.who.number
        agent = find(self.makers.agent)(config.policy, designs)
        store, replay = self._store(link, agent.init(0)), self._replay(link, designs)
        purse = Purse(
            episodes_per_iteration=config.ppo.episodes_per_iteration, max_staleness=config.runtime.max_staleness
        )
        throttle = Throttle(
            store,
            purse if config.runtime.staleness == "wait" else None,
            actors=lambda: link.orders.actors,
            hunger=lambda: link.orders.hunger,
        )
        counted = Counted(replay)
        pool = EnvironmentPool(
            designs, config.runtime.envs_per_actor, env=config.env, seed=role_seed(config.seed, Seeded.ACTOR, number)
        )
        # No two starts draw the same: an episode that is played again after a restart would be counted twice.
        key = role_key(config.seed, Seeded.ACTOR, number)
        key = jax.random.fold_in(jax.random.fold_in(key, link.incarnation >> 20), link.incarnation & (2**20 - 1))
        identity = (number << INCARNATION_BITS) | link.incarnation
        actor = Actor(identity, Surroundings(agent, throttle, store, counted, _NoBest()), pool, key=key)
        link.measure = lambda: {**measuring.reader(store.statistics()), **counted.measures()}
        link.ready()
        closing = (throttle.close, store.close, counted.close)
        self._closing = closing
        try:
            actor.run(self._stop)
        finally:
            for close in closing:
                close()

    def stop(self) -> None:
        """Ends all waits."""
        super().stop()
        for close in getattr(self, "_closing", ()):
            close()

    def _store(self, link: Link, like: Any) -> Any:
        """The reading side of the parameter store: its own cache first, then the others, the learner's own last."""
        from placement.modelcache.reverb_store import CacheReader
        from placement.modelcache.tree import plan_tree
        from placement.modelcache.wire import Layout

        runtime, number = self.config.runtime, self.who.number

        def addresses() -> tuple[str, ...]:
            """The cache on this machine or a leaf of the tree, a second one, those above, the learner's own at last."""
            tree = plan_tree(link.cache_hosts(), runtime.fan_out)
            return link.cache_addresses(tree.readable(link.host, number))

        return CacheReader(addresses, Layout.of(like), poll_seconds=runtime.poll_seconds)

    def _replay(self, link: Link, designs: list[Design]) -> Any:
        from placement.replay.sharded import ShardWriter

        home = nearest(link.shard_hosts(), link.host, self.who.number)
        steps = max(len(design.placing_order) for design in designs)
        return ShardWriter(link.shards, home=home, steps=steps, designs=len(designs), key=self.who.number)


class Counted:
    """A writer that counts what it writes.

    Args:
        writer: of episodes.
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._episodes = self._steps = 0
        self._at, self._before = time.monotonic(), (0, 0)

    def write(self, episode: Any, *, timeout: float) -> None:
        """Writes one episode; raises ReplayTimeout, ReplayClosed."""
        self._writer.write(episode, timeout=timeout)
        self._episodes += 1
        self._steps += int(episode.length)

    def close(self) -> None:
        """Ends waits. May be called twice."""
        self._writer.close()

    def measures(self) -> Mapping[str, float]:
        """Rates since the last call, and what the writer measured."""
        now, counts = time.monotonic(), (self._episodes, self._steps)
        seconds = max(now - self._at, 1e-9)
        rates = [(count - before) / seconds for count, before in zip(counts, self._before, strict=True)]
        self._at, self._before = now, counts
        return {
            "episodes_per_second": rates[0],
            "steps_per_second": rates[1],
            "episodes": float(self._episodes),
            **measuring.writer(self._writer.statistics()),
        }


class _NoBest:
    """Best placements travel with the episodes; the learner finds them."""

    def limit(self, design: int) -> float:
        """Nothing is worth reporting."""
        return -math.inf

    def report(self, design: int, costs: Costs, placement: Placement, *, origin: str) -> bool:
        """Never called."""
        return False


def _wait_for_servers(link: Link, caches: int, stopped: Any) -> bool:
    """Waits until the addresses of shards and caches are known for the first time; whether to go on."""
    while not stopped():
        if any(link.shards()) and (not caches or any(link.caches())):
            return True
        time.sleep(WAIT_SECONDS)
    return False
