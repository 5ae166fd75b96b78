"""What a learner process gives to its learning, and what every learner host makes of it."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placement.config import TrainConfig
from placement.distributed.best import BestTracker
from placement.distributed.cluster import sharing
from placement.distributed.cluster.collecting import Bounds, Collecting
from placement.distributed.cluster.link import Link
from placement.distributed.cluster.publications import Numbers
from placement.distributed.cluster.role import Makers, find
from placement.distributed.cluster.stage import Stage
from placement.distributed.seeds import Role, role_seed
from placement.netlist.design import Design
from placement.ppo.hosts import Hosts
from placement.ppo.mesh import make_mesh
from placement.replay.sharded import ShardedReplay


@dataclasses.dataclass(frozen=True)
class Around:
    """What the process gives.

    Attributes:
        config: the run's settings.
        link: to the board.
        bind: address that its servers listen on.
        makers: of the network and its learner.
        stop: set when the run is to end.
        hosts: the learner hosts, of which this process is one.
    """

    config: TrainConfig
    link: Link
    bind: str
    makers: Makers
    stop: threading.Event
    hosts: Hosts

    def learner(self, designs: Sequence[Design]) -> Any:
        """A fresh learner, over the devices of all hosts."""
        config = self.config
        seed = role_seed(config.seed, Role.LEARNER)
        made = find(self.makers.learner)
        return made(config.policy, config.ppo, config.env, designs, seed=seed, mesh=make_mesh(), hosts=self.hosts)


class Reading(NamedTuple):
    """The reading side of a learner host's shards.

    Attributes:
        episodes: what is worth to be learned from.
        shards: where it comes from.
    """

    episodes: Collecting
    shards: ShardedReplay


def open_reading(
    around: Around, designs: Sequence[Design], best: BestTracker, numbers: Numbers, *, seen: np.ndarray
) -> Reading:
    """Begins to read this host's shards.

    Args:
        around: the process.
        designs: the run's.
        best: is told of placements that are better than any before.
        numbers: of what the learner publishes.
        seen: int64 [N, 3], episodes learned from before, as `SeenEpisodes.rows` gives them.
    """
    config, link, hosts = around.config, around.link, around.hosts
    mine = sharing.shards_of(hosts.index, shards=config.runtime.shards, learners=hosts.count)
    shards = ShardedReplay(
        lambda: link.shards(mine),
        steps=max(len(design.placing_order) for design in designs),
        designs=len(designs),
        seen=seen,
        numbers=mine,
        silence=config.runtime.shard_silence_seconds,
    )
    episodes = Collecting(
        shards,
        numbers,
        Stage(designs, config.env),
        best,
        bounds=Bounds(sharing.share(config), oldest(config), strict=hosts.count > 1),
        stop=around.stop,
        hungry=link.hungry,
    )
    return Reading(episodes, shards)


def oldest(config: TrainConfig) -> int:
    """Versions that an episode may lag behind: the bound, and what groups of environments reach beyond it."""
    runtime = config.runtime
    if runtime.staleness == "drop":
        return runtime.max_staleness
    together = math.ceil(runtime.actors / runtime.learners) * runtime.envs_per_actor
    return runtime.max_staleness + math.ceil(together / sharing.share(config))
