"""Hard macros and obstacles as rectangles on the canvas, for the legaliser.

Axis legend: M movable boxes (hard macros), O obstacles (fixed hard macros, blockages, the surroundings of ports, what
regions leave free), B = M + O boxes. Lengths are in µm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.netlist.constraints import SnapGrid
from placement.netlist.design import Design, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import port_surroundings
from placement.netlist.geometry import clipped, complement

TOLERANCE = 1e-6
"""µm: lengths that are equal but for rounding are equal, as in the engine."""


class Boxes(NamedTuple):
    """The boxes, movable ones first, and what they are to keep.

    Attributes:
        x, y: float64 [B], centres.
        width, height: float64 [B].
        movable: M.
        low, high: float64 [2, M], the least and the largest centre of each movable box, across and up.
        halo: float64 [2, B], of each box across and up; -inf for obstacles that are no macros.
        spacing: float64 [2, B], of each box across and up; two boxes keep the lesser of theirs, or the sum of their
            halos where that is more.
        concerns: bool [M, B], whether a movable box keeps clear of another box.
        has_regions: whether `low` and `high` are those of regions, too.
    """

    x: np.ndarray
    y: np.ndarray
    width: np.ndarray
    height: np.ndarray
    movable: int
    low: np.ndarray
    high: np.ndarray
    halo: np.ndarray
    spacing: np.ndarray
    concerns: np.ndarray
    has_regions: bool

    @property
    def axes(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """Centres and sizes, across and up."""
        return (self.x, self.width), (self.y, self.height)

    def moved_to(self, x: np.ndarray, y: np.ndarray) -> Boxes:
        """The same boxes, the movable ones at `x`, `y` (float64 [M])."""
        count = self.movable
        return self._replace(x=np.concatenate([x, self.x[count:]]), y=np.concatenate([y, self.y[count:]]))

    def within_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The centres of the movable boxes at the nearest place inside their limits, float64 [M] each."""
        high = np.maximum(self.low, self.high)
        return (
            np.clip(self.x[: self.movable], self.low[0], high[0]),
            np.clip(self.y[: self.movable], self.low[1], high[1]),
        )

    def displacement(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """How far each movable box at `x`, `y` (float64 [M]) is from where it is here, float64 [M]."""
        return np.abs(x - self.x[: self.movable]) + np.abs(y - self.y[: self.movable])

    def pairs(self) -> np.ndarray:
        """All pairs of boxes that keep clear of each other, of which at least one may move, int [2, ·]."""
        later = np.arange(len(self.x)) > np.arange(self.movable)[:, None]
        return np.stack(np.nonzero(self.concerns & later))

    def gaps(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far the boxes of each pair are from touching across and up; below 0 where they share an interval."""
        first, second = pairs
        return (
            np.abs(self.x[first] - self.x[second]) - (self.width[first] + self.width[second]) / 2,
            np.abs(self.y[first] - self.y[second]) - (self.height[first] + self.height[second]) / 2,
        )

    def overlaps(self, pairs: np.ndarray, needed: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Whether the boxes of each pair are nearer on both axes than is `needed`, bool of the pairs' number."""
        gap_x, gap_y = self.gaps(pairs)
        return (gap_x < needed[0] - TOLERANCE) & (gap_y < needed[1] - TOLERANCE)

    def part(self, movers: np.ndarray, centres: tuple[np.ndarray, np.ndarray]) -> Boxes:
        """Some of the movable boxes, int [K], all others as obstacles at their `centres` (float64 [M] each)."""
        now = self.moved_to(*centres)
        others = np.setdiff1d(np.arange(len(self.x)), movers)
        every = np.concatenate([movers, others])
        x, y = (np.concatenate([start[movers], at[others]]) for start, at in ((self.x, now.x), (self.y, now.y)))
        return Boxes(
            x,
            y,
            self.width[every],
            self.height[every],
            len(movers),
            self.low[:, movers],
            self.high[:, movers],
            self.halo[:, every],
            self.spacing[:, every],
            self.concerns[np.ix_(movers, every)],
            self.has_regions,
        )

    def needed(self, first: np.ndarray | int, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gaps across and up that boxes are to keep, on one axis at least; float64 of the indices' shape."""
        across, up = (
            np.maximum(np.minimum(spacing[first], spacing[second]), halo[first] + halo[second])
            for spacing, halo in zip(self.spacing, self.halo, strict=True)
        )
        return across, up


def joined_grid(design: Design, grid: float) -> SnapGrid:
    """The design's snapping grid, made as coarse as `grid` (0: as it is).

    Raises:
        DesignError: `grid` is no whole number of the design's pitches.
    """
    own = design.constraints.grid
    if grid <= 0:
        return own
    for axis, pitch in (("x", own.pitch_x), ("y", own.pitch_y)):
        if (pitch > 0 and abs(grid / pitch - round(grid / pitch)) * pitch > TOLERANCE) or pitch > grid + TOLERANCE:
            raise DesignError(
                f"grid={grid:g}: must be a whole number of the design's pitches of {pitch:g} µm in {axis}"
            )
    return SnapGrid(grid, grid, own.offset_x, own.offset_y)


def boxes_of(
    design: Design, placement: Placement, *, spacing: float, blockages: Sequence[tuple[float, ...]], grid: SnapGrid
) -> Boxes:
    """Movable macros, then obstacles; on a grid, sizes and gaps are rounded up to it and obstacles outwards."""
    movable = design.placing_order
    fixed = np.flatnonzero((design.netlist.kind == NodeKind.HARD) & design.initial.fixed)
    areas, area_spacing, area_concerns = _areas(design, movable, spacing, blockages)
    sides = np.stack(design.netlist.sides(placement.orientation))
    centres = np.stack([placement.x, placement.y])
    low, high = centres - sides / 2, centres + sides / 2
    size = sides[:, movable]
    corners = np.concatenate([np.concatenate([low[:, fixed], high[:, fixed]]).T, areas])
    halos = np.stack(design.constraints.sides(placement.orientation))
    halo = np.concatenate([halos[:, movable], halos[:, fixed], np.full((2, len(areas)), -np.inf)], axis=1)
    kept = np.tile(np.concatenate([np.full(len(movable) + len(fixed), spacing), area_spacing]), (2, 1))
    limits = np.stack(_limits(design, movable))  # [2 (low, high), 2, M]
    first, last = limits[0] + size / 2, limits[1] - size / 2
    pitches, offsets = (grid.pitch_x, grid.pitch_y), (grid.offset_x, grid.offset_y)
    for axis, (pitch, offset) in enumerate(zip(pitches, offsets, strict=True)):
        if pitch <= 0:
            continue
        corner = _down(limits[1, axis] - size[axis], pitch, offset), _up(limits[0, axis], pitch, offset)
        size[axis] = np.ceil(size[axis] / pitch - TOLERANCE) * pitch
        last[axis], first[axis] = (edge + size[axis] / 2 for edge in corner)
        corners[:, axis] = _down(corners[:, axis], pitch, offset)
        corners[:, 2 + axis] = _up(corners[:, 2 + axis], pitch, offset)
        halo[axis] = np.ceil(halo[axis] / pitch - TOLERANCE) * pitch
        kept[axis] = np.ceil(kept[axis] / pitch - TOLERANCE) * pitch
    fixed_size = (corners[:, 2:] - corners[:, :2]).T
    x, y = np.concatenate([low[:, movable] + size / 2, corners[:, :2].T + fixed_size / 2], axis=1)
    width, height = np.concatenate([size, fixed_size], axis=1)
    concerns = np.ones((len(movable), len(x)), dtype=bool)
    concerns[:, len(movable) + len(fixed) :] = area_concerns
    has_regions = bool(design.constraints.regions)
    return Boxes(x, y, width, height, len(movable), first, last, halo, kept, concerns, has_regions)


def snapped(corner: np.ndarray, pitch: float, offset: float) -> np.ndarray:
    """Corners on a grid, each the nearest below the one given; as they are where the pitch is 0."""
    return corner if pitch <= 0 else _down(corner, pitch, offset)


def _down(at: np.ndarray, pitch: float, offset: float) -> np.ndarray:
    return offset + np.floor((at - offset) / pitch + TOLERANCE) * pitch


def _up(at: np.ndarray, pitch: float, offset: float) -> np.ndarray:
    return offset + np.ceil((at - offset) / pitch - TOLERANCE) * pitch


def _areas(
    design: Design, movable: np.ndarray, spacing: float, blockages: Sequence[tuple[float, ...]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rectangles to keep off: corners [·, 4], spacing to each [·], and which macros they hold for, bool [M, ·]."""
    constraints, canvas = design.constraints, design.canvas
    everyone = np.ones(len(movable), dtype=bool)
    parts = [(np.array(blockages, dtype=np.float64).reshape(-1, 4), spacing, everyone)]
    parts.append((clipped(constraints.blockages, canvas.width, canvas.height), spacing, everyone))
    parts.append((port_surroundings(design), 0.0, everyone))
    for region in constraints.regions:
        member = np.isin(movable, region.nodes)
        if len(region.rectangles) > 1:  # a region of one rectangle is kept by the limits of its macros' centres
            parts.append((complement(region.rectangles, canvas.width, canvas.height), 0.0, member))
        if region.is_exclusive:
            parts.append((region.rectangles, 0.0, ~member))
    return (
        np.concatenate([corners for corners, _, _ in parts]),
        np.concatenate([np.full(len(corners), kept) for corners, kept, _ in parts]),
        np.concatenate([np.tile(holds[:, None], len(corners)) for corners, _, holds in parts], axis=1),
    )


def _limits(design: Design, movable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The box, low and high corner [2, M] each, that each macro stays in: the canvas, and the boxes of its regions."""
    low = np.zeros((2, len(movable)))
    high = np.tile([[design.canvas.width], [design.canvas.height]], len(movable))
    for region in design.constraints.regions:
        member = np.isin(movable, region.nodes)
        corners = region.rectangles[:, :2].min(axis=0), region.rectangles[:, 2:].max(axis=0)
        low[:, member] = np.maximum(low[:, member], corners[0][:, None])
        high[:, member] = np.minimum(high[:, member], corners[1][:, None])
    return low, high
