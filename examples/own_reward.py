"""A user-defined reward, for `env.reward=own_reward.wire_and_edges`; docs/how-to/own-reward.md."""

import numpy as np

from placement import Costs, Design, Placement


def wire_and_edges(costs: Costs, design: Design, placement: Placement) -> float:
    """Rewards short wires, and hard macros near the canvas edge."""
    macros, canvas = design.placing_order, design.canvas
    x, y = placement.x[macros] / canvas.width, placement.y[macros] / canvas.height
    from_edge = np.minimum(np.minimum(x, 1 - x), np.minimum(y, 1 - y)).mean()
    return -(costs.wirelength_cost + 0.2 * float(from_edge))
