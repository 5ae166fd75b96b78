"""What a decision and a gradient step cost: embeddings reused, encoder run at every step, and the comparison policy.

CPU time of the whole process, medians; untrained parameters and made-up observations. Used by bench_policy.py.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from placement.config import PolicyConfig, PPOConfig
from placement.engine.observation import Observation
from placement.netlist.design import Design
from placement.policy.agent import Network, Params
from placement.policy.graph_inputs import GraphInputs
from placement.policy.policy import Embeddings
from placement.ppo.gradient_step import IterationData, Minibatch, minibatch_gradient
from placement.ppo.loss import Coefficients, Samples
from tests.support.observations import random_observation

CHUNK = 32  # as the learner's on a CPU
FEWER = 32  # the minibatch of what costs the same per sample whatever its size
STEPWISE = PolicyConfig(name="edge_gnn_stepwise", node_width=8)


class EncoderAtEveryStep(Network):
    """The same network and the same results, with encoder and contexts made anew for every sample."""

    def embed(self, params: Params, inputs: GraphInputs) -> Embeddings:
        """Nothing that is kept."""
        return jnp.zeros((*inputs.order.shape, 0))

    def decide(
        self, params: Params, embeddings: Embeddings, inputs: GraphInputs, observation: Observation
    ) -> tuple[jax.Array, jax.Array]:
        """As `Network`, each sample being a design of its own."""
        own = jax.tree.map(lambda constants: constants[jnp.asarray(observation.design)], inputs)
        made = Network.embed(self, params, own)
        return Network.decide(self, params, made, own, observation._replace(design=np.arange(len(observation.step))))


class Cost(NamedTuple):
    """CPU seconds per sample, and the logits that came out."""

    inference: float
    gradient: float
    logits: np.ndarray


def costs(network: Network, params: Params, design: Design, *, batch: int, minibatch: int) -> Cost:
    """Of a decision's forward pass at a batch size, and of a gradient step at a minibatch size."""
    embeddings = jax.jit(network.embed)(params, network.inputs)
    decide = jax.jit(network.decide)
    seen = jax.device_put(random_observation([design], 0, batch))
    inference = cpu_seconds(lambda: decide(params, embeddings, network.inputs, seen), repeats=20)
    logits, _ = decide(params, embeddings, network.inputs, seen)
    data, part = _samples(design, minibatch)
    coefficients = Coefficients(np.float32(0.2), np.float32(0.5), np.float32(0.01))
    gradient = jax.jit(partial(minibatch_gradient, network))
    learning = cpu_seconds(lambda: gradient(params, network.inputs, data, part, coefficients), repeats=4)
    return Cost(inference / batch, learning / minibatch, np.asarray(logits))


def print_costs(design: Design, *, batch: int, minibatch: int = PPOConfig().minibatch_size) -> None:
    """Measures and prints all three, and their ratios."""
    usual, other = Network(PolicyConfig(), [design]), Network(STEPWISE, [design])
    params = usual.init(0)
    reused = costs(usual, params, design, batch=batch, minibatch=minibatch)
    rerun = costs(EncoderAtEveryStep(PolicyConfig(), [design]), params, design, batch=batch, minibatch=FEWER)
    stepwise = costs(other, other.init(0), design, batch=batch, minibatch=FEWER)
    np.testing.assert_allclose(rerun.logits, reused.logits, rtol=1e-3, atol=1e-3)
    for what, once, every, theirs in (
        (f"inference, batch {batch}", reused.inference, rerun.inference, stepwise.inference),
        (f"gradient step, minibatch {minibatch}", reused.gradient, rerun.gradient, stepwise.gradient),
    ):
        print(
            f"{what}: {once * 1e3:.3f} ms per sample, {every * 1e3:.3f} ms with the encoder at every step: "
            f"reusing its embeddings saves {1 - once / every:.1%}"
        )
        print(f"{what}: edge_gnn_stepwise {theirs * 1e3:.3f} ms per sample, {theirs / once:.1f} × edge_gnn")


def cpu_seconds(call: Callable[[], object], *, repeats: int = 30) -> float:
    """Median CPU seconds of a call, after one to compile."""
    jax.block_until_ready(call())
    times = []
    for _ in range(repeats):
        start = time.process_time()
        jax.block_until_ready(call())
        times.append(time.process_time() - start)
    return statistics.median(times)


def _samples(design: Design, count: int) -> tuple[IterationData, Minibatch]:
    """Made-up samples with legal actions, and the minibatch of all of them."""
    seen, generator = random_observation([design], 2, count), np.random.default_rng(0)
    actions = seen.mask.reshape(count, -1).argmax(axis=1).astype(np.int32)
    advantages, returns = generator.normal(size=(2, count)).astype(np.float32)
    samples = Samples(
        actions=actions,
        log_probabilities=np.full(count, -5, np.float32),
        advantages=advantages,
        returns=returns,
        weights=np.zeros(count, np.float32),
    )
    chunks = math.ceil(count / CHUNK)
    size = math.ceil(count / chunks)
    indices, weights = np.zeros(chunks * size, np.int32), np.zeros(chunks * size, np.float32)
    indices[:count], weights[:count] = np.arange(count), 1
    shape = chunks, size
    return jax.device_put((IterationData(seen, samples), Minibatch(indices.reshape(shape), weights.reshape(shape))))
