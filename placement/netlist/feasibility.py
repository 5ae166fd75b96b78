"""Whether constraints can be met at all, found before anything starts.

What is found is certain: a set of constraints that is refused has no legal placement. One that passes may have none
either. Axis legend: K rectangles, each (x_low, y_low, x_high, y_high), X, Y places tried on an axis. Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
import weakref

import numpy as np

from placement.netlist.constraints import SnapGrid
from placement.netlist.constraints_file import orientation_names
from placement.netlist.design import Design, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.keep_outs import KeepOutKind, keep_outs
from placement.netlist.rectangles import LEAST, clipped, grown, union_area

TOLERANCE = LEAST
"""µm: lengths that are equal but for rounding are equal, as in the engine."""
MOST_NAMED = 10
_FOUND: weakref.WeakKeyDictionary[Design, tuple[str, ...]] = weakref.WeakKeyDictionary()


def ready(design: Design) -> Design:
    """The design with its movable macros turned as they may be; what training, search and legalising begin with.

    Raises:
        DesignError: as `check_constraints`.
    """
    check_constraints(design)
    return turned_design(design)


def turned_design(design: Design) -> Design:
    """The design with its movable macros turned as they may be; itself where they all are."""
    turned = turned_as_allowed(design, design.initial)
    return design if turned is design.initial else dataclasses.replace(design, initial=turned)


def check_constraints(design: Design) -> tuple[str, ...]:
    """Refuses constraints that cannot be met.

    Returns:
        What fixed macros break, one sentence each: they stay where they are.

    Raises:
        DesignError: a macro has no place in any orientation that it may have, given the fixed macros; the macros of a
            region, or all macros, need more area with their halos than there is. Names the macros.
    """
    if not design.constraints.any:
        return ()
    if design in _FOUND:
        return _FOUND[design]
    _check_areas(design)
    nowhere = _without_place(design)
    if nowhere:
        raise DesignError(
            f"{design.name}: constraints and fixed macros leave no place for {_named(design, nowhere)}: each must lie "
            "in the canvas and its regions, off blockages and other regions that are exclusive, clear of fixed macros "
            "and ports, on the snapping grid, in an orientation that it may have"
        )
    return _FOUND.setdefault(design, (*_broken_by_fixed(design), *_too_close(design)))


def turned_as_allowed(design: Design, placement: Placement) -> Placement:
    """The placement with movable hard macros in orientations that they may have; itself where they all are.

    A macro that must be turned keeps its sides if it can, and its centre.
    """
    constraints, orientation = design.constraints, placement.orientation.copy()
    for node in design.placing_order.tolist():
        before = int(orientation[node])
        if not constraints.allows(node, before):
            # N, FN, S, FS are 0 to 3, and E, FE, W, FW 4 to 7
            others = sorted(Orientation, key=lambda other: (other // 4 != before // 4, other))
            orientation[node] = next(other for other in others if constraints.allows(node, other))
    if np.array_equal(orientation, placement.orientation):
        return placement
    return dataclasses.replace(placement, orientation=orientation)


def _named(design: Design, nodes: list[int]) -> str:
    names = [repr(design.netlist.names[node]) for node in nodes[:MOST_NAMED]]
    more = f" and {len(nodes) - MOST_NAMED} more" if len(nodes) > MOST_NAMED else ""
    return f"{'macro' if len(nodes) == 1 else 'macros'} {', '.join(names)}{more}"


def _check_areas(design: Design) -> None:
    """Boxes grown by their halos lie apart, and reach beyond where they must stay by no more than the largest halo."""
    constraints, canvas, hard = design.constraints, design.canvas, design.netlist.hard.tolist()
    for region in constraints.regions:
        members = [node for node in region.nodes.tolist() if not design.initial.fixed[node]]
        inside = clipped(region.rectangles, canvas.width, canvas.height)
        room = union_area(grown(inside, _largest_halo(design, members)))
        needed = _area(design, members)
        if needed > room * (1 + TOLERANCE):
            raise DesignError(
                f"{design.name}: region {region.name!r} has room for {room:.1f} µm² of macros and halos; "
                f"{_named(design, members)} need {needed:.1f} µm²"
            )
    across, up = _largest_halo(design, hard)
    kept = keep_outs(design)
    blocked = kept.rectangles[kept.kind != KeepOutKind.REGION]
    fixed = clipped(_fixed(design, np.zeros(2)), canvas.width, canvas.height)
    taken = union_area(np.concatenate((grown(blocked, (-across, -up)), fixed)))
    room = (canvas.width + 2 * across) * (canvas.height + 2 * up) - taken
    movable = [node for node in hard if not design.initial.fixed[node]]
    needed = _area(design, movable)
    if needed > room * (1 + TOLERANCE):
        raise DesignError(
            f"{design.name}: the canvas has room for {room:.1f} µm² of macros and halos beside blockages and fixed "
            f"macros; {_named(design, movable)} need {needed:.1f} µm²"
        )


def _largest_halo(design: Design, nodes: list[int]) -> tuple[float, float]:
    """Of some macros however they are turned."""
    halo = design.constraints.halo[nodes]
    if (design.constraints.orientations[nodes] >> 4).any():
        halo = np.concatenate((halo, halo[:, ::-1]))
    return (float(halo[:, 0].max(initial=0.0)), float(halo[:, 1].max(initial=0.0)))


def _area(design: Design, nodes: list[int]) -> float:
    """µm² of some macros with their halos; where none are asked for, macros may overlap by the threshold."""
    halo, threshold = design.constraints.halo[nodes], design.canvas.overlap_threshold
    sides = np.stack((design.netlist.width[nodes], design.netlist.height[nodes]), axis=1) + 2 * halo
    sides = np.where(halo > 0, sides, np.maximum(sides - threshold, 0.0))
    return float(np.prod(sides, axis=1).sum())


def _without_place(design: Design) -> list[int]:
    """The movable macros that have no place; those that are alike share one answer."""
    constraints, netlist, kept = design.constraints, design.netlist, keep_outs(design)
    has_place: dict[tuple[float | bool, ...], bool] = {}
    nowhere = []
    for node in design.placing_order.tolist():
        swaps = {Orientation(turned).swaps_sides for turned in range(8) if constraints.allows(node, turned)}
        alike = (netlist.width[node], netlist.height[node], *constraints.halo[node].tolist(), int(kept.set_of[node]))
        for swapped in sorted(swaps):
            if (*alike, swapped) not in has_place:
                has_place[*alike, swapped] = _has_place_turned(design, node, swapped)
        if not any(has_place[*alike, swapped] for swapped in swaps):
            nowhere.append(node)
    return nowhere


def _has_place_turned(design: Design, node: int, swapped: bool) -> bool:
    """Whether some lower left corner is free: one that cannot go further left or down is, if any is."""
    netlist, canvas, grid = design.netlist, design.canvas, design.constraints.grid
    size = np.array([netlist.width[node], netlist.height[node]])
    halo = design.constraints.halo[node]
    if swapped:
        size, halo = size[::-1], halo[::-1]
    # Lower left corners strictly inside these rectangles are taken.
    taken = np.concatenate((keep_outs(design).rectangles[keep_outs(design).of(node)], _fixed(design, halo)))
    taken = taken - np.concatenate((size, np.zeros(2)))
    pitches, offsets = (grid.pitch_x, grid.pitch_y), (grid.offset_x, grid.offset_y)
    tried = []
    for axis, extent in ((0, canvas.width), (1, canvas.height)):
        places = np.concatenate(([0.0], taken[:, 2 + axis]))
        if pitches[axis] > 0:
            steps = np.ceil((places - TOLERANCE - offsets[axis]) / pitches[axis])
            places = offsets[axis] + pitches[axis] * steps
        places = places[(places >= -TOLERANCE) & (places <= extent - size[axis] + TOLERANCE)]
        tried.append(np.unique(places))
    xs, ys = tried
    if not len(xs) or not len(ys):
        return False
    steps = np.zeros((len(xs) + 1, len(ys) + 1), dtype=np.int32)
    left = np.searchsorted(xs, taken[:, 0] + TOLERANCE, side="right")
    right = np.searchsorted(xs, taken[:, 2] - TOLERANCE, side="left")
    low = np.searchsorted(ys, taken[:, 1] + TOLERANCE, side="right")
    high = np.searchsorted(ys, taken[:, 3] - TOLERANCE, side="left")
    some = (left < right) & (low < high)
    for begin, end, sign in ((left, low, 1), (right, high, 1), (left, high, -1), (right, low, -1)):
        np.add.at(steps, (begin[some], end[some]), sign)
    return bool((steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1] == 0).any())


def _fixed(design: Design, halo: np.ndarray) -> np.ndarray:
    """What fixed hard macros take from a macro of some halo (x, y), float64 [K, 4]."""
    initial, netlist = design.initial, design.netlist
    fixed = netlist.hard[initial.fixed[netlist.hard]]
    both = []
    sides, halos = netlist.sides(initial.orientation), design.constraints.sides(initial.orientation)
    for centres, side, own, other in zip((initial.x, initial.y), sides, halo, halos, strict=True):
        gap = own + other[fixed]
        reach = side[fixed] / 2 + np.where(gap > 0, gap, -design.canvas.overlap_threshold)
        both.append((centres[fixed] - reach, centres[fixed] + reach))
    (left, right), (low, high) = both
    boxes = np.stack((left, low, right, high), axis=1)
    return boxes[(boxes[:, 0] < boxes[:, 2]) & (boxes[:, 1] < boxes[:, 3])]


def _too_close(design: Design) -> list[str]:
    """That fixed macros stand closer to each other than their halos let them, where they do."""
    initial, netlist = design.initial, design.netlist
    fixed = netlist.hard[initial.fixed[netlist.hard]]
    sides, halos = netlist.sides(initial.orientation), design.constraints.sides(initial.orientation)
    meets = np.ones((len(fixed), len(fixed)), dtype=bool)
    has_halo = np.zeros_like(meets)
    for centres, side, halo in zip((initial.x, initial.y), sides, halos, strict=True):
        at, half, own = centres[fixed], side[fixed] / 2, halo[fixed]
        gap = own[:, None] + own
        reach = half[:, None] + half + np.where(gap > 0, gap, -design.canvas.overlap_threshold)
        meets &= np.abs(at[:, None] - at) < reach - TOLERANCE
        has_halo |= gap > 0
    pairs = np.argwhere(np.triu(meets & has_halo, 1))
    if not len(pairs):
        return []
    one, other = (netlist.names[node] for node in fixed[pairs[0]].tolist())
    more = f" (and {len(pairs) - 1} more pairs)" if len(pairs) > 1 else ""
    return [f"fixed macros {one!r} and {other!r} stand closer than their halos{more}"]


def _broken_by_fixed(design: Design) -> list[str]:
    """What fixed macros break that has nothing to do with other macros."""
    initial, netlist, constraints = design.initial, design.netlist, design.constraints
    kept, found = keep_outs(design), []
    width, height = netlist.sides(initial.orientation)
    for node in netlist.hard[initial.fixed[netlist.hard]].tolist():
        name = netlist.names[node]
        low = np.array([initial.x[node] - width[node] / 2, initial.y[node] - height[node] / 2])
        high = low + np.array([width[node], height[node]])
        items = kept.of(node)
        boxes = kept.rectangles[items]
        meets = (np.minimum(high, boxes[:, 2:]) - np.maximum(low, boxes[:, :2]) > TOLERANCE).all(axis=1)
        places = ("on a placement blockage", "outside of its region or in another's", "in a port's keep-out")
        for kind in sorted(set(kept.kind[items][meets].tolist())):
            found.append(f"fixed macro {name!r} stands {places[kind]}")
        if not constraints.allows(node, int(initial.orientation[node])):
            allowed = ", ".join(orientation_names(int(constraints.orientations[node])))
            found.append(
                f"fixed macro {name!r} stands in {Orientation(int(initial.orientation[node])).name}; allowed: {allowed}"
            )
        if not _on_grid(low, constraints.grid):
            found.append(f"fixed macro {name!r} stands off the snapping grid")
    return found


def _on_grid(corner: np.ndarray, grid: SnapGrid) -> bool:
    for at, pitch, offset in ((corner[0], grid.pitch_x, grid.offset_x), (corner[1], grid.pitch_y, grid.offset_y)):
        if pitch > 0 and abs(at - offset - pitch * round((at - offset) / pitch)) > TOLERANCE:
            return False
    return True
