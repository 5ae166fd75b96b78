"""What every learner host is built from: the process's connections, a fresh learner, the reading of its shards."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from placement.config import TrainConfig
from placement.netlist.design import Design
from placement.ppo.hosts import Hosts
from placement.ppo.mesh import make_mesh
from placement.replay.sharded import ShardedReplay
from placement.runtimes.ray import host_assignment
from placement.runtimes.ray.coordinator_client import CoordinatorClient
from placement.runtimes.ray.episode_collector import Bounds, EpisodeCollector
from placement.runtimes.ray.publications import PublicationNumbers
from placement.runtimes.ray.role_process import Makers, find
from placement.training.best import BestTracker
from placement.training.designs import steps
from placement.training.episode_verifier import EpisodeVerifier
from placement.transport.gate import NetworkAccess
from placement.utils.seeds import SeedRole, role_seed


@dataclasses.dataclass(frozen=True)
class LearnerHost:
    """A learner process, as its learning sees it.

    Attributes:
        config: the run's settings.
        coordinator: connection to it.
        network: how it serves others, and reaches them.
        makers: of the network and its learner.
        stop: set when the run is to end.
        hosts: the learner hosts, of which this process is one.
    """

    config: TrainConfig
    coordinator: CoordinatorClient
    network: NetworkAccess
    makers: Makers
    stop: threading.Event
    hosts: Hosts

    def learner(self, designs: Sequence[Design]) -> Any:
        """A fresh learner, over the devices of all hosts."""
        config = self.config
        seed = role_seed(config.seed, SeedRole.LEARNER)
        made = find(self.makers.learner)
        settings = config.policy, config.ppo, config.env
        return made(*settings, designs, seed=seed, mesh=make_mesh(), hosts=self.hosts)

    def open_shards(
        self, designs: Sequence[Design], best: BestTracker, numbers: PublicationNumbers, *, learned: np.ndarray
    ) -> tuple[EpisodeCollector, ShardedReplay]:
        """Begins to read this host's shards.

        Args:
            designs: the run's.
            best: is told of placements that are better than any before.
            numbers: of what the learner publishes.
            learned: int64 [N, 3], episodes learned from before, as `EpisodeIntervalSet.rows` gives them.

        Returns:
            The episodes that are worth to be learned from, and the shards that they come from.
        """
        config, coordinator, hosts = self.config, self.coordinator, self.hosts
        mine = host_assignment.shards_of(hosts.index, shards=config.runtime.shards, learners=hosts.count)
        shards = ShardedReplay(
            lambda: coordinator.shards(mine),
            steps=steps(designs),
            designs=len(designs),
            intervals=learned,
            numbers=mine,
            dial=self.network.dial,
        )
        episodes = EpisodeCollector(
            shards,
            numbers,
            EpisodeVerifier(designs, config.env, best),
            bounds=Bounds(host_assignment.share(config), _oldest(config), strict=hosts.count > 1),
            stop=self.stop,
            report_shortfall=coordinator.report_shortfall,
        )
        return episodes, shards


def _oldest(config: TrainConfig) -> int:
    """Versions that an episode may lag behind: the bound, and what groups of environments reach beyond it."""
    runtime = config.runtime
    if runtime.staleness == "drop":
        return runtime.max_staleness
    together = math.ceil(runtime.actors / runtime.learners) * runtime.envs_per_actor
    return runtime.max_staleness + math.ceil(together / host_assignment.share(config))
