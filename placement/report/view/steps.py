"""What was done to a placement, step by step, so that it can be undone, listed and replayed.

Axis legend: N nodes of the design, K nodes that a step changes. Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from placement.netlist.constraints import Constraints
from placement.netlist.constraints_file import constraints_of, constraints_text
from placement.netlist.design import Design, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import read_text

VERSION = 1
"""Of the file of steps."""


@dataclasses.dataclass(frozen=True, eq=False)
class Places:
    """How some nodes stand.

    Attributes:
        nodes: int32 [K].
        x, y: float64 [K], centres, µm.
        orientation: int8 [K].
        fixed: bool [K].
    """

    nodes: np.ndarray
    x: np.ndarray
    y: np.ndarray
    orientation: np.ndarray
    fixed: np.ndarray

    @classmethod
    def of(cls, placement: Placement, nodes: Sequence[int] | np.ndarray) -> Places:
        """How `nodes` stand in a placement."""
        at = np.asarray(nodes, dtype=np.int32)
        return cls(at, placement.x[at], placement.y[at], placement.orientation[at], placement.fixed[at])

    def on(self, placement: Placement) -> Placement:
        """The placement with these nodes as they stand here."""
        x, y = placement.x.copy(), placement.y.copy()
        orientation, fixed = placement.orientation.copy(), placement.fixed.copy()
        x[self.nodes], y[self.nodes] = self.x, self.y
        orientation[self.nodes], fixed[self.nodes] = self.orientation, self.fixed
        return dataclasses.replace(placement, x=x, y=y, orientation=orientation, fixed=fixed)


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
    """One change of a placement.

    Attributes:
        what: in words, for people.
        before, after: how the nodes that it changes stood, and stand.
        command: the command line that does the same, where there is one.
        old, new: the constraints before and after; None: the step changes none.
    """

    what: str
    before: Places
    after: Places
    command: str | None = None
    old: Constraints | None = None
    new: Constraints | None = None


class ReadStep(NamedTuple):
    """A step of a file: in words, how nodes stand after it, the command, the constraints after it; None: unchanged."""

    what: str
    places: Places
    command: str | None
    constraints: Constraints | None


def difference(what: str, before: Placement, after: Placement, command: str | None = None) -> Step | None:
    """The step from one placement to another; None where they are the same."""
    changed = (before.x != after.x) | (before.y != after.y)
    changed |= (before.orientation != after.orientation) | (before.fixed != after.fixed)
    nodes = np.flatnonzero(changed)
    if not len(nodes):
        return None
    return Step(what, Places.of(before, nodes), Places.of(after, nodes), command)


def steps_text(design: Design, placement_name: str, steps: Iterable[Step]) -> str:
    """The steps as the text of a JSON file; numbers read back equal, bit by bit."""
    names = design.netlist.names
    listed = [
        {
            "what": step.what,
            **({"command": step.command} if step.command else {}),
            **({"constraints": json.loads(constraints_text(design.netlist, step.new))} if step.new else {}),
            "places": [
                [names[node], x, y, Orientation(turned).name, bool(fixed)]
                for node, x, y, turned, fixed in zip(
                    *(getattr(step.after, field.name).tolist() for field in dataclasses.fields(Places)), strict=True
                )
            ],
        }
        for step in steps
    ]
    head = {"version": VERSION, "design": design.name, "placement": placement_name}
    lines = ",\n".join(json.dumps(step, ensure_ascii=False) for step in listed)
    return json.dumps(head, ensure_ascii=False)[:-1] + f', "steps": [\n{lines}\n]}}\n'


def read_steps(path: str | Path, design: Design) -> list[ReadStep]:
    """The steps in a file.

    Raises:
        DesignError: the file cannot be read, is no file of steps, names a node that the design does not have, or holds
            constraints that are none.
    """
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DesignError.at(path, error.lineno, f"is no file of steps: {error.msg}") from None
    if not isinstance(content, dict) or content.get("version") != VERSION or not isinstance(content.get("steps"), list):
        raise DesignError(f"{path}: is no file of steps of version {VERSION}, as the window writes it")
    node_of = {name: node for node, name in enumerate(design.netlist.names)}
    return [_read_step(path, number, step, node_of, design) for number, step in enumerate(content["steps"], start=1)]


def _read_step(path: str | Path, number: int, step: Any, node_of: dict[str, int], design: Design) -> ReadStep:
    try:
        unknown = [name for name, *_ in step["places"] if name not in node_of]
        if unknown:
            raise DesignError(f"{path}: step {number} moves {unknown[0]!r}, which is no node of the design")
        places = Places(
            np.array([node_of[name] for name, *_ in step["places"]], dtype=np.int32),
            np.array([float(place[1]) for place in step["places"]]),
            np.array([float(place[2]) for place in step["places"]]),
            np.array([Orientation[place[3]] for place in step["places"]], dtype=np.int8),
            np.array([place[4] is True for place in step["places"]], dtype=np.bool_),
        )
        constraints = None
        if "constraints" in step:
            constraints = constraints_of(f"{path}: step {number}", json.dumps(step["constraints"]), design.netlist)
        return ReadStep(str(step["what"]), places, step.get("command"), constraints)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DesignError(f"{path}: step {number} is not as the window writes it: {error!r}") from None
