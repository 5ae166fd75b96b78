"""What a person does with selected macros: turn, mirror, swap, align, distribute.

Each function makes the placement that the session is to take as one step. Axis legend: N nodes, K selected macros.
Lengths are in µm.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.design import TURN, Design, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError

# What is done to the macro as it stands: (a, b, c, d) maps an offset (dx, dy) to (a·dx + b·dy, c·dx + d·dy).
_TURNS = {
    "left": TURN[Orientation.W],
    "right": TURN[Orientation.E],
    "half": TURN[Orientation.S],
    "mirror_x": TURN[Orientation.FN],
    "mirror_y": TURN[Orientation.FS],
}
TURNS = tuple(_TURNS)
"""By a quarter to the left or to the right, by a half; mirrored left to right (x) or upside down (y)."""
ALIGNMENTS = ("left", "right", "bottom", "top", "centre_x", "centre_y")


def turned(orientation: int, how: str) -> int:
    """The orientation after turning; raises DesignError where `how` is not one of `TURNS`."""
    if how not in _TURNS:
        raise DesignError(f"turn {how!r}: must be one of {', '.join(TURNS)}")
    matrix = _TURNS[how].reshape(2, 2) @ TURN[orientation].reshape(2, 2)
    return int(np.flatnonzero((matrix.reshape(4) == TURN).all(axis=1))[0])


def turn(design: Design, placement: Placement, nodes: np.ndarray, how: str) -> Placement:
    """Hard macros turned about their own centres; raises DesignError for a soft macro."""
    soft = nodes[design.netlist.kind[nodes] != NodeKind.HARD]
    if len(soft):
        raise DesignError(f"{design.netlist.names[soft[0]]}: is a soft macro; only hard macros have an orientation")
    orientation = placement.orientation.copy()
    orientation[nodes] = [turned(int(orientation[node]), how) for node in nodes]
    return dataclasses.replace(placement, orientation=orientation)


def swap(placement: Placement, nodes: np.ndarray) -> Placement:
    """Two macros change places; raises DesignError where there are not two."""
    if len(nodes) != 2:
        raise DesignError(f"{len(nodes)} macros are selected: two can change places")
    return placement.moved(nodes, placement.x[nodes][::-1], placement.y[nodes][::-1])


def align(design: Design, placement: Placement, nodes: np.ndarray, how: str) -> Placement:
    """Macros moved so that they share an edge, or the middle of all of them; raises DesignError."""
    if how not in ALIGNMENTS:
        raise DesignError(f"align {how!r}: must be one of {', '.join(ALIGNMENTS)}")
    _at_least(nodes, 2, "be aligned")
    width, height = (side[nodes] for side in design.netlist.sides(placement.orientation))
    x, y = placement.x[nodes], placement.y[nodes]
    if how in ("left", "right", "centre_x"):
        x = _aligned(x, width, {"left": "low", "right": "high"}.get(how, "middle"))
    else:
        y = _aligned(y, height, {"bottom": "low", "top": "high"}.get(how, "middle"))
    return placement.moved(nodes, x, y)


def distribute(design: Design, placement: Placement, nodes: np.ndarray, axis: str) -> Placement:
    """Macros moved along an axis (`x` or `y`) so that the gaps between neighbours are equal; the outer ones stay."""
    if axis not in ("x", "y"):
        raise DesignError(f"distribute along {axis!r}: must be x or y")
    _at_least(nodes, 3, "be distributed")
    sides = design.netlist.sides(placement.orientation)
    centre, length = (placement.x, sides[0]) if axis == "x" else (placement.y, sides[1])
    order = nodes[np.argsort(centre[nodes], kind="stable")]
    lengths = length[order]
    low, high = centre[order[0]] - lengths[0] / 2, centre[order[-1]] + lengths[-1] / 2
    gap = (high - low - lengths.sum()) / (len(order) - 1)
    starts = low + np.concatenate([[0.0], np.cumsum(lengths[:-1] + gap)])
    centres = starts + lengths / 2
    centres[0], centres[-1] = centre[order[0]], centre[order[-1]]
    if axis == "x":
        return placement.moved(order, centres, placement.y[order])
    return placement.moved(order, placement.x[order], centres)


def _aligned(centre: np.ndarray, length: np.ndarray, at: str) -> np.ndarray:
    low, high = (centre - length / 2).min(), (centre + length / 2).max()
    if at == "low":
        return low + length / 2
    return high - length / 2 if at == "high" else np.full_like(centre, (low + high) / 2)


def _at_least(nodes: np.ndarray, count: int, what: str) -> None:
    if len(nodes) < count:
        raise DesignError(f"{len(nodes)} macros are selected: {count} or more can {what}")
