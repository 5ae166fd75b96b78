"""Designs seen in a mirror: the same problem on a flipped canvas, to train on more than one picture of it."""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.constraints import Constraints, SnapGrid
from placement.netlist.design import TURN, Canvas, Design, NodeKind, Placement
from placement.netlist.errors import DesignError

AXES = ("x", "y", "xy")
"""`x`: left and right change places; `y`: bottom and top; `xy`: both."""


def mirrored(design: Design, axis: str) -> Design:
    """The design with canvas, ports and macros flipped; named `<name>_<axis>`.

    A placement and its mirror image have the same wirelength and density cost; congestion may differ a little, as nets
    are routed row first from their driver.

    Raises:
        DesignError: `axis` is not one of `AXES`, or the mirror image of the macros' snapping grid is none: lower left
            corners become others, which lie on a grid only where all macros' sides leave the same rest.
    """
    netlist = design.netlist
    # A hard macro's pins turn with its orientation; the others have none.
    stiff = netlist.kind[netlist.pin_node] != NodeKind.HARD
    flipped = dataclasses.replace(
        netlist,
        pin_dx=np.where(stiff & ("x" in axis), -netlist.pin_dx, netlist.pin_dx),
        pin_dy=np.where(stiff & ("y" in axis), -netlist.pin_dy, netlist.pin_dy),
    )
    initial = mirrored_placement(design, design.initial, axis)
    constraints = _mirrored_constraints(design, axis)
    return dataclasses.replace(
        design, name=f"{design.name}_{axis}", netlist=flipped, initial=initial, constraints=constraints
    )


def mirrored_placement(design: Design, placement: Placement, axis: str) -> Placement:
    """A placement flipped on the design's canvas. Flipped twice it is itself again (to rounding).

    Raises:
        DesignError: `axis` is not one of `AXES`.
    """
    if axis not in AXES:
        raise DesignError(f"axis={axis!r}: must be one of {', '.join(AXES)}")
    canvas = design.canvas
    x = canvas.width - placement.x if "x" in axis else placement.x
    y = canvas.height - placement.y if "y" in axis else placement.y
    hard = design.netlist.kind == NodeKind.HARD
    turned = np.where(hard, _turned(axis)[placement.orientation], placement.orientation)
    return dataclasses.replace(
        placement,
        x=np.where(placement.placed, x, placement.x),
        y=np.where(placement.placed, y, placement.y),
        orientation=turned.astype(np.int8),
    )


def _turned(axis: str) -> np.ndarray:
    """int8 [8]: each orientation seen in the mirror."""
    flip = np.array([-1 if "x" in axis else 1] * 2 + [-1 if "y" in axis else 1] * 2)
    seen = TURN * flip
    return np.array([np.flatnonzero((row == TURN).all(axis=1))[0] for row in seen], np.int8)


def _mirrored_constraints(design: Design, axis: str) -> Constraints:
    constraints, canvas = design.constraints, design.canvas
    seen = _turned(axis)
    bits = np.array([1 << turned for turned in seen.tolist()])
    allowed = ((constraints.orientations[:, None] >> np.arange(len(seen))) & 1) @ bits
    return dataclasses.replace(
        constraints,
        blockages=_flipped(constraints.blockages, canvas, axis),
        regions=tuple(
            dataclasses.replace(region, rectangles=_flipped(region.rectangles, canvas, axis))
            for region in constraints.regions
        ),
        orientations=allowed,
        grid=_mirrored_grid(design, axis),
    )


def _flipped(rectangles: np.ndarray, canvas: Canvas, axis: str) -> np.ndarray:
    """Rectangles [K, 4] in the mirror."""
    result = rectangles.copy()
    if "x" in axis:
        result[:, [0, 2]] = canvas.width - rectangles[:, [2, 0]]
    if "y" in axis:
        result[:, [1, 3]] = canvas.height - rectangles[:, [3, 1]]
    return result


def _mirrored_grid(design: Design, axis: str) -> SnapGrid:
    grid, netlist, canvas = design.constraints.grid, design.netlist, design.canvas
    sides = np.concatenate((netlist.width[netlist.hard], netlist.height[netlist.hard]))
    offsets = []
    for letter, pitch, offset, extent in (
        ("x", grid.pitch_x, grid.offset_x, canvas.width),
        ("y", grid.pitch_y, grid.offset_y, canvas.height),
    ):
        if letter not in axis or pitch == 0 or not len(sides):
            offsets.append(offset)
            continue
        apart = (sides - sides[0]) / pitch
        if np.abs(apart - np.round(apart)).max() * pitch > 1e-6:
            raise DesignError(
                f"{design.name}: macros whose sides differ by less than a pitch of {pitch:g} µm have no mirror image "
                "with corners on one grid: leave the grid out"
            )
        offsets.append(float((extent - offset - sides[0]) % pitch))
    return SnapGrid(grid.pitch_x, grid.pitch_y, *offsets)
