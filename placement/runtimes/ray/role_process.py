"""What the processes of all roles share: Ray starts and restarts them, and they send heartbeats to the coordinator."""

from __future__ import annotations

import dataclasses
import importlib
import logging
import os
import threading
from pathlib import Path
from typing import Any

from placement.config import RoleConfig, TrainConfig
from placement.runtimes.ray.coordinator import COORDINATOR
from placement.runtimes.ray.coordinator_client import CoordinatorClient
from placement.runtimes.ray.messages import Who
from placement.training.run_folder import working_folder
from placement.transport.gate import Dial, NetworkAccess, Tunnels, direct

NODE = "node"
MAX_CALLS = 4
"""Methods of a process that Ray may run at once: `run`, which lasts, and short ones beside it."""


@dataclasses.dataclass(frozen=True)
class Makers:
    """The network and its learner, as `module:class`, so that only processes that need them import them."""

    agent: str = "placement.policy.agent:Agent"
    learner: str = "placement.ppo.learner:Learner"


def find(name: str) -> Any:
    """What `module:name` names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


class RoleProcess:
    """A process. Ray makes it, calls `run` and restarts it when it dies.

    Args:
        config: the run's settings.
        who: this process.
        makers: of the network and its learner.
        token: the run's, which its servers ask for; None: they ask for none, as only this machine reaches them.
    """

    def __init__(self, config: TrainConfig, who: Who, makers: Makers, token: str | None = None) -> None:
        self.config, self.who, self.makers, self._token = config, who, makers, token
        self._dial: Dial = direct if token is None else Tunnels(token).dial
        self._stop = threading.Event()
        self.coordinator: CoordinatorClient | None = None
        logging.basicConfig(level=logging.WARNING, format=f"{who}: %(levelname)s %(message)s")

    def resources(self) -> RoleConfig:
        """What this process may take."""
        return getattr(self.config.runtime.roles, self.who.role.value)

    def connect(self) -> CoordinatorClient:
        """Connects to the coordinator, whose answers say when to stop."""
        import ray

        self.coordinator = CoordinatorClient(ray.get_actor(COORDINATOR), self.who, self.config.runtime)
        self.coordinator.on_stop = self.stop
        return self.coordinator

    def folder(self, name: str) -> Path:
        """This process's own folder `name` in the run folder."""
        return working_folder(self.config.run_dir).absolute() / name / str(self.who.number)

    def network(self) -> NetworkAccess:
        """How this process serves others, and reaches them."""
        import ray

        wanted = self.config.runtime.bind
        bind = str(ray.util.get_node_ip_address()) if wanted == NODE else wanted
        return NetworkAccess(bind, self._token, self._dial)

    def run(self) -> Any:
        """Runs the role until told to stop."""
        raise NotImplementedError

    def stop(self) -> Any:
        """Tells it to stop; returns at once or soon."""
        self._stop.set()

    def ping(self) -> int:
        """The process number."""
        return os.getpid()


def keep_off_accelerators(*, threads: int | None = None) -> None:
    """Has JAX, which must not have been imported yet, compute on the CPU.

    Args:
        threads: for one operation; None = as many as there are processors.
    """
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if threads is not None:
        os.environ["NPROC"] = str(threads)  # the size of XLA's thread pool
        single = " --xla_cpu_multi_thread_eigen=false" if threads == 1 else ""
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + single
