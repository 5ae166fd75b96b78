"""The policy as actors and evaluators use it: parameters in, actions out, compiled.

Axis legend: B environments, G designs, R grid rows, C grid columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from placement.config import PolicyConfig
from placement.engine.observation import Observation
from placement.netlist.design import Design
from placement.policy.graph_inputs import GraphInputs, graph_inputs, stack
from placement.policy.policy import Embeddings, Policy
from placement.policy.stepwise import StepwisePolicy

Params = dict[str, Any]
"""The network's parameters: nested dictionaries of arrays, keys are strings."""
AnyPolicy: TypeAlias = Policy | StepwisePolicy
_NETWORKS: dict[str, type[Policy] | type[StepwisePolicy]] = {"edge_gnn": Policy, "edge_gnn_stepwise": StepwisePolicy}


def build_policy(config: PolicyConfig, rngs: nnx.Rngs) -> AnyPolicy:
    """The network that `config.name` names, with fresh parameters."""
    return _NETWORKS[config.name](config, rngs=rngs)


class Decision(NamedTuple):
    """What to do in each environment, as NumPy arrays.

    Attributes:
        actions: int32 [B], row · C + column, C being the observation's number of columns.
        log_probabilities: float32 [B], of the actions under the distribution that they were drawn from at
            temperature 1 (at another temperature or greedily: still under temperature 1).
        values: float32 [B], the predicted return, normalised as the learner does.
    """

    actions: np.ndarray
    log_probabilities: np.ndarray
    values: np.ndarray


class Network:
    """The policy as pure functions of its parameters, and the constants of the designs.

    Attributes:
        inputs: the designs' constants, on the default device.
    """

    def __init__(self, config: PolicyConfig, designs: Sequence[Design]) -> None:
        self.config = config
        self.inputs: GraphInputs = jax.tree.map(jnp.asarray, stack([graph_inputs(design) for design in designs]))
        self._init = jax.jit(lambda key: nnx.to_pure_dict(nnx.state(build_policy(config, nnx.Rngs(key)))))
        abstract = nnx.eval_shape(lambda: build_policy(config, nnx.Rngs(0)))
        self._graph, self._abstract = nnx.split(abstract)

    def init(self, seed: int) -> Params:
        """Fresh parameters; the same for the same seed."""
        return self._init(jax.random.key(seed))

    def bind(self, params: Params) -> AnyPolicy:
        """The module with these parameters; for use inside traced functions."""
        state = jax.tree.map(lambda leaf: leaf, self._abstract)
        nnx.replace_by_pure_dict(state, params)
        return nnx.merge(self._graph, state)

    def embed(self, params: Params, inputs: GraphInputs) -> Embeddings:
        """Contexts of all designs."""
        return self.bind(params).embed(inputs)

    def decide(
        self, params: Params, embeddings: Embeddings, inputs: GraphInputs, observation: Observation
    ) -> tuple[jax.Array, jax.Array]:
        """Logits float32 [B, R, C] and values float32 [B]."""
        return self.bind(params).decide(embeddings, inputs, observation)


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
        key: jax.Array,
        *,
        greedy: bool = False,
        temperature: float = 1.0,
    ) -> Decision:
        """One action for each environment; waits for the result, so the observation may be overwritten afterwards.

        Args:
            params: as `embeddings` was made from.
            embeddings: of `embed(params)`.
            observation: of B environments, designs mixed as they come. Where an episode has ended (the mask is all
                zeros) the action means nothing.
            key: a JAX random key, consumed.
            greedy: take the likeliest cell.
            temperature: above 0; divides the logits that actions are drawn from.
        """
        if observation.x.shape[1] != self.network.inputs.order.shape[1]:
            raise ValueError(
                f"observation of {observation.x.shape[1]} macros for an agent whose designs have "
                f"{self.network.inputs.order.shape[1]}: give agent and pool the same designs"
            )
        result = self._act(
            params, embeddings, self.network.inputs, observation, key, np.float32(temperature), greedy=greedy
        )
        return Decision(*(np.asarray(value) for value in result))

    def _traced_embed(self, params: Params, inputs: GraphInputs) -> Embeddings:
        self.trace_count += 1
        return self.network.embed(params, inputs)

    def _traced_act(
        self,
        params: Params,
        embeddings: Embeddings,
        inputs: GraphInputs,
        observation: Observation,
        key: jax.Array,
        temperature: jax.Array,
        *,
        greedy: bool,
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        self.trace_count += 1
        logits, values = self.network.decide(params, embeddings, inputs, observation)
        flat = logits.reshape(len(logits), -1)
        choice = flat if greedy else flat / temperature + jax.random.gumbel(key, flat.shape, flat.dtype)
        # At a high temperature an illegal cell must stay impossible.
        choice = jnp.where(jnp.asarray(observation.mask).reshape(flat.shape) != 0, choice, -jnp.inf)
        actions = jnp.argmax(choice, axis=1).astype(jnp.int32)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(flat), actions[:, None], axis=1)[:, 0]
        return actions, chosen, values
