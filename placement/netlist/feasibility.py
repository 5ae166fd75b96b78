"""Finds whether constraints can be met, before a run starts.

A rejected set of constraints certainly has no legal placement; an accepted one may have none.

Axis legend: K rectangles, each (x_low, y_low, x_high, y_high), F fixed hard macros. Lengths are in µm.
"""

import dataclasses
import weakref

import numpy as np

from placement.netlist.constraints import SnapGrid
from placement.netlist.design import Design, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.faults import find_faults
from placement.netlist.geometry import LEAST, clipped, covered, grown, union_area
from placement.netlist.keep_outs import KeepOutKind, keep_outs

TOLERANCE = LEAST  # µm; lengths that differ by less, from rounding, are equal, as in the engine
MOST_NAMED = 10


_CHECKED: weakref.WeakKeyDictionary[Design, tuple[str, ...]] = weakref.WeakKeyDictionary()


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
    faults = find_faults(design, design.initial, _fixed_macros(design))
    violated = tuple(
        f"fixed macro {design.netlist.names[node]!r}: {'; '.join(found)}" for node, found in faults.items()
    )
    return _CHECKED.setdefault(design, violated)


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


def _fixed_macros(design: Design) -> np.ndarray:
    """The fixed hard macros, int32 [F]."""
    return design.netlist.hard[design.initial.fixed[design.netlist.hard]]


def _taken_by_fixed(design: Design, halo: np.ndarray) -> np.ndarray:
    """The rectangles that fixed hard macros block for a macro with a halo (four sides, float64 [4]), float64 [K, 4]."""
    fixed, initial = _fixed_macros(design), design.initial
    gap = design.constraints.turned_halo(initial.orientation)[fixed] + np.roll(halo, 2)  # of opposite sides
    reach = np.where(gap > 0, gap, -design.canvas.overlap_threshold)
    boxes = design.netlist.boxes(initial, fixed) + reach * (-1, -1, 1, 1)
    return boxes[(boxes[:, :2] < boxes[:, 2:]).all(axis=1)]
