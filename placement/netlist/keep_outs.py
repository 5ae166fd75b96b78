"""The areas where hard macros must not be placed.

Every rule about areas has one form: rectangles, and the hard macros that keep out of each. Blockages and the
surroundings of ports apply to all macros, the canvas outside a region to its members, and an exclusive region to all
others.

Axis legend: N nodes, K rectangles, each (x_low, y_low, x_high, y_high), S sets of rectangles, I members of the sets.
Lengths are in µm.
"""

import enum
import weakref
from typing import NamedTuple

import numpy as np

from placement.netlist.design import Design
from placement.netlist.geometry import clipped, complement, merged_in_line


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
