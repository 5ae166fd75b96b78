"""Every rule about areas in one form: rectangles, and the hard macros that keep off each.

A blockage and the surroundings of a port hold for all; what a region leaves free of the canvas holds for its members;
an exclusive region holds for all others.

Axis legend: N nodes, K rectangles, S sets of rectangles, I members of the sets. Lengths are in µm.
"""

from __future__ import annotations

import enum
import weakref
from typing import NamedTuple

import numpy as np

from placement.netlist.design import Design
from placement.netlist.rectangles import clipped, complement, merged_in_line


class KeepOutKind(enum.IntEnum):
    """The rule that a rectangle comes from."""

    BLOCKAGE = 0
    REGION = 1
    PORT = 2


class KeepOuts(NamedTuple):
    """Where hard macros may not stand.

    Attributes:
        rectangles: float64 [K, 4].
        kind: int8 [K], `KeepOutKind` values.
        set_of: int32 [N], the set that a hard macro keeps off; -1 for other nodes.
        set_start: int32 [S+1].
        items: int32 [I]; set s has the rectangles `items[set_start[s]:set_start[s+1]]`.
    """

    rectangles: np.ndarray
    kind: np.ndarray
    set_of: np.ndarray
    set_start: np.ndarray
    items: np.ndarray

    def of(self, node: int) -> np.ndarray:
        """int32 [·]: the rectangles that a hard macro keeps off."""
        index = int(self.set_of[node])
        return self.items[self.set_start[index] : self.set_start[index + 1]]


_CACHE: weakref.WeakKeyDictionary[Design, KeepOuts] = weakref.WeakKeyDictionary()


def keep_outs(design: Design) -> KeepOuts:
    """Where a design's hard macros may not stand; cached for as long as `design` lives."""
    found = _CACHE.get(design)
    return _CACHE.setdefault(design, _build(design)) if found is None else found


def port_surroundings(design: Design) -> np.ndarray:
    """float64 [·, 4]: what the ports' keep-out covers, squares that touch in a line merged."""
    reach = design.constraints.port_keepout
    if reach <= 0:
        return np.zeros((0, 4))
    ports = design.netlist.ports
    x, y = design.initial.x[ports], design.initial.y[ports]
    squares = np.stack((x - reach, y - reach, x + reach, y + reach), axis=1)
    return merged_in_line(clipped(squares, design.canvas.width, design.canvas.height))


def _build(design: Design) -> KeepOuts:
    netlist, canvas, constraints = design.netlist, design.canvas, design.constraints
    parts = [(clipped(constraints.blockages, canvas.width, canvas.height), KeepOutKind.BLOCKAGE)]
    parts.append((port_surroundings(design), KeepOutKind.PORT))
    everybody = list(range(sum(len(rectangles) for rectangles, _ in parts)))
    members: list[tuple[set[int], list[int], list[int]]] = []  # nodes, what they keep off, what others keep off
    for region in constraints.regions:
        outside = complement(region.rectangles, canvas.width, canvas.height)
        inside = region.rectangles if region.is_exclusive else np.zeros((0, 4))
        first = sum(len(rectangles) for rectangles, _ in parts)
        middle, last = first + len(outside), first + len(outside) + len(inside)
        parts += [(outside, KeepOutKind.REGION), (inside, KeepOutKind.REGION)]
        members.append((set(region.nodes.tolist()), list(range(first, middle)), list(range(middle, last))))
    numbers: dict[tuple[int, ...], int] = {}
    set_of = np.full(netlist.num_nodes, -1, dtype=np.int32)
    for node in netlist.hard.tolist():
        items = list(everybody)
        for nodes, own, others in members:
            items += own if node in nodes else others
        set_of[node] = numbers.setdefault(tuple(items), len(numbers))
    return KeepOuts(
        rectangles=np.concatenate([rectangles for rectangles, _ in parts]),
        kind=np.concatenate([np.full(len(rectangles), kind, dtype=np.int8) for rectangles, kind in parts]),
        set_of=set_of,
        set_start=np.cumsum([0, *(len(items) for items in numbers)]).astype(np.int32),
        items=np.array([item for items in numbers for item in items], dtype=np.int32),
    )
