"""Which policy the importance ratio is clipped against, where episodes were drawn by an older one.

PPO's clip keeps the new policy near the one that an iteration begins with, the proximal policy. Episodes may come from
an older one, the behaviour policy. Then the two are told apart (Hilton et al. 2022, "Batch size-invariance for policy
optimization", section 3): the ratio to the proximal policy is clipped, and the sample is weighed by the ratio of the
proximal to the behaviour policy, truncated at 1 (Espeholt et al. 2018, "IMPALA", section 4.1).

Axis legend: S samples of the iteration, Q chunks of a minibatch, B samples of a chunk.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from placement.policy.agent import Network, Params
from placement.policy.graph_inputs import GraphInputs
from placement.ppo.gradient_step import IterationData, Minibatch


def with_proximal(
    network: Network, params: Params, inputs: GraphInputs, data: IterationData, minibatch: Minibatch
) -> IterationData:
    """The data whose samples in the minibatch have the log-probabilities of `params`, and the truncated ratios.

    Args:
        network: that is trained.
        params: of the policy that the iteration begins with.
        inputs: of the designs.
        data: of the iteration; each sample's log-probability is still that of the policy that drew it.
        minibatch: the samples that an older policy drew; indices past the last sample stand for none.
    """
    samples, embeddings = data.samples, network.embed(params, inputs)

    def chunk(one: Minibatch) -> jax.Array:
        observation, energy = jax.tree.map(lambda array: array[one.indices], (data.observation, data.energy))
        logits, _ = network.decide(params, embeddings, inputs, observation, energy)
        log_probabilities = jax.nn.log_softmax(logits.reshape(len(logits), -1))
        return jnp.take_along_axis(log_probabilities, samples.actions[one.indices][:, None], axis=1)[:, 0]

    proximal = jax.lax.map(chunk, minibatch)
    ratio = jnp.exp(jnp.minimum(proximal - samples.log_probabilities[minibatch.indices], 0.0))
    to = jnp.where(minibatch.weights > 0, minibatch.indices, len(samples.actions))  # padding goes nowhere
    changed = samples._replace(
        log_probabilities=samples.log_probabilities.at[to].set(proximal, mode="drop"),
        off_policy=samples.off_policy.at[to].set(ratio, mode="drop"),
    )
    return data._replace(samples=changed)
