"""Decides whether few boxes have a legal placement, by OR-tools' CP-SAT (package ortools) or by the legaliser's HiGHS.

CP-SAT shares no code with the legaliser. Its lengths are whole nanometres: sizes and distances are rounded down and
limits outwards, so that rounding excludes no placement.
"""

from __future__ import annotations

import math
from typing import Any

from placement.annealing.displacement import Boxes
from placement.annealing.exact_packing import Infeasible, packed_exactly

UNITS = 1000
"""Units per µm."""


def solver_name() -> str:
    """Returns the name of the installed solver."""
    return "HiGHS" if _cp_model() is None else "CP-SAT"


def exists(boxes: Boxes, *, seconds: float) -> bool | None:
    """Returns whether the movable boxes have a legal placement; None if undecided after `seconds`."""
    cp_model = _cp_model()
    if cp_model is not None:
        return _by_cp_sat(cp_model, boxes, seconds)
    try:
        return packed_exactly(boxes, seconds=seconds) is not None or None
    except Infeasible:
        return False


def _cp_model() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        return None
    return cp_model


def _by_cp_sat(cp_model: Any, boxes: Boxes, seconds: float) -> bool | None:
    model, count = cp_model.CpModel(), boxes.movable
    corners, sizes, intervals = [], [], []
    for axis, (at, size) in enumerate(boxes.axes):
        low, high = boxes.low[axis] - size[:count] / 2, boxes.high[axis] - size[:count] / 2
        if (low > high + 1 / UNITS).any():
            return False
        own = [
            model.new_int_var(math.floor(first * UNITS), math.ceil(last * UNITS), f"{axis}.{box}")
            for box, (first, last) in enumerate(zip(low.tolist(), high.tolist(), strict=True))
        ]
        corners.append([*own, *(math.ceil(value * UNITS) for value in (at - size / 2)[count:].tolist())])
        sizes.append([math.floor(value * UNITS) for value in size.tolist()])
        intervals.append([model.new_fixed_size_interval_var(own[box], sizes[axis][box], "") for box in range(count)])
    model.add_no_overlap_2d(*intervals)  # redundant, but speeds up propagation
    pairs = boxes.pairs()
    gaps = boxes.between(*pairs), boxes.between(*pairs[::-1])  # the first one lower, and the second one
    for pair, (first, second) in enumerate(pairs.T.tolist()):
        sides = []
        for axis in range(2):
            for (one, other), gap in zip(((first, second), (second, first)), gaps, strict=True):
                apart = math.floor(float(gap[axis][pair]) * UNITS)
                chosen = model.new_bool_var("")
                model.add(corners[axis][other] >= corners[axis][one] + sizes[axis][one] + apart).only_enforce_if(chosen)
                sides.append(chosen)
        model.add_bool_or(sides)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = seconds, 1
    status = solver.solve(model)
    return {cp_model.INFEASIBLE: False, cp_model.OPTIMAL: True, cp_model.FEASIBLE: True}.get(status)
