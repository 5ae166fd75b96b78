"""Proximal policy optimisation (Schulman et al. 2017) on whole episodes: advantages, loss, minibatches, update.

An iteration learns from a batch of episodes that the present or an older policy drew:

1. `targets`: generalised advantages of rewards made comparable between designs, normalised per design (NumPy, host).
   The baseline is that of `placement.ppo.baseline`.
2. `with_proximal`: the present policy's log-probabilities of samples that an older policy drew.
3. `split_minibatches`: shuffled steps of the episodes, divided into minibatches and these into chunks.
4. `gradient_step`: gather, `ppo_terms` forward and backward, clip, Adam, and a guard against NaN.

`placement.ppo.learner.Learner` calls these in this order.

Axis legend: B episodes, T steps (padded), G designs, S = B · T samples of the iteration, Q chunks of a minibatch, C
samples of a chunk, A actions (grid cells).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh

from placement.engine.observation import Observation
from placement.episode import Episode
from placement.policy.agent import Embeddings, Network, Params
from placement.policy.inputs import Array, GraphInputs

# --- Advantages ------------------------------------------------------------------------------------------------------

_MEAN_MEMORY, _DEVIATION_MEMORY = 48, 192
"""Numbers of a design's episodes that the running mean and deviation average over. Longer averages would lag: in a few
iterations the rewards rise by a deviation, and the deviation itself halves.
"""
_LEAST_DEVIATION = 1e-4
"""Minimum deviation: smaller differences in cost are irrelevant."""
REWARD_LIMIT = 5.0
"""Normalised rewards are clipped to ± this limit, so that a dead end does not outweigh all other episodes."""


class RewardStatistics(NamedTuple):
    """Running statistics of each design's episode rewards; part of the learner's state.

    Attributes:
        mean: float32 [G], mean reward of the most recent episodes.
        deviation: float32 [G], deviation of the rewards from the mean of their own iteration.
        iterations: int32 [G], number of iterations with episodes of the design.
    """

    mean: np.ndarray
    deviation: np.ndarray
    iterations: np.ndarray


class Targets(NamedTuple):
    """The learning targets of an iteration's samples.

    Attributes:
        advantages: float32 [B, T], for the policy; 0 past the episodes' lengths.
        explained_variance: fraction of the variance of the return from each step that the baseline explains.
    """

    advantages: np.ndarray
    explained_variance: float


def initial_statistics(designs: int) -> RewardStatistics:
    """Returns the statistics before any episode."""
    return RewardStatistics(np.zeros(designs, np.float32), np.ones(designs, np.float32), np.zeros(designs, np.int32))


def updated_statistics(statistics: RewardStatistics, batch: Episode) -> RewardStatistics:
    """Adds one iteration's episodes to the statistics. Dead ends are excluded because their penalty is not a cost.

    The deviation is that within an iteration: it excludes the rise of the rewards from iteration to iteration as the
    policy improves. A single episode contributes its distance from the mean so far.
    """
    mean, deviation, iterations = (array.copy() for array in statistics)
    design, placed = batch.design, ~batch.dead_end
    for which in np.unique(design[placed]):
        rewards = batch.reward[(design == which) & placed].astype(np.float64)
        iterations[which] += 1
        count = len(rewards)
        square = rewards.var(ddof=1) if count > 1 else (rewards[0] - mean[which]) ** 2 * (iterations[which] > 1)
        rate = max(1.0 / iterations[which], count / (count + _DEVIATION_MEMORY))
        square = (1 - rate) * deviation[which] ** 2 * (iterations[which] > 1) + rate * square
        rate = 1.0 if iterations[which] == 1 else count / (count + _MEAN_MEMORY)
        mean[which] = (1 - rate) * mean[which] + rate * rewards.mean()
        deviation[which] = max(np.sqrt(square), _LEAST_DEVIATION)
    return RewardStatistics(mean, deviation, iterations)


def normalised_rewards(statistics: RewardStatistics, batch: Episode) -> np.ndarray:
    """Returns (reward - mean) / deviation of the episode's design, clipped to ± `REWARD_LIMIT`, float32 [B]."""
    scaled = (batch.reward - statistics.mean[batch.design]) / statistics.deviation[batch.design]
    return np.clip(scaled, -REWARD_LIMIT, REWARD_LIMIT).astype(np.float32)


def generalised_advantages(rewards: np.ndarray, values: np.ndarray, lengths: np.ndarray, *, decay: float) -> np.ndarray:
    """Generalised advantage estimation at discount 1 (Schulman et al. 2016, equation 16): float32 [B, T].

    Args:
        rewards: float32 [B, T], paid after each step.
        values: float32 [B, T], predicted before each step.
        lengths: int [B], steps of each episode, after which nothing more is paid.
        decay: λ; 1 gives the Monte Carlo return minus the prediction.

    Returns:
        float32 [B, T], 0 past the episode's length.
    """
    batch, steps = rewards.shape
    inside = _inside(steps, lengths)
    rewards, values = np.where(inside, rewards, 0), np.where(inside, values, 0)
    advantages = np.zeros((batch, steps), np.float64)
    following, next_value = np.zeros(batch), np.zeros(batch)
    for step in reversed(range(steps)):
        error = rewards[:, step] + next_value - values[:, step]
        following = (error + decay * following) * inside[:, step]
        advantages[:, step], next_value = following, values[:, step]
    return advantages.astype(np.float32)


def normalised_per_design(advantages: np.ndarray, lengths: np.ndarray, design: np.ndarray) -> np.ndarray:
    """Scales to mean 0 and deviation 1 over the steps of each design's episodes, float32 [B, T]; 0 past the lengths."""
    inside = _inside(advantages.shape[1], lengths)
    result = np.zeros_like(advantages, np.float32)
    for which in np.unique(design):
        mine = inside & (design == which)[:, None]
        if mine.any():
            values = advantages[mine].astype(np.float64)
            result[mine] = (values - values.mean()) / max(values.std(), 1e-6)
    return result


def explained_variance(values: np.ndarray, returns: np.ndarray, lengths: np.ndarray) -> float:
    """Returns 1 - Var(returns - values) / Var(returns) over all steps; 0 if the returns do not vary."""
    inside = _inside(values.shape[1], lengths)
    variance = returns[inside].var() if inside.any() else 0.0
    return float(1 - (returns - values)[inside].var() / variance) if variance > 1e-12 else 0.0


def targets(batch: Episode, final: np.ndarray, values: np.ndarray, *, decay: float) -> Targets:
    """Computes the advantages of an iteration's episodes.

    Where all episodes of a design have the same reward, none is better than another, and the advantages are 0.

    Args:
        batch: the episodes stacked, with axis B before each field's own.
        final: float32 [B], their normalised rewards.
        values: float32 [B, T], predicted before each step.
        decay: λ of the advantages.
    """
    rewards = np.zeros(values.shape, np.float32)
    played = np.flatnonzero(batch.length > 0)
    rewards[played, batch.length[played] - 1] = final[played]
    advantages = generalised_advantages(rewards, values, batch.length, decay=decay)
    paid = np.where(_inside(values.shape[1], batch.length), final[:, None], 0)
    explained = explained_variance(values, paid, batch.length)
    normalised = normalised_per_design(advantages, batch.length, batch.design)
    for which in np.unique(batch.design):
        mine = batch.design == which
        if mine.sum() > 1 and np.ptp(final[mine]) == 0:
            normalised[mine] = 0
    return Targets(normalised, explained)


def _inside(steps: int, lengths: np.ndarray) -> np.ndarray:
    """Returns whether each step is within its episode, bool [B, T]."""
    return np.arange(steps)[None] < np.asarray(lengths)[:, None]


# --- Loss ------------------------------------------------------------------------------------------------------------

ENTROPY_COEFFICIENT = 0.01
"""Initial coefficient of the entropy bonus while the entropy is above its target."""


class Coefficients(NamedTuple):
    """Coefficients of the loss: float32 scalars.

    Attributes:
        clip: ε, the distance of the importance ratio from 1 beyond which it is clipped.
        entropy: weight of the entropy bonus.
    """

    clip: Array
    entropy: Array


class Samples(NamedTuple):
    """The loss function's inputs for each sample, with axis C.

    Attributes:
        actions: int32.
        log_probabilities: float32, of the actions under the policy at the start of the iteration.
        off_policy: float32, probability of the action under that policy over that under the policy which drew it, at
            most 1.
        advantages: float32.
        weights: float32, 1, or 0 for padding.
    """

    actions: Array
    log_probabilities: Array
    off_policy: Array
    advantages: Array
    weights: Array


class Terms(NamedTuple):
    """The loss and its terms: scalars, each a weighted sum over the samples."""

    loss: jax.Array
    policy_loss: jax.Array
    entropy: jax.Array
    approx_kl: jax.Array
    clip_fraction: jax.Array


def clipped_policy_loss(log_ratio: jax.Array, advantages: jax.Array, clip: jax.Array) -> jax.Array:
    """-min(ρ·A, clip(ρ, 1 - ε, 1 + ε)·A), float32 [C]; Schulman et al. 2017, equation 7.

    Args:
        log_ratio: float32 [C], log ρ.
        advantages: float32 [C], A.
        clip: ε.
    """
    ratio = jnp.exp(log_ratio)
    return -jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - clip, 1 + clip) * advantages)


def categorical_entropy(log_probabilities: jax.Array) -> jax.Array:
    """-Σ p·log p in nats, float32 [C], from float32 [C, A]; actions of probability 0 contribute nothing."""
    probabilities = jnp.exp(log_probabilities)
    return -jnp.sum(jnp.where(probabilities > 0, probabilities * log_probabilities, 0.0), axis=1)


def approximate_kl(log_ratio: jax.Array) -> jax.Array:
    """(ρ - 1) - log ρ: an unbiased, non-negative estimate of KL(old, new) per sample, float32 [C]."""
    return jnp.expm1(log_ratio) - log_ratio


def entropy_shortfall(batch: Episode, target: float) -> float:
    """Returns target - H, or 0 if the entropy H of the policy that drew the episodes is not below the target (nats).

    As the coefficient of the entropy bonus, it is the gradient's factor in that of the penalty (target - H)² / 2. A
    fixed coefficient cannot maintain an entropy: the advantages' deviation remains 1, however similar rewards become.

    Args:
        batch: the episodes stacked. H is estimated by the mean of -log p over their actions.
        target: the entropy to maintain.
    """
    entropy = -batch.log_probabilities[_inside(batch.log_probabilities.shape[1], batch.length)].mean(dtype=np.float64)
    return max(0.0, target - float(entropy))  # 0 if H is not a number


def ppo_terms(logits: jax.Array, samples: Samples, coefficients: Coefficients) -> Terms:
    """Computes the loss and its terms, summed with the samples' weights.

    Args:
        logits: float32 [C, A], large negative values for illegal actions.
        samples: C samples.
        coefficients: ε and the weight of the entropy bonus.
    """
    log_probabilities = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(log_probabilities, samples.actions[:, None], axis=1)[:, 0]
    log_ratio = chosen - samples.log_probabilities
    policy = samples.off_policy * clipped_policy_loss(log_ratio, samples.advantages, coefficients.clip)
    entropy = categorical_entropy(log_probabilities)
    clipped = (jnp.abs(jnp.expm1(log_ratio)) > coefficients.clip).astype(jnp.float32)
    loss = policy - coefficients.entropy * entropy
    terms = (loss, policy, entropy, approximate_kl(log_ratio), clipped)
    return Terms(*(jnp.sum(term * samples.weights) for term in terms))


# --- Minibatches -----------------------------------------------------------------------------------------------------

CHUNK_ON_CPU = 16
"""Samples per device that the decoder processes at once on a CPU: few, so that activations remain in the caches."""


class IterationData(NamedTuple):
    """All samples of an iteration, on the devices.

    Attributes:
        observation: arrays with axis S before those of a single observation.
        samples: axis S; `weights` is replaced by the minibatch's.
        energy: float32 [S, 2], see `placement.policy.features.spring_energy`; None: each minibatch computes its own.
    """

    observation: Observation
    samples: Samples
    energy: jax.Array | None = None


class Minibatch(NamedTuple):
    """The samples of a minibatch.

    Attributes:
        indices: int32 [Q, C], indices into S.
        weights: float32 [Q, C], 1, or 0 for padding; their sum is at least 1.
    """

    indices: Array
    weights: Array


def split_minibatches(order: np.ndarray, most: int, *, size: int, mesh: Mesh, whole: bool = False) -> list[Minibatch]:
    """Returns minibatches of one shape for the mesh's devices, as host arrays.

    Args:
        order: int32 [samples], shuffled indices into S.
        most: maximum number of samples of an iteration; no minibatch is larger.
        size: number of samples of a minibatch.
        mesh: the devices over which each chunk is split.
        whole: pads the last minibatch with the index `most`, past all samples, instead of leaving out a remainder.
    """
    size = min(size, math.ceil(most / mesh.size) * mesh.size)
    if whole:
        order = np.append(order, np.full(-len(order) % size, most, np.int32))
    if not len(order):
        return []
    count = max(1, round(len(order) / size))
    each = min(size, math.ceil(len(order) / count))
    chunks, chunk = _chunks(size, mesh)
    result = []
    for start in range(0, count * each, each):
        mine = order[start : start + each]
        if not len(mine):
            break
        indices, weights = np.zeros(chunks * chunk, np.int32), np.zeros(chunks * chunk, np.float32)
        indices[: len(mine)], weights[: len(mine)] = mine, 1
        shaped = Minibatch(indices.reshape(chunks, chunk), weights.reshape(chunks, chunk))
        result.append(shaped)
    return result


def _chunks(size: int, mesh: Mesh) -> tuple[int, int]:
    """Returns (Q, C) of a minibatch of `size`: one chunk on an accelerator, chunks that fit the caches on a CPU."""
    share = size // mesh.size
    on_cpu = mesh.devices.flat[0].platform == "cpu"
    chunks = math.ceil(share / CHUNK_ON_CPU) if on_cpu else 1
    return chunks, math.ceil(share / chunks) * mesh.size


# --- Update ----------------------------------------------------------------------------------------------------------


class Trained(NamedTuple):
    """The state that gradient steps change.

    Attributes:
        params: the network's parameters.
        opt_state: Adam's moments and count.
        step: int32 [], number of gradient steps taken.
        skipped: int32 [], number of gradient steps skipped because loss or gradient was not finite.
    """

    params: Params
    opt_state: Any
    step: jax.Array
    skipped: jax.Array


class Rates(NamedTuple):
    """Float32 scalars: Adam's learning rate, and the global norm to which gradients are clipped."""

    learning_rate: Array
    max_gradient_norm: Array


class StepMetrics(NamedTuple):
    """Float32 scalars: means over the minibatch, the gradient's norm before clipping, and 1 if the step was skipped."""

    terms: Terms
    gradient_norm: jax.Array
    skipped: jax.Array


def make_optimiser() -> optax.GradientTransformation:
    """Returns Adam without its learning rate."""
    return optax.scale_by_adam(eps=1e-5)


def gradient_step(
    network: Network,
    optimiser: optax.GradientTransformation,
    trained: Trained,
    inputs: GraphInputs,
    data: IterationData,
    minibatch: Minibatch,
    coefficients: Coefficients,
    rates: Rates,
) -> tuple[Trained, StepMetrics]:
    """Takes one step of Adam on one minibatch. If loss or gradient is not finite, only the counts change."""
    terms, gradient = minibatch_gradient(network, trained.params, inputs, data, minibatch, coefficients)
    norm = optax.tree.norm(gradient)
    clipped = jnp.minimum(1.0, rates.max_gradient_norm / jnp.maximum(norm, 1e-12))
    finite = jnp.isfinite(norm) & jnp.isfinite(terms.loss)
    # Zeros keep NaN out of Adam's arithmetic; the result for them is not used.
    safe = jax.tree.map(lambda leaf: jnp.where(finite, leaf * clipped, 0), gradient)
    updates, opt_state = optimiser.update(safe, trained.opt_state, trained.params)
    params = jax.tree.map(lambda leaf, change: leaf - rates.learning_rate * change, trained.params, updates)
    params, opt_state = jax.tree.map(
        lambda new, old: jnp.where(finite, new, old), (params, opt_state), (trained.params, trained.opt_state)
    )
    skipped = (~finite).astype(jnp.int32)
    result = Trained(params, opt_state, trained.step + 1 - skipped, trained.skipped + skipped)
    return result, StepMetrics(terms, norm, skipped.astype(jnp.float32))


def minibatch_gradient(
    network: Network,
    params: Params,
    inputs: GraphInputs,
    data: IterationData,
    minibatch: Minibatch,
    coefficients: Coefficients,
) -> tuple[Terms, Params]:
    """Returns the mean terms over the minibatch and the gradient of the mean loss.

    The encoder runs, forward and backward, once per minibatch; the decoder runs once per chunk.
    """
    embeddings, through_encoder = jax.vjp(lambda params: network.embed(params, inputs), params)

    def chunk(total: tuple[Terms, Params, Embeddings], one: Minibatch) -> tuple[tuple[Terms, Params, Embeddings], None]:
        observation, samples, energy = jax.tree.map(lambda array: array[one.indices], data)
        samples = samples._replace(weights=one.weights)

        def loss(params: Params, embeddings: Embeddings) -> tuple[jax.Array, Terms]:
            logits = network.decide(params, embeddings, inputs, observation, energy)
            terms = ppo_terms(logits.reshape(len(logits), -1), samples, coefficients)
            return terms.loss, terms

        gradients, terms = jax.grad(loss, argnums=(0, 1), has_aux=True)(params, embeddings)
        return jax.tree.map(jnp.add, total, (terms, *gradients)), None

    zero = Terms(*[jnp.zeros(())] * len(Terms._fields))
    start = (zero, *jax.tree.map(jnp.zeros_like, (params, embeddings)))
    (terms, gradient, to_embeddings), _ = jax.lax.scan(chunk, start, minibatch)
    (encoder_gradient,) = through_encoder(to_embeddings)
    scale = 1 / jnp.sum(minibatch.weights)
    gradient = jax.tree.map(lambda direct, deep: (direct + deep) * scale, gradient, encoder_gradient)
    return jax.tree.map(lambda term: term * scale, terms), gradient


def with_proximal(
    network: Network, params: Params, inputs: GraphInputs, data: IterationData, minibatch: Minibatch
) -> Samples:
    """Returns `data.samples` with the log-probabilities of `params`, and the truncated ratios, of the minibatch.

    PPO's clip keeps the new policy near the one at the start of the iteration, the proximal policy. If an older one,
    the behaviour policy, drew the episodes, the two are distinguished (Hilton et al. 2022, "Batch size-invariance for
    policy optimization", section 3): the ratio to the proximal policy is clipped, and the sample is weighted by the
    ratio of the proximal to the behaviour policy, truncated at 1 (Espeholt et al. 2018, "IMPALA", section 4.1).

    Args:
        network: the network that is trained.
        params: parameters of the policy at the start of the iteration.
        inputs: constants of the designs.
        data: the iteration's data; each sample's log-probability is still that of the policy that drew it.
        minibatch: the samples that an older policy drew; indices past the last sample are padding.
    """
    samples, embeddings = data.samples, network.embed(params, inputs)

    def chunk(one: Minibatch) -> jax.Array:
        observation, energy = jax.tree.map(lambda array: array[one.indices], (data.observation, data.energy))
        logits = network.decide(params, embeddings, inputs, observation, energy)
        log_probabilities = jax.nn.log_softmax(logits.reshape(len(logits), -1))
        return jnp.take_along_axis(log_probabilities, samples.actions[one.indices][:, None], axis=1)[:, 0]

    proximal = jax.lax.map(chunk, minibatch)
    ratio = jnp.exp(jnp.minimum(proximal - samples.log_probabilities[minibatch.indices], 0.0))
    to = jnp.where(minibatch.weights > 0, minibatch.indices, len(samples.actions))  # padding is dropped
    return samples._replace(
        log_probabilities=samples.log_probabilities.at[to].set(proximal, mode="drop"),
        off_policy=samples.off_policy.at[to].set(ratio, mode="drop"),
    )
