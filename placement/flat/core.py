"""Where standard cells may stand: the core area, what is blocked in it, and the room around macros.

Axis legend: N nodes of the netlist.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.errors import DesignError


@dataclasses.dataclass(frozen=True, eq=False)
class Core:
    """The area of the standard-cell rows.

    Attributes:
        width, height: µm.
        x, y: the lower left corner, µm, in the coordinates of the placement.
        blockages: rectangles without cells, (x low, y low, x high, y high), µm, in the same coordinates.
        halo: µm that cells keep clear of a hard macro: one number for all sides of all macros, or float64 [N, 4], left,
            bottom, right and top of each node in orientation N. Only hard macros have one.

    Raises:
        DesignError: a side is not above 0, a blockage is inside out, a halo is negative or misshapen, or a number
            is not finite.
    """

    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    blockages: tuple[tuple[float, float, float, float], ...] = ()
    halo: float | np.ndarray = 0.0

    def __post_init__(self) -> None:
        numbers = [self.width, self.height, self.x, self.y, *np.ravel(self.halo), *np.ravel(self.blockages)]
        if not np.isfinite(numbers).all():
            raise DesignError("core: every number must be finite")
        if self.width <= 0 or self.height <= 0:
            raise DesignError(f"core of {self.width} × {self.height} µm: both sides must be above 0")
        if np.ndim(self.halo) and (np.ndim(self.halo) != 2 or np.shape(self.halo)[1] != 4):
            raise DesignError(f"halo: shape {np.shape(self.halo)}, expected one number or [nodes, 4]")
        if np.min(self.halo, initial=0.0) < 0:
            raise DesignError(f"halo: {np.min(self.halo)} µm must be at least 0")
        for low_x, low_y, high_x, high_y in self.blockages:
            if low_x > high_x or low_y > high_y:
                raise DesignError(
                    f"blockage ({low_x}, {low_y}, {high_x}, {high_y}) is inside out; "
                    "give x low, y low, x high, y high in µm"
                )
