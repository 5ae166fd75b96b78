"""From any placement to a legal one, each hard macro as near as can be to where it was.

The orders of macros that are tried (`least_displacement`) are that of the given placement, changed where it leaves no
room, and those of placing each macro on the nearest free place in turn. Where none of them leaves room, an order is
searched for that does. Axis legend: as in `boxes`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from placement.annealing.boxes import TOLERANCE, Boxes, boxes_of, joined_grid, snapped
from placement.annealing.least_displacement import Centres, in_order, tightened
from placement.engine import _native
from placement.engine.native_design import native_design
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import turned_as_allowed

ATTEMPTS = 600
"""Of putting some macros back in another order."""
MOST_TAKEN_UP = 8
"""Macros at once."""
COMPARISONS = 10**9
"""Of two boxes, in the search for an order that leaves room: a few seconds."""
SEARCHES = 4
"""For an order, each with another seed, until one finds room."""
MOST_AROUND = 24
"""Macros next to those that make room for them."""


class NoRoom(DesignError):
    """No legal place was found for every macro."""


def legalise(
    design: Design,
    placement: Placement,
    *,
    spacing: float = 0.0,
    blockages: Sequence[tuple[float, ...]] = (),
    grid: float = 0.0,
) -> Placement:
    """`placement` with its movable hard macros moved as little as can be, so that they are legal.

    They keep to the design's constraints. Macros keep their orientations, where they may have them. A placement that
    is legal, and on the grid, comes back as it is. Soft macros stay.

    Args:
        design: whose placement it is.
        placement: every hard macro placed, anywhere.
        spacing: least distance of hard macros from each other and from blockages, where their halos ask for less.
        blockages: rectangles (left, low, right, high) to keep off, beside the design's.
        grid: lower left corners of movable macros lie on multiples of this; 0: where the design has them.

    Example:
        >>> design = placement.load("toy6")
        >>> legal = placement.legalise(design, design.initial, spacing=2.0)

    Raises:
        NoRoom: no legal placement was found; there may be one.
        DesignError: a hard macro is not placed, spacing or grid is below 0, or grid does not go with the design's.
    """
    for name, value in (("spacing", spacing), ("grid", grid)):
        if not (math.isfinite(value) and value >= 0):
            raise DesignError(f"{name}={value}: must be at least 0 µm")
    nodes = design.placing_order
    if not placement.placed[design.netlist.hard].all():
        raise DesignError(f"{design.name}: every hard macro must be placed before the placement is made legal")
    placement = turned_as_allowed(design, placement)
    if grid == 0 and fits(design, placement, spacing=spacing, blockages=blockages):
        return placement
    onto = joined_grid(design, grid)
    boxes = boxes_of(design, placement, spacing=spacing, blockages=blockages, grid=onto)
    found = _least_displaced(boxes)
    if found is None:
        raise NoRoom(f"{design.name}: found no room for all hard macros with spacing {spacing:g} µm")
    x, y = found
    if onto.is_set:
        width, height = boxes.width[: boxes.movable], boxes.height[: boxes.movable]
        x = snapped(x - width / 2, onto.pitch_x, onto.offset_x) + width / 2
        y = snapped(y - height / 2, onto.pitch_y, onto.offset_y) + height / 2
        own_width, own_height = design.netlist.sides(placement.orientation)
        # the lower left corner stays
        x, y = x - (width - own_width[nodes]) / 2, y - (height - own_height[nodes]) / 2
    result = placement.moved(nodes, x, y)
    if not fits(design, result, spacing=spacing, blockages=blockages):
        pitches = f"{onto.pitch_x:g} × {onto.pitch_y:g}" if onto.pitch_x != onto.pitch_y else f"{onto.pitch_x:g}"
        raise NoRoom(f"{design.name}: found no legal placement with spacing {spacing:g} µm on a grid of {pitches} µm")
    return result


def _least_displaced(boxes: Boxes) -> Centres | None:
    """The best of the ways that find room; None where none does."""
    found = [in_order(boxes)]
    for order in _orders(boxes):
        placed = _nearest(boxes, order)
        found.append(None if placed is None else tightened(boxes, placed))
    best = min((one for one in found if one is not None), key=lambda one: boxes.displacement(*one).sum(), default=None)
    if best is None:
        best = _packed(boxes)
    return None if best is None else _improved(boxes, best)


def _packed(boxes: Boxes) -> Centres | None:
    """An order of the boxes in which all find room, near that in which they are; None where none was found."""
    movable, every = boxes.movable, np.arange(len(boxes.x))
    concerns = np.zeros((len(every), len(every)), dtype=bool)
    concerns[:movable] = boxes.concerns
    concerns[:, :movable] = boxes.concerns.T
    limits, apart = [], []
    needed = boxes.needed(every[:, None], every)
    for (at, size), low, high, gap in zip(boxes.axes, boxes.low, boxes.high, needed, strict=True):
        limits += [np.concatenate([low, at[movable:]]).tolist(), np.concatenate([high, at[movable:]]).tolist()]
        apart.append(np.where(concerns, (size + size[:, None]) / 2 + gap, -np.inf).ravel())
    for seed in range(SEARCHES):
        found = _native.pack_boxes(*limits, *apart, boxes.x.tolist(), boxes.y.tolist(), COMPARISONS, seed)
        if found is not None:
            return tightened(boxes, (np.array(found[0][:movable]), np.array(found[1][:movable])))
    return None


def _improved(boxes: Boxes, centres: Centres) -> Centres:
    """Takes up a displaced macro with those around it, again and again, and puts them back in another order."""
    generator = np.random.default_rng(0)
    count = boxes.movable
    for _ in range(ATTEMPTS):
        moved = boxes.displacement(*centres)
        if moved.sum() < TOLERANCE:
            break
        centre = generator.choice(count, p=moved / moved.sum())
        near = np.abs(centres[0] - boxes.x[centre]) + np.abs(centres[1] - boxes.y[centre])
        near[centre] = -1.0
        size = min(count, 2 + int(generator.integers(MOST_TAKEN_UP - 1)))
        taken = generator.permutation(np.argsort(near, kind="stable")[:size])
        if generator.random() < 0.5:  # the displaced one first
            taken = np.concatenate([[centre], taken[taken != centre]])
        placed = _nearest(boxes, taken, centres)
        if placed is not None and boxes.displacement(*placed).sum() < moved.sum() - TOLERANCE:
            centres = _tightened_around(boxes, placed, taken)
    return tightened(boxes, centres)


def _tightened_around(boxes: Boxes, centres: Centres, taken: np.ndarray) -> Centres:
    """`tightened` for some boxes and those next to them, the others standing."""
    away = np.min(
        [np.abs(centres[0] - centres[0][one]) + np.abs(centres[1] - centres[1][one]) for one in taken], axis=0
    )
    movers = np.argsort(away, kind="stable")[: len(taken) + MOST_AROUND]
    tight = tightened(boxes.part(movers, centres), (centres[0][movers], centres[1][movers]))
    x, y = (axis.copy() for axis in centres)
    x[movers], y[movers] = tight
    return x, y


def fits(
    design: Design, placement: Placement, *, spacing: float = 0.0, blockages: Sequence[tuple[float, ...]] = ()
) -> bool:
    """Whether every movable hard macro stands inside the canvas, clear of the others and of blockages by `spacing`.

    And as the design's constraints have it.
    """
    native = native_design(design)
    return _native.placement_fits(
        native, placement.x, placement.y, placement.orientation, spacing, [list(blockage) for blockage in blockages]
    )


def _orders(boxes: Boxes) -> list[np.ndarray]:
    """Orders in which macros look for a place: by conflicts, by area, from each side."""
    count = boxes.movable
    x, y, area = boxes.x[:count], boxes.y[:count], (boxes.width * boxes.height)[:count]
    conflicts = np.array([_overlapped(boxes, index) for index in range(count)]) + 100 * _beyond(boxes)
    keys = [(-area, conflicts), (conflicts, -area), (x,), (-x,), (y,), (-y,)]
    return [np.lexsort(key) for key in keys]


def _overlapped(boxes: Boxes, index: int) -> int:
    """How many other boxes a box overlaps."""
    every = np.arange(len(boxes.x))
    needed_x, needed_y = boxes.needed(index, every)
    gap_x = np.abs(boxes.x - boxes.x[index]) - (boxes.width + boxes.width[index]) / 2 - needed_x
    gap_y = np.abs(boxes.y - boxes.y[index]) - (boxes.height + boxes.height[index]) / 2 - needed_y
    meets = (gap_x < -TOLERANCE) & (gap_y < -TOLERANCE) & boxes.concerns[index]
    meets[index] = False
    return int(meets.sum())


def _beyond(boxes: Boxes) -> np.ndarray:
    """Bool [M]: whether a box reaches beyond the canvas or its regions."""
    beyond = np.zeros(boxes.movable, dtype=bool)
    for (at, _), low, high in zip(boxes.axes, boxes.low, boxes.high, strict=True):
        at = at[: boxes.movable]
        beyond |= (at < low - TOLERANCE) | (at > high + TOLERANCE)
    return beyond


def _nearest(boxes: Boxes, order: np.ndarray, others: Centres | None = None) -> Centres | None:
    """Each macro in turn on the nearest place that is still free, among those beside what stands; None: no room.

    Macros that are not in `order` stand where `others` has them.
    """
    now = boxes._replace(x=boxes.x.copy(), y=boxes.y.copy()) if others is None else boxes.moved_to(*others)
    standing = np.ones(len(now.x), dtype=bool)
    standing[order] = False
    for index in order:
        found = _nearest_free(boxes, now, index, np.flatnonzero(standing & boxes.concerns[index]))
        if found is None:
            return None
        now.x[index], now.y[index] = found
        standing[index] = True
    return now.x[: boxes.movable], now.y[: boxes.movable]


def _nearest_free(boxes: Boxes, now: Boxes, index: int, at: np.ndarray) -> tuple[float, float] | None:
    """The free place nearest to where a box was, the boxes `at` (int [·]) standing where they are `now`."""
    reach_x, reach_y = (
        (size[at] + size[index]) / 2 + gap for (_, size), gap in zip(now.axes, boxes.needed(index, at), strict=True)
    )
    start, low, high = (boxes.x[index], boxes.y[index]), boxes.low[:, index], boxes.high[:, index]
    return _native.nearest_place(start, tuple(low), tuple(high), now.x[at], now.y[at], reach_x, reach_y)
