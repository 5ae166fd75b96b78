"""Arrays on their way to the page: base64 of their little-endian bytes, `{"dtype": "float32", "data": …}`."""

from __future__ import annotations

import base64

import numpy as np


def packed(array: np.ndarray, dtype: str) -> dict[str, str]:
    """An array as the page unpacks it."""
    data = np.ascontiguousarray(array, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()
    return {"dtype": dtype, "data": base64.b64encode(data).decode("ascii")}
