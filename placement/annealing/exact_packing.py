"""Legal placements of few macros, or the proof that none exists, by mixed-integer programming (HiGHS).

Each pair of boxes is ordered by a binary choice: left, right, below or above (Sutanthavibul et al., "An analytical
approach to floorplan design and optimization", DAC 1990). Axis legend: as in `displacement`.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from placement.annealing.displacement import TOLERANCE, Boxes, Centres

MOST_PAIRS = 400  # maximum number of pairs of boxes that keep clear of each other; larger problems are not tried
INFEASIBLE = 2  # status of `scipy.optimize.milp` for an infeasible problem


class Infeasible(Exception):
    """Raised if the boxes provably have no legal placement."""


def packed_exactly(boxes: Boxes, *, seconds: float) -> Centres | None:
    """Returns legal centres of the movable boxes within their limits; None if none was found in time.

    Raises:
        Infeasible: no legal placement exists.
    """
    count, pairs = boxes.movable, boxes.pairs()
    if (boxes.low > boxes.high + TOLERANCE).any():
        raise Infeasible
    if not pairs.size:
        return boxes.within_limits()
    if pairs.shape[1] > MOST_PAIRS:
        return None
    reach = boxes.low.min(), boxes.high.max()
    big = 2 * (reach[1] - reach[0]) + float(boxes.width.max() + boxes.height.max())
    first_low, second_low = boxes.between(*pairs), boxes.between(*pairs[::-1])
    entries, least = list[tuple[int, int, float]](), list[float]()
    row, choices = 0, 4 * pairs.shape[1]
    for pair, (first, second) in enumerate(pairs.T.tolist()):
        for axis, (at, size) in enumerate(boxes.axes):
            for side, (low, high, needed) in enumerate(((first, second, first_low), (second, first, second_low))):
                apart = (size[first] + size[second]) / 2 + needed[axis][pair]
                # at[high] - at[low] + big · (1 - chosen) >= apart
                bound = apart - big
                for box, sign in ((high, 1.0), (low, -1.0)):
                    if box < count:
                        entries.append((row, axis * count + box, sign))
                    else:
                        bound -= sign * at[box]
                entries.append((row, 2 * count + 4 * pair + 2 * axis + side, -big))
                least.append(bound)
                row += 1
        entries += [(row, 2 * count + 4 * pair + choice, 1.0) for choice in range(4)]
        least.append(1.0)
        row += 1
    variables = 2 * count + choices
    rows, columns, values = zip(*entries, strict=True)
    found = milp(
        np.zeros(variables),
        constraints=LinearConstraint(coo_array((values, (rows, columns)), (row, variables)).tocsr(), np.array(least)),
        integrality=np.repeat([0, 1], [2 * count, choices]),
        bounds=Bounds(np.append(boxes.low.ravel(), np.zeros(choices)), np.append(boxes.high.ravel(), np.ones(choices))),
        options={"time_limit": seconds},
    )
    if found.x is None:
        if found.status == INFEASIBLE:
            raise Infeasible
        return None
    return found.x[:count], found.x[count : 2 * count]
