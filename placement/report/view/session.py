"""A placement that is changed by hand: its exact cost, its faults, its steps and their undoing, its recovery.

Axis legend: N nodes of the design, K nodes that a step changes. Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, IncrementalCost
from placement.netlist.constraints import Constraints
from placement.netlist.constraints_file import constraints_of, constraints_text
from placement.netlist.design import LARGEST, Design, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.faults import DragFaults, Faults, find_faults
from placement.netlist.files import read_npz, write_npz

_CHANGEABLE = ("x", "y", "orientation", "fixed")  # the arrays of a placement that a session changes


@dataclasses.dataclass(frozen=True, eq=False)
class Places:
    """Positions of K nodes: nodes (int32), centres x, y (float64, µm), orientation (int8), fixed (bool), [K] each."""

    nodes: np.ndarray
    x: np.ndarray
    y: np.ndarray
    orientation: np.ndarray
    fixed: np.ndarray

    @classmethod
    def of(cls, placement: Placement, nodes: Sequence[int] | np.ndarray) -> Places:
        at = np.asarray(nodes, dtype=np.int32)
        return cls(at, placement.x[at], placement.y[at], placement.orientation[at], placement.fixed[at])

    def on(self, placement: Placement) -> Placement:
        """The placement with these nodes at these positions."""
        changed = {name: getattr(placement, name).copy() for name in _CHANGEABLE}
        for name, values in changed.items():
            values[self.nodes] = getattr(self, name)
        return dataclasses.replace(placement, **changed)


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
    """One change of a placement, `what` in words, with the changed nodes before and after it.

    `command` is a command line with the same effect, if there is one; `old` and `new` are the constraints before and
    after, None if the step changes none.
    """

    what: str
    before: Places
    after: Places
    command: str | None = None
    old: Constraints | None = None
    new: Constraints | None = None


class Session:
    """One placement that is being changed. It must not be used by two threads at once.

    `start` is the placement as opened, `placement` the current one without dragged macros, `costs` those including
    them; `design` has the current constraints. `revision` increases with every change that is kept.
    """

    def __init__(
        self, design: Design, placement: Placement, *, name: str, weights: CostWeights = DEFAULT_WEIGHTS
    ) -> None:
        """Starts from `placement`; raises DesignError if it does not place all nodes of `design`."""
        self.design, self.name, self.weights = design, name, weights
        self._macros = np.isin(design.netlist.kind, (NodeKind.HARD, NodeKind.SOFT))
        # No macro is fixed for the engine, since a person may release it.
        free = dataclasses.replace(placement, fixed=placement.fixed & ~self._macros)
        self._cost = IncrementalCost(design, free, weights=weights)
        self.start = self.placement = placement
        self._dragged: dict[int, tuple[float, float]] = {}
        self._drag_faults: tuple[set[int], DragFaults] | None = None
        self.start_costs = self.costs = self._cost.costs
        self._own_constraints = design.constraints
        self._steps: list[Step] = []
        self._done = self._saved = 0
        self.revision = 0

    @property
    def steps(self) -> Sequence[Step]:
        return self._steps[: self._done]

    @property
    def undone(self) -> Sequence[Step]:
        """Undone steps that can be redone, in their original order."""
        return self._steps[self._done :]

    @property
    def is_saved(self) -> bool:
        """Whether nothing has changed since it was opened or last saved."""
        return self._done == self._saved

    @property
    def has_drawn(self) -> bool:
        """Whether the constraints differ from the design's own."""
        return self.design.constraints is not self._own_constraints

    def mark_saved(self) -> None:
        self._saved = self._done

    def design_now(self) -> Design:
        """The design with the current placement as its initial one, so that macros that a person fixed are fixed."""
        return dataclasses.replace(self.design, initial=self.placement)

    def shown(self) -> Placement:
        if not self._dragged:
            return self.placement
        x, y = np.array(list(self._dragged.values())).T
        return self.placement.moved(np.array(list(self._dragged), dtype=np.int32), x, y)

    def faults(self) -> Faults:
        """Illegally placed hard macros with the reasons, including dragged macros."""
        if not self._dragged:
            return find_faults(self.design, self.placement)
        if self._drag_faults is None or self._drag_faults[0] != self._dragged.keys():
            nodes = set(self._dragged)
            self._drag_faults = nodes, DragFaults(self.design, self.placement, nodes)
        return self._drag_faults[1].find(self.shown())

    def drag(self, places: Mapping[int, tuple[float, float]]) -> Costs:
        """Centres macros at (x, y) µm temporarily; `drop` keeps that, `let_go` reverts it.

        Raises DesignError, and moves nothing, if a node cannot move or a position is not a number.
        """
        for node, (x, y) in places.items():
            self._check(node)
            if not (abs(x) <= LARGEST and abs(y) <= LARGEST):  # This also catches NaN.
                raise DesignError(f"{self._name(node)}: cannot be moved to ({x}, {y}) µm")
        for node, (x, y) in places.items():
            self._cost.move(node, x, y)
            self._dragged[node] = (float(x), float(y))
        self._cost.commit()
        self.costs = self._cost.costs
        return self.costs

    def drop(self) -> Step | None:
        """Keeps the dragged positions as one step; returns None if nothing has moved."""
        what, after = self.phrase("move", sorted(self._dragged)), self.shown()
        self._dragged.clear()
        return self._keep(_difference(what, self.placement, after))

    def let_go(self) -> bool:
        """Reverts a drag; returns whether there was any."""
        nodes = list(self._dragged)
        self._dragged.clear()
        if nodes:
            self._put(Places.of(self.placement, nodes))
        return bool(nodes)

    def change(self, what: str, after: Placement, command: str | None = None) -> Step | None:
        """Changes to the placement `after` as one step; returns None if it is the current one.

        Raises DesignError if `after` has another number of nodes, or moves a port or a cell.
        """
        self.let_go()
        if len(after.x) != len(self.placement.x):
            raise DesignError(f"a placement of {len(after.x)} nodes for one of {len(self.placement.x)}")
        step = _difference(what, self.placement, after, command)
        if step is not None:
            other = step.after.nodes[~self._macros[step.after.nodes]]
            if len(other):
                raise DesignError(f"{self._name(int(other[0]))}: only macros can be moved")
        return self._keep(step)

    def fix(self, nodes: Sequence[int], *, fixed: bool) -> Step | None:
        """Fixes or releases macros as one step; raises DesignError for a node that is not a macro."""
        for node in nodes:
            self._check(node, may_be_fixed=True)
        flags = self.placement.fixed.copy()
        flags[list(nodes)] = fixed
        what = self.phrase("fix" if fixed else "release", nodes)
        return self.change(what, dataclasses.replace(self.placement, fixed=flags))

    def constrain(self, what: str, constraints: Constraints) -> Step:
        """Replaces the constraints as one step; raises DesignError if they are invalid for the design."""
        self.let_go()
        dataclasses.replace(self.design, constraints=constraints)  # This checks them.
        nothing = Places.of(self.placement, [])
        step = self._keep(Step(what, nothing, nothing, old=self.design.constraints, new=constraints))
        assert step is not None
        return step

    def movable(self, nodes: Sequence[int]) -> np.ndarray:
        """The nodes as int32 [K]; raises DesignError for one that cannot move."""
        for node in nodes:
            self._check(node)
        return np.array(nodes, dtype=np.int32)

    def undo(self) -> Step | None:
        """Undoes the last step; returns None if there is none."""
        self.let_go()
        if self._done == 0:
            return None
        self._done -= 1
        step = self._steps[self._done]
        return self._show(step, step.before, step.old)

    def redo(self) -> Step | None:
        """Redoes the step that was undone last; returns None if there is none."""
        self.let_go()
        if self._done == len(self._steps):
            return None
        self._done += 1
        step = self._steps[self._done - 1]
        return self._show(step, step.after, step.new)

    def _keep(self, step: Step | None) -> Step | None:
        """Adds a step after the current ones; undone steps can no longer be redone."""
        if step is None:
            self.costs = self._cost.costs
            return None
        if self._saved > self._done:
            self._saved = -1  # The saved state can no longer be reached.
        self._steps[self._done :] = [step]
        self._done += 1
        return self._show(step, step.after, step.new)

    def _show(self, step: Step, places: Places, constraints: Constraints | None) -> Step:
        if constraints is not None:
            self.design = dataclasses.replace(self.design, constraints=constraints)
        self.placement = places.on(self.placement)
        self._put(places)
        self.revision += 1
        return step

    def _put(self, places: Places) -> None:
        self._drag_faults = None
        columns = (values.tolist() for values in (places.nodes, places.x, places.y, places.orientation))
        for node, x, y, orientation in zip(*columns, strict=True):
            self._cost.move(node, x, y)
            if self.design.netlist.kind[node] == NodeKind.HARD and self._cost.orientation(node) != orientation:
                self._cost.orient(node, orientation)
        self._cost.commit()
        self.costs = self._cost.costs

    def _name(self, node: int) -> str:
        return f"node {self.design.netlist.names[node]!r}"

    def phrase(self, what: str, nodes: Sequence[int]) -> str:
        names = self.design.netlist.names
        return f"{what} {names[nodes[0]]}" if len(nodes) == 1 else f"{what} {len(nodes)} macros"

    def _check(self, node: int, *, may_be_fixed: bool = False) -> None:
        if not 0 <= node < len(self._macros):
            raise DesignError(f"node {node}: the design has nodes 0 to {len(self._macros) - 1}")
        if not self._macros[node]:
            kind = NodeKind(int(self.design.netlist.kind[node])).name.lower()
            raise DesignError(f"{self._name(node)}: is a {kind}, which cannot be moved")
        if self.placement.fixed[node] and not may_be_fixed:
            raise DesignError(f"{self._name(node)}: is fixed; release it first")


def _difference(what: str, before: Placement, after: Placement, command: str | None = None) -> Step | None:
    """The step from one placement to another; None if they are equal."""
    changed = (before.x != after.x) | (before.y != after.y)
    changed |= (before.orientation != after.orientation) | (before.fixed != after.fixed)
    nodes = np.flatnonzero(changed)
    return Step(what, Places.of(before, nodes), Places.of(after, nodes), command) if len(nodes) else None


class Recovery:
    """Unsaved changes on disk, which survive the end of the server.

    They are filed under the initial placement; only the same placement of the same design can recover them.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Keeps them in `folder`, by default in the program's state folder (XDG Base Directory Specification)."""
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        self.folder = state / "macro-placement" / "view" if folder is None else folder

    def keep(self, session: Session) -> None:
        """Writes a session's placement and drawn constraints, or removes their file if nothing is unsaved.

        Raises OSError.
        """
        file = self._file(session)
        if session.is_saved or not session.steps:
            file.unlink(missing_ok=True)
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        drawn = constraints_text(session.design.netlist, session.design.constraints) if session.has_drawn else ""
        arrays = {name: getattr(session.placement, name) for name in _CHANGEABLE}
        write_npz(file, {**arrays, "constraints": np.array(drawn)})

    def bring_back(self, session: Session) -> bool:
        """Makes the kept changes in a session that has just been opened; returns whether there were any.

        Raises DesignError if their file cannot be read.
        """
        file = self._file(session)
        if not file.is_file():
            return False
        arrays = read_npz(file, "state")
        if drawn := str(arrays["constraints"]):
            session.constrain("restore constraints", constraints_of(file, drawn, session.design.netlist))
        session.change(
            "restore", dataclasses.replace(session.placement, **{name: arrays[name] for name in _CHANGEABLE})
        )
        return True

    def _file(self, session: Session) -> Path:
        digest = hashlib.sha256(f"{session.design.name}\n{session.name}\n".encode())
        for array in (session.start.x, session.start.y, session.start.orientation, session.start.fixed):
            digest.update(array.tobytes())
        return self.folder / f"{digest.hexdigest()[:32]}.npz"
