"""Checks of the integer arrays that users hand to pools, with messages that say what would be right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Integers = np.ndarray | Sequence[int]
"""An array of any integer dtype, or a list of ints."""
_LIMITS = np.iinfo(np.int32)


def int32_array(
    name: str, values: Integers, shape: tuple[int | None, ...], *, beyond: type[ValueError] = ValueError
) -> np.ndarray:
    """`values` as a contiguous int32 array.

    Args:
        name: of the argument, for messages.
        values: integers of any dtype, each in the range of int32.
        shape: that is expected; None for an axis of any length.
        beyond: the error for a value that does not fit in int32.

    Raises:
        TypeError: the values are not integers.
        ValueError: the shape is another one.
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
