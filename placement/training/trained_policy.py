"""The policy of an earlier run: its folder and its parameters."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import nnx

from placement.config import ConfigError, PolicyConfig, TrainConfig
from placement.netlist.load import data_folder
from placement.policy.agent import build_policy
from placement.training.checkpoint import CheckpointError, has_checkpoint, read_parameters
from placement.training.object_storage import is_address
from placement.training.run_folder import (
    SETTINGS_NAME,
    read_settings,
    working_folder,
    writer_of,
)
from placement.training.stored_run import fetched


class Parameters(NamedTuple):
    """The parameters of a run after an iteration, a pytree in the form of `Agent.init`, and the run's folder."""

    values: Any
    iteration: int
    run: Path


def policy_folder(run: str | Path, *, key: str) -> Path:
    """The run folder that the setting `key` names: an existing path, else a shipped policy by its name, such as `base`.

    A run at an address of object storage is copied for this program. Raises ConfigError if there is no such run.
    """
    if is_address(str(run)):
        return fetched(str(run), key=key)
    path = Path(run)
    if path.exists():
        return path
    shipped = data_folder("policies") / path.name
    if len(path.parts) == 1 and (shipped / SETTINGS_NAME).is_file():
        return shipped
    known = ", ".join(shipped_policies())
    raise ConfigError(
        f"{key}={str(run)!r}: must be the folder of a training run, or a policy that comes with the project"
        f" ({known}): no such folder"
    )


def shipped_policies() -> list[str]:
    """The names of shipped policies, which place a new design without any training."""
    return sorted(found.parent.name for found in data_folder("policies").glob(f"*/{SETTINGS_NAME}"))


def read_newest(run: Path, policy: PolicyConfig, *, key: str) -> Parameters:
    """Reads a run's newest parameters, for the network that `policy` describes.

    Raises ConfigError, for the setting `key`, if the folder contains no run, no checkpoint, a damaged one, or one of
    another network.
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
    else:
        message += f"; the run was written by {writer_of(run)}: use that version, or train again"
    raise ConfigError(message)


def parameter_shapes(policy: PolicyConfig) -> Any:
    """Zeros in the structure of the network's parameters; they do not depend on a design, and nothing is compiled."""
    abstract = nnx.eval_shape(lambda: build_policy(policy, nnx.Rngs(0)))
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), nnx.to_pure_dict(nnx.state(abstract)))


def initial_parameters(config: TrainConfig) -> Parameters | None:
    """The initial parameters if `initial_policy` names another run; None if the run resumes or begins afresh.

    Raises ConfigError like `read_newest`.
    """
    if config.initial_policy is None or has_checkpoint(working_folder(config.run_dir)):
        return None
    return read_newest(policy_folder(config.initial_policy, key="initial_policy"), config.policy, key="initial_policy")
