"""The policy's constants of each design: sizes, spring targets and grid, as padded arrays.

Axis legend: G designs, T macros to place (padded to the maximum of all designs), K spring targets (direct, sequential).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from placement.flat.clusters import place_design
from placement.netlist.design import Design, Netlist, Placement
from placement.netlist.distribution import DesignBounds
from placement.netlist.errors import DesignError
from placement.policy.springs import TARGETS, spring_targets

Array: TypeAlias = Any  # a NumPy array on the host, a JAX array inside the network


class GraphInputs(NamedTuple):
    """Constants of the designs, stacked. The arrays of a single design have no leading G axis."""

    macros: Array  # int32 [G], number of macros to place
    size: Array  # float32 [G, T, 2], the macros' width and height in canvas fractions
    target_weights: Array  # float32 [G, K, T, T], see `placement.policy.springs.SpringTargets.weights`
    target_fixed: Array  # float32 [G, K, T, 2], see `SpringTargets.fixed`
    stiffness: Array  # float32 [G, K, T], see `SpringTargets.stiffness`
    grid: Array  # int32 [G, 2], rows and columns
    aspect: Array  # float32 [G, 2], canvas width and height over their mean
    # float32 [G, T, 2], each macro's position in an electrostatic placement of hard and soft macros, in canvas
    # fractions; NaN if the placement failed or was not requested
    electrostatic: Array


_KNOWN: weakref.WeakKeyDictionary[Design, GraphInputs] = weakref.WeakKeyDictionary()
_PLACED: weakref.WeakKeyDictionary[Netlist, tuple[tuple[Any, ...], Placement | None]] = weakref.WeakKeyDictionary()
"""Electrostatic placements, each with the objects besides the netlist that it was computed from; None: it failed."""


def graph_inputs(design: Design, *, electrostatic: bool = False) -> GraphInputs:
    """Returns the constants of one design, without padding; kept as long as `design` lives. They must not be changed.

    `electrostatic` requests the macros' electrostatic positions, which take seconds. Raises DesignError if the design
    has no macro to place.
    """
    known = _KNOWN.get(design)
    if known is None:
        known = _KNOWN.setdefault(design, _graph_inputs(design))
    return known._replace(electrostatic=_electrostatic_positions(design)) if electrostatic else known


def _electrostatic_positions(design: Design) -> np.ndarray:
    """Returns `GraphInputs.electrostatic`, float32 [T, 2]; computed once for all grids of actions and macro orders."""
    made_of = (design.initial, design.constraints, design.canvas, design.pdn_channel)
    known, placed = _PLACED.get(design.netlist, ((), None))
    if [id(one) for one in known] != [id(one) for one in made_of]:
        try:
            placed = place_design(design)
        except DesignError:  # too little whitespace for the method
            placed = None
        _PLACED[design.netlist] = made_of, placed
    macros = design.placing_order
    if placed is None:
        return np.full((len(macros), 2), np.nan, np.float32)
    extent = np.array([design.canvas.width, design.canvas.height])
    return (np.stack((placed.x, placed.y), axis=1)[macros] / extent).astype(np.float32)


def _graph_inputs(design: Design) -> GraphInputs:
    if not len(design.placing_order):
        raise DesignError(
            f"design {design.name!r} has no movable hard macro: there is nothing to place (import --free-macros frees "
            "macros that the files fix)"
        )
    solved, macros = spring_targets(design), design.placing_order
    canvas, extent = design.action_canvas, np.array([design.canvas.width, design.canvas.height])
    size = np.stack(design.netlist.sides(design.initial.orientation), axis=1)[macros] / extent
    return GraphInputs(
        macros=np.int32(len(macros)),
        size=size.astype(np.float32),
        target_weights=solved.weights.astype(np.float32),
        target_fixed=solved.fixed.astype(np.float32),
        stiffness=solved.stiffness.astype(np.float32),
        grid=np.array([canvas.rows, canvas.columns], np.int32),
        aspect=(extent / extent.mean()).astype(np.float32),
        electrostatic=np.full((len(macros), 2), np.nan, np.float32),
    )


def stack(designs: Sequence[GraphInputs], *, macros: int = 0) -> GraphInputs:
    """Pads the inputs of several designs to a common T of at least `macros`, and stacks them."""
    most = max([macros, *(len(item.size) for item in designs)])
    lengths: dict[str, tuple[int, ...]] = dict.fromkeys(("size", "electrostatic"), (most,))
    lengths |= dict.fromkeys(("stiffness", "target_fixed"), (TARGETS, most))
    lengths["target_weights"] = (TARGETS, most, most)
    fields = {}
    for name in GraphInputs._fields:
        arrays = [np.asarray(getattr(item, name)) for item in designs]
        fields[name] = np.stack([_padded(array, lengths.get(name, ())) for array in arrays])
    return GraphInputs(**fields)


def stack_drawn(designs: Sequence[Design], bounds: DesignBounds, *, count: int, electrostatic: bool) -> GraphInputs:
    """Stacks the inputs of designs drawn from a distribution, padded to its bounds so that all draws have equal shapes.

    G is `count`; the first design fills the rows that remain.
    """
    found = [graph_inputs(design, electrostatic=electrostatic) for design in designs]
    return stack(found + found[:1] * (count - len(found)), macros=bounds.macros)


def _padded(array: np.ndarray, lengths: tuple[int, ...]) -> np.ndarray:
    """Pads the leading axes of `array` with zeros at the end, up to `lengths`."""
    padding = [(0, length - have) for length, have in zip(lengths, array.shape, strict=False)]
    return np.pad(array, padding + [(0, 0)] * (array.ndim - len(padding))) if lengths else array
