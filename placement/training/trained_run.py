"""Reads the newest parameters of an earlier run, to evaluate them or to begin with them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import nnx

from placement.config import ConfigError, PolicyConfig, TrainConfig
from placement.policy.agent import build_policy
from placement.training.checkpoint import CheckpointError
from placement.training.run_folder import working_folder
from placement.training.run_record import read_settings
from placement.training.saving import has_checkpoint, read_parameters
from placement.training.shipped_policies import policy_folder


class Parameters(NamedTuple):
    """What a run had learned.

    Attributes:
        values: pytree of host arrays, as `Agent.init` gives it.
        iteration: of the run, that they are of.
        run: its folder.
    """

    values: Any
    iteration: int
    run: Path


def read_newest(run: Path, policy: PolicyConfig, *, key: str) -> Parameters:
    """A run's newest parameters, for the network that `policy` describes.

    Args:
        run: its folder.
        policy: sizes of the network that is to take them.
        key: the setting that names the folder, for messages.

    Raises:
        ConfigError: the folder holds no run, no checkpoint, a damaged one, or one of another network.
    """
    trained = read_settings(run, key=key)
    try:
        return Parameters(*read_parameters(run, parameter_shapes(policy)), run)
    except CheckpointError as error:
        message = f"{key}={str(run)!r}: {error}"
    differences = [
        f"policy.{field.name}={getattr(trained.policy, field.name)} instead of {getattr(policy, field.name)}"
        for field in dataclasses.fields(policy)
        if getattr(trained.policy, field.name) != getattr(policy, field.name)
    ]
    if differences:
        message += f"; that run was trained with {', '.join(differences)}: give the same"
    raise ConfigError(message)


def parameter_shapes(policy: PolicyConfig) -> Any:
    """Zeros in the structure of the network's parameters; they depend on no design, and nothing is compiled."""
    abstract = nnx.eval_shape(lambda: build_policy(policy, nnx.Rngs(0)))
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), nnx.to_pure_dict(nnx.state(abstract)))


def initial_parameters(config: TrainConfig) -> Parameters | None:
    """What a run begins with where `initial_policy` names another run; None where it goes on or begins afresh.

    Raises:
        ConfigError: as `read_newest`.
    """
    if config.initial_policy is None or has_checkpoint(working_folder(config.run_dir)):
        return None
    return read_newest(policy_folder(config.initial_policy, key="initial_policy"), config.policy, key="initial_policy")
