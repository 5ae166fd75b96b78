"""A partial placement: macros are placed one by one and can be taken back. Search and tests use it.

Axis legend: R grid rows, C grid columns, T macros to place. Lengths are in µm.
"""

from __future__ import annotations

import numpy as np

from placement.engine import _native
from placement.engine.actions import IllegalAction, explain
from placement.engine.native_design import native_design
from placement.netlist.design import Design


class PlacementState:
    """The movable hard macros of a design put on gcell centres one by one, in `design.placing_order`.

    Every macro keeps the orientation of the design's initial placement; soft macros count as unplaced, ports, cells and
    fixed nodes as placed. Not to be used from several threads at once.
    """

    def __init__(self, design: Design) -> None:
        """Begins with nothing placed; raises a ValueError where the design cannot be played."""
        self.design = design
        self._native = _native.PlacementState(native_design(design))

    @property
    def step(self) -> int:
        """Macros placed so far; the current macro is `design.placing_order[step]`."""
        return self._native.step

    @property
    def legal_cells(self) -> int:
        """Gcells on which the current macro may be centred; 0 when all are placed."""
        return self._native.legal_cells

    def reset(self) -> None:
        """Takes all macros back."""
        self._native.reset()

    def place(self, row: int, column: int) -> None:
        """Centres the current macro on a gcell; raises IllegalAction, naming macro, gcell and why."""
        verdict, obstacle = self._native.place(row, column)
        if verdict != _native.Verdict.legal:
            columns = self.design.action_canvas.columns
            refusal = (0, self.step, 0, verdict, obstacle)
            raise IllegalAction(explain(self.design, self.step, row * columns + column, columns, refusal))

    def undo(self) -> None:
        """Takes the last macro back; everything is bit for bit as before. Raises ValueError where none is placed."""
        self._native.undo()

    def mask(self) -> np.ndarray:
        """Where the current macro may be centred, bool [R, C]."""
        mask = np.empty((self.design.action_canvas.rows, self.design.action_canvas.columns), np.uint8)
        self._native.write_mask(mask)
        return mask.view(np.bool_)

    def wire_mask(self) -> np.ndarray:
        """float64 [R, C]: weighted µm that the current macro adds when centred on each gcell; 0 when complete."""
        columns, rows = np.empty(self.design.action_canvas.columns), np.empty(self.design.action_canvas.rows)
        self._native.write_wire(columns, rows)
        return columns[None, :] + rows[:, None]

    def occupancy(self) -> np.ndarray:
        """float64 [R, C]: share of the gcell that fixed and placed hard macros cover, overlaps counted twice."""
        return self._native.occupancy()

    def density(self) -> np.ndarray:
        """float64 [R, C]: area of everything placed over the gcell's area."""
        return self._native.density()

    def centres(self) -> np.ndarray:
        """float64 [step, 2]: x and y of the placed macros in placing order, µm."""
        return np.array([self._native.centre(index) for index in range(self.step)]).reshape(-1, 2)
