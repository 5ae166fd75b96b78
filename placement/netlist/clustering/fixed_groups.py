"""The groups that a partition starts from: what belongs to a macro, and ports that stand side by side.

Axis legend: N nodes, S ports of one side.
"""

from __future__ import annotations

import numpy as np

from placement.netlist.clustering.connectivity import Connectivity
from placement.netlist.design import Canvas
from placement.netlist.flat_design import FlatDesign


def fixed_groups(design: FlatDesign, canvas: Canvas, joined: Connectivity, *, levels: int) -> tuple[np.ndarray, int]:
    """A group for each hard macro and each run of ports no longer than a gcell, with the cells next to them.

    Circuit Training's rule (google-research/circuit_training, `Grouping.setup_fixed_groups`). A cell that several
    groups reach at the same level belongs to the first of them.

    Returns:
        int32 [N], each node's group, -1: none; and the number of groups.
    """
    group = np.full(design.netlist.num_nodes, -1, dtype=np.int32)
    hard = design.netlist.hard
    group[hard] = np.arange(len(hard))
    count = len(hard)
    for ports, along, reach in _sides(design, canvas):
        count = _group_side(
            group, count, ports=ports[np.argsort(along, kind="stable")], along=np.sort(along), reach=reach
        )
    for _ in range(levels):
        _expand(group, joined)
    return group, count


def _sides(design: FlatDesign, canvas: Canvas) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Per side: its ports (int [S]), where they stand along it (float64 [S], µm), and a gcell's length (µm).

    The diagonals of the die divide the sides.
    """
    die, ports = design.floorplan.die, design.netlist.ports
    x = design.placement.x[ports] - die.x_low
    y = design.placement.y[ports] - die.y_low
    rising, falling = y > x * die.height / die.width, y > die.height - x * die.height / die.width
    sides = []
    for above_rising, above_falling in ((True, True), (False, True), (False, False), (True, False)):
        mine = (rising == above_rising) & (falling == above_falling)
        is_horizontal = above_rising == above_falling
        along = x[mine] if is_horizontal else y[mine]
        sides.append((ports[mine], along, canvas.cell_width if is_horizontal else canvas.cell_height))
    return sides


def _group_side(group: np.ndarray, count: int, *, ports: np.ndarray, along: np.ndarray, reach: float) -> int:
    """Groups the ports of one side, in order along it; returns the number of groups so far."""
    begin = 0.0
    for index, (port, at) in enumerate(zip(ports.tolist(), along.tolist(), strict=True)):
        if index == 0 or at - begin > reach:
            begin, count = at, count + 1
        group[port] = count - 1
    return count


def _expand(group: np.ndarray, joined: Connectivity) -> None:
    """Takes the cells that share a driver–sink connection with a grouped node into its group; changes `group`."""
    driver = joined.driver[joined.net]
    # Both ways: from a driver to its sinks and back.
    ends = np.concatenate((driver, joined.node))
    others = np.concatenate((joined.node, driver))
    reaches = (group[ends] >= 0) & (group[others] < 0) & joined.is_cell[others]
    best = np.full(len(group), np.iinfo(np.int32).max, dtype=np.int32)
    np.minimum.at(best, others[reaches], group[ends[reaches]])
    found = best < np.iinfo(np.int32).max
    group[found] = best[found]
