"""The processes that play episodes: actors, and the evaluator. They read parameters from caches and write to shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from placement.runtimes.ray import telemetry
from placement.runtimes.ray.coordinator import CoordinatorClient
from placement.runtimes.ray.messages import host_of, shards_of, share
from placement.runtimes.ray.role_process import RoleProcess, find, keep_off_accelerators
from placement.training.run_folder import load_designs, steps

if TYPE_CHECKING:
    from placement.modelcache.reader import CacheReader
    from placement.netlist.design import Design
    from placement.replay.shard_writer import ShardWriter

SERVERS_SECONDS = 0.1
LOOK_SECONDS = 0.5
WRITE_SECONDS = 3600.0


class RolloutProcess(RoleProcess):
    """A process that plays episodes with parameters from the nearest cache and writes them to the nearest shard."""

    designs: list[Design]
    agent: Any
    store: CacheReader
    writer: ShardWriter

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._closing: tuple[Callable[[], None], ...] = ()
        runtime, number = self.config.runtime, self.who.number
        host = host_of(number, runtime.learners)
        self._shards = shards_of(host, shards=runtime.shards, learners=runtime.learners)

    def run(self) -> None:
        """Plays until it must stop; raises TimeoutError if no parameters arrive for an hour."""
        keep_off_accelerators(threads=1)
        coordinator = self.connect()
        from placement.modelcache.store import StoreClosed
        from placement.replay.replay import ReplayClosed
        from placement.utils.compilation import keep_compilations

        keep_compilations()
        self.designs = load_designs(self.config)
        try:
            if self._wait_for_servers(coordinator):
                self.agent = find(self.factories.agent)(self.config.policy, self.designs)
                self.store, self.writer = self._store(coordinator), self._writer(coordinator)
                self._closing = (self.store.close, self.writer.close)
                written = telemetry.WriterMeasures(self.writer)
                coordinator.measure = lambda: {**telemetry.reader(self.store.source), **written()}
                self.play(coordinator)
        except (StoreClosed, ReplayClosed):
            if not self._stop.is_set():
                raise
        finally:
            self.stop()
            coordinator.close()

    def play(self, coordinator: CoordinatorClient) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        super().stop()
        for close in self._closing:
            close()

    def _store(self, coordinator: CoordinatorClient) -> CacheReader:
        from placement.modelcache.reader import CacheReader
        from placement.modelcache.store import Layout
        from placement.modelcache.tree import plan_tree

        def addresses() -> tuple[str, ...]:
            """Addresses of the cache on this machine or a leaf, another leaf, their ancestors, and the learner's."""
            tree = plan_tree(coordinator.cache_hosts(), self.config.runtime.fan_out)
            return coordinator.cache_addresses(tree.readable(coordinator.host, self.who.number))

        layout = Layout(self.agent.init(0))
        return CacheReader(addresses, layout, token=self.network().token)

    def _writer(self, coordinator: CoordinatorClient) -> ShardWriter:
        """The replay's writing side, to the learner host's shard on this machine, or to one chosen by number."""
        from placement.replay.shard_writer import ShardWriter

        hosts, number = coordinator.shard_hosts(self._shards), self.who.number
        return ShardWriter(
            lambda: coordinator.shards(self._shards),
            home=nearest(hosts, coordinator.host, number // self.config.runtime.learners),
            steps=steps(self.designs),
            designs=len(self.designs),
            key=number,
            dial=self.network().dial,
        )

    def _wait_for_servers(self, coordinator: CoordinatorClient) -> bool:
        """Waits until a shard and a cache are known for the first time; returns whether to continue."""
        while not self._stop.wait(SERVERS_SECONDS):
            caches = coordinator.caches
            if any(coordinator.shards(self._shards)) and (any(one.address for one in caches) or not caches):
                return True
        return False


class ActorProcess(RolloutProcess):
    """An actor with local inference on the CPU, which decides by itself how many episodes to play."""

    def play(self, coordinator: CoordinatorClient) -> None:
        import jax

        from placement.engine.pool import make_pool
        from placement.runtimes.ray.episode_credits import CreditedSchedule, EpisodeCredits
        from placement.training.actor import Actor, ActorContext, batches_for
        from placement.training.inference import LocalInference
        from placement.training.rollout import INCARNATION_BITS
        from placement.utils.seeds import SeedRole, role_key

        config, runtime, number = self.config, self.config.runtime, self.who.number
        incarnation, envs = coordinator.incarnation, runtime.envs_per_actor
        credits = EpisodeCredits(episodes_per_iteration=share(config), max_staleness=runtime.max_staleness)
        schedule = CreditedSchedule(
            self.store,
            credits if runtime.staleness == "wait" else None,
            actors=lambda: coordinator.reply.actors,
            shortfall=lambda: coordinator.reply.shortfall,
        )
        pool = make_pool(self.designs, envs, config=config.env, num_threads=runtime.env_threads or 1)
        key = role_key(config.seed, SeedRole.ACTOR, number)
        # No two starts draw the same numbers; an episode that is played again after a restart would be counted twice.
        for half in (incarnation >> 20, incarnation & (2**20 - 1)):
            key = jax.random.fold_in(key, half)
        # Good placements are not reported, since the learner finds them in the episodes.
        context = ActorContext(LocalInference(self.agent), schedule, self.store, self.writer, best=None)
        identity = (number << INCARNATION_BITS) | incarnation
        coordinator.ready()
        Actor(identity, context, pool, key=key, batches=batches_for(envs)).run(self._stop)


class EvaluatorProcess(RolloutProcess):
    """The evaluator, which plays greedy episodes with every n-th version of the parameters.

    Its episodes travel like any others, so that nothing can be claimed that was not played.
    """

    def play(self, coordinator: CoordinatorClient) -> None:
        from placement.engine.pool import make_pool
        from placement.modelcache.store import StoreTimeout
        from placement.policy.agent import EmbeddedParameters
        from placement.training.rollout import EVALUATOR, INCARNATION_BITS, play, whole_episode
        from placement.utils.seeds import SeedRole, role_key

        config, agent, designs = self.config, self.agent, self.designs
        pool = make_pool(designs, len(designs), config=config.env, num_threads=1)
        key, identity = role_key(config.seed, SeedRole.EVALUATOR), EVALUATOR << INCARNATION_BITS
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
                numbered = identity | coordinator.incarnation, count
                episode = whole_episode(played, env, identity=numbered, version=snapshot.version)
                self.writer.write(episode, timeout=WRITE_SECONDS)
                count += 1


def nearest(hosts: tuple[str, ...], host: str, number: int) -> int:
    """The server, of those on `hosts`, for process `number` on machine `host`: one on its machine, or by number."""
    here = [index for index, other in enumerate(hosts) if other == host]
    return here[number % len(here)] if here else number % len(hosts)
