"""The learner: computes better parameters from whole episodes, on the devices of one host or of several hosts together.

The algorithm is in `placement.ppo.ppo`. Parallelism is over data, on a mesh with one axis: parameters are replicated on
every device, batches are split. Each learner host reads its own episodes, and all hosts learn from all of them:
episodes are sent as actions (about 2 kB each), and before an iteration the hosts exchange them, so every host has the
same batch. The gradient step is jitted over the mesh of all hosts' devices: each device computes the gradient of its
part, and the gradients are averaged. Parameters are the same everywhere; one host publishes and saves them.

Axis legend: H hosts, B episodes (of all hosts; of one in `Hosts`), T steps (of the longest design), S = B · T samples
with padding.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from placement.config import ConfigError, EnvConfig, PolicyConfig, PPOConfig
from placement.engine.observation import Observation
from placement.engine.state import EpisodeRenderer
from placement.episode import Episode, stack_episodes
from placement.netlist.design import Design
from placement.policy.agent import Network, Params
from placement.policy.features import episode_energies
from placement.policy.inputs import GraphInputs
from placement.ppo import ppo
from placement.ppo.baseline import Regression, history_features, no_episodes, predicted, wire_shares
from placement.ppo.ppo import Coefficients, IterationData, Minibatch, Rates, Samples, StepMetrics, Targets, Trained

# --- Devices and hosts -----------------------------------------------------------------------------------------------

MEET_SECONDS = 3600.0
"""Deadline, in s, of hosts that wait at an exchange: another may be evaluating or waiting for episodes."""
DATA = "data"
"""Name of the mesh's only axis."""


def make_mesh(devices: Sequence[jax.Device] | None = None) -> Mesh:
    """Returns a mesh over `devices`; None: all of the default backend's, including those of other learner hosts."""
    return Mesh(np.array(jax.devices() if devices is None else devices), (DATA,))


def single_device_mesh() -> Mesh:
    """Returns a mesh of the default backend's first device."""
    return make_mesh(jax.local_devices()[:1])


def replicated(mesh: Mesh) -> NamedSharding:
    """Returns the sharding that puts the whole array on every device."""
    return NamedSharding(mesh, PartitionSpec())


def split_over(mesh: Mesh, axis: int) -> NamedSharding:
    """Returns the sharding that splits along `axis` and keeps the other axes whole."""
    return NamedSharding(mesh, PartitionSpec(*[None] * axis, DATA))


def put(tree: Any, sharding: NamedSharding) -> Any:
    """Puts a pytree of host arrays on the devices, even if some of them belong to other processes.

    Every process must pass the same values.
    """
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)
    return jax.tree.map(lambda leaf: _put_leaf(leaf, sharding), tree)


def _put_leaf(leaf: Any, sharding: NamedSharding) -> jax.Array:
    if isinstance(leaf, jax.Array) and leaf.sharding == sharding:
        return leaf
    host = np.asarray(leaf)
    return jax.make_array_from_callback(host.shape, sharding, lambda part: host[part])


def check_divisible(minibatch_size: int, mesh: Mesh) -> None:
    """Raises ConfigError if a minibatch cannot be divided evenly among the devices."""
    if minibatch_size % mesh.size:
        below, above = minibatch_size // mesh.size * mesh.size, -(-minibatch_size // mesh.size) * mesh.size
        choices = f"{above}" if not below else f"{below} or {above}"
        raise ConfigError(
            f"ppo.minibatch_size={minibatch_size}: must be divisible by the {mesh.size} devices, such as {choices}"
        )


@dataclasses.dataclass(frozen=True)
class Hosts:
    """The learner hosts, from the view of one of them.

    Attributes:
        index: this host's number, from 0; host 0 publishes, evaluates and saves.
        count: H, number of hosts.
    """

    index: int = 0
    count: int = 1

    def exchange(self, episodes: list[Episode]) -> list[Episode]:
        """Returns all hosts' episodes, host by host. Every host must pass the same number; waits for all of them.

        Raises:
            JaxRuntimeError: another host is gone or did not arrive in time.
        """
        if self.count == 1:
            return episodes
        from orbax.checkpoint import multihost  # a slow import, needed only by several hosts

        # The timeout of JAX's own exchange cannot be set.
        multihost.get_barrier_sync_fn()(key="exchange", timeout_ms=int(1000 * MEET_SECONDS))
        mine = Episode(*(np.stack(values) for values in zip(*episodes, strict=True)))
        # A single array, because several exchanged at once may overtake each other. Bytes, because JAX would truncate
        # 64-bit numbers to 32 bits.
        packed = np.concatenate([np.ascontiguousarray(field).reshape(-1).view(np.uint8) for field in mine])
        everyone = np.asarray(multihost_utils.process_allgather(packed))  # [H, bytes]
        ends = np.cumsum([field.nbytes for field in mine])[:-1]
        parts = zip(np.split(everyone, ends, axis=1), mine, strict=True)
        flat = ((np.ascontiguousarray(part).reshape(-1).view(field.dtype), field) for part, field in parts)
        batch = Episode(*(values.reshape(-1, *field.shape[1:]) for values, field in flat))  # axis H · B
        return [Episode(*(field[index] for field in batch)) for index in range(len(batch.actions))]

    def first(self, value: float) -> float:
        """Returns host 0's value on every host; all must call this. Raises JaxRuntimeError if another host is gone."""
        if self.count == 1:
            return value
        sent = np.frombuffer(np.float64(value).tobytes(), np.uint8)
        return float(np.asarray(multihost_utils.broadcast_one_to_all(sent)).view(np.float64)[0])


def join_hosts(coordinator: str, *, index: int, count: int, timeout: float = 120.0, bind: str = "127.0.0.1") -> Hosts:
    """Makes this process one of `count` learner hosts; must be called before JAX computes anything.

    Args:
        coordinator: host:port at which host 0 waits for the others.
        index: this host's number, from 0.
        count: number of hosts.
        timeout: time in s that the hosts wait for each other.
        bind: this host's address, at which the others connect to it if hosts compute on CPUs.

    Raises:
        RuntimeError: the other hosts did not arrive in time, or JAX has already been used.
    """
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    _listen_at(bind)
    jax.distributed.initialize(
        coordinator_address=coordinator,
        num_processes=count,
        process_id=index,
        initialization_timeout=int(timeout),
        # Listens only at the address that the other hosts connect to.
        coordinator_bind_address=coordinator if index == 0 else None,
    )
    return Hosts(index, count)


def _listen_at(address: str) -> None:
    """Makes the CPUs' collectives listen at `address`; JAX has no setting for it and resolves the machine's name."""
    from jax._src import xla_bridge

    library = xla_bridge.xla_client._xla
    made = library.make_gloo_tcp_collectives
    made = made.func if isinstance(made, functools.partial) else made
    library.make_gloo_tcp_collectives = functools.partial(made, hostname=address)


# --- The learner -----------------------------------------------------------------------------------------------------


class LearnerState(NamedTuple):
    """The complete state for an exact resume.

    Attributes:
        trained: parameters, optimiser, counts of gradient steps.
        version: int32 [], number of completed iterations.
        key: uint32 [2], root of the shuffling, never changed; each iteration's order is drawn from (key, version).
        reward_statistics: statistics of each design's rewards.
        baseline: state of the rewards' regression.
    """

    trained: Trained
    version: np.ndarray
    key: np.ndarray
    reward_statistics: ppo.RewardStatistics
    baseline: Regression


class DesignConstants(NamedTuple):
    """The learner's constants of G designs.

    Attributes:
        inputs: the network's inputs, on every device.
        wire_shares: float32 [G, T], see `placement.ppo.baseline.wire_shares`.
        macros: int [G], number of macros to place.
    """

    inputs: GraphInputs
    wire_shares: np.ndarray
    macros: np.ndarray


class Prepared(NamedTuple):
    """The part of an iteration's input that does not depend on the learner's state.

    Attributes:
        batch: the episodes stacked, with axis B before each field's own; `design` indexes `designs`.
        observation: on every device, with axis S before those of a single observation.
        designs: constants of the episodes' designs.
    """

    batch: Episode
    observation: Observation
    designs: DesignConstants


class Learner:
    """Proximal policy optimisation on whole episodes, data-parallel over a mesh of devices.

    Attributes:
        state: a pytree; may be replaced by one of the same structure (NumPy or JAX arrays) to resume.
        trace_count: number of times that the gradient step was traced, that is, compiled.
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
        """Draws fresh parameters from `seed`.

        Args:
            policy_config: sizes of the network.
            ppo_config: the algorithm's settings.
            env_config: settings with which the episodes were played, to replay them.
            designs: in the order that the episodes' `design` indexes.
            seed: seed of the parameters (as in `Agent.init(seed)`) and of the shuffling.
            mesh: the devices; None: the first one.
            hosts: the learner hosts, including this one, whose devices are all in `mesh`; None: this is the only one.

        Raises:
            ConfigError: the minibatch cannot be split evenly over the devices.
        """
        self._config = ppo_config
        self._mesh = single_device_mesh() if mesh is None else mesh
        check_divisible(ppo_config.minibatch_size, self._mesh)
        self._hosts = hosts or Hosts()
        self._designs = tuple(designs)
        self._renderer = EpisodeRenderer(self._designs)
        self._steps = self._renderer.spec.steps
        self._network = Network(policy_config, self._designs)
        everywhere = replicated(self._mesh)
        inputs = self._network.inputs
        self._constants = self._constants_of(self._designs, inputs)
        self._optimiser = ppo.make_optimiser()
        self._buffer: Observation | None = None
        self.trace_count = 0
        self._step = jax.jit(self._traced_step, donate_argnums=0, out_shardings=everywhere)
        self._proximal = jax.jit(functools.partial(ppo.with_proximal, self._network), out_shardings=everywhere)
        self._energies = jax.jit(_energies, out_shardings=everywhere)
        self._history = jax.jit(functools.partial(history_features, policy_config), out_shardings=everywhere)
        params = self._network.init(seed)
        trained = Trained(params, self._optimiser.init(params), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))
        self.state = LearnerState(
            trained=put(trained, everywhere),
            version=np.zeros((), np.int32),
            key=np.random.SeedSequence([seed, 1]).generate_state(2, np.uint32),
            reward_statistics=ppo.initial_statistics(len(self._designs)),
            baseline=no_episodes(len(self._designs)),
        )

    def parameters(self) -> Params:
        """Returns a copy of the parameters as NumPy arrays, for publishing."""
        return jax.tree.map(lambda leaf: np.array(leaf), self.state.trained.params)

    def begin_with(self, params: Params) -> None:
        """Replaces the parameters by others; the optimiser, the counts and the reward statistics remain as they are."""
        trained = self.state.trained._replace(params=params)
        self.state = self.state._replace(trained=put(trained, replicated(self._mesh)))

    # --- Preparing: the part that an input pipeline runs while the learner learns ------------------------------------

    @property
    def alone(self) -> bool:
        """Whether this is the only learner host. If so, `render` and `load` may run in another thread than `learn`."""
        return self._hosts.count == 1

    def prepare(self, episodes: list[Episode]) -> Prepared:
        """Replays episodes and puts their observations on the devices, where they remain until the next call.

        Args:
            episodes: this host's, at least one; any number, the same on every host. A different number than before may
                cause a recompilation.

        Raises:
            ValueError: there is no episode, or one has an unknown design or a wrong number of steps.
            IllegalAction: an action is illegal in its episode.
        """
        self._check(episodes)
        episodes = self._hosts.exchange(episodes)
        if self._buffer is None or len(self._buffer.step) != len(episodes):
            self._buffer = self.buffer(len(episodes))
        self.render(episodes, self._buffer)
        return self.load(episodes, self._buffer)

    def buffer(self, episodes: int) -> Observation:
        """Returns host arrays for the observations of this number of episodes, [B, T, …]."""
        return self._renderer.arrays(episodes, self._steps, compact_maps=self._network.compact_maps)

    def render(self, episodes: list[Episode], buffer: Observation, *, at: int = 0) -> None:
        """Replays episodes into the buffer's rows from `at`; raises like `prepare`."""
        self._check(episodes)
        batch = stack_episodes(episodes)
        rows = Observation(*(array[at : at + len(episodes)] for array in buffer))
        self._renderer.render(batch.design, batch.actions, batch.length, out=rows)

    def load(self, episodes: list[Episode], buffer: Observation) -> Prepared:
        """Moves the rendered buffer to the devices; the buffer must not change until `learn` returns."""
        flat = jax.tree.map(joined, Observation(*buffer))
        return Prepared(stack_episodes(episodes), put(flat, replicated(self._mesh)), self._constants)

    def episodes(self, prepared: Prepared) -> list[Episode]:
        """Returns all hosts' prepared episodes, in the same order on every host."""
        return [Episode(*(field[index] for field in prepared.batch)) for index in range(len(prepared.batch.length))]

    def _constants_of(self, designs: Sequence[Design], inputs: GraphInputs) -> DesignConstants:
        """Returns the constants of designs whose inputs are on the host or the default device."""
        shares = np.zeros((len(inputs.macros), self._steps), np.float32)
        shares[: len(designs)] = wire_shares(designs, self._steps)
        return DesignConstants(put(inputs, replicated(self._mesh)), shares, np.asarray(inputs.macros))

    def _check(self, episodes: list[Episode]) -> None:
        if not episodes:
            raise ValueError("update: at least one episode is needed")
        for episode in episodes:
            if not 0 <= int(episode.design) < len(self._designs):
                raise ValueError(f"episode of design {int(episode.design)}: must be in [0, {len(self._designs)})")
            if episode.actions.shape != (self._steps,):
                raise ValueError(
                    f"episode of {episode.actions.shape[0]} steps: the designs' longest takes {self._steps}"
                )

    # --- Learning ----------------------------------------------------------------------------------------------------

    def update(self, episodes: list[Episode], *, iteration: int) -> dict[str, float]:
        """Runs `prepare` and `learn`."""
        return self.learn(self.prepare(episodes), iteration=iteration)

    def learn(self, prepared: Prepared, *, iteration: int, elapsed: float = 0.0) -> dict[str, float]:
        """Runs one iteration of PPO: epochs of shuffled minibatches over the prepared episodes.

        Args:
            prepared: result of this learner's `prepare` or `load`.
            iteration: number of the iteration, from 0; sets learning rate, entropy target and bonus.
            elapsed: elapsed fraction of the run's time, in [0, 1]; the rates follow it if it is ahead of the
                iterations.

        Returns:
            Metrics: means over the gradient steps of policy_loss, entropy, approx_kl, clip_fraction, gradient_norm;
                explained_variance of the rewards by the baseline; learning_rate; entropy_coefficient; gradient_steps
                and skipped_steps of this iteration; samples of an epoch.
        """
        config, batch = self._config, prepared.batch
        inputs, credited = prepared.designs.inputs, self._credited(batch)
        statistics = ppo.updated_statistics(self.state.reward_statistics, credited)
        rewards = ppo.normalised_rewards(statistics, credited)
        energy = self._energies(inputs, prepared.observation, put(batch.length, replicated(self._mesh)))
        values, baseline = self._baseline(prepared, energy, rewards, statistics)
        goals = ppo.targets(credited, rewards, values, decay=config.gae_lambda)
        trained = put(self.state.trained, replicated(self._mesh))
        progress = min(max(iteration / max(config.iterations - 1, 1), elapsed), 1.0)
        decay = _linear_decay(config.final_fraction, progress)
        learning_rate, target = config.learning_rate * decay, config.entropy_target * (1 - progress) ** 2
        entropy = max(ppo.entropy_shortfall(batch, target), ppo.ENTROPY_COEFFICIENT * decay)
        coefficients = Coefficients(np.float32(config.clip), np.float32(entropy))
        rates = Rates(np.float32(learning_rate), np.float32(config.max_gradient_norm))
        seeds = np.random.default_rng([*map(int, self.state.key), int(self.state.version)])
        inside = np.flatnonzero((np.arange(self._steps)[None] < batch.length[:, None]).ravel()).astype(np.int32)
        drawn = math.ceil(config.sample_fraction * len(inside))
        orders = [seeds.permutation(inside)[:drawn] for _ in range(config.epochs)]
        data = self._data(prepared, energy, goals)
        data = self._with_proximal(trained, inputs, data, batch, np.unique(orders))
        metrics: list[StepMetrics] = []
        for order in orders:
            for minibatch in self._minibatches(order, len(batch.length)):
                trained, step_metrics = self._step(trained, inputs, data, minibatch, coefficients, rates)
                metrics.append(step_metrics)
        # This waits for the devices; from here on, the rendered observations may be overwritten.
        averages = _averages(jax.device_get(metrics))
        version = self.state.version + np.int32(1)
        self.state = LearnerState(trained, version, self.state.key, statistics, baseline)
        return averages | {
            "explained_variance": goals.explained_variance,
            "learning_rate": learning_rate,
            "entropy_coefficient": entropy,
            "samples": float(drawn),
        }

    def _credited(self, batch: Episode) -> Episode:
        """Returns the episodes with the rewards and designs to use for the running statistics."""
        return batch

    def _baseline(
        self, prepared: Prepared, energy: jax.Array, rewards: np.ndarray, statistics: ppo.RewardStatistics
    ) -> tuple[np.ndarray, Regression]:
        """The baseline's predictions before each step, float32 [B, T], and its state updated with these episodes."""
        batch = prepared.batch
        actions, lengths = np.maximum(batch.actions, 0), put(batch.length, replicated(self._mesh))
        inputs, shares, macros = prepared.designs
        features = self._history(inputs, shares, prepared.observation, energy, actions, lengths)
        unit = statistics.deviation / self.state.reward_statistics.deviation
        return predicted(self.state.baseline, np.asarray(features), rewards, batch, macros=macros, unit=unit)

    def _data(self, prepared: Prepared, energy: jax.Array, goals: Targets) -> IterationData:
        """Returns the samples from which minibatches are drawn, on every device."""
        batch = prepared.batch
        actions = np.where(np.arange(self._steps)[None] < batch.length[:, None], batch.actions, 0)
        ones, weights = np.ones_like(goals.advantages), np.zeros_like(goals.advantages)
        samples = Samples(actions, batch.log_probabilities, ones, goals.advantages, weights)
        flat = put(jax.tree.map(joined, samples), replicated(self._mesh))
        return IterationData(prepared.observation, flat, energy)

    def _with_proximal(
        self, trained: Trained, inputs: GraphInputs, data: IterationData, batch: Episode, used: np.ndarray
    ) -> IterationData:
        """Adds the present policy's ratios for the samples in `used` (int32) that an older policy drew."""
        stale = used[(batch.version < self.state.version)[used // self._steps]]
        for minibatch in self._minibatches(stale, len(batch.length), whole=True):
            data = data._replace(samples=self._proximal(trained.params, inputs, data, minibatch))
        return data

    def _minibatches(self, order: np.ndarray, episodes: int, *, whole: bool = False) -> list[Minibatch]:
        """Splits the samples `order` (int32 [samples]) of this number of episodes into minibatches."""
        size, most = self._config.minibatch_size, episodes * self._steps
        found = ppo.split_minibatches(order, most, size=size, mesh=self._mesh, whole=whole)
        return put(found, split_over(self._mesh, 1))

    def _traced_step(self, trained: Trained, *arguments: Any) -> tuple[Trained, StepMetrics]:
        self.trace_count += 1
        return ppo.gradient_step(self._network, self._optimiser, trained, *arguments)


def joined(array: np.ndarray) -> np.ndarray:
    """Joins the leading axes without a copy: [B, T, …] → [S, …]."""
    return array.reshape(-1, *array.shape[2:])


def _energies(inputs: GraphInputs, observation: Observation, lengths: jax.Array) -> jax.Array:
    """The springs' energy at each step, float32 [S, 2]; the observation has axis S, lengths are int32 [B]."""
    steps = len(observation.step) // len(lengths)
    episodes = jax.tree.map(lambda array: array.reshape(-1, steps, *array.shape[1:]), observation)
    return episode_energies(inputs, episodes, lengths).reshape(-1, 2)


def _linear_decay(final: float, progress: float) -> float:
    """Returns the factor at `progress`, linear from 1 at 0 to `final` at 1."""
    return 1 + (final - 1) * progress


def _averages(metrics: list[StepMetrics]) -> dict[str, float]:
    """Returns the means over the gradient steps that were not skipped, and the counts."""
    good = [one for one in metrics if not one.skipped]
    result = {"gradient_steps": float(len(good)), "skipped_steps": float(len(metrics) - len(good))}
    for name in ("policy_loss", "entropy", "approx_kl", "clip_fraction"):
        result[name] = float(np.mean([getattr(one.terms, name) for one in good])) if good else math.nan
    result["gradient_norm"] = float(np.mean([one.gradient_norm for one in good])) if good else math.nan
    return result
