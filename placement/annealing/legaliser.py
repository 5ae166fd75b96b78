"""Legalisation: turns any placement into a legal one that displaces each hard macro as little as possible.

It tries the order of macros in the given placement, corrected where it does not fit (`displacement`), and the orders
that result from putting each macro in turn on the nearest free position. If none fits, it searches for an order that
does, and finally solves the problem exactly if the macros are few. Axis legend: as in `displacement`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from placement.annealing.displacement import TOLERANCE, Boxes, Centres, in_order, tightened
from placement.annealing.exact_packing import Infeasible, packed_exactly
from placement.engine import _native
from placement.engine.native_design import native_design
from placement.netlist.constraints import SnapGrid
from placement.netlist.design import Design, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import turned_as_allowed
from placement.netlist.geometry import clipped, complement
from placement.netlist.keep_outs import port_surroundings

ATTEMPTS = 600  # number of attempts to put some macros back in another order
PATIENCE = 10  # number of consecutive attempts without gain, per macro, after which they end
MOST_TAKEN_UP = 8  # maximum number of macros that an attempt takes up
FIRST_COMPARISONS = 10**7
COMPARISONS = 10**9  # number of box comparisons in a search for an order that fits; a few seconds
SEARCHES = 4  # maximum number of searches for an order, each with another seed
EXACT_SECONDS = 5.0  # time limit of the exact solution, in seconds
MANY = 500
"""Number of movable macros beyond which the first order that fits is taken without a linear program for all of them,
and the number of attempts falls.
"""
CORNERS = ((0, 0), (1, 0), (0, 1), (1, 1))  # sides of the limits, low (0) or high (1), across and up
MOST_AROUND = 24  # number of neighbours that make way for the macros of an attempt


class NoLegalPlacement(DesignError):
    """Raised if no legal position was found for some macro."""


def legalise(
    design: Design,
    placement: Placement,
    *,
    spacing: float = 0.0,
    thorough: bool = True,
) -> Placement:
    """Returns `placement` with its movable hard macros moved as little as possible so that they are legal.

    The macros meet the design's constraints and keep their orientations where these are allowed. A placement that is
    already legal is returned as it is. Soft macros are not moved.

    Args:
        design: the design of the placement.
        placement: any placement of every hard macro.
        spacing: minimum distance of hard macros from each other and from blockages, unless their halos need more.
        thorough: false: return one of the first legal placements found, as a start for annealing.

    Example:
        >>> design = placement.load("toy6")
        >>> legal = placement.legalise(design, design.initial, spacing=2.0)

    Raises:
        NoLegalPlacement: no legal placement was found; there may be one.
        DesignError: a hard macro is not placed, or spacing is below 0.
    """
    if not (math.isfinite(spacing) and spacing >= 0):
        raise DesignError(f"spacing={spacing}: must be at least 0 µm")
    nodes = design.placing_order
    if not placement.placed[design.netlist.hard].all():
        raise DesignError(f"{design.name}: every hard macro must be placed before the placement is made legal")
    placement = turned_as_allowed(design, placement)
    if fits(design, placement, spacing=spacing):
        return placement
    constraints = design.constraints
    snaps = constraints.grid.is_set or bool(constraints.macro_grids)
    if snaps:
        rounded = _rounded(design, placement)
        if fits(design, rounded, spacing=spacing):
            return rounded
    boxes = boxes_of(design, placement, spacing=spacing)
    try:
        found, searched = _least_displaced(boxes, thorough=thorough), "found no"
    except Infeasible:  # with a grid, infeasible only for boxes rounded to it
        found, searched = None, "found no" if snaps else "there is no"
    if found is None:
        raise NoLegalPlacement(f"{design.name}: {searched} legal placement with spacing {spacing:g} µm")
    x, y = found
    if snaps:
        size = np.stack([boxes.width, boxes.height])[:, : boxes.movable]
        corners = np.stack([x, y]) - size / 2
        pitch, offset = _corner_grids(design, placement)
        snapped = _up(corners, pitch, offset) if constraints.macro_grids else _down(corners, pitch, offset)
        x, y = snapped + size / 2
        # The lower left corner does not move.
        x, y = np.stack([x, y]) - (size - np.stack(design.netlist.sides(placement.orientation))[:, nodes]) / 2
    result = placement.moved(nodes, x, y)
    if not fits(design, result, spacing=spacing):
        across, up = constraints.coarsest_pitch
        pitches = f"{across:g} × {up:g}" if across != up else f"{across:g}"
        raise NoLegalPlacement(
            f"{design.name}: found no legal placement with spacing {spacing:g} µm on a grid of {pitches} µm"
        )
    return result


def _least_displaced(boxes: Boxes, *, thorough: bool) -> Centres | None:
    """Returns the best of the orders that fit, or None if none was found. Raises Infeasible if none exists."""
    if _need_more_than_there_is(boxes):
        raise Infeasible
    if boxes.channel is not None and thorough:
        return _with_channels(boxes)
    if boxes.movable > MANY or not thorough:
        placed = next((one for order in _orders(boxes) if (one := _nearest(boxes, order)) is not None), None)
        if placed is not None or not thorough:
            return _improved(boxes, placed) if thorough and placed is not None else placed
    found = [in_order(boxes, _off_obstacles(boxes))]
    seen = set[bytes]()
    for order in _orders(boxes) if boxes.movable <= MANY else ():
        placed = _nearest(boxes, order)
        if placed is not None and (key := np.stack(placed).tobytes()) not in seen:
            seen.add(key)
            found.append(tightened(boxes, placed))
    best = min((one for one in found if one is not None), key=lambda one: boxes.displacement(*one).sum(), default=None)
    if best is None:
        best = _packed(boxes)
    return None if best is None else _improved(boxes, best)


def _need_more_than_there_is(boxes: Boxes) -> bool:
    """Returns whether macros with half their spacing, or with their halos, need more area than their limits enclose."""
    count = boxes.movable
    if count == 0:
        return False
    spacing = np.broadcast_to(boxes.spacing[:, :count].min(axis=1, keepdims=True) / 2, (2, count))
    shift = np.zeros((2, count)) if boxes.shift is None else boxes.shift[:, :count]
    for around, aside in ((spacing, 0.0 * shift), (boxes.halo[:, :count], shift)):
        half = np.stack([size[:count] for _, size in boxes.axes]) / 2 + around
        room = (boxes.high + aside + half).max(axis=1) - (boxes.low + aside - half).min(axis=1)
        if (4 * half.prod(axis=0)).sum() > room.prod() * (1 + TOLERANCE):
            return True
    return False


def _off_obstacles(boxes: Boxes) -> Boxes | None:
    """Moves each box to the nearest position free of obstacles; returns None if every box is at such a position.

    This decides on which side of an obstacle a box is placed; the order of the given centres does not determine that.
    """
    centres = _nearest(boxes, np.arange(boxes.movable), among=boxes.movable)
    if centres is None or boxes.displacement(*centres).sum() < TOLERANCE:
        return None
    return boxes.moved_to(*centres)


def _with_channels(boxes: Boxes) -> Centres | None:
    """Does the work of `_least_displaced` under a channel rule: a gap must be zero or wide, which is not a linear
    constraint.
    """
    found = [_nearest(boxes, order) for order in _orders(boxes)]
    if all(one is None for one in found):
        found = [_nearest(_drawn(boxes, corner), _orders(boxes)[1]) for corner in CORNERS]
    best = min((one for one in found if one is not None), key=lambda one: boxes.displacement(*one).sum(), default=None)
    return None if best is None else _improved(boxes, best)


def _drawn(boxes: Boxes, corner: tuple[int, int]) -> Boxes:
    """Returns the boxes with the movable ones in a corner of their limits, from which they are then packed."""
    low, high = boxes.low, np.maximum(boxes.low, boxes.high)
    return boxes.moved_to(*((low, high)[side][axis] for axis, side in enumerate(corner)))


def _packed(boxes: Boxes) -> Centres | None:
    """Finds an order close to the current one in which all boxes fit; returns None if none was found."""
    movable, every = boxes.movable, np.arange(len(boxes.x))
    concerns = np.zeros((len(every), len(every)), dtype=bool)
    concerns[:movable] = boxes.concerns
    concerns[:, :movable] = boxes.concerns.T
    limits, apart = [], []
    needed = boxes.between(every, every[:, None])  # of each box (row) and one to the left of it or below it
    for (at, size), low, high, gap in zip(boxes.axes, boxes.low, boxes.high, needed, strict=True):
        limits += [np.concatenate([low, at[movable:]]).tolist(), np.concatenate([high, at[movable:]]).tolist()]
        apart.append(np.where(concerns, (size + size[:, None]) / 2 + gap, -np.inf).ravel())
    for seed, comparisons in enumerate([FIRST_COMPARISONS, *[COMPARISONS] * SEARCHES]):
        found = _native.pack_boxes(*limits, *apart, boxes.x.tolist(), boxes.y.tolist(), comparisons, max(0, seed - 1))
        if found is not None:
            return tightened(boxes, (np.array(found[0][:movable]), np.array(found[1][:movable])))
        # If a short search fails, there is often no order; a long search cannot show that.
        exact = packed_exactly(boxes, seconds=EXACT_SECONDS) if seed == 0 else None
        if exact is not None:
            return tightened(boxes, exact)
    return None


def _improved(boxes: Boxes, centres: Centres) -> Centres:
    """Repeatedly takes up a displaced macro with its neighbours and puts them back in another order."""
    generator = np.random.default_rng(0)
    count = boxes.movable
    failed = 0  # consecutive failures
    for _ in range(ATTEMPTS * MANY // max(count, MANY)):
        moved = boxes.displacement(*centres)
        if moved.sum() < TOLERANCE or failed > PATIENCE * count:
            break
        failed += 1
        centre = generator.choice(count, p=moved / moved.sum())
        near = np.abs(centres[0] - boxes.x[centre]) + np.abs(centres[1] - boxes.y[centre])
        near[centre] = -1.0
        size = min(count, 2 + int(generator.integers(MOST_TAKEN_UP - 1)))
        taken = generator.permutation(np.argsort(near, kind="stable")[:size])
        if generator.random() < 0.5:  # put the displaced macro back first
            taken = np.concatenate([[centre], taken[taken != centre]])
        placed = _nearest(boxes, taken, centres)
        if placed is not None and boxes.displacement(*placed).sum() < moved.sum() - TOLERANCE:
            failed = 0
            centres = placed if boxes.channel is not None else _tightened_around(boxes, placed, taken)
    return centres if boxes.channel is not None or count > MANY else tightened(boxes, centres)


def _tightened_around(boxes: Boxes, centres: Centres, taken: np.ndarray) -> Centres:
    """Applies `tightened` to some boxes and their neighbours; the other boxes do not move."""
    away = np.min(
        [np.abs(centres[0] - centres[0][one]) + np.abs(centres[1] - centres[1][one]) for one in taken], axis=0
    )
    movers = np.argsort(away, kind="stable")[: len(taken) + MOST_AROUND]
    around, beyond = boxes.others(movers, centres)
    for others in (around, None):
        tight = tightened(boxes.some(movers, centres, others), (centres[0][movers], centres[1][movers]))
        x, y = (axis.copy() for axis in centres)
        x[movers], y[movers] = tight
        pairs = np.stack([np.repeat(movers, len(beyond)), np.tile(beyond, len(movers))])
        pairs, now = pairs[:, boxes.concerns[*pairs]], boxes.moved_to(x, y)
        if not now.overlaps(pairs).any():
            break
    return x, y


def fits(design: Design, placement: Placement, *, spacing: float = 0.0) -> bool:
    """Returns whether each movable hard macro is legal: on the canvas, clear of others, within its constraints."""
    native = native_design(design)
    return _native.placement_fits(native, placement.x, placement.y, placement.orientation, spacing)


def _orders(boxes: Boxes) -> list[np.ndarray]:
    """Returns the orders in which macros take positions: by conflicts, by area, and from each side."""
    count, pairs = boxes.movable, boxes.pairs()
    x, y, area = boxes.x[:count], boxes.y[:count], (boxes.width * boxes.height)[:count]
    overlapping = pairs[:, boxes.overlaps(pairs)].ravel()
    beyond = np.zeros(count, dtype=bool)  # outside the canvas or the macro's regions
    for at, low, high in zip((x, y), boxes.low, boxes.high, strict=True):
        beyond |= (at < low - TOLERANCE) | (at > high + TOLERANCE)
    conflicts = np.bincount(overlapping, minlength=count)[:count] + 100 * beyond
    keys = [(-area, conflicts), (conflicts, -area), (x,), (-x,), (y,), (-y,)]
    return [np.lexsort(key) for key in keys]


def _nearest(boxes: Boxes, order: np.ndarray, others: Centres | None = None, *, among: int = 0) -> Centres | None:
    """Puts each macro of `order` on the nearest free position; returns None if a macro finds none.

    The other macros are at their positions in `others`. Boxes with an index below `among` block no macro.
    """
    now = boxes._replace(x=boxes.x.copy(), y=boxes.y.copy()) if others is None else boxes.moved_to(*others)
    placed_boxes = np.ones(len(now.x), dtype=bool)
    placed_boxes[order] = False
    clear = boxes.concerns.copy() if among else boxes.concerns
    clear[:, :among] = False
    for index in order:
        found = _nearest_free(boxes, now, index, np.flatnonzero(placed_boxes & clear[index]))
        if found is None:
            return None
        now.x[index], now.y[index] = found
        placed_boxes[index] = True
    return now.x[: boxes.movable], now.y[: boxes.movable]


def _nearest_free(boxes: Boxes, now: Boxes, index: int, at: np.ndarray) -> tuple[float, float] | None:
    """Returns the free position nearest to a box's original one, with the boxes `at` (int [·]) at their places in
    `now`.
    """
    centre = np.stack([now.x[at], now.y[at]])
    half = np.stack([(size[at] + size[index]) / 2 for _, size in now.axes])
    low_gap = np.stack(boxes.between(index, at))
    high_gap = low_gap if boxes.shift is None else np.stack(boxes.between(at, index))
    taken = [np.concatenate([centre - half - low_gap, centre + half + high_gap])]
    if boxes.channel is not None and boxes.edges is not None:
        halos = np.stack([boxes.halos_between(index, at), boxes.halos_between(at, index)])
        abut = half + np.maximum(halos, 0.0)
        wide = half + np.minimum(boxes.channel[:, at], boxes.channel[:, index, None])
        taken += [*_channels(centre, half, abut, wide), *_bands(boxes.edges[:, :, index])]
    start, low, high = (boxes.x[index], boxes.y[index]), boxes.low[:, index], boxes.high[:, index]
    return _native.nearest_legal_position(start, tuple(low), tuple(high), *np.concatenate(taken, axis=1))


def _channels(centre: np.ndarray, half: np.ndarray, abut: np.ndarray, wide: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the intervals of centres that break the channel rule beside boxes, float64 [4, ·]: left, low, right, high.

    Args:
        centre: centres of the boxes, [2, ·], as all others.
        half: distances from the centre at which two boxes face each other.
        abut: distances at which they abut, [2 (before and after it), 2, ·].
        wide: distances at which they leave a channel.
    """
    for axis in range(2):
        for sign, near in ((-1, abut[0, axis]), (1, abut[1, axis])):
            gap = np.flatnonzero(wide[axis] > near + TOLERANCE)
            ends = centre[axis, gap] + sign * np.stack([near[gap], wide[axis, gap]])
            band = np.stack([centre - half, centre + half])[:, :, gap]  # [2 (low, high), 2 (x, y), ·]
            band[:, axis] = np.sort(ends, axis=0)
            yield band.reshape(4, -1)


def _bands(edges: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the intervals of `Boxes.edges` of one box, float64 [2, 4], as left, low, right, high, [4, 2] per axis."""
    for axis in range(2):
        band = np.repeat([[[-np.inf]], [[np.inf]]], 2, axis=1).repeat(2, axis=2)
        band[:, axis] = edges[axis].reshape(2, 2).T
        yield band.reshape(4, -1)


def boxes_of(design: Design, placement: Placement, *, spacing: float) -> Boxes:
    """Returns the movable macros, then the obstacles.

    Sizes and gaps are rounded up to the design's grid, obstacles outwards.

    The box of a macro with a separate grid is one pitch larger instead, so that the macro can be moved up to the next
    corner of its grid within the box.
    """
    movable = design.placing_order
    fixed = np.flatnonzero((design.netlist.kind == NodeKind.HARD) & design.initial.fixed)
    areas, area_spacing, area_concerns = _areas(design, movable, spacing)
    sides = np.stack(design.netlist.sides(placement.orientation))
    centres = np.stack([placement.x, placement.y])
    low, high = centres - sides / 2, centres + sides / 2
    size = sides[:, movable]
    corners = np.concatenate([np.concatenate([low[:, fixed], high[:, fixed]]).T, areas])
    sides_kept = design.constraints.turned_halo(placement.orientation).T.reshape(2, 2, -1)  # [low or high, axis, N]
    halos = np.full((2, 2, len(movable) + len(fixed) + len(areas)), -np.inf)
    halos[..., : len(movable) + len(fixed)] = sides_kept[..., np.concatenate([movable, fixed])]
    kept = np.tile(np.concatenate([np.full(len(movable) + len(fixed), spacing), area_spacing]), (2, 1))
    limits = np.stack(_limits(design, movable))  # [2 (low, high), 2, M]
    first, last = limits[0] + size / 2, limits[1] - size / 2
    grid = design.constraints.grid
    own_pitch = np.zeros_like(size)  # enlargement of the boxes
    if design.constraints.macro_grids:
        own_pitch, own_offset = _corner_grids(design, placement)
        corner = _down(limits[1] - size, own_pitch, own_offset), _up(limits[0], own_pitch, own_offset)
        size = size + own_pitch
        last, first = (edge + size / 2 for edge in corner)
        grid = SnapGrid()
    pitches, offsets = (grid.pitch_x, grid.pitch_y), (grid.offset_x, grid.offset_y)
    for axis, (pitch, offset) in enumerate(zip(pitches, offsets, strict=True)):
        if pitch <= 0:
            continue
        corner = _down(limits[1, axis] - size[axis], pitch, offset), _up(limits[0, axis], pitch, offset)
        size[axis] = np.ceil(size[axis] / pitch - TOLERANCE) * pitch
        last[axis], first[axis] = (edge + size[axis] / 2 for edge in corner)
        corners[:, axis] = _down(corners[:, axis], pitch, offset)
        corners[:, 2 + axis] = _up(corners[:, 2 + axis], pitch, offset)
        halos[:, axis] = np.ceil(halos[:, axis] / pitch - TOLERANCE) * pitch
        kept[axis] = np.ceil(kept[axis] / pitch - TOLERANCE) * pitch
    fixed_size = (corners[:, 2:] - corners[:, :2]).T
    x, y = np.concatenate([low[:, movable] + size / 2, corners[:, :2].T + fixed_size / 2], axis=1)
    width, height = np.concatenate([size, fixed_size], axis=1)
    concerns = np.ones((len(movable), len(x)), dtype=bool)
    concerns[:, len(movable) + len(fixed) :] = area_concerns
    has_regions = bool(design.constraints.regions)
    shift = np.where(np.isfinite(halos[0]), halos[1] - np.maximum(halos[0], 0.0), 0.0) / 2
    boxes = Boxes(
        x, y, width, height, len(movable), first, last, halos.mean(axis=0), kept, concerns, has_regions,
        shift=shift if shift.any() else None,
    )  # fmt: skip
    if not design.constraints.has_channels:
        return boxes
    channel = np.zeros((2, len(x)))
    channel[:, : len(movable) + len(fixed)] = np.array(design.constraints.channel)[:, None]
    return boxes._replace(
        channel=np.stack([_rounded_up(one, pitch) for one, pitch in zip(channel, pitches, strict=True)]),
        edges=_edges(design, sides[:, movable], size, grid, own_pitch),
    )


def _edges(design: Design, sides: np.ndarray, size: np.ndarray, grid: SnapGrid, own_pitch: np.ndarray) -> np.ndarray:
    """Returns `Boxes.edges` for macros with these sides [2, M] whose boxes have these sizes on the grid.

    A macro moved up within its box, by less than `own_pitch` [2, M], still abuts the edge.
    """
    found = []
    extents = (design.canvas.width, design.canvas.height)
    for own, whole, up, extent, width, (pitch, offset) in zip(
        sides, size, own_pitch, extents, design.constraints.channel, grid.axes, strict=True
    ):
        corners = np.stack([up, np.full(len(own), width), extent - own - width - up, extent - own - 2 * up])
        if pitch > 0:
            corners[:2], corners[2:] = _up(corners[:2], pitch, offset), _down(corners[2:], pitch, offset)
        found.append(corners + whole / 2)
    return np.stack(found)


def _rounded_up(lengths: np.ndarray, pitch: float) -> np.ndarray:
    return np.ceil(lengths / pitch - TOLERANCE) * pitch if pitch > 0 else lengths


def _rounded(design: Design, placement: Placement) -> Placement:
    """Returns the placement with the lower left corner of each movable hard macro at the nearest point of the grid."""
    nodes = design.placing_order
    half = np.stack(design.netlist.sides(placement.orientation))[:, nodes] / 2
    pitch, offset = _corner_grids(design, placement)
    corners = np.stack([placement.x[nodes], placement.y[nodes]]) - half
    return placement.moved(nodes, *(_down(corners + pitch / 2, pitch, offset) + half))


def _corner_grids(design: Design, placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    """Returns pitch and offset of the grid of each movable hard macro in its orientation, float64 [2, M]."""
    nodes = design.placing_order
    return design.constraints.corner_grids(nodes, placement.orientation[nodes])


def _down(at: np.ndarray, pitch: np.ndarray | float, offset: np.ndarray | float) -> np.ndarray:
    """Rounds coordinates down to points of their grids; a pitch of 0 leaves them unchanged."""
    step = np.where(np.asarray(pitch) > 0, pitch, 1.0)
    return np.where(np.asarray(pitch) > 0, offset + np.floor((at - offset) / step + TOLERANCE) * step, at)


def _up(at: np.ndarray, pitch: np.ndarray | float, offset: np.ndarray | float) -> np.ndarray:
    """Rounds coordinates up to points of their grids; a pitch of 0 leaves them unchanged."""
    step = np.where(np.asarray(pitch) > 0, pitch, 1.0)
    return np.where(np.asarray(pitch) > 0, offset + np.ceil((at - offset) / step - TOLERANCE) * step, at)


def _areas(design: Design, movable: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the rectangles to keep clear of: corners [·, 4], spacing [·], and the macros concerned, bool [M, ·]."""
    constraints, canvas = design.constraints, design.canvas
    everyone = np.ones(len(movable), dtype=bool)
    areas = [
        (clipped(constraints.blockages, canvas.width, canvas.height), spacing, everyone),
        (port_surroundings(design), 0.0, everyone),
    ]
    for region in constraints.regions:
        member = np.isin(movable, region.nodes)
        if len(region.rectangles) > 1:  # the limits of the macros' centres enforce a region of one rectangle
            areas.append((complement(region.rectangles, canvas.width, canvas.height), 0.0, member))
        if region.is_exclusive:
            areas.append((region.rectangles, 0.0, ~member))
    return (
        np.concatenate([corners for corners, _, _ in areas]),
        np.concatenate([np.full(len(corners), kept) for corners, kept, _ in areas]),
        np.concatenate([np.tile(holds[:, None], len(corners)) for corners, _, holds in areas], axis=1),
    )


def _limits(design: Design, movable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns low and high corner [2, M] of the box that limits each macro: the canvas and its regions' bounds."""
    low = np.zeros((2, len(movable)))
    high = np.tile([[design.canvas.width], [design.canvas.height]], len(movable))
    for region in design.constraints.regions:
        member = np.isin(movable, region.nodes)
        corners = region.rectangles[:, :2].min(axis=0), region.rectangles[:, 2:].max(axis=0)
        low[:, member] = np.maximum(low[:, member], corners[0][:, None])
        high[:, member] = np.minimum(high[:, member], corners[1][:, None])
    return low, high
