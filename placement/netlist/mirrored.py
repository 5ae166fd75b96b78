"""Designs seen in a mirror: the same problem on a flipped canvas, to train on more than one picture of it."""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.design import TURN, Design, NodeKind, Placement
from placement.netlist.errors import DesignError

AXES = ("x", "y", "xy")
"""`x`: left and right change places; `y`: bottom and top; `xy`: both."""


def mirrored(design: Design, axis: str) -> Design:
    """The design with canvas, ports and macros flipped; named `<name>_<axis>`.

    A placement and its mirror image have the same wirelength and density cost; congestion may differ a little, as nets
    are routed row first from their driver.

    Raises:
        DesignError: `axis` is not one of `AXES`.
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
    return dataclasses.replace(design, name=f"{design.name}_{axis}", netlist=flipped, initial=initial)


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
