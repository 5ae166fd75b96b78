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

class Wirelength:
    def __init__(
        self,
        nodes: int,
        net_start: np.ndarray,
        pin_node: np.ndarray,
        pin_x: np.ndarray,
        pin_y: np.ndarray,
        net_weight: np.ndarray,
    ) -> None: ...
    def gradient(
        self, x: np.ndarray, y: np.ndarray, per_gamma: float, gradient_x: np.ndarray, gradient_y: np.ndarray
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
def nesterov_step(
    major: np.ndarray,
    reference: np.ndarray,
    gradient: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    step: float,
    carry: float,
    new_major: np.ndarray,
    new_reference: np.ndarray,
) -> float: ...
def preconditioned(
    wirelength: np.ndarray,
    density: np.ndarray,
    pins: np.ndarray,
    area: np.ndarray,
    weight: float,
    gradient: np.ndarray,
) -> None: ...
def distance(a: np.ndarray, b: np.ndarray) -> float: ...
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

class TimingGraph:
    """The timing graph of a netlist; see `placement.flat.timing`."""

    def __init__(
        self,
        library: dict[str, np.ndarray],
        *,
        cell: np.ndarray,
        instance: np.ndarray,
        library_pin: np.ndarray,
        port: np.ndarray,
        net_start: np.ndarray,
    ) -> None: ...
    def facts(self) -> dict[str, Any]: ...
    def clocks(self, pin: list[int], clock: list[int], is_generated: list[bool]) -> tuple[np.ndarray, np.ndarray]: ...
    def constrain(self, *, tags: int, groups: int, **arrays: Any) -> None: ...
    def price(
        self,
        x: np.ndarray,
        y: np.ndarray,
        *,
        delay_per_um: float,
        capacitance_per_um: float,
        most_load: float,
        stage_delay: float,
        fanout_ratio: float,
        cell_factor: float,
    ) -> None: ...
    def delays(self) -> dict[str, np.ndarray]: ...
    def analyse(self, *, worst: int) -> dict[str, Any]: ...
    def move(self, pin: np.ndarray, x: np.ndarray, y: np.ndarray, *, worst: int) -> dict[str, Any]: ...
