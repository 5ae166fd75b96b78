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
def weighted_average(
    x: np.ndarray,
    y: np.ndarray,
    net_start: np.ndarray,
    pin_node: np.ndarray,
    offset_x: np.ndarray,
    offset_y: np.ndarray,
    net_weight: np.ndarray,
    node_start: np.ndarray,
    node_pins: np.ndarray,
    per_gamma: float,
    gradient_x: np.ndarray,
    gradient_y: np.ndarray,
) -> float: ...
def spread(
    x: np.ndarray,
    y: np.ndarray,
    half_width: np.ndarray,
    half_height: np.ndarray,
    charge: np.ndarray,
    map: np.ndarray,
) -> None: ...
def gather(
    x: np.ndarray,
    y: np.ndarray,
    half_width: np.ndarray,
    half_height: np.ndarray,
    charge: np.ndarray,
    map_x: np.ndarray,
    map_y: np.ndarray,
    mean_x: np.ndarray,
    mean_y: np.ndarray,
) -> None: ...
def free_runs(
    x: np.ndarray, y: np.ndarray, height: np.ndarray, site: np.ndarray, sites: np.ndarray, boxes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def legalise(
    x: np.ndarray,
    y: np.ndarray,
    height: np.ndarray,
    site: np.ndarray,
    sites: np.ndarray,
    boxes: np.ndarray,
    cell_x: np.ndarray,
    cell_y: np.ndarray,
    cell_width: np.ndarray,
    cell_height: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
