"""CPU time of the policy: forward pass, drawing actions, learning; compared with Circuit Training on the same design.

    python benchmarks/bench_policy.py [DESIGN] [--batch B] [--minibatch M]

Then, as ratios within this run: the savings of running the encoder once per parameter update (in learning: once per
minibatch) instead of at every step, in inference and in a gradient step.

DESIGN is a name or a path; default: ariane133_ng45 if it is on PLACEMENT_PATH, else clustered120. CPU time of the whole
process (all its threads), medians; untrained parameters. Circuit Training's figures were measured on Ariane on the same
kind of machine, so ratios are printed for that design only.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from placement.config import EnvConfig, PolicyConfig, PPOConfig
from placement.engine.observation import Observation
from placement.engine.pool import make_pool
from placement.episode import Episode, signature
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from placement.policy.agent import Agent, Embeddings, Network, Params
from placement.policy.inputs import GraphInputs
from placement.ppo.learner import Learner
from placement.ppo.ppo import CHUNK_ON_CPU, Coefficients, IterationData, Minibatch, Samples, minibatch_gradient
from tests.support.observations import random_observation

ARIANE = "ariane133_ng45"
CT_STEP = (0.190, 0.290)  # seconds per step as its collector runs its policy
CT_STEP_COMPILED = 0.024  # seconds per step, compiled, batch 1
CT_LEARNER = (16.7, 45.6)  # samples per second: usual padding, tightest padding
BAR_ACT = 0.3e-3  # CPU seconds per decision at a batch of 16 to 32
FEWER = 32  # minibatch for work whose cost per sample does not depend on it
BAR_LEARN = 2e-3  # CPU seconds per sample, forward and backward


def default_design() -> str:
    try:
        load(ARIANE)
    except DesignError:
        return "clustered120"
    return ARIANE


def random_episodes(design: Design, count: int) -> list[Episode]:
    """Returns episodes of uniformly random legal actions, with artificial rewards (no soft macro is placed)."""
    generator = np.random.default_rng(0)
    pool = make_pool(design, count, num_threads=1, config=EnvConfig(soft_placer="none"))
    observation, _ = pool.reset()
    batch = Episode(*(np.repeat(value[None], count, axis=0) for value in signature(pool.spec.steps)))
    for step in range(pool.spec.steps):
        legal = observation["mask"].reshape(count, -1)
        score = np.where(legal != 0, generator.random(legal.shape), -1)
        running = legal.any(axis=1)
        batch.actions[:, step] = np.where(running, score.argmax(axis=1), -1)
        batch.log_probabilities[:, step] = -np.log(np.maximum(legal.sum(axis=1), 1))
        batch.length[:] += running
        observation = pool.step(np.maximum(batch.actions[:, step], 0))[0]
    batch.reward[:] = generator.normal(size=count)
    return [Episode(*(np.array(field[row]) for field in batch)) for row in range(count)]


def learner_times(design: Design, minibatch: int) -> tuple[float, float, float]:
    """Returns CPU seconds per sample of gradient steps, samples per wall-clock second, CPU seconds of the rest."""
    episodes = random_episodes(design, 8)
    results = []
    for epochs in (1, 5):
        learner = Learner(
            PolicyConfig(),
            PPOConfig(epochs=epochs, sample_fraction=1.0, minibatch_size=minibatch),
            EnvConfig(),
            [design],
            seed=0,
        )
        learner.update(episodes, iteration=0)
        start = time.process_time(), time.perf_counter()
        metrics = learner.update(episodes, iteration=1)
        results.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    samples = 4 * metrics["gradient_steps"] / 5 * minibatch
    cpu, wall = (results[1][axis] - results[0][axis] for axis in range(2))
    return cpu / samples, samples / wall, max(results[0][0] - cpu / 4, 0) / metrics["samples"]


def acting(agent: Agent, design: Design, batches: list[int]) -> float:
    """Prints the cost of drawing actions and of the encoder; returns CPU seconds per decision at the last batch."""
    params = agent.init(0)
    count = sum(leaf.size for leaf in jax.tree.leaves(params))
    print(f"parameters: {count:,}")
    encoder = cpu_seconds(lambda: agent.embed(params))
    embeddings = agent.embed(params)
    print(f"encoder, once per parameters and design: {encoder * 1e3:.2f} ms")
    per_decision = 0.0
    for batch in batches:
        per_decision = _per_decision(agent, params, embeddings, design, batch)
        share = encoder / (encoder + per_decision)
        print(
            f"act, batch {batch}: {per_decision * 1e3:.3f} ms per decision; embeddings reused save {share:.1%} of "
            f"what an encoder run at every decision would take"
        )
    return per_decision


def _per_decision(agent: Agent, params: dict, embeddings: Embeddings, design: Design, batch: int) -> float:
    observation, key = random_observation([design], 0, batch), jax.random.key(0)
    inputs, decide = agent.network.inputs, jax.jit(agent.network.decide)
    forward = cpu_seconds(lambda: decide(params, embeddings, inputs, observation)) / batch
    print(f"forward, batch {batch}: {forward * 1e3:.3f} ms per step")
    return cpu_seconds(lambda: agent.act(params, embeddings, observation, key)) / batch


class EncoderAtEveryStep(Network):
    """The same network and the same results, but encoder and contexts are computed for every sample."""

    def embed(self, params: Params, inputs: GraphInputs) -> Embeddings:
        """Returns nothing: no embeddings are cached."""
        return jnp.zeros((*inputs.size.shape[:2], 0))

    def decide(
        self,
        params: Params,
        embeddings: Embeddings,
        inputs: GraphInputs,
        observation: Observation,
        energy: jax.Array | None = None,
    ) -> jax.Array:
        """Does the work of `Network` with each sample as a separate design."""
        own = jax.tree.map(lambda constants: constants[jnp.asarray(observation.design)], inputs)
        made = Network.embed(self, params, own)
        each = observation._replace(design=np.arange(len(observation.step)))
        return Network.decide(self, params, made, own, each, energy)


class Cost(NamedTuple):
    """CPU seconds per sample, and the resulting logits."""

    inference: float
    gradient: float
    logits: np.ndarray


def costs(network: Network, params: Params, design: Design, *, batch: int, minibatch: int) -> Cost:
    """Measures a decision's forward pass at a batch size, and a gradient step at a minibatch size."""
    embeddings = jax.jit(network.embed)(params, network.inputs)
    decide = jax.jit(network.decide)
    seen = jax.device_put(random_observation([design], 0, batch))
    inference = cpu_seconds(lambda: decide(params, embeddings, network.inputs, seen), repeats=20)
    logits = decide(params, embeddings, network.inputs, seen)
    data, part = _samples(design, minibatch)
    coefficients = Coefficients(np.float32(0.2), np.float32(0.01))
    gradient = jax.jit(partial(minibatch_gradient, network))
    learning = cpu_seconds(lambda: gradient(params, network.inputs, data, part, coefficients), repeats=4)
    return Cost(inference / batch, learning / minibatch, np.asarray(logits))


def print_costs(design: Design, *, batch: int, minibatch: int = PPOConfig().minibatch_size) -> None:
    """Measures and prints both, and their ratios."""
    usual = Network(PolicyConfig(), [design])
    params = usual.init(0)
    reused = costs(usual, params, design, batch=batch, minibatch=minibatch)
    rerun = costs(EncoderAtEveryStep(PolicyConfig(), [design]), params, design, batch=batch, minibatch=FEWER)
    np.testing.assert_allclose(rerun.logits, reused.logits, rtol=1e-3, atol=1e-3)
    for what, once, every in (
        (f"inference, batch {batch}", reused.inference, rerun.inference),
        (f"gradient step, minibatch {minibatch}", reused.gradient, rerun.gradient),
    ):
        print(
            f"{what}: {once * 1e3:.3f} ms per sample, {every * 1e3:.3f} ms with the encoder at every step: "
            f"reusing its embeddings saves {1 - once / every:.1%}"
        )


def cpu_seconds(call: Callable[[], object], *, repeats: int = 30) -> float:
    """Returns the median CPU seconds of a call, after one to compile."""
    jax.block_until_ready(call())
    times = []
    for _ in range(repeats):
        start = time.process_time()
        jax.block_until_ready(call())
        times.append(time.process_time() - start)
    return statistics.median(times)


def _samples(design: Design, count: int) -> tuple[IterationData, Minibatch]:
    """Returns artificial samples with legal actions, and the minibatch of all of them."""
    seen, generator = random_observation([design], 2, count), np.random.default_rng(0)
    actions = seen.mask.reshape(count, -1).argmax(axis=1).astype(np.int32)
    advantages = generator.normal(size=count).astype(np.float32)
    samples = Samples(
        actions=actions,
        log_probabilities=np.full(count, -5, np.float32),
        off_policy=np.ones(count, np.float32),
        advantages=advantages,
        weights=np.zeros(count, np.float32),
    )
    chunks = math.ceil(count / CHUNK_ON_CPU)
    size = math.ceil(count / chunks)
    indices, weights = np.zeros(chunks * size, np.int32), np.zeros(chunks * size, np.float32)
    indices[:count], weights[:count] = np.arange(count), 1
    shape = chunks, size
    return jax.device_put((IterationData(seen, samples), Minibatch(indices.reshape(shape), weights.reshape(shape))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", nargs="?", default=None)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--minibatch", type=int, default=512)
    arguments = parser.parse_args()
    design = load(arguments.design or default_design())
    canvas = design.canvas
    print(
        f"{design.name}: {len(design.placing_order)} macros, {canvas.columns} × {canvas.rows} gcells; {jax.devices()}"
    )
    decision = acting(Agent(PolicyConfig(), [design]), design, [1, arguments.batch])
    cpu, rate, rest = learner_times(design, arguments.minibatch)
    print(f"learner, minibatch {arguments.minibatch}: {cpu * 1e3:.3f} ms of CPU per sample, forward and backward")
    print(f"learner: {rate:,.0f} samples/s of wall-clock; {rest * 1e3:.3f} ms per sample once to play episodes again")
    print_costs(design, batch=arguments.batch)
    if design.name == ARIANE:
        slow, fast = CT_STEP[1] / decision, CT_STEP[0] / decision
        print(
            f"Circuit Training's step {fast:,.0f} to {slow:,.0f} × this, compiled {CT_STEP_COMPILED / decision:,.0f} ×"
        )
        usual, tight = (rate / theirs for theirs in CT_LEARNER)
        print(f"its learner: this is {usual:,.0f} × as fast; {tight:,.0f} × with its tightest padding")
        print(f"bar of {BAR_ACT * 1e3} ms per decision: {'met' if decision <= BAR_ACT else 'NOT met'}")
        print(f"bar of {BAR_LEARN * 1e3:.0f} ms per sample: {'met' if cpu <= BAR_LEARN else 'NOT met'}")


if __name__ == "__main__":
    main()
