"""Adds the wires of critical paths to the cell placer's nets, so that the placer keeps these wires short.

Timing-driven placers weight nets by slack, in rounds (Liao et al.: "DREAMPlace 4.0", DATE 2022). A placer that
minimises wirelength alone leaves some paths late that it could have kept short. Which paths these are varies with
the seed, so their slack says little about the macros.

Times in ps.
"""

import dataclasses

import numpy as np

from placement.flat.timing import TimingEvaluator
from placement.netlist.design import Netlist, Placement

MOST_PATHS = 3000  # maximum number of paths: the worst path of each endpoint, for the endpoints with the least slack
MARGIN = 0.05  # slack, relative to the shortest clock period, below which a path is critical
LATENESS = 0.05
"""Slack below `MARGIN`, relative to the same period, at which a path has weight 1, as much as a net of the netlist."""
MOST_WEIGHT = 4.0  # maximum weight of a wire, regardless of the number of paths through it


class CriticalWires:
    """Critical wires of one or several placements of the cells.

    Args:
        timing: timing of the flat netlist.

    Attributes:
        weight: the weight of each critical wire, by its driver and driven pin.
    """

    def __init__(self, timing: TimingEvaluator) -> None:
        self._timing = timing
        self._period = min(clock.period for clock in timing.timing.constraints.clocks)
        self.weight: dict[tuple[int, int], float] = {}

    def add(self, placement: Placement) -> float:
        """Adds the weights of all critical paths of a placement with all cells to their wires.

        Returns the total negative slack of these paths, at most 0. Raises DesignError if a node has no position.
        """
        found = self._timing.path_wires(placement, paths=MOST_PATHS)
        for slack, wires in found:
            weight = max(0.0, (MARGIN - slack / self._period) / LATENESS)
            for wire in map(tuple, wires.tolist() if weight else ()):
                self.weight[wire] = min(MOST_WEIGHT, self.weight.get(wire, 0.0) + weight)
        return sum(min(0.0, slack) for slack, _ in found)

    def netlist(self) -> Netlist:
        """Returns the flat netlist with each critical wire as an additional two-pin net of its weight."""
        netlist, pins, count = self._timing.flat.netlist, self._timing.timing, len(self.weight)
        ends = np.array(list(self.weight), dtype=np.int64).reshape(-1)
        return dataclasses.replace(
            netlist,
            pin_node=np.concatenate([netlist.pin_node, pins.node[ends]]),
            pin_dx=np.concatenate([netlist.pin_dx, pins.dx[ends]]),
            pin_dy=np.concatenate([netlist.pin_dy, pins.dy[ends]]),
            net_weight=np.concatenate([netlist.net_weight, list(self.weight.values())]),
            net_start=np.concatenate([netlist.net_start, netlist.net_start[-1] + 2 * np.arange(1, count + 1)]),
            net_pins=np.concatenate([netlist.net_pins, netlist.num_pins + np.arange(2 * count)]),
        )
