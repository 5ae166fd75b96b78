"""Tidiness of macro placements: measures of what a physical designer would otherwise straighten by hand.

docs/explanation/tidiness.md defines the measures with pictures. Lengths are in µm. Axis legend: H hard macros, R and C
rows and columns of the lines that macros, halos and the channel draw.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import ndimage

from placement.engine import _native
from placement.engine.costs import checked_placement
from placement.engine.native_design import native_design
from placement.netlist.design import Design, Placement

_SLACK = 1e-3  # tolerance in µm by which a gap may be narrower than the channel
_TOUCHING = 1e-6  # tolerance in µm of edges that touch


class Tidiness(NamedTuple):
    """Measures of tidiness: shares in [0, 1], higher is tidier, and the cost of what remains to be straightened.

    Attributes:
        aligned: share of macros with an edge on the line of a neighbour's. Neighbours face each other across a gap that
            exceeds the width of their halos by less than the channel.
        grouped: share of macros with a neighbour of their own bank, among those whose bank has several.
        alike: share of neighbours of equal size that have the same orientation.
        pins_free: share of macros whose pins do not face a neighbour or the canvas edge, among those with pins on one
            side.
        usable: share of the whitespace, beside macros and their halos, that squares as wide as the channel cover and
            can reach from each other.
        largest: share of the whitespace in the largest empty rectangle.
        corners_free: share of the 4 canvas corners without a macro.
        cost: the term that `cost.tidy` weighs.
        channel: width in µm that the measures require of a gap.

    Example:
        >>> placement.tidiness(placement.load("toy6")).channel
        10.0
    """

    aligned: float
    grouped: float
    alike: float
    pins_free: float
    usable: float
    largest: float
    corners_free: float
    cost: float
    channel: float


def tidiness(design: Design, placement: Placement | None = None) -> Tidiness:
    """Returns the tidiness of `placement` (None: the design's own).

    Example:
        >>> 0 <= placement.tidiness(placement.load("toy6")).aligned <= 1
        True

    Raises:
        DesignError: a node has no position, or the number of nodes differs.
    """
    placement = checked_placement(design, placement)
    cost, channel, macros, aligned, banked, grouped, alike, turned, sided, facing, corners, rectangle = (
        _native.tidiness(native_design(design), placement.x, placement.y, placement.orientation)
    )

    def share(count: int, total: int) -> float:
        return count / total if total else 1.0

    usable, largest = _whitespace(design, placement, channel, rectangle)
    return Tidiness(
        share(aligned, macros), share(grouped, banked), share(alike - turned, alike), share(sided - facing, sided),
        usable, largest, (4 - min(4, corners)) / 4, cost, channel,
    )  # fmt: skip


def equal_neighbours(design: Design, placement: Placement) -> dict[int, np.ndarray]:
    """Returns the neighbours of equal size of each hard macro, as node numbers.

    Raises:
        DesignError: a node has no position, or the number of nodes differs.
    """
    placement = checked_placement(design, placement)
    channel = _native.tidiness(native_design(design), placement.x, placement.y, placement.orientation)[1]
    hard = design.netlist.hard
    size = np.stack([design.netlist.width, design.netlist.height], axis=1)[hard]
    half = np.stack(design.netlist.sides(placement.orientation), axis=1)[hard] / 2
    centre = np.stack([placement.x, placement.y], axis=1)[hard]
    low, high = _kept_free(design, placement)
    neighbours = {}
    for index, node in enumerate(hard.tolist()):
        apart = np.abs(centre - centre[index]) - half - half[index]
        gap = np.maximum(low - high[index], low[index] - high)
        faces = (apart[:, ::-1] < -_TOUCHING) & (apart >= -_TOUCHING) & (gap < channel)
        neighbours[node] = hard[faces.any(axis=1) & (size == size[index]).all(axis=1)]
    return neighbours


def _whitespace(
    design: Design, placement: Placement, channel: float, rectangle: tuple[float, float, float, float]
) -> tuple[float, float]:
    """Returns the shares of the whitespace that are usable and in the largest empty rectangle."""
    low, high = _kept_free(design, placement)
    size = np.array([design.canvas.width, design.canvas.height])
    lines = [_lines(low[:, axis], high[:, axis], size[axis]) for axis in (0, 1)]
    area = np.diff(lines[1])[:, None] * np.diff(lines[0])[None, :]
    empty = ~_painted(lines, low, high)
    whitespace = float(area[empty].sum())
    if whitespace <= 0:
        return 1.0, 1.0
    width = max(0.0, channel - _SLACK)
    # Lower left corners of empty squares, then the area that the squares of the largest connected set of corners cover.
    corners = [_lines(low[:, axis] - width, high[:, axis], size[axis] - width) for axis in (0, 1)]
    usable = 0.0
    if all(len(line) > 1 for line in corners):
        labels, _ = ndimage.label(~_painted(corners, low - width, high))
        best, covered = 0.0, None
        finer = [np.unique(np.concatenate([line, line + width])) for line in corners]
        cells = np.diff(finer[1])[:, None] * np.diff(finer[0])[None, :]
        for label, box in enumerate(ndimage.find_objects(labels), start=1):
            row, column = np.nonzero(labels[box] == label)
            row, column = row + box[0].start, column + box[1].start
            at = np.stack([corners[0][column], corners[1][row]], axis=1)
            to = np.stack([corners[0][column + 1], corners[1][row + 1]], axis=1) + width
            covered = _painted(finer, at, to)
            best = max(best, float(cells[covered].sum()))
        usable = min(1.0, best / whitespace)
    left, bottom, right, top = rectangle
    return usable, (right - left) * (top - bottom) / whitespace


def _kept_free(design: Design, placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    """Returns lower left and upper right corners of the hard macros with their margins, float64 [H, 2], on the canvas.

    The margin is the halo, or half the design's spacing if that is larger.
    """
    hard = design.netlist.hard
    half = np.stack(design.netlist.sides(placement.orientation), axis=1)[hard] / 2
    halo = np.maximum(design.constraints.turned_halo(placement.orientation)[hard], design.constraints.spacing / 2)
    centre = np.stack([placement.x[hard], placement.y[hard]], axis=1)
    size = np.array([design.canvas.width, design.canvas.height])
    return np.clip(centre - half - halo[:, :2], 0, size), np.clip(centre + half + halo[:, 2:], 0, size)


def _lines(low: np.ndarray, high: np.ndarray, end: float) -> np.ndarray:
    """Returns sorted coordinates from 0 to `end` between which nothing changes."""
    inside = np.concatenate([low, high])
    return np.unique(np.concatenate([[0.0], inside[(inside > 0) & (inside < end)], [end]])) if end > 0 else np.zeros(1)


def _painted(lines: list[np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Returns the cells between the lines that a rectangle covers, bool [R, C]; edges are on lines or beyond all."""
    x0, x1 = (np.searchsorted(lines[0], corner[:, 0]) for corner in (low, high))
    y0, y1 = (np.searchsorted(lines[1], corner[:, 1]) for corner in (low, high))
    steps = np.zeros((len(lines[1]) + 1, len(lines[0]) + 1), dtype=np.int64)
    for rows, columns, step in ((y0, x0, 1), (y0, x1, -1), (y1, x0, -1), (y1, x1, 1)):
        np.add.at(steps, (rows, columns), step)
    return steps.cumsum(0).cumsum(1)[: len(lines[1]) - 1, : len(lines[0]) - 1] > 0


def largest_empty_rectangle(design: Design, placement: Placement) -> tuple[float, float, float, float]:
    """Returns left, low, right and high of the largest rectangle beside macros and their halos, in µm."""
    found = _native.tidiness(native_design(design), placement.x, placement.y, placement.orientation)
    left, low, right, high = found[-1]
    return left, low, right, high
