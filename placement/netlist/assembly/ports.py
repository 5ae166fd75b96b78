"""Positions for ports that a file leaves without one.

Axis legend: D ports.
"""

from __future__ import annotations

import numpy as np

from placement.netlist.floorplan import Rectangle


def spread_on_edges(box: Rectangle, count: int) -> np.ndarray:
    """float64 [count, 2]: µm, points at even distances along the box's edges, clockwise from its lower left corner.

    The first stands half a distance up the left edge, so that none stands in a corner unless it must.
    """
    perimeter = 2 * (box.width + box.height)
    along = (np.arange(count) + 0.5) * perimeter / max(count, 1)
    corners = np.cumsum([0.0, box.height, box.width, box.height, box.width])
    x = np.interp(along, corners, [box.x_low, box.x_low, box.x_high, box.x_high, box.x_low])
    y = np.interp(along, corners, [box.y_low, box.y_high, box.y_high, box.y_low, box.y_low])
    return np.stack((x, y), axis=1)


def place_missing(
    x: np.ndarray, y: np.ndarray, placed: np.ndarray, *, box: Rectangle, what: str = "ports"
) -> str | None:
    """Gives every port without a position one on the box's edges, in order.

    Args:
        x: float64 [D], µm, changed in place.
        y: float64 [D], µm, changed in place.
        placed: bool [D], which ports have a position; changed in place.
        box: whose edges they come to stand on.
        what: they are called in the notice.

    Returns:
        A notice that says so; None where all ports had a position.
    """
    missing = np.flatnonzero(~placed)
    if not len(missing):
        return None
    points = spread_on_edges(box, len(missing))
    x[missing], y[missing], placed[missing] = points[:, 0], points[:, 1], True
    return f"{len(missing):,} of {len(x):,} {what} have no position: they are spread evenly on the edges of the die"
