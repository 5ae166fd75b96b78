"""A learner host for test_hosts.py: learns from its half of the episodes and prints what came of it."""

from __future__ import annotations

import hashlib
import json
import os
import sys

import numpy as np

INDEX, COUNT, PORT = (int(argument) for argument in sys.argv[1:4])
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={2 // COUNT} --xla_backend_optimization_level=0"

from placement.ppo.hosts import Hosts, join_hosts  # noqa: E402

HOSTS = join_hosts(f"127.0.0.1:{PORT}", index=INDEX, count=COUNT, timeout=60) if COUNT > 1 else Hosts()

import jax  # noqa: E402

from placement.config import EnvConfig, PolicyConfig, PPOConfig  # noqa: E402
from placement.ppo.learner import Learner  # noqa: E402
from placement.ppo.mesh import make_mesh  # noqa: E402
from placement.testing.designs import four_macros  # noqa: E402
from placement.testing.episodes import played_episodes  # noqa: E402


def main() -> None:
    """Two iterations over eight episodes each."""
    designs = [four_macros()]
    ppo = PPOConfig(iterations=4, epochs=2, minibatch_size=16)
    env = EnvConfig(soft_placer="none")
    policy = PolicyConfig(node_width=4, rounds=1, grid_width=4, location_frequencies=3)
    learner = Learner(policy, ppo, env, designs, seed=0, mesh=make_mesh(), hosts=HOSTS)
    share = HOSTS.share(8)
    for iteration in range(2):
        episodes = played_episodes(designs, 8, iteration, env=env)
        metrics = learner.update(episodes[HOSTS.index * share :][:share], iteration=iteration)
    leaves = [np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(learner.parameters())]
    parameters = np.concatenate(leaves)
    digest = hashlib.sha256(parameters.tobytes()).hexdigest()
    print(json.dumps({
        "devices": len(jax.devices()), "digest": digest, "parameters": parameters.tolist(),
        "samples": metrics["samples"], "policy_loss": metrics["policy_loss"],
    }))  # fmt: skip


if __name__ == "__main__":
    main()
