"""A placement that is being changed by hand: its exact cost, its faults, undo and redo.

Axis legend: N nodes, K nodes that one step changes. Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, IncrementalCost
from placement.netlist.constraints import Constraints
from placement.netlist.design import LARGEST, Design, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.report.view.faults import DragFaults, Faults, find_faults
from placement.report.view.steps import Places, ReadStep, Step, difference


class Session:
    """One placement that is being changed. Not to be used by two threads at once.

    Attributes:
        design: whose placement it is, with the constraints as they are now.
        name: of the placement, for people.
        start_costs: as it was opened.
        costs: as it stands, what is being dragged included.
        revision: rises with every change that is kept.
    """

    def __init__(
        self, design: Design, placement: Placement, *, name: str, weights: CostWeights = DEFAULT_WEIGHTS
    ) -> None:
        """Starts from `placement`; raises DesignError when it is not a whole one of `design`."""
        self.design, self.name, self.weights = design, name, weights
        self._macros = np.isin(design.netlist.kind, (NodeKind.HARD, NodeKind.SOFT))
        # The engine is to move what a person releases, so it is told of no fixed macros.
        free = dataclasses.replace(placement, fixed=placement.fixed & ~self._macros)
        self._cost = IncrementalCost(design, free, weights=weights)
        self._start = self._kept = placement
        self._dragged: dict[int, tuple[float, float]] = {}
        self._drag_faults: tuple[set[int], DragFaults] | None = None
        self.start_costs = self.costs = self._cost.costs
        self._own = design.constraints
        self._steps: list[Step] = []
        self._done = self._saved = 0
        self.revision = 0

    @property
    def start(self) -> Placement:
        """The placement as it was opened."""
        return self._start

    @property
    def placement(self) -> Placement:
        """The placement as it stands, without what is being dragged."""
        return self._kept

    @property
    def is_dragging(self) -> bool:
        """Whether macros are being dragged."""
        return bool(self._dragged)

    def design_now(self) -> Design:
        """The design with the placement as its initial one: what a person has fixed is fixed."""
        return dataclasses.replace(self.design, initial=self._kept, order=None)

    @property
    def steps(self) -> Sequence[Step]:
        """What was done, undone steps left out."""
        return self._steps[: self._done]

    @property
    def undone(self) -> Sequence[Step]:
        """What was undone, and can be done again, in the order in which it was done."""
        return self._steps[self._done :]

    @property
    def is_saved(self) -> bool:
        """Whether nothing was changed since it was opened or last saved."""
        return self._done == self._saved

    def mark_saved(self) -> None:
        """Takes note that the placement as it stands is in a file."""
        self._saved = self._done

    def faults(self) -> Faults:
        """Which hard macros stand where they may not, and why, what is being dragged included."""
        if not self._dragged:
            return find_faults(self.design, self._kept)
        if self._drag_faults is None or self._drag_faults[0] != self._dragged.keys():
            nodes = set(self._dragged)
            self._drag_faults = nodes, DragFaults(self.design, self._kept, nodes)
        return self._drag_faults[1].find(self.shown())

    def drag(self, places: Mapping[int, tuple[float, float]]) -> Costs:
        """Centres macros at (x, y) µm for the time being; `drop` keeps that, `let_go` does not.

        Raises:
            DesignError: a node cannot move, or a place is no number; nothing has moved then.
        """
        for node, (x, y) in places.items():
            self._check(node)
            if not (abs(x) <= LARGEST and abs(y) <= LARGEST):  # also where NaN
                raise DesignError(f"{self._name(node)}: cannot be moved to ({x}, {y}) µm")
        for node, (x, y) in places.items():
            self._cost.move(node, x, y)
            self._dragged[node] = (float(x), float(y))
        self._cost.commit()
        self.costs = self._cost.costs
        return self.costs

    def drop(self) -> Step | None:
        """Keeps what was dragged as one step; None where nothing has moved."""
        nodes = sorted(self._dragged)
        after = self.shown()
        self._dragged.clear()
        what = self._phrase("move", nodes)
        return self._keep(difference(what, self._kept, after))

    def let_go(self) -> None:
        """Takes back what was dragged."""
        if self._dragged:
            nodes = list(self._dragged)
            self._dragged.clear()
            self._put(Places.of(self._kept, nodes))

    def change(self, what: str, after: Placement, command: str | None = None) -> Step | None:
        """Makes the placement `after` as one step; None where it is that already.

        Raises:
            DesignError: `after` has another number of nodes, or moves a port or a cell.
        """
        self.let_go()
        if len(after.x) != len(self._kept.x):
            raise DesignError(f"a placement of {len(after.x)} nodes for one of {len(self._kept.x)}")
        step = difference(what, self._kept, after, command)
        if step is not None:
            other = step.after.nodes[~self._macros[step.after.nodes]]
            if len(other):
                raise DesignError(f"{self._name(int(other[0]))}: only macros can be moved")
        return self._keep(step)

    def fix(self, nodes: Sequence[int], *, fixed: bool) -> Step | None:
        """Fixes macros, or releases them, as one step; raises DesignError for a node that is no macro."""
        for node in nodes:
            self._check(node, may_be_fixed=True)
        flags = self._kept.fixed.copy()
        flags[list(nodes)] = fixed
        what = self._phrase("fix" if fixed else "release", nodes)
        return self.change(what, dataclasses.replace(self._kept, fixed=flags))

    @property
    def constraints(self) -> Constraints:
        """What the macros must keep to: the design's own, and what was drawn."""
        return self.design.constraints

    @property
    def has_drawn(self) -> bool:
        """Whether the constraints are not those of the design."""
        return self.design.constraints is not self._own

    def constrain(self, what: str, constraints: Constraints) -> Step:
        """Has the macros keep to other constraints, as one step; raises DesignError for what no design may have."""
        self.let_go()
        dataclasses.replace(self.design, constraints=constraints)  # may be refused
        nothing = Places.of(self._kept, [])
        step = self._keep(Step(what, nothing, nothing, old=self.constraints, new=constraints))
        assert step is not None
        return step

    def redo_read(self, step: ReadStep) -> None:
        """Does a step of a file; raises DesignError."""
        if step.constraints is not None:
            self.constrain(step.what, step.constraints)
        else:
            self.change(step.what, step.places.on(self.placement), step.command)

    def movable(self, nodes: Sequence[int]) -> np.ndarray:
        """The nodes as int32 [K]; raises DesignError for one that cannot move."""
        for node in nodes:
            self._check(node)
        return np.array(nodes, dtype=np.int32)

    def undo(self) -> Step | None:
        """Takes back the last step; None where there is none."""
        self.let_go()
        if self._done == 0:
            return None
        self._done -= 1
        step = self._steps[self._done]
        return self._show(step, step.before, step.old)

    def redo(self) -> Step | None:
        """Does the last step again that was undone; None where there is none."""
        self.let_go()
        if self._done == len(self._steps):
            return None
        self._done += 1
        step = self._steps[self._done - 1]
        return self._show(step, step.after, step.new)

    def _keep(self, step: Step | None) -> Step | None:
        """Adds a step after those that are done; what was undone can no longer be done again."""
        if step is None:
            self.costs = self._cost.costs
            return None
        if self._saved > self._done:
            self._saved = -1  # what was saved cannot be reached any more
        del self._steps[self._done :]
        self._steps.append(step)
        self._done += 1
        return self._show(step, step.after, step.new)

    def _show(self, step: Step, places: Places, constraints: Constraints | None) -> Step:
        if constraints is not None:
            self.design = dataclasses.replace(self.design, constraints=constraints)
        self._kept = places.on(self._kept)
        self._put(places)
        self.revision += 1
        return step

    def _put(self, places: Places) -> None:
        """Has the engine put nodes where they are to stand."""
        self._drag_faults = None
        for node, x, y, orientation in zip(
            places.nodes.tolist(), places.x.tolist(), places.y.tolist(), places.orientation.tolist(), strict=True
        ):
            self._cost.move(node, x, y)
            if self.design.netlist.kind[node] == NodeKind.HARD and self._cost.orientation(node) != orientation:
                self._cost.orient(node, orientation)
        self._cost.commit()
        self.costs = self._cost.costs

    def shown(self) -> Placement:
        """The placement with what is being dragged."""
        if not self._dragged:
            return self._kept
        nodes = np.array(list(self._dragged), dtype=np.int32)
        x, y = np.array(list(self._dragged.values())).T
        return self._kept.moved(nodes, x, y)

    def _name(self, node: int) -> str:
        return f"node {self.design.netlist.names[node]!r}"

    def _phrase(self, what: str, nodes: Sequence[int]) -> str:
        names = self.design.netlist.names
        return f"{what} {names[nodes[0]]}" if len(nodes) == 1 else f"{what} {len(nodes)} macros"

    def _check(self, node: int, *, may_be_fixed: bool = False) -> None:
        if not 0 <= node < len(self._macros):
            raise DesignError(f"node {node}: the design has nodes 0 to {len(self._macros) - 1}")
        if not self._macros[node]:
            kind = NodeKind(int(self.design.netlist.kind[node])).name.lower()
            raise DesignError(f"{self._name(node)}: is a {kind}, which cannot be moved")
        if self._kept.fixed[node] and not may_be_fixed:
            raise DesignError(f"{self._name(node)}: is fixed; release it first")
