"""The learner: whole episodes in, better parameters out.

Axis legend: B episodes, T steps (of the longest design), S = B · T samples with padding, Q chunks of a minibatch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from placement.config import EnvConfig, PolicyConfig, PPOConfig
from placement.engine.observation import Observation
from placement.engine.pool import EnvironmentPool
from placement.netlist.design import Design
from placement.policy.agent import Network, Params
from placement.policy.graph_inputs import GraphInputs
from placement.ppo import advantage
from placement.ppo.advantage import RewardStatistics
from placement.ppo.gradient_step import (
    IterationData,
    Minibatch,
    Rates,
    StepMetrics,
    Trained,
    gradient_step,
    make_optimiser,
)
from placement.ppo.hosts import Hosts
from placement.ppo.loss import Coefficients, Samples
from placement.ppo.mesh import check_divisible, put, replicated, single_device_mesh, split_over
from placement.ppo.trajectory import Episode

_CHUNK_ON_CPU = 32
"""Samples per device that pass through the decoder at once on a CPU (measured: activations fit the caches)."""


class LearnerState(NamedTuple):
    """All that an exact resume needs.

    Attributes:
        trained: parameters, optimiser, counts of gradient steps.
        version: int32 [], iterations learned.
        key: uint32 [2], root of the shuffling, never changed; each iteration's order comes from (key, version).
        reward_statistics: of each design.
    """

    trained: Trained
    version: np.ndarray
    key: np.ndarray
    reward_statistics: RewardStatistics


class Prepared(NamedTuple):
    """An iteration's input, as far as it does not depend on the learner's state.

    Attributes:
        batch: the episodes side by side: axis B before each field's own.
        observation: on every device, axis S before those of one observation.
    """

    batch: Episode
    observation: Observation


class Learner:
    """Proximal policy optimisation on whole episodes, data parallel over a mesh of devices.

    Attributes:
        state: a pytree; may be replaced by one of the same structure (NumPy or JAX arrays) to resume.
        trace_count: how often the gradient step was traced, that is compiled anew.
    """

    state: LearnerState

    def __init__(
        self,
        policy_config: PolicyConfig,
        ppo_config: PPOConfig,
        env_config: EnvConfig,
        designs: Sequence[Design],
        *,
        seed: int,
        mesh: Mesh | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        """Fresh parameters of `seed`.

        Args:
            policy_config: sizes of the network.
            ppo_config: the algorithm's settings.
            env_config: how episodes were played, to play them again.
            designs: in the order that the episodes' `design` indexes.
            seed: of the parameters (as `Agent.init(seed)`) and of the shuffling.
            mesh: devices; the first one when None.
            hosts: the learner hosts that this is one of, whose devices are all in `mesh`; None = the only one.

        Raises:
            ConfigError: the minibatch cannot be shared out evenly over the devices.
        """
        self._config = ppo_config
        self._mesh = single_device_mesh() if mesh is None else mesh
        check_divisible(ppo_config.minibatch_size, self._mesh)
        self._hosts = hosts or Hosts()
        self._designs = tuple(designs)
        self._pool = EnvironmentPool(self._designs, 1, env=env_config)
        self._network = Network(policy_config, self._designs)
        self._inputs: GraphInputs = put(self._network.inputs, replicated(self._mesh))
        self._optimiser = make_optimiser()
        self._buffer: Observation | None = None
        self.trace_count = 0
        self._step = jax.jit(self._traced_step, donate_argnums=0, out_shardings=replicated(self._mesh))
        params = self._network.init(seed)
        trained = Trained(params, self._optimiser.init(params), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))
        self.state = LearnerState(
            trained=put(trained, replicated(self._mesh)),
            version=np.zeros((), np.int32),
            key=np.random.SeedSequence([seed, 1]).generate_state(2, np.uint32),
            reward_statistics=advantage.initial_statistics(len(self._designs)),
        )

    def parameters(self) -> Params:
        """A copy of the parameters as NumPy arrays, for publishing."""
        return jax.tree.map(lambda leaf: np.array(leaf), self.state.trained.params)

    def update(self, episodes: list[Episode], *, iteration: int) -> dict[str, float]:
        """`prepare` and `learn`."""
        return self.learn(self.prepare(episodes), iteration=iteration)

    def prepare(self, episodes: list[Episode]) -> Prepared:
        """Plays episodes again and puts what was seen on the devices, where it stays until the next such call.

        Args:
            episodes: this host's, at least one; any number, the same on every host. Another number than before may
                compile anew.

        Raises:
            ValueError: no episode, or one of an unknown design or another number of steps.
            IllegalAction: an action may not be taken in its episode.
        """
        self._check(episodes)
        episodes = self._hosts.exchange(episodes)
        if self._buffer is None or len(self._buffer.step) != len(episodes):
            self._buffer = self.buffer(len(episodes))
        self.render(episodes, self._buffer)
        return self.load(episodes, self._buffer)

    @property
    def alone(self) -> bool:
        """Whether this is the only learner host. Then the parts of `prepare` may run in another thread than `learn`."""
        return self._hosts.count == 1

    def buffer(self, episodes: int) -> Observation:
        """Host arrays for what is seen in so many episodes, [B, T, …]."""
        return self._pool.rendered_arrays(episodes, self._pool.steps)

    def render(self, episodes: list[Episode], buffer: Observation, *, at: int = 0) -> None:
        """Plays episodes again into the buffer's rows from `at`; raises as `prepare`."""
        self._check(episodes)
        batch = _side_by_side(episodes)
        rows = Observation(*(array[at : at + len(episodes)] for array in buffer))
        self._pool.render_episodes(
            batch.design.astype(np.int32), batch.actions.astype(np.int32), batch.length.astype(np.int32), out=rows
        )

    def load(self, episodes: list[Episode], buffer: Observation) -> Prepared:
        """Moves the rendered buffer to the devices; it must stay as it is until `learn` is done with it."""
        flat = jax.tree.map(_joined, Observation(*buffer))
        return Prepared(_side_by_side(episodes), put(flat, replicated(self._mesh)))

    def learn(self, prepared: Prepared, *, iteration: int) -> dict[str, float]:
        """One iteration of PPO: epochs of shuffled minibatches over the prepared episodes.

        Args:
            prepared: of this learner.
            iteration: from 0, sets learning rate and entropy bonus.

        Returns:
            Metrics, means over the gradient steps: policy_loss, value_loss, entropy, approx_kl, clip_fraction,
            gradient_norm; explained_variance of the episodes' values; learning_rate; entropy_coefficient;
            gradient_steps, skipped_steps and samples of this iteration.
        """
        batch = prepared.batch
        statistics = advantage.updated_statistics(
            self.state.reward_statistics, batch.design, batch.reward, batch.dead_end
        )
        data, explained = self._data(prepared, statistics)
        trained = put(self.state.trained, replicated(self._mesh))
        progress = min(iteration / max(self._config.iterations - 1, 1), 1.0)
        learning_rate = self._config.learning_rate * _fall(self._config.final_learning_rate_fraction, progress)
        entropy = self._config.entropy_coefficient * _fall(self._config.final_entropy_fraction, progress)
        coefficients = Coefficients(
            np.float32(self._config.clip), np.float32(self._config.value_coefficient), np.float32(entropy)
        )
        rates = Rates(np.float32(learning_rate), np.float32(self._config.max_gradient_norm))
        seeds = np.random.default_rng([*map(int, self.state.key), int(self.state.version)])
        inside = np.flatnonzero((np.arange(self._pool.steps)[None] < batch.length[:, None]).ravel()).astype(np.int32)
        metrics: list[StepMetrics] = []
        for _ in range(self._config.epochs):
            before = len(metrics)
            for minibatch in self._minibatches(seeds.permutation(inside), len(batch.length)):
                trained, step_metrics = self._step(trained, self._inputs, data, minibatch, coefficients, rates)
                metrics.append(step_metrics)
            if self._config.target_kl > 0:
                divergence = np.mean([float(one.terms.approx_kl) for one in metrics[before:]])
                if divergence > self._config.target_kl:
                    break
        # Waits for the devices: the rendered observations may be overwritten from here on.
        averages = _averages(jax.device_get(metrics))
        self.state = LearnerState(trained, self.state.version + np.int32(1), self.state.key, statistics)
        return averages | {
            "explained_variance": explained,
            "learning_rate": learning_rate,
            "entropy_coefficient": entropy,
            "samples": float(len(inside)),
        }

    def _check(self, episodes: list[Episode]) -> None:
        if not episodes:
            raise ValueError("update: at least one episode is needed")
        for episode in episodes:
            if not 0 <= int(episode.design) < len(self._designs):
                raise ValueError(f"episode of design {int(episode.design)}: there are {len(self._designs)} designs")
            if episode.actions.shape != (self._pool.steps,):
                raise ValueError(
                    f"episode of {episode.actions.shape[0]} steps: the designs' longest takes {self._pool.steps}"
                )

    def _data(self, prepared: Prepared, statistics: RewardStatistics) -> tuple[IterationData, float]:
        """What the gradient steps draw from, on every device, and the explained variance of the episodes' values."""
        batch = prepared.batch
        rewards = np.zeros(batch.values.shape, np.float32)
        played = np.flatnonzero(batch.length > 0)
        scaled = advantage.normalised_rewards(statistics, batch.design, batch.reward)
        rewards[played, batch.length[played] - 1] = scaled[played]
        advantages, returns = advantage.generalised_advantages(
            rewards, batch.values, batch.length, decay=self._config.gae_lambda
        )
        explained = advantage.explained_variance(batch.values, returns, batch.length)
        advantages = advantage.normalised_per_design(advantages, batch.length, batch.design)
        actions = np.where(np.arange(self._pool.steps)[None] < batch.length[:, None], batch.actions, 0)
        samples = Samples(actions, batch.log_probabilities, advantages, returns, np.zeros_like(advantages))
        flat = jax.tree.map(_joined, Samples(*samples))
        return IterationData(prepared.observation, put(flat, replicated(self._mesh))), explained

    def _minibatches(self, order: np.ndarray, episodes: int) -> list[Minibatch]:
        """Shuffled samples shared out into minibatches of one shape; what little is left over is left out.

        Args:
            order: int32 [samples], shuffled.
            episodes: in this iteration.
        """
        devices = self._mesh.size
        most = math.ceil(episodes * self._pool.steps / devices) * devices
        size = min(self._config.minibatch_size, most)
        count = max(1, round(len(order) / size))
        each = min(size, math.ceil(len(order) / count))
        chunks, chunk = self._chunks(size)
        result = []
        for start in range(0, count * each, each):
            part = order[start : start + each]
            if not len(part):
                break
            indices, weights = np.zeros(chunks * chunk, np.int32), np.zeros(chunks * chunk, np.float32)
            indices[: len(part)], weights[: len(part)] = part, 1
            shaped = Minibatch(indices.reshape(chunks, chunk), weights.reshape(chunks, chunk))
            result.append(put(shaped, split_over(self._mesh, 1)))
        return result

    def _chunks(self, size: int) -> tuple[int, int]:
        """(Q, samples per chunk) of a minibatch of `size`: all at once on an accelerator, cache-sized on a CPU."""
        devices = self._mesh.size
        share = size // devices
        on_cpu = self._mesh.devices.flat[0].platform == "cpu"
        chunks = math.ceil(share / _CHUNK_ON_CPU) if on_cpu else 1
        return chunks, math.ceil(share / chunks) * devices

    def _traced_step(
        self,
        trained: Trained,
        inputs: GraphInputs,
        data: IterationData,
        minibatch: Minibatch,
        coefficients: Coefficients,
        rates: Rates,
    ) -> tuple[Trained, StepMetrics]:
        self.trace_count += 1
        step = functools.partial(gradient_step, self._network, self._optimiser)
        return step(trained, inputs, data, minibatch, coefficients, rates)


def _side_by_side(episodes: list[Episode]) -> Episode:
    """Axis B before each field's own."""
    return Episode(*(np.stack(values) for values in zip(*episodes, strict=True)))


def _joined(array: np.ndarray) -> np.ndarray:
    """[B, T, …] → [S, …], without a copy."""
    return array.reshape(-1, *array.shape[2:])


def _fall(final: float, progress: float) -> float:
    """From 1 at the start linearly to `final`."""
    return 1 + (final - 1) * progress


def _averages(metrics: list[StepMetrics]) -> dict[str, float]:
    """Means over the gradient steps that were not skipped, and counts."""
    good = [one for one in metrics if not one.skipped]
    result = {"gradient_steps": float(len(good)), "skipped_steps": float(len(metrics) - len(good))}
    for name in ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction"):
        result[name] = float(np.mean([getattr(one.terms, name) for one in good])) if good else math.nan
    result["gradient_norm"] = float(np.mean([one.gradient_norm for one in good])) if good else math.nan
    return result
