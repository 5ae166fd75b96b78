from typing import Any

import numpy as np

def route(
    x: np.ndarray,
    y: np.ndarray,
    start: np.ndarray,
    *,
    across: int,
    up: int,
    gcell_width: float,
    gcell_height: float,
    capacity: np.ndarray,
    rounds: int,
) -> dict[str, Any]: ...
def tree_length(x: np.ndarray, y: np.ndarray) -> float: ...
