"""From any placement to a legal one, each hard macro as near as can be to where it was.

With the order of every two macros held (who is left of whom, or below), a linear program finds the least displacement
of all together: the constraint graphs of macro legalisation, as in Tang and Wong (2001). The orders tried are that of
the given placement, changed where it leaves no room, and those of placing each macro on the nearest free place in turn.

Axis legend: M movable hard macros, O obstacles (fixed hard macros and blockages), B = M + O boxes. Lengths are in µm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from placement.engine import _native
from placement.engine.native_design import native_design
from placement.netlist.design import Design, NodeKind, Placement
from placement.netlist.errors import DesignError

TOLERANCE = 1e-6
"""µm: lengths that are equal but for rounding are equal, as in the engine."""
ROUNDS = 30
"""Of letting boxes that overlap be apart on the other axis."""
MOST_FLIPS = 4
"""Times that a pair of boxes changes the axis on which it is to be apart."""
ATTEMPTS = 300
"""Of putting some macros back in another order."""
MOST_TAKEN_UP = 8
"""Macros at once."""
PRICE = 1e3
"""Of a µm that two boxes overlap, in µm of displacement."""


class NoRoom(DesignError):
    """No legal place was found for every macro."""


class Blockage(NamedTuple):
    """A rectangle, µm, that hard macros keep off."""

    left: float
    low: float
    right: float
    high: float


class _Boxes(NamedTuple):
    """Centres and sizes of the boxes, [B]; the first `movable` of them may move."""

    x: np.ndarray
    y: np.ndarray
    width: np.ndarray
    height: np.ndarray
    movable: int


def legalise(
    design: Design,
    placement: Placement,
    *,
    spacing: float = 0.0,
    blockages: tuple[Blockage, ...] = (),
    grid: float = 0.0,
) -> Placement:
    """`placement` with its movable hard macros moved as little as can be, so that they are legal.

    Macros keep their orientations. A placement that is legal, and on the grid, comes back as it is. Soft macros stay.

    Args:
        design: whose placement it is.
        placement: every hard macro placed, anywhere.
        spacing: least distance of hard macros from each other and from blockages.
        blockages: rectangles to keep off.
        grid: lower left corners of movable macros lie on multiples of this; 0: anywhere.

    Example:
        >>> design = placement.load("toy6")
        >>> legal = placement.legalise(design, design.initial, spacing=2.0)

    Raises:
        NoRoom: no legal placement was found; there may be one.
        DesignError: a hard macro is not placed, or spacing or grid is below 0.
    """
    for name, value in (("spacing", spacing), ("grid", grid)):
        if not (math.isfinite(value) and value >= 0):
            raise DesignError(f"{name}={value}: must be at least 0 µm")
    nodes = design.placing_order
    if not placement.placed[design.netlist.hard].all():
        raise DesignError(f"{design.name}: every hard macro must be placed before the placement is made legal")
    if grid == 0 and fits(design, placement, spacing=spacing, blockages=blockages):
        return placement
    boxes = _boxes_of(design, placement, blockages, grid)
    found = _least_displaced(boxes, design, spacing)
    if found is None:
        raise NoRoom(f"{design.name}: found no room for all hard macros with spacing {spacing:g} µm")
    x, y = found
    if grid > 0:
        width, height = boxes.width[: boxes.movable], boxes.height[: boxes.movable]
        x, y = _snapped(x - width / 2, grid) + width / 2, _snapped(y - height / 2, grid) + height / 2
        own_width, own_height = _sides(design, placement, nodes)
        x, y = x - (width - own_width) / 2, y - (height - own_height) / 2  # the lower left corner stays
    result = placement.moved(nodes, x, y)
    if not fits(design, result, spacing=spacing, blockages=blockages):
        raise NoRoom(f"{design.name}: found no legal placement with spacing {spacing:g} µm on a grid of {grid:g} µm")
    return result


def _least_displaced(boxes: _Boxes, design: Design, spacing: float) -> tuple[np.ndarray, np.ndarray] | None:
    """The best of the ways that find room; None where none does."""
    found = [_in_order(boxes, design, spacing)]
    for order in _orders(boxes, design, spacing):
        placed = _nearest(boxes, design, order, spacing)
        found.append(None if placed is None else _tightened(boxes, design, *placed, spacing))

    best = min((one for one in found if one is not None), key=lambda one: _moved(boxes, *one).sum(), default=None)
    return None if best is None else _improved(boxes, design, best, spacing)


def _moved(boxes: _Boxes, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far each movable box is from where it was, float64 [M]."""
    return np.abs(x - boxes.x[: boxes.movable]) + np.abs(y - boxes.y[: boxes.movable])


def _improved(
    boxes: _Boxes, design: Design, centres: tuple[np.ndarray, np.ndarray], spacing: float
) -> tuple[np.ndarray, np.ndarray]:
    """Takes up a displaced macro with those around it, again and again, and puts them back in another order."""
    generator = np.random.default_rng(0)
    count = boxes.movable
    for _ in range(ATTEMPTS):
        moved = _moved(boxes, *centres)
        if moved.sum() < TOLERANCE:
            break
        centre = generator.choice(count, p=moved / moved.sum())
        near = np.abs(centres[0] - boxes.x[centre]) + np.abs(centres[1] - boxes.y[centre])
        near[centre] = -1.0
        size = min(count, 2 + int(generator.integers(MOST_TAKEN_UP - 1)))
        taken = generator.permutation(np.argsort(near, kind="stable")[:size])
        if generator.random() < 0.5:  # the displaced one first
            taken = np.concatenate([[centre], taken[taken != centre]])
        placed = _nearest(boxes, design, taken, spacing, centres)
        if placed is None:
            continue
        if _moved(boxes, *placed).sum() < moved.sum() - TOLERANCE:
            centres = _tightened(boxes, design, *placed, spacing)
    return centres


def fits(design: Design, placement: Placement, *, spacing: float = 0.0, blockages: tuple[Blockage, ...] = ()) -> bool:
    """Whether every movable hard macro stands inside the canvas, clear of the others and of blockages by `spacing`."""
    native = native_design(design)
    return _native.placement_fits(
        native, placement.x, placement.y, placement.orientation, spacing, [list(blockage) for blockage in blockages]
    )


def _sides(design: Design, placement: Placement, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    width, height = design.netlist.width[nodes], design.netlist.height[nodes]
    turned = placement.orientation[nodes] >= 4
    return np.where(turned, height, width), np.where(turned, width, height)


def _boxes_of(design: Design, placement: Placement, blockages: tuple[Blockage, ...], grid: float) -> _Boxes:
    """Movable macros, then obstacles; on a grid, sizes are rounded up to it and obstacles outwards."""
    movable = design.placing_order
    is_obstacle = (design.netlist.kind == NodeKind.HARD) & design.initial.fixed
    obstacles = np.flatnonzero(is_obstacle)
    width, height = _sides(design, placement, movable)
    left, low = placement.x[movable] - width / 2, placement.y[movable] - height / 2
    fixed_width, fixed_height = _sides(design, placement, obstacles)
    corners = np.stack(
        [
            placement.x[obstacles] - fixed_width / 2,
            placement.y[obstacles] - fixed_height / 2,
            placement.x[obstacles] + fixed_width / 2,
            placement.y[obstacles] + fixed_height / 2,
        ],
        axis=1,
    )
    corners = np.concatenate([corners, np.array(blockages, dtype=np.float64).reshape(-1, 4)])
    if grid > 0:
        width, height = (np.ceil(side / grid - TOLERANCE) * grid for side in (width, height))
        corners[:, :2] = np.floor(corners[:, :2] / grid + TOLERANCE) * grid
        corners[:, 2:] = np.ceil(corners[:, 2:] / grid - TOLERANCE) * grid
    sizes = corners[:, 2:] - corners[:, :2]
    return _Boxes(
        x=np.concatenate([left + width / 2, corners[:, 0] + sizes[:, 0] / 2]),
        y=np.concatenate([low + height / 2, corners[:, 1] + sizes[:, 1] / 2]),
        width=np.concatenate([width, sizes[:, 0]]),
        height=np.concatenate([height, sizes[:, 1]]),
        movable=len(movable),
    )


def _orders(boxes: _Boxes, design: Design, spacing: float) -> list[np.ndarray]:
    """Orders in which macros look for a place: by conflicts, by area, from each side."""
    count = boxes.movable
    x, y, area = boxes.x[:count], boxes.y[:count], (boxes.width * boxes.height)[:count]
    conflicts = np.array(
        [_in_the_way(boxes, i, boxes.x[i], boxes.y[i], boxes.x, boxes.y, spacing) for i in range(count)]
    )
    conflicts = conflicts + 100 * _beyond(boxes, design)
    keys = [(-area, conflicts), (conflicts, -area), (x,), (-x,), (y,), (-y,)]
    return [np.lexsort(key) for key in keys]


def _in_the_way(
    boxes: _Boxes, index: int, x: float, y: float, all_x: np.ndarray, all_y: np.ndarray, spacing: float
) -> int:
    """How many other boxes a box at (x, y) would overlap."""
    gap_x = np.abs(all_x - x) - (boxes.width + boxes.width[index]) / 2 - spacing
    gap_y = np.abs(all_y - y) - (boxes.height + boxes.height[index]) / 2 - spacing
    meets = (gap_x < -TOLERANCE) & (gap_y < -TOLERANCE)
    meets[index] = False
    return int(meets.sum())


def _beyond(boxes: _Boxes, design: Design) -> np.ndarray:
    count = boxes.movable
    beyond = np.zeros(count, dtype=bool)
    for at, size, extent in (
        (boxes.x, boxes.width, design.canvas.width),
        (boxes.y, boxes.height, design.canvas.height),
    ):
        half = size[:count] / 2
        beyond |= (at[:count] < half - TOLERANCE) | (at[:count] > extent - half + TOLERANCE)
    return beyond


def _nearest(
    boxes: _Boxes,
    design: Design,
    order: np.ndarray,
    spacing: float,
    others: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Each macro in turn on the nearest place that is still free, among those beside what stands; None: no room.

    Macros that are not in `order` stand where `others` has them.
    """
    count = boxes.movable
    x, y = boxes.x.copy(), boxes.y.copy()
    if others is not None:
        x[:count], y[:count] = others
    standing = np.ones(len(x), dtype=bool)
    standing[order] = False
    for index in order:
        at = np.flatnonzero(standing)
        candidates = [
            _candidates(start[index], size[index], start_all[at], size[at], extent, spacing)
            for start, start_all, size, extent in (
                (boxes.x, x, boxes.width, design.canvas.width),
                (boxes.y, y, boxes.height, design.canvas.height),
            )
        ]
        found = _first_free(boxes, index, (x[at], y[at]), at, candidates, spacing)
        if found is None:
            return None
        x[index], y[index] = found
        standing[index] = True
    return x[:count], y[:count]


def _candidates(
    start: float, size: float, at: np.ndarray, sizes: np.ndarray, extent: float, spacing: float
) -> np.ndarray:
    """Centres on an axis: where it was, at the edges, and touching each standing box; the nearest to `start` first."""
    reach = (sizes + size) / 2 + spacing
    places = np.concatenate(
        [[min(max(start, size / 2), extent - size / 2), size / 2, extent - size / 2], at - reach, at + reach]
    )
    places = places[(places >= size / 2 - TOLERANCE) & (places <= extent - size / 2 + TOLERANCE)]
    places = np.unique(places)
    return places[np.argsort(np.abs(places - start), kind="stable")]


def _first_free(
    boxes: _Boxes,
    index: int,
    standing: tuple[np.ndarray, np.ndarray],
    at: np.ndarray,
    candidates: list[np.ndarray],
    spacing: float,
) -> tuple[float, float] | None:
    """The free place nearest to where the box was, among all pairs of candidate coordinates."""
    across, up = candidates
    meets_x = np.abs(across[:, None] - standing[0]) - (boxes.width[at] + boxes.width[index]) / 2 - spacing < -TOLERANCE
    meets_y = np.abs(up[:, None] - standing[1]) - (boxes.height[at] + boxes.height[index]) / 2 - spacing < -TOLERANCE
    taken = meets_x.astype(np.float32) @ meets_y.astype(np.float32).T > 0
    distance = np.abs(across - boxes.x[index])[:, None] + np.abs(up - boxes.y[index])[None, :]
    distance[taken] = np.inf
    best = int(np.argmin(distance))
    i, j = np.unravel_index(best, distance.shape)
    return None if not np.isfinite(distance[i, j]) else (float(across[i]), float(up[j]))


def _tightened(
    boxes: _Boxes, design: Design, x: np.ndarray, y: np.ndarray, spacing: float
) -> tuple[np.ndarray, np.ndarray]:
    """The least total displacement while every two boxes stay apart on the axis on which they are."""
    count = boxes.movable
    now = boxes._replace(x=np.concatenate([x, boxes.x[count:]]), y=np.concatenate([y, boxes.y[count:]]))
    pairs = _pairs(boxes)
    gap_x, gap_y = _gaps(now, pairs)
    can_x, can_y = gap_x >= spacing - 2 * TOLERANCE, gap_y >= spacing - 2 * TOLERANCE
    wish_x, wish_y = _gaps(boxes, pairs)  # apart on the axis on which they were to begin with, if they now are
    solved = _both_axes(boxes, now, design, pairs, can_x & (~can_y | (wish_x >= wish_y)), spacing, soft=False)
    return (x, y) if solved is None else solved


def _in_order(boxes: _Boxes, design: Design, spacing: float) -> tuple[np.ndarray, np.ndarray] | None:
    """The least displacement with every two boxes apart as they were to begin with, as nearly as they were.

    Begins with the boxes that are near each other, lets constraints be broken at a price, and has the boxes that then
    still overlap be apart on the other axis. None where that does not end.
    """
    count = boxes.movable
    pairs = _pairs(boxes)
    wish_x, wish_y = _gaps(boxes, pairs)
    on_x = wish_x >= wish_y
    active = np.maximum(wish_x, wish_y) < spacing + 0.25 * max(boxes.width.max(), boxes.height.max())
    flips = np.zeros(len(on_x), dtype=np.int32)
    for _ in range(ROUNDS):
        chosen = pairs[:, active]
        solved = _both_axes(boxes, boxes, design, chosen, on_x[active], spacing, soft=True)
        if solved is None:
            return None
        x, y = solved
        now = boxes._replace(x=np.concatenate([x, boxes.x[count:]]), y=np.concatenate([y, boxes.y[count:]]))
        gap_x, gap_y = _gaps(now, pairs)
        overlap = (gap_x < spacing - TOLERANCE) & (gap_y < spacing - TOLERANCE)
        if not overlap.any():
            return x, y
        broken = overlap & active & (flips < MOST_FLIPS)
        on_x[broken] = ~on_x[broken]
        flips[broken] += 1
        fresh = overlap & ~active
        on_x[fresh] = (gap_x >= gap_y)[fresh]
        active |= overlap
    return None


def _pairs(boxes: _Boxes) -> np.ndarray:
    """All pairs of boxes of which at least one may move, int [2, ·]."""
    pairs = np.stack(np.triu_indices(len(boxes.x), 1))
    return pairs[:, pairs[0] < boxes.movable]


def _gaps(boxes: _Boxes, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far the boxes of each pair are from touching across and up; below 0 where they share an interval."""
    first, second = pairs
    return (
        np.abs(boxes.x[first] - boxes.x[second]) - (boxes.width[first] + boxes.width[second]) / 2,
        np.abs(boxes.y[first] - boxes.y[second]) - (boxes.height[first] + boxes.height[second]) / 2,
    )


def _both_axes(
    boxes: _Boxes, now: _Boxes, design: Design, pairs: np.ndarray, on_x: np.ndarray, spacing: float, *, soft: bool
) -> tuple[np.ndarray, np.ndarray] | None:
    """Centres that keep the order of `now` on the axis chosen for each pair, and are nearest to `boxes`."""
    canvas = design.canvas
    x = _least_moves(_Axis(now.x, boxes.x, boxes.width, canvas.width, boxes.movable), pairs[:, on_x], spacing, soft)
    y = _least_moves(_Axis(now.y, boxes.y, boxes.height, canvas.height, boxes.movable), pairs[:, ~on_x], spacing, soft)
    return None if x is None or y is None else (x, y)


class _Axis(NamedTuple):
    """One axis of the boxes: centres now and to begin with, sizes, all [B]; the canvas's extent; how many may move."""

    now: np.ndarray
    start: np.ndarray
    size: np.ndarray
    extent: float
    movable: int


def _least_moves(axis: _Axis, pairs: np.ndarray, spacing: float, soft: bool) -> np.ndarray | None:
    """Centres [M] that keep the order of `axis.now` for each pair and are nearest to `axis.start` in sum.

    `soft`: pairs may come nearer than they should, at a price. None where there is no solution.
    """
    count = axis.movable
    low, high = np.where(axis.now[pairs[0]] <= axis.now[pairs[1]], pairs, pairs[::-1])
    # Variables: centres [M], distances from the start [M], then, if soft, what each pair lacks.
    number = np.arange(len(low))
    rows, columns, values = [], [], []
    bound = -(axis.size[low] + axis.size[high]) / 2 - spacing
    for nodes, sign in ((low, 1.0), (high, -1.0)):
        moves = nodes < count
        rows.append(number[moves])
        columns.append(nodes[moves])
        values.append(np.full(int(moves.sum()), sign))
        bound[~moves] -= sign * axis.now[nodes[~moves]]
    lacking = len(low) if soft else 0
    if soft:
        rows.append(number)
        columns.append(2 * count + number)
        values.append(np.full(len(low), -1.0))
    each = np.arange(count)
    for sign in (1.0, -1.0):  # distance ≥ ±(centre − start)
        at = len(bound) + each
        rows += [at, at]
        columns += [each, count + each]
        values += [np.full(count, sign), np.full(count, -1.0)]
        bound = np.concatenate([bound, sign * axis.start[:count]])
    shape = (len(bound), 2 * count + lacking)
    matrix = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape).tocsr()
    half = axis.size[:count] / 2
    limits = [*zip(half, axis.extent - half, strict=True), *[(0, None)] * (count + lacking)]
    price = np.repeat([0.0, 1.0, PRICE], [count, count, lacking])
    solved = linprog(price, A_ub=matrix, b_ub=bound, bounds=limits, method="highs")
    return solved.x[:count] if solved.status == 0 else None


def _snapped(corner: np.ndarray, grid: float) -> np.ndarray:
    return np.floor(corner / grid + TOLERANCE) * grid
