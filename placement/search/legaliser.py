"""From any placement to a legal one, each hard macro as near as can be to where it was.

First each macro goes to the nearest free place, those that are in nobody's way first. Then, with the order of every
two macros held (who is left of whom, or below), a linear program finds the least displacement of all together: the
constraint graphs of macro legalisation, as in Tang and Wong (2001).

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
ORDERS = 6
"""Orders of the macros that are tried before giving up."""


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
    best: tuple[float, np.ndarray, np.ndarray] | None = None
    for order in _orders(boxes, design, spacing):
        placed = _nearest(boxes, design, order, spacing)
        if placed is None:
            continue
        x, y = _tightened(boxes, design, *placed, spacing)
        moved = float(np.abs(x - boxes.x[: boxes.movable]).sum() + np.abs(y - boxes.y[: boxes.movable]).sum())
        if best is None or moved < best[0]:
            best = moved, x, y
    if best is None:
        raise NoRoom(f"{design.name}: found no room for all hard macros with spacing {spacing:g} µm")
    _, x, y = best
    if grid > 0:
        width, height = boxes.width[: boxes.movable], boxes.height[: boxes.movable]
        x, y = _snapped(x - width / 2, grid) + width / 2, _snapped(y - height / 2, grid) + height / 2
        own_width, own_height = _sides(design, placement, nodes)
        x, y = x - (width - own_width) / 2, y - (height - own_height) / 2  # the lower left corner stays
    result = placement.moved(nodes, x, y)
    if not fits(design, result, spacing=spacing, blockages=blockages):
        raise NoRoom(f"{design.name}: found no legal placement with spacing {spacing:g} µm on a grid of {grid:g} µm")
    return result


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
    return [np.lexsort(key) for key in keys[:ORDERS]]


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


def _nearest(boxes: _Boxes, design: Design, order: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Each macro in turn on the nearest place that is still free, among those beside what stands; None: no room."""
    count = boxes.movable
    x, y = boxes.x.copy(), boxes.y.copy()
    standing = np.ones(len(x), dtype=bool)
    standing[:count] = False
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
    all_x, all_y = np.concatenate([x, boxes.x[count:]]), np.concatenate([y, boxes.y[count:]])
    first, second = np.triu_indices(len(all_x), 1)
    movable = (first < count) | (second < count)
    first, second = first[movable], second[movable]
    gap_x = np.abs(all_x[first] - all_x[second]) - (boxes.width[first] + boxes.width[second]) / 2
    gap_y = np.abs(all_y[first] - all_y[second]) - (boxes.height[first] + boxes.height[second]) / 2
    # Apart on the axis on which they were farther apart to begin with, if they now are.
    wish_x = np.abs(boxes.x[first] - boxes.x[second]) - (boxes.width[first] + boxes.width[second]) / 2
    wish_y = np.abs(boxes.y[first] - boxes.y[second]) - (boxes.height[first] + boxes.height[second]) / 2
    can_x, can_y = gap_x >= spacing - 2 * TOLERANCE, gap_y >= spacing - 2 * TOLERANCE
    on_x = can_x & (~can_y | (wish_x >= wish_y))
    results = []
    for now, start, size, extent, chosen in (
        (all_x, boxes.x, boxes.width, design.canvas.width, on_x),
        (all_y, boxes.y, boxes.height, design.canvas.height, ~on_x),
    ):
        results.append(_least_moves(now, start, size, extent, first[chosen], second[chosen], count, spacing))
    return results[0], results[1]


def _least_moves(
    now: np.ndarray,
    start: np.ndarray,
    size: np.ndarray,
    extent: float,
    first: np.ndarray,
    second: np.ndarray,
    count: int,
    spacing: float,
) -> np.ndarray:
    """One axis: centres [M] that keep the order of `now` and are nearest to `start` in sum; `now` where that fails."""
    low, high = np.where(now[first] <= now[second], (first, second), (second, first))
    apart = (size[low] + size[high]) / 2 + spacing
    # Variables: centres [M], then distances from the start [M].
    number = np.arange(len(low))
    rows, columns, values, bound = [], [], [], -apart
    bound = bound.copy()
    for nodes, sign in ((low, 1.0), (high, -1.0)):
        moves = nodes < count
        rows.append(number[moves])
        columns.append(nodes[moves])
        values.append(np.full(int(moves.sum()), sign))
        bound[~moves] -= sign * now[nodes[~moves]]
    each = np.arange(count)
    for sign in (1.0, -1.0):  # distance ≥ ±(centre − start)
        at = len(bound) + each
        rows += [at, at]
        columns += [each, count + each]
        values += [np.full(count, sign), np.full(count, -1.0)]
        bound = np.concatenate([bound, sign * start[:count]])
    shape = (len(bound), 2 * count)
    matrix = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape).tocsr()
    half = size[:count] / 2
    limits = [(lowest, highest) for lowest, highest in zip(half, extent - half, strict=True)] + [(0, None)] * count
    solved = linprog(np.repeat([0.0, 1.0], count), A_ub=matrix, b_ub=bound, bounds=limits, method="highs")
    return solved.x[:count] if solved.status == 0 else now[:count]


def _snapped(corner: np.ndarray, grid: float) -> np.ndarray:
    return np.floor(corner / grid + TOLERANCE) * grid
