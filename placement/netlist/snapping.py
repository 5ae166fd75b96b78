"""The snapping grid of a floorplan: the manufacturing grid, or the routing tracks, as seen from the core's corner.

Lengths in µm.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

from placement.netlist.constraints import LEAST_PITCH, SnapGrid
from placement.netlist.errors import DesignError
from placement.netlist.floorplan import Floorplan, Rectangle, Tracks
from placement.netlist.technology import Technology

Snap = Literal["manufacturing", "tracks", "none"]


def snap_grid(plan: Floorplan, technology: Technology, snap: Snap | SnapGrid) -> SnapGrid:
    """The grid of a setting; raises DesignError where there is none of the name, or the floorplan has no tracks."""
    core = plan.core
    if isinstance(snap, SnapGrid):
        return _shifted(snap, core)
    if snap == "none":
        return SnapGrid()
    if snap == "manufacturing":
        pitch = writable_pitch(plan)
        return _shifted(SnapGrid(pitch, pitch), core) if pitch >= LEAST_PITCH else SnapGrid()
    if snap != "tracks":
        raise DesignError(f"snap={snap!r}: must be manufacturing, tracks, none, or a grid")
    return track_grid(plan, technology)


def writable_pitch(plan: Floorplan) -> float:
    """The least whole number of manufacturing grids that is one of database units, too; 0 without such a grid.

    A DEF file with fewer units than the grid asks for cannot say every point of it.
    """
    if plan.manufacturing_grid <= 0:
        return 0.0
    units = Fraction(plan.units).limit_denominator(1_000_000)
    grid = Fraction(plan.manufacturing_grid).limit_denominator(1_000_000)
    return float((grid * units).numerator / units)


def track_grid(plan: Floorplan, technology: Technology) -> SnapGrid:
    """The routing tracks, as seen from the core's corner; raises DesignError where a direction has none."""
    across, up = _tracks(plan, technology, is_vertical=True), _tracks(plan, technology, is_vertical=False)
    if across is None or up is None:
        raise DesignError("snap=tracks: the floorplan must have tracks in both directions")
    return _shifted(SnapGrid(across.step, up.step, across.start, up.start), plan.core)


def _tracks(plan: Floorplan, technology: Technology, *, is_vertical: bool) -> Tracks | None:
    """The tracks of the lowest layer that prefers their direction; without LEF, the first of the direction."""
    wanted = "VERTICAL" if is_vertical else "HORIZONTAL"
    of_direction = {tracks.layer: tracks for tracks in reversed(plan.tracks) if tracks.is_vertical == is_vertical}
    preferred = [layer.name for layer in technology.layers if layer.direction.value == wanted]
    found = next((of_direction[name] for name in preferred if name in of_direction), None)
    return found or next((of_direction[tracks.layer] for tracks in plan.tracks if tracks.layer in of_direction), None)


def _shifted(grid: SnapGrid, core: Rectangle) -> SnapGrid:
    """A grid in the files' coordinates as seen from the core's corner."""
    return SnapGrid(
        grid.pitch_x,
        grid.pitch_y,
        _offset(grid.offset_x - core.x_low, grid.pitch_x),
        _offset(grid.offset_y - core.y_low, grid.pitch_y),
    )


def _offset(offset: float, pitch: float) -> float:
    """The same offset in [0, pitch), 0 where that is a rounding error away."""
    if pitch <= 0:
        return 0.0
    rest = math.fmod(math.fmod(offset, pitch) + pitch, pitch)
    return 0.0 if min(rest, pitch - rest) < 1e-7 else round(rest, 9)
