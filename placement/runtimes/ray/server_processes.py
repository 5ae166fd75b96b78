"""The processes that serve: replay shards and model caches."""

from __future__ import annotations

import time

from placement.runtimes.ray import processes, telemetry
from placement.runtimes.ray.role_process import RoleProcess, keep_off_accelerators

LOOK_SECONDS = 0.2
BLOCK_BYTES = 1 << 20
"""A snapshot of parameters is larger, and should leave no memory behind."""


class ShardProcess(RoleProcess):
    """A replay shard: a Reverb server in a process of its own."""

    def run(self) -> None:
        """Serves until told to stop; checkpoints at intervals, and takes back the newest checkpoint at the start."""
        keep_off_accelerators()
        coordinator = self.connect()
        from placement.replay.shard import ReplayShard
        from placement.training.designs import load_designs, steps
        from placement.utils.disk import checked_room

        every = self.config.runtime.timing.shard_checkpoint
        folder = self.folder("shards") if every else None
        network = self.network()
        shard = ReplayShard(
            number=self.who.number,
            capacity=self.config.replay.capacity,
            steps=steps(load_designs(self.config)),
            bind=network.bind,
            checkpoint_folder=folder,
            token=network.token,
        )
        if shard.restored is not None:
            coordinator.note(f"{self.who} takes back {shard.size()} episodes of its checkpoint {shard.restored.name}")
        try:
            coordinator.measure = lambda: telemetry.shard(shard.statistics())
            coordinator.serve(shard.address)
            saved = time.monotonic()
            while not self._stop.wait(LOOK_SECONDS):
                if folder is not None and time.monotonic() - saved > every:
                    with checked_room(folder):
                        shard.checkpoint()
                    saved = time.monotonic()
        finally:
            shard.close()
            coordinator.close()


class CacheProcess(RoleProcess):
    """A model cache: a node of the tree between the learner and the actors."""

    def run(self) -> None:
        """Serves until told to stop."""
        processes.give_back_blocks(BLOCK_BYTES)
        keep_off_accelerators()
        coordinator = self.connect()
        from placement.modelcache.cache import ModelCache
        from placement.modelcache.tree import plan_tree

        runtime, number = self.config.runtime, self.who.number

        def above() -> tuple[str, ...]:
            """The parent, its parent …, the learner's own cache at last."""
            return coordinator.cache_addresses(plan_tree(coordinator.cache_hosts(), runtime.fan_out).ancestors(number))

        network = self.network()
        cache = ModelCache(bind=network.bind, parents=above, token=network.token)
        try:
            coordinator.measure = lambda: telemetry.cache(cache)
            coordinator.serve(cache.address)
            self._stop.wait()
        finally:
            cache.close()
            coordinator.close()
