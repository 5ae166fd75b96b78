"""What goes into a pool and what comes out of it.

Axis legend: B environments in a batch, K maps, R grid rows, C grid columns, T macros to place, each of the largest
design.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.config import EnvConfig
from placement.engine.observation import MAPS
from placement.netlist.design import Design

Result = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]
"""observation, reward, terminated, truncated, info."""


class ArraySpec(NamedTuple):
    """Shape, type and bounds of one array of a batch, without the batch axis; `high` broadcasts to the shape."""

    shape: tuple[int, ...]
    dtype: np.dtype
    low: int
    high: int | np.ndarray


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


def bfloat16() -> np.dtype:
    """NumPy's name for it, of the package ml_dtypes, which comes with JAX."""
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def pool_spec(designs: Sequence[Design], shape: tuple[int, int, int], *, compact_maps: bool = False) -> PoolSpec:
    """The spec of a pool of `designs`; `shape` is R, C and T. Compact maps are bfloat16."""
    rows, columns, steps = shape
    int32, uint8, float32 = np.dtype(np.int32), np.dtype(np.uint8), np.dtype(np.float32)
    highest = np.ones((len(MAPS), 1, 1), np.float32)
    highest[MAPS.index("density")] = max(design.netlist.num_nodes for design in designs)
    observation = {
        "design": ArraySpec((), int32, 0, len(designs) - 1),
        "step": ArraySpec((), int32, 0, steps),
        "mask": ArraySpec((rows, columns), uint8, 0, 1),
        "maps": ArraySpec((len(MAPS), rows, columns), bfloat16() if compact_maps else float32, 0, highest),
        "x": ArraySpec((steps,), float32, 0, 1),
        "y": ArraySpec((steps,), float32, 0, 1),
    }
    return PoolSpec(observation, ArraySpec((), int32, 0, rows * columns - 1), rows * columns, rows, columns, steps)


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
    compact_maps: bool = False
