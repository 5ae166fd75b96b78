"""The exact proxy cost while macros move: each move costs microseconds, not a full evaluation.

The result is the full evaluation's, bit for bit, however many moves and undos came before. Lengths are in µm.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.engine import _native
from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, checked_placement
from placement.engine.native_design import native_design
from placement.netlist.design import LARGEST, Design, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError


class IncrementalCost:
    """A placement whose macros are moved, and its cost after each move. Not to be used by two threads at once.

    Hard macros may be moved, swapped and turned, soft macros moved and swapped; fixed nodes, ports and standard
    cells stay where they are. Nothing keeps macros from overlapping or leaving the canvas: the cost is defined all
    the same, and `placement.engine.costs.legality` tells.

    Example:
        >>> design = placement.load("toy6")
        >>> cost = placement.IncrementalCost(design)
        >>> after = cost.move(int(design.placing_order[0]), x=90.0, y=30.0)
        >>> after == placement.cost(design, cost.placement)
        True
    """

    def __init__(
        self, design: Design, placement: Placement | None = None, *, weights: CostWeights = DEFAULT_WEIGHTS
    ) -> None:
        """Starts from `placement` (the design's own when None); raises DesignError when it is not a whole one."""
        self._design = design
        self._start = checked_placement(design, placement)
        start = self._start
        self._native = _native.IncrementalCost(
            native_design(design), start.x, start.y, start.orientation, tuple(weights)
        )
        movable = np.isin(design.netlist.kind, (NodeKind.HARD, NodeKind.SOFT)) & ~start.fixed
        self._movable: list[bool] = movable.tolist()
        # What undo brings back: for each move since the last commit, where its nodes stood.
        self._history: list[tuple[tuple[int, float, float, int], ...]] = []

    @property
    def costs(self) -> Costs:
        """The cost of the placement as it stands."""
        return Costs(*self._native.costs())

    @property
    def placement(self) -> Placement:
        """A copy of the placement as it stands."""
        x, y = np.empty_like(self._start.x), np.empty_like(self._start.y)
        orientation = np.empty_like(self._start.orientation)
        self._native.write_placement(x, y, orientation)
        return dataclasses.replace(self._start, x=x, y=y, orientation=orientation)

    def orientation(self, node: int) -> int:
        """A macro's, as it stands; raises DesignError for a node that cannot move."""
        self._check(node)
        return int(self._native.at(node)[3])

    def move(self, node: int, x: float, y: float) -> Costs:
        """Centres a macro at (x, y) µm and returns the new cost; raises DesignError for a node that cannot move."""
        self._check(node)
        if not (abs(x) <= LARGEST and abs(y) <= LARGEST):  # also where NaN
            raise DesignError(f"{self._name(node)}: cannot be moved to ({x}, {y}); both must be in ±{LARGEST:g} µm")
        before = self._native.at(node)
        costs = self._native.move(node, x, y, before[3])
        self._history.append((before,))
        return Costs(*costs)

    def swap(self, first: int, second: int) -> Costs:
        """Two macros change places, each keeping its orientation; returns the new cost; raises DesignError."""
        self._check(first)
        self._check(second)
        if first == second:
            raise DesignError(f"{self._name(first)}: cannot change places with itself")
        before = (self._native.at(first), self._native.at(second))
        costs = self._native.swap(first, second)
        self._history.append(before)
        return Costs(*costs)

    def orient(self, node: int, orientation: Orientation | int) -> Costs:
        """Turns a hard macro to an orientation (not by it) and returns the new cost; raises DesignError."""
        self._check(node)
        if self._design.netlist.kind[node] != NodeKind.HARD:
            raise DesignError(f"{self._name(node)}: is a soft macro; only hard macros have an orientation")
        if orientation not in Orientation.__members__.values():
            raise DesignError(f"{self._name(node)}: orientation {orientation} must be in [0, {len(Orientation)})")
        before = self._native.at(node)
        costs = self._native.move(node, before[1], before[2], int(orientation))
        self._history.append((before,))
        return Costs(*costs)

    def undo(self) -> Costs:
        """Takes back the last move since the last commit and returns the cost; raises IndexError when there is none."""
        if not self._history:
            raise IndexError("nothing to undo: no move since the last commit")
        before = self._history.pop()
        if self._native.pending:  # the very last move: its old state is still at hand
            self._native.undo()
        elif len(before) == 1:
            self._native.move(*before[0])
            self._native.accept()
        else:
            self._native.swap(before[0][0], before[1][0])
            self._native.accept()
        return self.costs

    def commit(self) -> None:
        """Keeps all moves made so far; they can no longer be undone."""
        self._native.accept()
        self._history.clear()

    def _name(self, node: int) -> str:
        return f"node {self._design.netlist.names[node]!r} (number {node})"

    def _check(self, node: int) -> None:
        if not 0 <= node < len(self._movable):
            raise DesignError(f"node {node}: design {self._design.name!r} has nodes 0 to {len(self._movable) - 1}")
        if not self._movable[node]:
            kind = NodeKind(int(self._design.netlist.kind[node]))
            what = "fixed" if kind in (NodeKind.HARD, NodeKind.SOFT) else f"a {kind.name.lower()}, no macro"
            raise DesignError(f"{self._name(node)}: cannot move, it is {what}")
