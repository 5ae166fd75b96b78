"""Observations of an environment, and the arrays that enter and leave a pool.

Axis legend: B environments in a batch, K maps, R grid rows, C grid columns, T macros to place (each of the largest
design in the pool; a smaller design is padded at the end of the axis with zeros).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.netlist.design import Design

MAPS = ("occupancy", "density", "wire_mask")
"""Names of the maps, in order.

occupancy: fraction of the gcell covered by placed and fixed hard macros, [0, 1].
density: area of everything placed over the gcell's area (1 = full; above 1 where placed nodes overlap).
wire_mask: wirelength that the current macro would add if centred on the gcell, from its nets that have something
    placed, over (canvas width + height) · the summed weight of the macro's nets: [0, 1].
"""


class Observation(NamedTuple):
    """A batch of observations; arrays may be views of the engine's memory, overwritten by the next step."""

    # int32 [B], index of the environment's design in the pool's list, or its number in the distribution
    design: np.ndarray
    step: np.ndarray  # int32 [B], number of macros placed; the current macro is `placing_order[step]`. T at the end.
    mask: np.ndarray  # uint8 [B, R, C], 1 on legal gcells of the current macro. All 0 after the episode has ended.
    maps: np.ndarray  # float32 [B, K, R, C], see `MAPS`
    # x, y: float32 [B, T], centres of the macros in placing order, as fractions of the canvas; 0 while unplaced
    x: np.ndarray
    y: np.ndarray


Result = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]
"""observation, reward, terminated, truncated, info."""


class ArraySpec(NamedTuple):
    """Shape, dtype and bounds of one array of a batch, without the batch axis; `high` broadcasts to the shape."""

    shape: tuple[int, ...]
    dtype: np.dtype
    low: int
    high: int | np.ndarray


class PoolSpec(NamedTuple):
    """Specification of a pool's inputs and outputs."""

    observation: dict[str, ArraySpec]  # array specs by name, as in `placement.engine.observation.Observation`
    action: ArraySpec  # int32 [], row · C + column
    num_actions: int  # R · C
    rows: int  # rows, columns, steps: R, C and T
    columns: int
    steps: int


def bfloat16() -> np.dtype:
    """Returns NumPy's bfloat16 dtype from the package ml_dtypes, which comes with JAX."""
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def pool_spec(
    designs: Sequence[Design], shape: tuple[int, int, int], *, nodes: int | None = None, compact_maps: bool = False
) -> PoolSpec:
    """Returns the spec of a pool of `designs`; `shape` is R, C and T. Compact maps are bfloat16.

    `nodes` is the number of nodes of the largest design; None: it is counted.
    """
    rows, columns, steps = shape
    int32, uint8, float32 = np.dtype(np.int32), np.dtype(np.uint8), np.dtype(np.float32)
    highest = np.ones((len(MAPS), 1, 1), np.float32)
    highest[MAPS.index("density")] = nodes or max(design.netlist.num_nodes for design in designs)
    observation = {
        "design": ArraySpec((), int32, 0, len(designs) - 1),
        "step": ArraySpec((), int32, 0, steps),
        "mask": ArraySpec((rows, columns), uint8, 0, 1),
        "maps": ArraySpec((len(MAPS), rows, columns), bfloat16() if compact_maps else float32, 0, highest),
        "x": ArraySpec((steps,), float32, 0, 1),
        "y": ArraySpec((steps,), float32, 0, 1),
    }
    return PoolSpec(observation, ArraySpec((), int32, 0, rows * columns - 1), rows * columns, rows, columns, steps)


Integers = np.ndarray | Sequence[int]  # an array of any integer dtype, or a list of ints
_LIMITS = np.iinfo(np.int32)


def int32_array(
    name: str, values: Integers, shape: tuple[int | None, ...], *, beyond: type[ValueError] = ValueError
) -> np.ndarray:
    """Converts `values`, integers of any dtype, to a contiguous int32 array of `shape` (None: an axis of any length).

    Raises, naming the argument: TypeError unless they are integers, ValueError for another shape, `beyond` for a value
    outside int32.
    """
    array = np.asarray(values)
    if array.dtype == np.int32 and array.shape == shape and array.flags.c_contiguous:
        return array
    if array.dtype.kind not in "iu" and not (isinstance(values, Sequence) and not array.size):
        raise TypeError(f"{name}: must be integers, not {array.dtype}")
    if len(shape) != array.ndim or any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{name}: shape {list(array.shape)}, expected [{wanted}]")
    cast = np.ascontiguousarray(array, np.int32)
    if (wrong := cast != array).any():
        value = array[wrong][0]
        raise beyond(f"{name}: {value} must be in [{_LIMITS.min}, {_LIMITS.max}], the range of int32")
    return cast
