"""Cost of the policy's inputs on a large design: CPU seconds, and the process's peak memory after each stage.

    macro-placement generate clustered --hard 1000 --soft 20000 --ports 500 --seed 11 --out designs/large
    OPENBLAS_NUM_THREADS=1 python benchmarks/bench_inputs.py designs/large

Stages: loading, the springs' solution, decisions for a batch of environments, the same without carrying the springs'
state from step to step, and an iteration of the learner on one episode.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from placement.config import EnvConfig, PolicyConfig, PPOConfig
from placement.engine.observation import Observation
from placement.engine.pool import make_pool
from placement.netlist.load import load
from placement.policy.agent import Agent, EmbeddedParameters
from placement.policy.inputs import graph_inputs
from placement.policy.springs import spring_targets
from placement.ppo.learner import Learner
from placement.training.actor import whole_episode
from placement.training.rollout import play

ENV = EnvConfig(soft_placer="none")


def stage(name: str, work: Callable[[], Any]) -> Any:
    """Runs `work` and prints its CPU seconds and the peak memory."""
    began = time.process_time()
    found = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name}: {time.process_time() - began:.2f} CPU-s, peak {peak:,.0f} MB", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design")
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    design = stage("load", lambda: load(options.design))
    print(f"{len(design.placing_order)} macros, {len(design.netlist.soft)} soft macros, {design.netlist.num_nets} nets")
    stage("spring targets", lambda: spring_targets(design))
    stage("graph inputs (springs again)", lambda: graph_inputs(design))
    agent = Agent(PolicyConfig(), [design])
    params = jax.device_put(agent.init(0))
    network = EmbeddedParameters(params, stage("embed", lambda: jax.block_until_ready(agent.embed(params))))
    pool = stage("pool", lambda: make_pool([design], options.envs, num_threads=1, config=ENV))
    seen = Observation(**pool.reset()[0])

    def decide(*, carried: bool) -> None:
        energy: Any = np.zeros((options.envs, 2), np.float32) if carried else None
        for _ in range(options.steps):
            decision = agent.act(*network, seen, jax.random.key(0), energy=energy)
            energy = decision.energy if carried else None

    for name, carried in (("carried", True), ("found anew", False)):
        decide(carried=carried)
        what = f"{options.steps} × {options.envs} decisions, springs' energy {name}"
        stage(what, lambda carried=carried: decide(carried=carried))
    one = make_pool([design], 1, num_threads=1, config=ENV)
    played = stage("an episode", lambda: play(agent, one, network, jax.random.key(0)))
    learner = Learner(PolicyConfig(), PPOConfig(), ENV, [design], seed=0)
    episode = whole_episode(played, 0, identity=(0, 0), version=0)
    stage("an iteration of the learner", lambda: learner.update([episode], iteration=0))


if __name__ == "__main__":
    main()
