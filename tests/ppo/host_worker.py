"""A learner host for test_hosts.py: learns from its own shard's episodes and prints the result."""

from __future__ import annotations

import hashlib
import json
import os
import sys

import numpy as np

INDEX, COUNT, PORT = (int(argument) for argument in sys.argv[1:4])
FOLDER = sys.argv[4]
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={2 // COUNT} --xla_backend_optimization_level=0"

from placement.ppo.learner import Hosts, join_hosts  # noqa: E402

HOSTS = join_hosts(f"127.0.0.1:{PORT}", index=INDEX, count=COUNT, timeout=240) if COUNT > 1 else Hosts()

import jax  # noqa: E402

from placement.config import EnvConfig, PolicyConfig, PPOConfig  # noqa: E402
from placement.episode import Episode  # noqa: E402
from placement.ppo.learner import Learner, make_mesh  # noqa: E402
from placement.replay.shard import ReplayShard  # noqa: E402
from placement.replay.shard_reader import ShardedReplay  # noqa: E402
from placement.replay.shard_writer import ShardWriter  # noqa: E402
from placement.training.checkpoint import Checkpoints, on_host  # noqa: E402
from tests.support.designs import four_macros  # noqa: E402
from tests.support.episodes import played_episodes  # noqa: E402

SHARE = 8 // COUNT


def read_own(shard: ReplayShard, episodes: list[Episode], steps: int) -> list[Episode]:
    """Returns this host's share of the episodes, read from its own shard."""
    mine = episodes[HOSTS.index * SHARE :][:SHARE]
    writer = ShardWriter(lambda: (shard.address,), home=0, steps=steps)
    for one in mine:
        writer.write(one, timeout=240)
    writer.close()
    replay = ShardedReplay(lambda: (shard.address,), steps=steps)
    got = replay.read(len(mine), timeout=240)
    replay.close()
    return got


def main() -> None:
    """Runs two iterations over eight episodes each; host 0 saves."""
    designs = [four_macros()]
    ppo = PPOConfig(iterations=4, epochs=2, minibatch_size=16)
    env = EnvConfig(soft_placer="none")
    policy = PolicyConfig(node_width=4, rounds=1, grid_width=4)
    learner = Learner(policy, ppo, env, designs, seed=0, mesh=make_mesh(), hosts=HOSTS)
    steps = len(designs[0].placing_order)
    shard = ReplayShard(number=HOSTS.index, capacity=16, steps=steps)
    for iteration in range(2):
        episodes = played_episodes(designs, 8, iteration, env=env)
        metrics = learner.update(read_own(shard, episodes, steps), iteration=iteration)
    shard.close()
    if HOSTS.index == 0:
        checkpoints = Checkpoints(FOLDER)
        checkpoints.save(2, {"learner": on_host(learner.state)}, {})
        checkpoints.close()
    leaves = [np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(learner.parameters())]
    parameters = np.concatenate(leaves)
    digest = hashlib.sha256(parameters.tobytes()).hexdigest()
    np.save(f"{FOLDER}-{HOSTS.index}.npy", parameters)  # not printed, because a full pipe would block
    print(json.dumps({
        "devices": len(jax.devices()), "digest": digest,
        "samples": metrics["samples"], "policy_loss": metrics["policy_loss"],
    }))  # fmt: skip


if __name__ == "__main__":
    main()
