"""Hard macros and obstacles as rectangles on the canvas, for the legaliser.

Axis legend: M movable boxes (hard macros), O obstacles (fixed hard macros and blockages), B = M + O boxes. Lengths are
in µm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placement.netlist.design import Design, NodeKind, Placement

TOLERANCE = 1e-6
"""µm: lengths that are equal but for rounding are equal, as in the engine."""


class Blockage(NamedTuple):
    """A rectangle, µm, that hard macros keep off."""

    left: float
    low: float
    right: float
    high: float


class Boxes(NamedTuple):
    """The boxes, movable ones first, and what they are to keep.

    Attributes:
        x, y: float64 [B], centres.
        width, height: float64 [B].
        movable: M.
        canvas: width and height of the canvas.
        spacing: least distance between boxes.
    """

    x: np.ndarray
    y: np.ndarray
    width: np.ndarray
    height: np.ndarray
    movable: int
    canvas: tuple[float, float]
    spacing: float

    @property
    def axes(self) -> tuple[tuple[np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray, float]]:
        """Centres, sizes and the canvas's extent, across and up."""
        return (self.x, self.width, self.canvas[0]), (self.y, self.height, self.canvas[1])

    def moved_to(self, x: np.ndarray, y: np.ndarray) -> Boxes:
        """The same boxes, the movable ones at `x`, `y` (float64 [M])."""
        count = self.movable
        return self._replace(x=np.concatenate([x, self.x[count:]]), y=np.concatenate([y, self.y[count:]]))

    def displacement(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """How far each movable box at `x`, `y` (float64 [M]) is from where it is here, float64 [M]."""
        return np.abs(x - self.x[: self.movable]) + np.abs(y - self.y[: self.movable])

    def pairs(self) -> np.ndarray:
        """All pairs of boxes of which at least one may move, int [2, ·]."""
        pairs = np.stack(np.triu_indices(len(self.x), 1))
        return pairs[:, pairs[0] < self.movable]

    def gaps(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far the boxes of each pair are from touching across and up; below 0 where they share an interval."""
        first, second = pairs
        return (
            np.abs(self.x[first] - self.x[second]) - (self.width[first] + self.width[second]) / 2,
            np.abs(self.y[first] - self.y[second]) - (self.height[first] + self.height[second]) / 2,
        )


def boxes_of(
    design: Design, placement: Placement, *, spacing: float, blockages: tuple[Blockage, ...], grid: float
) -> Boxes:
    """Movable macros, then obstacles; on a grid, sizes are rounded up to it and obstacles outwards."""
    movable = design.placing_order
    obstacles = np.flatnonzero((design.netlist.kind == NodeKind.HARD) & design.initial.fixed)
    sides = np.stack(design.netlist.sides(placement.orientation))
    centres = np.stack([placement.x, placement.y])
    low, high = centres - sides / 2, centres + sides / 2
    size = sides[:, movable]
    corners = np.concatenate([low[:, obstacles], high[:, obstacles]]).T
    corners = np.concatenate([corners, np.array(blockages, dtype=np.float64).reshape(-1, 4)])
    if grid > 0:
        size = np.ceil(size / grid - TOLERANCE) * grid
        corners[:, :2] = np.floor(corners[:, :2] / grid + TOLERANCE) * grid
        corners[:, 2:] = np.ceil(corners[:, 2:] / grid - TOLERANCE) * grid
    fixed_size = (corners[:, 2:] - corners[:, :2]).T
    x, y = np.concatenate([low[:, movable] + size / 2, corners[:, :2].T + fixed_size / 2], axis=1)
    width, height = np.concatenate([size, fixed_size], axis=1)
    canvas = (design.canvas.width, design.canvas.height)
    return Boxes(x, y, width, height, len(movable), canvas, spacing)
