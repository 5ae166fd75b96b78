"""What goes into a pool and what comes out of it.

Axis legend: B environments in a batch, R grid rows, C grid columns, T macros to place, each of the largest design.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from placement.config import EnvConfig

Result = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]
"""observation, reward, terminated, truncated, info."""


class ArraySpec(NamedTuple):
    """Shape and type of one array of a batch, without the batch axis."""

    shape: tuple[int, ...]
    dtype: np.dtype


class PoolSpec(NamedTuple):
    """What goes into a pool and what comes out.

    Attributes:
        observation: by name, as in `placement.engine.observation.Observation`.
        action: int32 [], row · C + column.
        num_actions: R · C.
        rows, columns, steps: R, C and T.
    """

    observation: dict[str, ArraySpec]
    action: ArraySpec
    num_actions: int
    rows: int
    columns: int
    steps: int


@dataclasses.dataclass(frozen=True)
class PoolConfig:
    """How a pool was made; `num_threads` and `batch_size` as they turned out."""

    designs: tuple[str, ...]
    design_of_env: tuple[int, ...]
    num_envs: int
    batch_size: int
    num_threads: int
    thread_affinity_offset: int
    seed: int
    env: EnvConfig
