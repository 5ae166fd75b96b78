"""Hard macros that stand together as one block, in rows and columns: one node of the netlist, many of the user's files.

Axis legend: M macros of an array, in rows from its lower left corner. Lengths in µm.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.design import TURN, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.floorplan import frozen

STRAYED = 1.5
"""Database units by which a macro may stand beside its place: corners and sides are rounded to them."""


@dataclasses.dataclass(frozen=True, eq=False)
class MacroArray:
    """Macros of one size that are placed, mirrored and turned as one. All arrays are read-only.

    Attributes:
        node: of the flat netlist, which stands for all of them.
        names: M names, as the files give them, unescaped.
        written_names: the same as the user's DEF file writes them.
        width, height: µm, of each macro in orientation N.
        dx, dy: float64 [M], µm, each macro's centre from the array's, both in orientation N.

    Raises:
        DesignError: there are fewer than two macros, or a length is wrong.
    """

    node: int
    names: tuple[str, ...]
    written_names: tuple[str, ...]
    width: float
    height: float
    dx: np.ndarray
    dy: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "dx", frozen(self.dx, np.float64))
        object.__setattr__(self, "dy", frozen(self.dy, np.float64))
        count = len(self.names)
        if count < 2 or {len(self.written_names), len(self.dx), len(self.dy)} != {count}:
            raise DesignError(
                f"an array of {count} macros and {len(self.dx)} places: must be two or more, as many of both"
            )

    def members_at(self, x: float, y: float, orientation: int) -> tuple[np.ndarray, np.ndarray]:
        """float64 [M] each: the macros' centres where the array's centre stands at (x, y) in an orientation.

        The macros have the same orientation.
        """
        turn = TURN[orientation]
        return x + turn[0] * self.dx + turn[1] * self.dy, y + turn[2] * self.dx + turn[3] * self.dy

    def corners_at(self, x: float, y: float, orientation: int) -> np.ndarray:
        """float64 [M, 4, 2]: the corners of the macros' boxes where the array's centre stands at (x, y)."""
        centres = np.stack(self.members_at(x, y, orientation), axis=1)
        half = np.array([self.width, self.height]) / 2
        if Orientation(orientation).swaps_sides:
            half = half[::-1]
        return centres[:, None] + half * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])

    def place_of(
        self, x: np.ndarray, y: np.ndarray, orientation: np.ndarray, *, tolerance: float
    ) -> tuple[float, float, Orientation] | None:
        """Where the array stands, by the places of its macros; None where these do not stand as an array.

        Args:
            x: float64 [M], µm, the macros' centres.
            y: float64 [M], the same.
            orientation: int [M].
            tolerance: µm, by which a macro may stand beside its place, on each axis.
        """
        turn = TURN[orientation[0]]
        centre_x = x - turn[0] * self.dx - turn[1] * self.dy
        centre_y = y - turn[2] * self.dx - turn[3] * self.dy
        middle_x, middle_y = float(np.median(centre_x)), float(np.median(centre_y))
        strayed = max(float(np.abs(centre_x - middle_x).max()), float(np.abs(centre_y - middle_y).max()))
        if (orientation != orientation[0]).any() or strayed > tolerance:
            return None
        return middle_x, middle_y, Orientation(orientation[0])
