"""The policy as used by actors and evaluators: compiled functions from parameters and observations to actions.

The network is `edge_gnn` or a user's own class (`PolicyNetwork`). `Network` provides it as pure functions; `Agent`
draws actions with them.

Axis legend: B environments, G designs, R grid rows, C grid columns.
"""

from __future__ import annotations

import abc
import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from placement.config import PolicyConfig, import_object
from placement.engine.observation import Observation
from placement.netlist.design import Design
from placement.policy.edge_gnn import EdgeGNN
from placement.policy.features import FLOAT32, full_precision, next_energy, product_dtype, spring_energy
from placement.policy.inputs import GraphInputs, graph_inputs, stack

Params = dict[str, Any]  # the network's parameters: nested dictionaries of arrays with strings as keys
Embeddings: TypeAlias = Any  # the network's representation of the designs for one set of parameters: a pytree of arrays


class PolicyNetwork(Protocol):
    """A network: a `flax.nnx.Module` whose entire state is `nnx.Param`. `policy=my_package.MyPolicy` trains it.

    JAX traces all methods, so shapes must not depend on values.
    """

    def __init__(self, config: PolicyConfig, *, rngs: nnx.Rngs) -> None:
        """Draws fresh parameters from `rngs`; the network may use or ignore the sizes in `config`."""

    def embed(self, inputs: GraphInputs) -> Embeddings:
        """Computes the part that depends on parameters and designs alone, once for each version of the parameters.

        `inputs` are the constants of G designs. A network without such a stage returns an empty array.
        """

    def decide(
        self, embeddings: Embeddings, inputs: GraphInputs, observation: Observation, energy: jax.Array | None = None
    ) -> jax.Array:
        """Returns the logits, float32 [B, R, C], of a batch that may mix designs.

        The logit of an illegal cell (`observation.mask` is 0) must be so low that its probability is exactly 0, such as
        `placement.policy.edge_gnn.ILLEGAL`. `energy` is the result of `placement.policy.features.spring_energy`, if it
        is already known.
        """


def build_policy(config: PolicyConfig, rngs: nnx.Rngs) -> PolicyNetwork:
    """Returns the network named by `config.name`, with fresh parameters.

    Raises:
        ConfigError: the class does not exist.
    """
    network = EdgeGNN if config.name == "edge_gnn" else import_object(config.name, key="policy.name")
    return network(config, rngs=rngs)


class Decision(NamedTuple):
    """An action for each environment.

    Attributes:
        actions: int32 [B], row · C + column, where C is the observation's number of columns.
        log_probabilities: float32 [B], of the actions at temperature 1, at whatever temperature they were drawn.
        energy: float32 [B, 2], on the device: the springs' energy of the placed macros, for the next step's call.
    """

    actions: np.ndarray
    log_probabilities: np.ndarray
    energy: Any = None


class Request(NamedTuple):
    """Environments that need actions, and the key of their random numbers."""

    observation: Observation  # of B environments
    key: Any  # a JAX random key or its data (uint32 [2]); consumed
    # `Decision.energy` of the previous step, of the same environments in the same order; any float32 [B, 2] at the
    # first step. None: recomputed from the positions of the macros, which takes longer.
    energy: Any = None


class EmbeddedParameters(NamedTuple):
    """The network's parameters and the result of `Agent.embed`, as passed to `Acting`: a pytree of arrays."""

    parameters: Params
    embeddings: Embeddings


class Acting(abc.ABC):
    """Chooses actions. Several threads may use it at once."""

    @abc.abstractmethod
    def act_together(
        self, network: EmbeddedParameters, requests: Sequence[Request], *, greedy: bool = False, temperature: float = 1
    ) -> list[Decision]:
        """Like `act` for each of the requests, in one evaluation of the network."""

    def act(
        self,
        params: Params,
        embeddings: Embeddings,
        observation: Observation,
        key: Any,
        *,
        greedy: bool = False,
        temperature: float = 1.0,
        energy: Any = None,
    ) -> Decision:
        """Chooses one action for each environment; when it returns, the observation may be overwritten.

        Args:
            params: the parameters that `embeddings` were computed from.
            embeddings: result of `Agent.embed(params)`.
            observation: of B environments, with designs mixed in any order. If an episode has ended (the mask is all
                zeros), its action is meaningless.
            key: a JAX random key or its data; consumed.
            greedy: choose the most probable cell.
            temperature: divisor, above 0, of the logits that actions are drawn from.
            energy: see `Request`.
        """
        request = Request(observation, key, energy)
        network = EmbeddedParameters(params, embeddings)
        return self.act_together(network, [request], greedy=greedy, temperature=temperature)[0]


class Network:
    """The policy as pure functions of its parameters, and the constants of the designs.

    Attributes:
        inputs: constants of the designs, on the default device.
        compact_maps: whether maps are first rounded to bfloat16, so that they may be passed in that type.
    """

    def __init__(self, config: PolicyConfig, designs: Sequence[Design]) -> None:
        self.compact_maps = product_dtype(config) != FLOAT32
        found = [graph_inputs(design, electrostatic=config.electrostatic_bias != 0) for design in designs]
        self.inputs: GraphInputs = jax.tree.map(jnp.asarray, stack(found))
        self._init = jax.jit(lambda key: nnx.to_pure_dict(nnx.state(build_policy(config, nnx.Rngs(key)))))
        abstract = nnx.eval_shape(lambda: build_policy(config, nnx.Rngs(0)))
        self._graph, self._abstract = nnx.split(abstract)

    def init(self, seed: int) -> Params:
        """Returns fresh parameters; the same for the same seed."""
        return self._init(jax.random.key(seed))

    def bind(self, params: Params) -> PolicyNetwork:
        """Returns the module with these parameters, for use inside traced functions."""
        state = jax.tree.map(lambda leaf: leaf, self._abstract)
        nnx.replace_by_pure_dict(state, params)
        return nnx.merge(self._graph, state)

    def embed(self, params: Params, inputs: GraphInputs) -> Embeddings:
        with full_precision():
            return self.bind(params).embed(inputs)

    def decide(
        self,
        params: Params,
        embeddings: Embeddings,
        inputs: GraphInputs,
        observation: Observation,
        energy: jax.Array | None = None,
    ) -> jax.Array:
        with full_precision():
            return self.bind(params).decide(embeddings, inputs, observation, energy)


class Agent(Acting):
    """Draws actions with a network; an observation's `design` indexes `designs`, as in the environment pool.

    `trace_count` is the number of times that `embed` or `act` was traced, that is, compiled.
    """

    def __init__(self, config: PolicyConfig, designs: Sequence[Design]) -> None:
        self.network = Network(config, designs)
        self.inputs = self.network.inputs
        self.trace_count = 0
        self._embed = jax.jit(self._traced_embed)
        self._act = jax.jit(self._traced_act, static_argnames="greedy")

    def init(self, seed: int) -> Params:
        return self.network.init(seed)

    def on(self, inputs: GraphInputs) -> Agent:
        """Returns this agent for the designs of other inputs; inputs of the same shapes need no new compilation."""
        other = copy.copy(self)
        other.inputs = inputs
        return other

    def embed(self, params: Params) -> Embeddings:
        return self._embed(params, self.inputs)

    def act_together(
        self, network: EmbeddedParameters, requests: Sequence[Request], *, greedy: bool = False, temperature: float = 1
    ) -> list[Decision]:
        """See `Acting`; a different number of requests causes a recompilation."""
        for request in requests:
            self._check(request.observation)
        packed, energies = self._act(*network, self.inputs, tuple(requests), np.float32(temperature), greedy=greedy)
        numbers = np.asarray(packed)  # the one transfer back
        decisions, first = [], 0
        for request, energy in zip(requests, energies, strict=True):
            mine = numbers[:, first : first + len(request.observation.step)]
            decisions.append(Decision(mine[0], mine[1].view(np.float32), energy))
            first += len(request.observation.step)
        return decisions

    def _check(self, observation: Observation) -> None:
        if observation.x.shape[1] != self.inputs.size.shape[1]:
            raise ValueError(
                f"observation of {observation.x.shape[1]} macros for an agent whose designs have "
                f"{self.inputs.size.shape[1]}: give agent and pool the same designs"
            )

    def _traced_embed(self, params: Params, inputs: GraphInputs) -> Embeddings:
        self.trace_count += 1
        return self.network.embed(params, inputs)

    def _traced_act(
        self,
        params: Params,
        embeddings: Embeddings,
        inputs: GraphInputs,
        requests: tuple[Request, ...],
        temperature: jax.Array,
        *,
        greedy: bool,
    ) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        """Returns the bits of a `Decision` over all requests, int32 [2, B], and the energies of each request."""
        self.trace_count += 1
        energies = tuple(_energy(inputs, request) for request in requests)
        observation = jax.tree.map(lambda *arrays: jnp.concatenate(arrays), *(one.observation for one in requests))
        logits = self.network.decide(params, embeddings, inputs, observation, jnp.concatenate(energies))
        legal = observation.mask != 0  # an illegal cell must remain impossible at a high temperature
        uniform = None if greedy else jnp.concatenate([_uniform(request) for request in requests])
        actions = drawn(logits, legal, uniform, temperature)
        log_probabilities = jax.nn.log_softmax(logits.reshape(len(logits), -1))
        chosen = jnp.take_along_axis(log_probabilities, actions[:, None], axis=1)[:, 0]
        return jnp.stack([actions, jax.lax.bitcast_convert_type(chosen, jnp.int32)]), energies


def drawn(logits: jax.Array, legal: jax.Array, uniform: jax.Array | None, temperature: jax.Array) -> jax.Array:
    """Draws cells from softmax(logits / temperature) over the legal ones, int32 [B]; the most probable if no `uniform`.

    A single random number selects each cell by the cumulative probabilities.

    Args:
        logits: float32 [B, R, C].
        legal: bool [B, R, C].
        uniform: float32 [B], random numbers in [0, 1).
        temperature: above 0.
    """
    rows, columns = legal.shape[1:]
    cell = jnp.arange(rows * columns, dtype=jnp.int32).reshape(rows, columns)
    highest = logits.max(axis=(1, 2), keepdims=True)
    likeliest = jnp.where(logits == highest, cell, cell.size).min(axis=(1, 2))
    if uniform is None:
        return likeliest
    weights = jnp.exp((logits - highest) / temperature) * legal
    with full_precision():
        within = weights @ jnp.triu(jnp.ones((columns, columns)))
    through = jnp.cumsum(within[:, :, -1], axis=1)
    before = through - within[:, :, -1]
    passed = within + before[:, :, None] > (uniform * through[:, -1])[:, None, None]
    found = jnp.where(passed & legal, cell, cell.size).min(axis=(1, 2))
    return jnp.where(found < cell.size, found, likeliest)  # rounding may leave none


def _energy(inputs: GraphInputs, request: Request) -> jax.Array:
    """Returns the springs' energy of the request's observation, float32 [B, 2]."""
    if request.energy is None:
        return spring_energy(inputs, request.observation)
    return next_energy(inputs, request.observation, request.energy)


def _uniform(request: Request) -> jax.Array:
    """Returns the request's random numbers, float32 [B] in [0, 1), which do not depend on the other requests."""
    typed = jnp.issubdtype(request.key.dtype, jax.dtypes.prng_key)
    key = request.key if typed else jax.random.wrap_key_data(request.key)
    return jax.random.uniform(key, (len(request.observation.step),))
