"""Edits of selected macros (rotate, mirror, swap, align, distribute) and of constraints.

Each function makes the placement or the constraints that the session applies as one step. Axis legend: K selected
macros. Lengths are in µm.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from placement.netlist.constraints import Constraints, four_sides
from placement.netlist.design import TURN, Design, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.floorplan import Region

# Applied to the oriented macro: (a, b, c, d) maps an offset (dx, dy) to (a·dx + b·dy, c·dx + d·dy).
_TURNS = {
    "left": TURN[Orientation.W],
    "right": TURN[Orientation.E],
    "half": TURN[Orientation.S],
    "mirror_x": TURN[Orientation.FN],
    "mirror_y": TURN[Orientation.FS],
}
TURNS = tuple(_TURNS)  # quarter turns, a half turn; mirrored left to right (x) or upside down (y)
_ALIGNMENTS = {  # the axis, and the edges (or middles) that are aligned
    "left": (0, "low"),
    "right": (0, "high"),
    "bottom": (1, "low"),
    "top": (1, "high"),
    "centre_x": (0, "middle"),
    "centre_y": (1, "middle"),
}
_DIGITS = 4  # decimal places of drawn lengths, which resolve a tenth of a nanometre


def edit(design: Design, placement: Placement, nodes: np.ndarray, what: str, how: str) -> Placement:
    """The placement after macros (int32 [K]) are edited; raises DesignError if they cannot be.

    `what` is turn (`how`: one of `TURNS`), swap, align (one of `_ALIGNMENTS`) or distribute (x or y).
    """
    if what not in _EDITS:
        raise DesignError(f"edit {what!r}: must be turn, swap, align, distribute, move, fix or release")
    return _EDITS[what](design, placement, nodes, how)


def _turn(design: Design, placement: Placement, nodes: np.ndarray, how: str) -> Placement:
    """Rotates or mirrors hard macros about their own centres."""
    _known(how, _TURNS, "turn")
    soft = nodes[design.netlist.kind[nodes] != NodeKind.HARD]
    if len(soft):
        raise DesignError(f"{design.netlist.names[soft[0]]}: is a soft macro; only hard macros have an orientation")
    matrices = _TURNS[how].reshape(2, 2) @ TURN[placement.orientation[nodes]].reshape(-1, 2, 2)
    orientation = placement.orientation.copy()
    orientation[nodes] = (matrices.reshape(-1, 1, 4) == TURN).all(axis=2).argmax(axis=1)
    return dataclasses.replace(placement, orientation=orientation)


def _swap(design: Design, placement: Placement, nodes: np.ndarray, how: str) -> Placement:
    """Exchanges the positions of two macros."""
    if len(nodes) != 2:
        raise DesignError(f"{len(nodes)} macros are selected: only two can be swapped")
    return placement.moved(nodes, placement.x[nodes][::-1], placement.y[nodes][::-1])


def _align(design: Design, placement: Placement, nodes: np.ndarray, how: str) -> Placement:
    """Moves macros so that they share an edge or a common middle."""
    _known(how, _ALIGNMENTS, "align")
    _at_least(nodes, 2, "aligned")
    axis, edge = _ALIGNMENTS[how]
    centre, length = _extent(design, placement, nodes, axis)
    low, high = (centre - length / 2).min(), (centre + length / 2).max()
    aligned = {"low": low + length / 2, "high": high - length / 2, "middle": np.full_like(centre, (low + high) / 2)}
    return _moved(placement, nodes, axis, aligned[edge])


def _distribute(design: Design, placement: Placement, nodes: np.ndarray, how: str) -> Placement:
    """Moves macros along an axis so that the gaps between neighbours are equal; the outer ones stay."""
    _known(how, "xy", "distribute along")
    _at_least(nodes, 3, "distributed")
    axis = "xy".index(how)
    order = nodes[np.argsort((placement.x, placement.y)[axis][nodes], kind="stable")]
    centre, length = _extent(design, placement, order, axis)
    low, high = centre[0] - length[0] / 2, centre[-1] + length[-1] / 2
    gap = (high - low - length.sum()) / (len(order) - 1)
    centres = low + np.concatenate([[0.0], np.cumsum(length[:-1] + gap)]) + length / 2
    centres[[0, -1]] = centre[[0, -1]]
    return _moved(placement, order, axis, centres)


_EDITS: dict[str, Callable[[Design, Placement, np.ndarray, str], Placement]] = {
    "turn": _turn,
    "swap": _swap,
    "align": _align,
    "distribute": _distribute,
}


def _known(how: str, allowed: Mapping[str, Any] | str, what: str) -> None:
    if how not in tuple(allowed):
        raise DesignError(f"{what} {how!r}: must be one of {', '.join(allowed)}")


def _at_least(nodes: np.ndarray, count: int, what: str) -> None:
    if len(nodes) < count:
        raise DesignError(f"{len(nodes)} macros are selected: {count} or more can be {what}")


def _extent(design: Design, placement: Placement, nodes: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres and lengths of macros along an axis, 0 for x and 1 for y; float64 [K] each."""
    return (placement.x, placement.y)[axis][nodes], design.netlist.sides(placement.orientation)[axis][nodes]


def _moved(placement: Placement, nodes: np.ndarray, axis: int, centres: np.ndarray) -> Placement:
    x, y = (placement.x[nodes], centres) if axis else (centres, placement.y[nodes])
    return placement.moved(nodes, x, y)


def constrain(design: Design, request: Mapping[str, Any]) -> tuple[str, Constraints]:
    """A description of the change, and the constraints after it; raises DesignError if it is impossible.

    `request` has `what`, one of `blockage`, `region`, `halo`, `remove_blockage`, `remove_region`, and its arguments:
    `rectangle` [x_low, y_low, x_high, y_high], `nodes`, `name` and `exclusive` of a region, `halo` [x, y] or [left,
    bottom, right, top], and `index` of the removed object.
    """
    what, before = str(request["what"]), design.constraints
    if what == "blockage":
        blockages = np.concatenate((before.blockages, _rectangle(design, request)))
        return what, dataclasses.replace(before, blockages=blockages)
    if what == "region":
        region = _region(design, request)
        return f"region {region.name}", dataclasses.replace(before, regions=(*before.regions, region))
    if what == "halo":
        sides, nodes, halo = [float(side) for side in request["halo"]], _hard(design, request), before.halo.copy()
        halo[nodes] = four_sides([sides])[0]
        names = design.netlist.names[nodes[0]] if len(nodes) == 1 else f"{len(nodes)} macros"
        text = " × ".join(f"{side:g}" for side in sides)
        return f"halo {text} µm of {names}", dataclasses.replace(before, halo=halo)
    if what == "remove_blockage":
        index = _index(request, len(before.blockages), "blockages")
        return "remove blockage", dataclasses.replace(before, blockages=np.delete(before.blockages, index, axis=0))
    if what == "remove_region":
        index = _index(request, len(before.regions), "regions")
        regions = before.regions[:index] + before.regions[index + 1 :]
        return f"remove region {before.regions[index].name}", dataclasses.replace(before, regions=regions)
    raise DesignError(f"constrain {what!r}: must be one of blockage, region, halo, remove_blockage, remove_region")


def _region(design: Design, request: Mapping[str, Any]) -> Region:
    taken = {region.name for region in design.constraints.regions}
    free = next(name for number in range(1, len(taken) + 2) if (name := f"region {number}") not in taken)
    name = str(request.get("name", "")).strip() or free
    rectangle, nodes = _rectangle(design, request), _hard(design, request)
    return Region(name, rectangle, nodes, is_exclusive=request.get("exclusive") is True)


def _rectangle(design: Design, request: Mapping[str, Any]) -> np.ndarray:
    """The part of the drawn rectangle that is on the canvas, float64 [1, 4]; raises DesignError if there is none."""
    canvas = design.canvas
    drawn = np.array(request["rectangle"], dtype=np.float64).reshape(1, 4)
    corners: np.ndarray = np.round(np.clip(drawn, 0.0, [canvas.width, canvas.height] * 2), _DIGITS)
    if not (corners[0, :2] < corners[0, 2:]).all():
        raise DesignError("the rectangle is outside the canvas, or is empty: draw it from corner to corner")
    return corners


def _hard(design: Design, request: Mapping[str, Any]) -> np.ndarray:
    """The request's hard macros, int32 [K]; raises DesignError if there are none."""
    nodes = np.unique(np.array([int(node) for node in request["nodes"]], dtype=np.int32))
    hard: np.ndarray = nodes[np.isin(nodes, design.netlist.hard)]
    if not len(hard):
        raise DesignError("select hard macros first")
    return hard


def _index(request: Mapping[str, Any], count: int, what: str) -> int:
    index = int(request["index"])
    if not 0 <= index < count:
        raise DesignError(f"{what} {index}: there are {count}")
    return index
