"""Wires of critical paths as further nets for the cell placer, so that it keeps them short.

A flow's placer weighs nets by their slack. One that sees wires alone leaves paths late that it could have kept short,
and which ones is chance: then negative slack says little about the macros.

Axis legend: A wires. Times in ps.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.flat.timing import TimingEvaluator
from placement.netlist.design import Netlist, Placement

MOST_PATHS = 3000
"""Endpoints, the worst, whose worst path counts."""
MARGIN = 0.03
"""Slack up to which a path is critical, over the shortest clock's period."""
LATENESS = 0.1
"""Slack below `MARGIN`, over that period, for which a path weighs 1: as much as a net of the netlist."""
MOST_WEIGHT = 4.0
"""Of a wire, however many paths pass it."""


def with_critical_wires(timing: TimingEvaluator, placement: Placement) -> Netlist:
    """The flat netlist, and each wire of critical paths as a net of two pins.

    Its weight is that of all its paths together, at most `MOST_WEIGHT`.

    Args:
        timing: of the flat netlist.
        placement: with all cells.

    Raises:
        DesignError: a node has no position.
    """
    netlist, pins = timing.flat.netlist, timing.timing
    period = min(clock.period for clock in pins.constraints.clocks)
    weight: dict[tuple[int, int], float] = {}
    paths = timing.path_wires(placement, paths=MOST_PATHS)
    for slack, wires in [path for path in paths if path[0] < MARGIN * period]:
        for wire in map(tuple, wires.tolist()):
            weight[wire] = min(MOST_WEIGHT, weight.get(wire, 0.0) + (MARGIN - slack / period) / LATENESS)
    if not weight:
        return netlist
    ends = np.array(list(weight)).reshape(-1)  # driver and driven pin of each wire, [2A]
    return dataclasses.replace(
        netlist,
        pin_node=np.concatenate([netlist.pin_node, pins.node[ends]]),
        pin_dx=np.concatenate([netlist.pin_dx, pins.dx[ends]]),
        pin_dy=np.concatenate([netlist.pin_dy, pins.dy[ends]]),
        net_weight=np.concatenate([netlist.net_weight, list(weight.values())]),
        net_start=np.concatenate([netlist.net_start, netlist.net_start[-1] + 2 * np.arange(1, len(weight) + 1)]),
        net_pins=np.concatenate([netlist.net_pins, netlist.num_pins + np.arange(len(ends))]),
    )
