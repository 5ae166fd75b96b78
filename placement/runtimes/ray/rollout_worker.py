"""What actors and the evaluator share: they read parameters from caches and write episodes to shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from placement.runtimes.ray import host_assignment, telemetry
from placement.runtimes.ray.coordinator_client import CoordinatorClient, nearest
from placement.runtimes.ray.role_process import RoleProcess, find, keep_off_accelerators

if TYPE_CHECKING:
    from placement.modelcache.reader import CacheReader
    from placement.netlist.design import Design
    from placement.replay.shard_writer import ShardWriter

WAIT_SECONDS = 0.1


class RolloutWorker(RoleProcess):
    """A process that plays episodes with parameters from the nearest cache and writes them to the nearest shard.

    Attributes:
        designs: the run's.
        agent: picks actions.
        store: reads parameters.
        writer: of episodes.
    """

    designs: list[Design]
    agent: Any
    store: CacheReader
    writer: ShardWriter

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._closing: tuple[Callable[[], None], ...] = ()

    def run(self) -> None:
        """Plays until told to stop.

        Raises:
            TimeoutError: no parameters came for an hour.
        """
        keep_off_accelerators(threads=1)
        coordinator = self.connect()
        from placement.modelcache.store import StoreClosed
        from placement.replay.base import ReplayClosed
        from placement.training.designs import load_designs
        from placement.utils.compilation import keep_compilations

        keep_compilations()
        self.designs = load_designs(self.config)
        try:
            if self._wait_for_servers(coordinator):
                self.agent = find(self.makers.agent)(self.config.policy, self.designs)
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
        """Plays until told to stop; may end with StoreClosed or ReplayClosed then."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ends all waits."""
        super().stop()
        for close in self._closing:
            close()

    def _store(self, coordinator: CoordinatorClient) -> CacheReader:
        """The reading side of the parameter store."""
        from placement.modelcache.reader import CacheReader
        from placement.modelcache.store import Layout
        from placement.modelcache.tree import plan_tree

        runtime, number = self.config.runtime, self.who.number

        def addresses() -> tuple[str, ...]:
            """The cache on this machine or a leaf of the tree, a second one, those above, the learner's own at last."""
            tree = plan_tree(coordinator.cache_hosts(), runtime.fan_out)
            return coordinator.cache_addresses(tree.readable(coordinator.host, number))

        layout = Layout(self.agent.init(0))
        return CacheReader(addresses, layout, token=self.network().token)

    def _writer(self, coordinator: CoordinatorClient) -> ShardWriter:
        """The writing side of the replay: of its learner host's shards the one on this machine, or one by number."""
        from placement.replay.shard_writer import ShardWriter
        from placement.training.designs import steps

        number, mine = self.who.number, self._shards()
        home = nearest(coordinator.shard_hosts(mine), coordinator.host, number // self.config.runtime.learners)
        return ShardWriter(
            lambda: coordinator.shards(mine),
            home=home,
            steps=steps(self.designs),
            designs=len(self.designs),
            key=number,
            dial=self.network().dial,
        )

    def _shards(self) -> tuple[int, ...]:
        """The numbers of the shards that this process may write to."""
        runtime = self.config.runtime
        host = host_assignment.host_of(self.who.number, runtime.learners)
        return host_assignment.shards_of(host, shards=runtime.shards, learners=runtime.learners)

    def _wait_for_servers(self, coordinator: CoordinatorClient) -> bool:
        """Waits until a shard and a cache are known for the first time; whether to go on."""
        while not self._stop.wait(WAIT_SECONDS):
            caches = coordinator.caches()
            if any(coordinator.shards(self._shards())) and (any(caches) or not caches):
                return True
        return False
