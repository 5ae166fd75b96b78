"""Finds where hard macros must not be placed, and whether constraints can be met, before a run starts.

Every rule about areas has one form: rectangles, and the hard macros that keep out of each. Blockages and the
surroundings of ports apply to all macros, the canvas outside a region to its members, and an exclusive region to all
others. A rejected set of constraints certainly has no legal placement; an accepted one may have none.

Axis legend: N nodes, K rectangles, each (x_low, y_low, x_high, y_high), S sets of rectangles, I members of the sets, X,
Y positions tried on an axis, F fixed hard macros. Lengths are in µm.
"""

import dataclasses
import enum
import weakref
from typing import NamedTuple

import numpy as np

from placement.netlist.constraints import SnapGrid
from placement.netlist.constraints_file import orientation_names
from placement.netlist.design import Design, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.geometry import LEAST, clipped, complement, covered, grown, merged_in_line, union_area

TOLERANCE = LEAST  # µm; lengths that differ by less, from rounding, are equal, as in the engine
MOST_NAMED = 10


class KeepOutKind(enum.IntEnum):
    """The rule that a rectangle comes from."""

    BLOCKAGE = 0
    REGION = 1
    PORT = 2


class KeepOuts(NamedTuple):
    """The areas where hard macros must not be placed."""

    rectangles: np.ndarray  # float64 [K, 4]
    kind: np.ndarray  # int8 [K], `KeepOutKind` values
    set_of: np.ndarray  # int32 [N], the set of rectangles that a hard macro keeps out of; -1 for other nodes
    set_start: np.ndarray  # int32 [S+1]
    items: np.ndarray  # int32 [I]; set s has the rectangles `items[set_start[s]:set_start[s+1]]`

    def of(self, node: int) -> np.ndarray:
        """The rectangles that a hard macro keeps out of, int32 [·]."""
        index = int(self.set_of[node])
        return self.items[self.set_start[index] : self.set_start[index + 1]]


_KEEP_OUTS: weakref.WeakKeyDictionary[Design, KeepOuts] = weakref.WeakKeyDictionary()
_CHECKED: weakref.WeakKeyDictionary[Design, tuple[str, ...]] = weakref.WeakKeyDictionary()


def keep_outs(design: Design) -> KeepOuts:
    """The areas where a design's hard macros must not be placed; cached for as long as `design` lives."""
    found = _KEEP_OUTS.get(design)
    return _KEEP_OUTS.setdefault(design, _keep_outs(design)) if found is None else found


def port_surroundings(design: Design) -> np.ndarray:
    """The squares that the ports' keep-out covers, float64 [·, 4]; squares that touch in a line are merged."""
    reach = design.constraints.port_keepout
    if reach <= 0:
        return np.zeros((0, 4))
    ports = design.netlist.ports
    x, y = design.initial.x[ports], design.initial.y[ports]
    squares = np.stack((x - reach, y - reach, x + reach, y + reach), axis=1)
    return merged_in_line(clipped(squares, design.canvas.width, design.canvas.height))


def _keep_outs(design: Design) -> KeepOuts:
    netlist, canvas, constraints = design.netlist, design.canvas, design.constraints
    groups = [(clipped(constraints.blockages, canvas.width, canvas.height), KeepOutKind.BLOCKAGE)]
    groups.append((port_surroundings(design), KeepOutKind.PORT))
    for_all = list(range(sum(len(rectangles) for rectangles, _ in groups)))
    members: list[tuple[set[int], list[int], list[int]]] = []  # nodes, their rectangles, and those for other nodes
    for region in constraints.regions:
        outside = complement(region.rectangles, canvas.width, canvas.height)
        inside = region.rectangles if region.is_exclusive else np.zeros((0, 4))
        first = sum(len(rectangles) for rectangles, _ in groups)
        middle, last = first + len(outside), first + len(outside) + len(inside)
        groups += [(outside, KeepOutKind.REGION), (inside, KeepOutKind.REGION)]
        members.append((set(region.nodes.tolist()), list(range(first, middle)), list(range(middle, last))))
    numbers: dict[tuple[int, ...], int] = {}
    set_of = np.full(netlist.num_nodes, -1, dtype=np.int32)
    for node in netlist.hard.tolist():
        items = list(for_all)
        for nodes, own, others in members:
            items += own if node in nodes else others
        set_of[node] = numbers.setdefault(tuple(items), len(numbers))
    return KeepOuts(
        rectangles=np.concatenate([rectangles for rectangles, _ in groups]),
        kind=np.concatenate([np.full(len(rectangles), kind, dtype=np.int8) for rectangles, kind in groups]),
        set_of=set_of,
        set_start=np.cumsum([0, *(len(items) for items in numbers)]).astype(np.int32),
        items=np.array([item for items in numbers for item in items], dtype=np.int32),
    )


def ready(design: Design) -> Design:
    """Checks the constraints (`check_constraints`) and returns `turned_design`, before a run starts."""
    check_constraints(design)
    return turned_design(design)


def turned_design(design: Design) -> Design:
    """The design with its movable macros in allowed orientations; the same object if they all are."""
    turned = turned_as_allowed(design, design.initial)
    return design if turned is design.initial else dataclasses.replace(design, initial=turned)


def turned_as_allowed(design: Design, placement: Placement) -> Placement:
    """The placement with movable hard macros in allowed orientations; the same object if they all are.

    A macro that must be rotated keeps its centre, and its sides if possible.
    """
    orientation, movable = placement.orientation.copy(), design.placing_order
    orientation[movable] = design.constraints.turned(placement.orientation)[movable]
    if np.array_equal(orientation, placement.orientation):
        return placement
    return dataclasses.replace(placement, orientation=orientation)


def check_constraints(design: Design) -> tuple[str, ...]:
    """Rejects constraints that cannot be met.

    Returns:
        The violations of fixed macros, which stay in place, one sentence each.

    Raises:
        DesignError: a macro has no legal position in any allowed orientation, given the fixed macros; the macros of a
            region, or all macros, need more area with their halos than there is. The message names the macros.
    """
    if not design.constraints.any:
        return ()
    if design in _CHECKED:
        return _CHECKED[design]
    _check_areas(design)
    nowhere = _without_place(design)
    if nowhere:
        raise DesignError(
            f"{design.name}: constraints and fixed macros leave no legal position for {_named(design, nowhere)}: each "
            "must be inside the canvas and its regions, outside blockages and other exclusive regions, clear of fixed "
            "macros and ports, on the snapping grid, and in an allowed orientation"
        )
    return _CHECKED.setdefault(design, (*_violated_by_fixed(design), *_too_close(design), *_too_narrow(design)))


def _named(design: Design, nodes: list[int]) -> str:
    names = [repr(design.netlist.names[node]) for node in nodes[:MOST_NAMED]]
    more = f" and {len(nodes) - MOST_NAMED} more" if len(nodes) > MOST_NAMED else ""
    return f"{'macro' if len(nodes) == 1 else 'macros'} {', '.join(names)}{more}"


def _check_areas(design: Design) -> None:
    """Compares areas: boxes grown by their halos are disjoint and exceed their area by at most the largest halo."""
    constraints, canvas, hard = design.constraints, design.canvas, design.netlist.hard.tolist()
    for region in constraints.regions:
        members = [node for node in region.nodes.tolist() if not design.initial.fixed[node]]
        inside = clipped(region.rectangles, canvas.width, canvas.height)
        space = union_area(grown(inside, _largest_halo(design, members)))
        _check_area(design, members, space, f"region {region.name!r}", "")
    across, up = _largest_halo(design, hard)
    kept = keep_outs(design)
    blocked = kept.rectangles[kept.kind != KeepOutKind.REGION]
    fixed = clipped(_taken_by_fixed(design, np.zeros(4)), canvas.width, canvas.height)
    taken = union_area(np.concatenate((grown(blocked, (-across, -up)), fixed)))
    space = (canvas.width + 2 * across) * (canvas.height + 2 * up) - taken
    movable = [node for node in hard if not design.initial.fixed[node]]
    _check_area(design, movable, space, "the canvas", " outside blockages and fixed macros")


def _check_area(design: Design, nodes: list[int], space: float, where: str, beside: str) -> None:
    """Raises DesignError if macros with their halos need more than `space` µm².

    Macros without a halo may overlap by the threshold.
    """
    halo, threshold = design.constraints.halo[nodes], design.canvas.overlap_threshold
    halo = halo[:, :2] + halo[:, 2:]
    sides = np.stack((design.netlist.width[nodes], design.netlist.height[nodes]), axis=1) + halo
    sides = np.where(halo > 0, sides, np.maximum(sides - threshold, 0.0))
    needed = float(np.prod(sides, axis=1).sum())
    if needed > space * (1 + TOLERANCE):
        raise DesignError(
            f"{design.name}: {where} has space for {space:.1f} µm² of macros and halos{beside}; "
            f"{_named(design, nodes)} need {needed:.1f} µm²: enlarge it, or make halos and blockages smaller"
        )


def _largest_halo(design: Design, nodes: list[int]) -> tuple[float, float]:
    """The largest halos (x, y) of some macros in any of their orientations."""
    halo = design.constraints.halo[nodes].reshape(-1, 2)
    if (design.constraints.orientations[nodes] >> 4).any():
        halo = np.concatenate((halo, halo[:, ::-1]))
    return (float(halo[:, 0].max(initial=0.0)), float(halo[:, 1].max(initial=0.0)))


def _without_place(design: Design) -> list[int]:
    """The movable macros that have no legal position; equal macros are tested once."""
    constraints, netlist, kept = design.constraints, design.netlist, keep_outs(design)
    has_place: dict[tuple[float | tuple[bool, tuple[float, ...], SnapGrid], ...], bool] = {}
    turned_halo = [constraints.turned_halo(np.full(netlist.num_nodes, turned)) for turned in range(8)]
    nowhere = []
    for node in design.placing_order.tolist():
        turns = [Orientation(turned) for turned in range(8) if constraints.allows(node, turned)]
        every = np.array([turned_halo[turned][node] for turned in turns])
        ways = {
            (turned.swaps_sides, tuple(halo), constraints.grid_of(node, turned))
            for turned, halo in zip(turns, every.tolist(), strict=True)
        }
        alike = (netlist.width[node], netlist.height[node], int(kept.set_of[node]))
        for way in ways:
            if (*alike, way) not in has_place:
                has_place[*alike, way] = _has_place(design, node, *way)
        if not any(has_place[*alike, way] for way in ways):
            nowhere.append(node)
    return nowhere


def _has_place(design: Design, node: int, swapped: bool, halo: tuple[float, ...], grid: SnapGrid) -> bool:
    """Whether any lower left corner is free; if one is, so is one that cannot move further left or down.

    `halo` has left, bottom, right and top of the rotated macro.
    """
    netlist, canvas = design.netlist, design.canvas
    size = np.array([netlist.width[node], netlist.height[node]])
    size = size[::-1] if swapped else size
    # Lower left corners strictly inside these rectangles are illegal.
    kept = keep_outs(design)
    taken = np.concatenate((kept.rectangles[kept.of(node)], _taken_by_fixed(design, np.array(halo))))
    taken = taken - np.concatenate((size, np.zeros(2)))
    tried = []
    for axis, extent in ((0, canvas.width), (1, canvas.height)):
        places, (pitch, offset) = np.concatenate(([0.0], taken[:, 2 + axis])), grid.axes[axis]
        if pitch > 0:
            places = offset + pitch * np.ceil((places - TOLERANCE - offset) / pitch)
        places = places[(places >= -TOLERANCE) & (places <= extent - size[axis] + TOLERANCE)]
        tried.append(np.unique(places))
    xs, ys = tried
    left = np.searchsorted(xs, taken[:, 0] + TOLERANCE, side="right")
    right = np.searchsorted(xs, taken[:, 2] - TOLERANCE, side="left")
    low = np.searchsorted(ys, taken[:, 1] + TOLERANCE, side="right")
    high = np.searchsorted(ys, taken[:, 3] - TOLERANCE, side="left")
    some = (left < right) & (low < high)
    return not covered(left[some], right[some], low[some], high[some], (len(xs) + 1, len(ys) + 1)).all()


def _fixed_macros(design: Design) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The fixed hard macros, int32 [F]; their centres and half sides, float64 [F, 2]; halos as placed, [F, 4]."""
    initial, netlist = design.initial, design.netlist
    fixed = netlist.hard[initial.fixed[netlist.hard]]
    pairs = ((initial.x, initial.y), netlist.sides(initial.orientation))
    centre, side = (np.stack(pair, axis=1)[fixed] for pair in pairs)
    return fixed, centre, side / 2, design.constraints.turned_halo(initial.orientation)[fixed]


def _needed_by_halos(centre: np.ndarray, halo: np.ndarray) -> np.ndarray:
    """Distance that the halos (float64 [F, 4]) of every two macros require on each axis, float64 [F, F, 2], in µm."""
    low, high = halo[:, :2], halo[:, 2:]
    return np.where(centre[:, None] <= centre, high[:, None] + low, low[:, None] + high)


def _taken_by_fixed(design: Design, halo: np.ndarray) -> np.ndarray:
    """The rectangles that fixed hard macros block for a macro with a halo (four sides, float64 [4]), float64 [K, 4]."""
    _, centre, half, own = _fixed_macros(design)
    gap = own + np.roll(halo, 2)  # The halos of opposite sides are added.
    reach = np.tile(half, 2) + np.where(gap > 0, gap, -design.canvas.overlap_threshold)
    boxes = np.tile(centre, 2) + reach * (-1, -1, 1, 1)
    return boxes[(boxes[:, :2] < boxes[:, 2:]).all(axis=1)]


def _too_close(design: Design) -> list[str]:
    """Returns a notice if fixed macros are closer to each other than their halos allow."""
    fixed, centre, half, halo = _fixed_macros(design)
    gap = _needed_by_halos(centre, halo)
    reach = half[:, None] + half + np.where(gap > 0, gap, -design.canvas.overlap_threshold)
    meets = (np.abs(centre[:, None] - centre) < reach - TOLERANCE).all(axis=2) & (gap > 0).any(axis=2)
    return _first_pair(design, fixed, meets, "fixed macros {!r} and {!r} are closer than their halos")


def _first_pair(design: Design, fixed: np.ndarray, wrong: np.ndarray, text: str) -> list[str]:
    """A notice, `text` with two names, on the first violating pair of macros (int32 [F], pairs bool [F, F]), if any."""
    pairs = np.argwhere(np.triu(wrong, 1))
    if not len(pairs):
        return []
    more = f" (and {len(pairs) - 1} more pairs)" if len(pairs) > 1 else ""
    return [text.format(*(design.netlist.names[node] for node in fixed[pairs[0]].tolist())) + more]


def _too_narrow(design: Design) -> list[str]:
    """Returns a notice if gaps between fixed macros are narrower than a channel."""
    if not design.constraints.has_channels:
        return []
    fixed, centre, half, halo = _fixed_macros(design)
    gap = np.abs(centre[:, None] - centre) - (half[:, None] + half)
    pitches = np.array(design.constraints.coarsest_pitch)
    slack = np.maximum(TOLERANCE, 3 * pitches - TOLERANCE)  # This matches native/cost/legality.hpp.
    needed = _needed_by_halos(centre, halo) + slack
    faces = np.minimum(-gap, 2 * np.minimum(half[:, None], half)) > TOLERANCE
    narrow = (gap > needed) & (gap < np.array(design.constraints.channel) - TOLERANCE) & faces[..., ::-1]
    text = "the gap between the fixed macros {!r} and {!r} is narrower than a channel"
    return _first_pair(design, fixed, narrow.any(axis=2), text)


def _violated_by_fixed(design: Design) -> list[str]:
    """The violations of fixed macros, apart from distances between macros."""
    initial, netlist, constraints = design.initial, design.netlist, design.constraints
    kept, found = keep_outs(design), []
    fixed, *_ = _fixed_macros(design)
    places = ("on a placement blockage", "outside of its region or in another's", "in a port's keep-out")
    for node, (*low, right, top) in zip(fixed.tolist(), netlist.boxes(initial, fixed), strict=True):
        name = netlist.names[node]
        items = kept.of(node)
        boxes = kept.rectangles[items]
        meets = (np.minimum((right, top), boxes[:, 2:]) - np.maximum(low, boxes[:, :2]) > TOLERANCE).all(axis=1)
        found += [f"fixed macro {name!r} is {places[kind]}" for kind in sorted({*kept.kind[items][meets].tolist()})]
        if not constraints.allows(node, int(initial.orientation[node])):
            allowed = ", ".join(orientation_names(int(constraints.orientations[node])))
            turned = Orientation(int(initial.orientation[node])).name
            found.append(f"fixed macro {name!r} has orientation {turned}; allowed: {allowed}")
        if not constraints.grid_of(node, int(initial.orientation[node])).holds(*low):
            found.append(f"fixed macro {name!r} is off the snapping grid")
    return found
