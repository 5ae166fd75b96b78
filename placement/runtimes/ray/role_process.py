"""The common part of the processes of all roles, and the two roles that serve: replay shards and model caches.

Ray starts and restarts the processes, and they send heartbeats to the coordinator.
"""

import ctypes
import dataclasses
import importlib
import logging
import os
import threading
import time
from typing import Any

from placement.config import TrainConfig
from placement.runtimes.ray import telemetry
from placement.runtimes.ray.coordinator import COORDINATOR, CoordinatorClient
from placement.runtimes.ray.messages import Timing, Who
from placement.training.run_folder import load_designs, steps, working_folder
from placement.transport.gate import Dial, NetworkAccess, Tunnels, direct

NODE = "node"
MAX_CALLS = 4  # number of methods of a process that Ray may run at once: `run`, which lasts, and short ones beside it
LOOK_SECONDS = 0.2
BLOCK_BYTES = 1 << 20
"""Minimum size in bytes of freed blocks that are returned to the system; a snapshot of parameters is larger."""
_M_MMAP_THRESHOLD = -3  # glibc's malloc.h


@dataclasses.dataclass(frozen=True)
class Factories:
    """The classes of the network and its learner as `module:class`, so that they are imported only where needed."""

    agent: str = "placement.policy.agent:Agent"
    learner: str = "placement.ppo.learner:Learner"


def find(name: str) -> Any:
    """The object that `module:name` names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


class RoleProcess:
    """A process that Ray makes, runs (`run`) and restarts when it dies.

    Its servers require the run's token, if there is one; without one only this machine can reach them.
    """

    def __init__(
        self, config: TrainConfig, who: Who, factories: Factories, timing: Timing, token: str | None = None
    ) -> None:
        self.config, self.who, self.factories, self.timing, self._token = config, who, factories, timing, token
        self._dial: Dial = direct if token is None else Tunnels(token).dial
        self._stop = threading.Event()
        logging.basicConfig(level=logging.WARNING, format=f"{who}: %(levelname)s %(message)s")

    def connect(self) -> CoordinatorClient:
        import ray

        coordinator = CoordinatorClient(ray.get_actor(COORDINATOR), self.who, self.config.runtime, self.timing)
        coordinator.on_stop = self.stop
        return coordinator

    def network(self) -> NetworkAccess:
        """The network settings of this process."""
        import ray

        wanted = self.config.runtime.bind
        bind = str(ray.util.get_node_ip_address()) if wanted == NODE else wanted
        return NetworkAccess(bind, self._token, self._dial)

    def run(self) -> Any:
        raise NotImplementedError

    def stop(self) -> Any:
        self._stop.set()

    def ping(self) -> int:
        return os.getpid()


class ShardProcess(RoleProcess):
    """A replay shard, which is a Reverb server in its own process."""

    def run(self) -> None:
        keep_off_accelerators()
        coordinator = self.connect()
        from placement.replay.shard import ReplayShard
        from placement.utils.disk import checked_space

        folder = working_folder(self.config.run_dir).absolute() / "shards" / str(self.who.number)
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
            coordinator.note(f"{self.who} restores {shard.size()} episodes of its checkpoint {shard.restored.name}")
        try:
            coordinator.measure = lambda: telemetry.shard(shard.statistics())
            coordinator.serve(shard.address)
            saved = time.monotonic()
            while not self._stop.wait(LOOK_SECONDS):
                if time.monotonic() - saved > self.timing.shard_checkpoint:
                    with checked_space(folder):
                        shard.checkpoint()
                    saved = time.monotonic()
        finally:
            shard.close()
            coordinator.close()


class CacheProcess(RoleProcess):
    """A model cache: a node of the tree between the learner and the actors."""

    def run(self) -> None:
        return_freed_blocks(BLOCK_BYTES)
        keep_off_accelerators()
        coordinator = self.connect()
        from placement.modelcache.cache import ModelCache
        from placement.modelcache.tree import plan_tree

        fan_out, network = self.config.runtime.fan_out, self.network()

        def above() -> tuple[str, ...]:
            """The addresses of the parent, its parent and so on, and of the learner's own cache last."""
            tree = plan_tree(coordinator.cache_hosts(), fan_out)
            return coordinator.cache_addresses(tree.ancestors(self.who.number))

        cache = ModelCache(bind=network.bind, parents=above, token=network.token)
        try:
            coordinator.measure = lambda: telemetry.cache(cache)
            coordinator.serve(cache.address)
            self._stop.wait()
        finally:
            cache.close()
            coordinator.close()


def keep_off_accelerators(*, threads: int | None = None) -> None:
    """Makes JAX, which must not have been imported yet, compute on the CPU, with `threads` for one operation."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if threads is not None:
        os.environ["NPROC"] = str(threads)  # the size of XLA's thread pool
        single = " --xla_cpu_multi_thread_eigen=false" if threads == 1 else ""
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + single


def return_freed_blocks(threshold: int) -> bool:
    """Makes the C library return freed blocks of at least `threshold` bytes to the system; returns whether it can.

    By default, glibc raises that threshold with each such block that is freed, and keeps later ones; a server of large
    blocks then grows to a multiple of its content.
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, threshold))
    except (OSError, AttributeError):
        return False
