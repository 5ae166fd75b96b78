"""Shapes of LEF and DEF files as rectangles.

Axis legend: K rectangles, each (x_low, y_low, x_high, y_high); P points. Lengths are in the caller's unit.
"""

from __future__ import annotations

import itertools

import numpy as np


def bounding_box(points: np.ndarray) -> np.ndarray:
    """float64 [4]: the box around points float64 [P, 2], P ≥ 1."""
    return np.concatenate((points.min(axis=0), points.max(axis=0)))


def is_slanted(points: np.ndarray) -> bool:
    """Whether a polygon has an edge that is neither horizontal nor vertical.

    Args:
        points: [P, 2], the corners in order, the last joined to the first.
    """
    return bool((points != np.roll(points, -1, axis=0)).all(axis=1).any())


def polygon_rectangles(points: np.ndarray) -> np.ndarray:
    """float64 [K, 4]: rectangles without overlap that a rectilinear polygon falls into.

    The polygon is cut into horizontal slabs at its corners' heights; a slab is filled between every second crossing
    (even-odd rule). A polygon with slanted edges gives the box around it instead.

    Args:
        points: float64 [P, 2], the corners in order, the last joined to the first.
    """
    following = np.roll(points, -1, axis=0)
    if len(points) < 4 or is_slanted(points):
        return bounding_box(points)[None, :]
    upright = points[:, 0] == following[:, 0]
    x = points[upright, 0]
    low = np.minimum(points[upright, 1], following[upright, 1])
    high = np.maximum(points[upright, 1], following[upright, 1])
    heights = np.unique(points[:, 1])
    found = []
    for bottom, top in itertools.pairwise(heights):
        crossing = np.sort(x[(low <= bottom) & (high >= top)])
        found += [(left, bottom, right, top) for left, right in zip(crossing[::2], crossing[1::2], strict=False)]
    return np.array(found, dtype=np.float64).reshape(-1, 4)


def path_rectangles(points: np.ndarray, width: float) -> np.ndarray:
    """float64 [K, 4]: a wire of that width along points float64 [P, 2], half a width beyond each end."""
    half = width / 2
    following = points[1:] if len(points) > 1 else points
    preceding = points[:-1] if len(points) > 1 else points
    return np.concatenate((np.minimum(preceding, following) - half, np.maximum(preceding, following) + half), axis=1)
