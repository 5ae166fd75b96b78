"""What an environment shows at each step.

Axis legend: B environments, K maps, R grid rows, C grid columns, T macros to place (each of the largest design in
the pool; a smaller design is padded at the end of the axis with zeros).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MAPS = ("occupancy", "density", "wire_mask")
"""The maps' names, in order.

occupancy: share of the gcell that placed and fixed hard macros cover, [0, 1].
density: area of everything placed over the gcell's area (1 = full; may pass 1 where placed nodes overlap).
wire_mask: wirelength that the current macro would add if centred on the gcell, from its nets that have something
    placed, over (canvas width + height) · the summed weight of the macro's nets: [0, 1].
"""


class Observation(NamedTuple):
    """A batch of observations; arrays may be views of the engine's memory, overwritten by the next step.

    Attributes:
        design: int32 [B], index of the environment's design in the pool's list.
        step: int32 [B], macros placed so far; the current macro is `placing_order[step]`. T at the end.
        mask: uint8 [B, R, C], 1 where the current macro may be centred. All 0 when the episode has ended.
        maps: float32 [B, K, R, C], see `MAPS`.
        x, y: float32 [B, T], centres of the macros in placing order, in fractions of the canvas; 0 while unplaced.
    """

    design: np.ndarray
    step: np.ndarray
    mask: np.ndarray
    maps: np.ndarray
    x: np.ndarray
    y: np.ndarray
