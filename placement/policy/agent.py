"""The policy as actors and evaluators use it: parameters in, actions out, compiled.

Axis legend: B environments, G designs, R grid rows, C grid columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from placement.config import PolicyConfig
from placement.engine.observation import Observation
from placement.netlist.design import Design
from placement.policy.graph_inputs import GraphInputs, graph_inputs, stack
from placement.policy.policy import Embeddings, Policy
from placement.policy.precision import FLOAT32, full_precision, product_dtype
from placement.policy.spring_energy import next_energy, spring_energy

Params = dict[str, Any]
"""The network's parameters: nested dictionaries of arrays, keys are strings."""


def build_policy(config: PolicyConfig, rngs: nnx.Rngs) -> Policy:
    """The network that `config.name` names, with fresh parameters."""
    return Policy(config, rngs=rngs)


class Decision(NamedTuple):
    """What to do in each environment, as NumPy arrays.

    Attributes:
        actions: int32 [B], row · C + column, C being the observation's number of columns.
        log_probabilities: float32 [B], of the actions under the distribution that they were drawn from at
            temperature 1 (at another temperature or greedily: still under temperature 1).
        values: float32 [B], the predicted return, normalised as the learner does.
        held: float32 [B, 2] on the device, what the springs hold of the placed macros: for the next step's call.
    """

    actions: np.ndarray
    log_probabilities: np.ndarray
    values: np.ndarray
    held: Any = None


class Request(NamedTuple):
    """What is to be decided together, with random numbers of its own.

    Attributes:
        observation: of B environments.
        key: a JAX random key, or its data (uint32 [2]); consumed.
        held: `Decision.held` of the step before, of the same environments in the same order; at a first step any
            float32 [B, 2]. None: found anew from where the macros stand, which takes longer.
    """

    observation: Observation
    key: Any
    held: Any = None


class Network:
    """The policy as pure functions of its parameters, and the constants of the designs.

    Attributes:
        inputs: the designs' constants, on the default device.
        compact_maps: whether maps are rounded to bfloat16 before anything else, so that they may come as such.
    """

    def __init__(self, config: PolicyConfig, designs: Sequence[Design]) -> None:
        self.config = config
        self.compact_maps = product_dtype(config) != FLOAT32
        shown = config.electrostatic_bias != 0
        found = [graph_inputs(design, electrostatic=shown) for design in designs]
        self.inputs: GraphInputs = jax.tree.map(jnp.asarray, stack(found))
        self._init = jax.jit(lambda key: nnx.to_pure_dict(nnx.state(build_policy(config, nnx.Rngs(key)))))
        abstract = nnx.eval_shape(lambda: build_policy(config, nnx.Rngs(0)))
        self._graph, self._abstract = nnx.split(abstract)

    def init(self, seed: int) -> Params:
        """Fresh parameters; the same for the same seed."""
        return self._init(jax.random.key(seed))

    def bind(self, params: Params) -> Policy:
        """The module with these parameters; for use inside traced functions."""
        state = jax.tree.map(lambda leaf: leaf, self._abstract)
        nnx.replace_by_pure_dict(state, params)
        return nnx.merge(self._graph, state)

    def embed(self, params: Params, inputs: GraphInputs) -> Embeddings:
        """Contexts of all designs."""
        with full_precision():
            return self.bind(params).embed(inputs)

    def decide(
        self,
        params: Params,
        embeddings: Embeddings,
        inputs: GraphInputs,
        observation: Observation,
        energy: jax.Array | None = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Logits float32 [B, R, C] and values float32 [B].

        Args:
            params: of the network.
            embeddings: of `embed(params, inputs)`.
            inputs: the designs' constants.
            observation: of B samples.
            energy: float32 [B, 2], what `spring_energy` gives for the observation, where it is known already.
        """
        with full_precision():
            return self.bind(params).decide(embeddings, inputs, observation, energy)


class Agent:
    """Draws actions. May be used by several threads at once.

    Args:
        config: sizes of the network.
        designs: in the order of the environment pool's; observations' `design` indexes them.

    Attributes:
        network: the pure functions beneath.
        trace_count: how often `embed` or `act` was traced, that is compiled anew.
    """

    def __init__(self, config: PolicyConfig, designs: Sequence[Design]) -> None:
        self.network = Network(config, designs)
        self.trace_count = 0
        self._embed = jax.jit(self._traced_embed)
        self._act = jax.jit(self._traced_act, static_argnames="greedy")

    def init(self, seed: int) -> Params:
        """Fresh parameters: nested dictionaries of arrays; the same for the same seed."""
        return self.network.init(seed)

    def embed(self, params: Params) -> Embeddings:
        """The encoder's work for all designs; once per set of parameters."""
        return self._embed(params, self.network.inputs)

    def act(
        self,
        params: Params,
        embeddings: Embeddings,
        observation: Observation,
        key: Any,
        *,
        greedy: bool = False,
        temperature: float = 1.0,
        held: Any = None,
    ) -> Decision:
        """One action for each environment; waits for the result, so the observation may be overwritten afterwards.

        Args:
            params: as `embeddings` was made from.
            embeddings: of `embed(params)`.
            observation: of B environments, designs mixed as they come. Where an episode has ended (the mask is all
                zeros) the action means nothing.
            key: a JAX random key or its data, consumed.
            greedy: take the likeliest cell.
            temperature: above 0; divides the logits that actions are drawn from.
            held: see `Request`.
        """
        request = Request(observation, key, held)
        return self.act_together(params, embeddings, [request], greedy=greedy, temperature=temperature)[0]

    def act_together(
        self,
        params: Params,
        embeddings: Embeddings,
        requests: Sequence[Request],
        *,
        greedy: bool = False,
        temperature: float = 1.0,
    ) -> list[Decision]:
        """As `act` for each of the requests, in one pass of the network; another number of them compiles anew."""
        for request in requests:
            self._check(request.observation)
        packed, held = self._act(
            params, embeddings, self.network.inputs, tuple(requests), np.float32(temperature), greedy=greedy
        )
        numbers = np.asarray(packed)  # the one transfer back
        decisions, first = [], 0
        for request, energy in zip(requests, held, strict=True):
            mine = numbers[:, first : first + len(request.observation.step)]
            decisions.append(Decision(mine[0], mine[1].view(np.float32), mine[2].view(np.float32), energy))
            first += len(request.observation.step)
        return decisions

    def _check(self, observation: Observation) -> None:
        if observation.x.shape[1] != self.network.inputs.order.shape[1]:
            raise ValueError(
                f"observation of {observation.x.shape[1]} macros for an agent whose designs have "
                f"{self.network.inputs.order.shape[1]}: give agent and pool the same designs"
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
        """Int32 [3, B], the bits of what `Decision` has, B over all requests; and what the springs hold of each."""
        self.trace_count += 1
        held = tuple(_energy(inputs, request) for request in requests)
        observation = jax.tree.map(lambda *arrays: jnp.concatenate(arrays), *(one.observation for one in requests))
        logits, values = self.network.decide(params, embeddings, inputs, observation, jnp.concatenate(held))
        flat = logits.reshape(len(logits), -1)
        choice = flat
        if not greedy:
            noise = [_gumbel(request, flat) for request in requests]
            choice = flat / temperature + jnp.concatenate(noise)
        # At a high temperature an illegal cell must stay impossible.
        choice = jnp.where(observation.mask.reshape(flat.shape) != 0, choice, -jnp.inf)
        actions = jnp.argmax(choice, axis=1).astype(jnp.int32)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(flat), actions[:, None], axis=1)[:, 0]
        bits = [jax.lax.bitcast_convert_type(numbers, jnp.int32) for numbers in (chosen, values)]
        return jnp.stack([actions, *bits]), held


def _energy(inputs: GraphInputs, request: Request) -> jax.Array:
    """float32 [B, 2], of the request's observation."""
    if request.held is None:
        return spring_energy(inputs, request.observation)
    return next_energy(inputs, request.observation, request.held)


def _gumbel(request: Request, flat: jax.Array) -> jax.Array:
    """Random numbers of the request's own, [B, R · C], as if it stood alone."""
    typed = jnp.issubdtype(request.key.dtype, jax.dtypes.prng_key)
    key = request.key if typed else jax.random.wrap_key_data(request.key)
    return jax.random.gumbel(key, (len(request.observation.step), flat.shape[1]), flat.dtype)
