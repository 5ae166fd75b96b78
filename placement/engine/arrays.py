"""Checks of the arrays that users hand to pools, with messages that say what would be right."""

from __future__ import annotations

import numpy as np


def int32_array(name: str, array: np.ndarray, shape: tuple[int | None, ...]) -> np.ndarray:
    """`array`, contiguous; raises TypeError or ValueError unless it is int32 of `shape` (None: any length)."""
    if not isinstance(array, np.ndarray) or array.dtype != np.int32:
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(f"{name}: must be a NumPy array of dtype int32, not {found}")
    if len(shape) != array.ndim or any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{name}: shape {list(array.shape)}, expected [{wanted}]")
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def checked_ids(env_id: np.ndarray) -> np.ndarray:
    """`env_id`, contiguous; raises TypeError or ValueError unless it is int32 [any]."""
    return int32_array("env_id", env_id, (None,))
