"""The networks by name."""

from __future__ import annotations

from typing import TypeAlias

from flax import nnx

from placement.config import PolicyConfig
from placement.policy.policy import Policy
from placement.policy.stepwise import StepwisePolicy

AnyPolicy: TypeAlias = Policy | StepwisePolicy
_NETWORKS: dict[str, type[Policy] | type[StepwisePolicy]] = {"edge_gnn": Policy, "edge_gnn_stepwise": StepwisePolicy}


def build_policy(config: PolicyConfig, rngs: nnx.Rngs) -> AnyPolicy:
    """The network that `config.name` names, with fresh parameters."""
    return _NETWORKS[config.name](config, rngs=rngs)
