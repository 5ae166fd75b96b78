"""The standard cells of a design's flat netlist, as the page draws them.

Axis legend: M cells. Lengths are in µm and count from the canvas's lower left corner.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from placement.netlist.design import Placement
from placement.netlist.flat_design import FlatDesign
from placement.report.view.packing import packed


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """Where cells stand.

    Attributes:
        x, y: float64 [M], centres.
        width, height: float64 [M], as they stand.
        source: what placed them, in words.
    """

    x: np.ndarray
    y: np.ndarray
    width: np.ndarray
    height: np.ndarray
    source: str

    @classmethod
    def of(cls, flat: FlatDesign, placement: Placement, source: str) -> Cells | None:
        """The cells of a flat design as a placement of it has them; None where it places none."""
        core, cells = flat.floorplan.core, flat.cells
        cells = cells[placement.placed[cells]]
        if not len(cells):
            return None
        width, height = (side[cells] for side in flat.netlist.sides(placement.orientation))
        return cls(placement.x[cells] - core.x_low, placement.y[cells] - core.y_low, width, height, source)

    def values(self) -> dict[str, Any]:
        """As the page takes them."""
        arrays = {name: packed(getattr(self, name), "float32") for name in ("x", "y", "width", "height")}
        return {**arrays, "source": self.source}
