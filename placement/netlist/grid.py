"""The number of rows and columns of a design's grid, chosen by Circuit Training's rule.

The rule (google-research/circuit_training, `grid_size_selection`, as first published): of all grids of 10 to 127
columns and rows, 500 to 2,500 gcells (a later version: 4,096), and gcells no more than 1.5 times as wide as high or
the other way round, in which the macros can be packed at all, rate each by the share of gcells that the packed macros
leave empty, plus what macros side by side waste neither across nor up; of those within 5% of the best rating, take
the one with the highest rating per gcell.

Axis legend: H macros.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from placement.netlist import _native
from placement.netlist.errors import DesignError


@dataclasses.dataclass(frozen=True)
class GridRule:
    """The bounds of the choice.

    Attributes:
        least, most: columns and rows, each.
        least_cells, most_cells: gcells.
        aspect: the largest ratio of a gcell's sides.
        tolerance: how far below the best rating a smaller grid may be, as a share of it.
        spacing: µm left between macros: it is added to their widths and heights.
    """

    least: int = 10
    most: int = 127
    least_cells: int = 500
    most_cells: int = 2500
    aspect: float = 1.5
    tolerance: float = 0.05
    spacing: float = 0.0


@dataclasses.dataclass(frozen=True)
class GridRating:
    """What one grid is worth.

    Attributes:
        columns, rows: of the grid.
        empty: the share of gcells that packed macros leave untouched.
        waste_across, waste_up: the share of the spanned gcells that macros side by side leave unused.
    """

    columns: int
    rows: int
    empty: float
    waste_across: float
    waste_up: float

    @property
    def rating(self) -> float:
        """0 to 3; larger is better."""
        return self.empty + (1 - self.waste_across) + (1 - self.waste_up)

    @property
    def cells(self) -> int:
        """Gcells of the grid."""
        return self.columns * self.rows


def choose_grid(
    width: float, height: float, macro_width: np.ndarray, macro_height: np.ndarray, *, rule: GridRule | None = None
) -> GridRating:
    """The grid for a canvas and its movable hard macros.

    Args:
        width: µm, of the canvas.
        height: µm, of the canvas.
        macro_width: float64 [H], µm, in file order.
        macro_height: float64 [H], µm.
        rule: bounds and tolerances; default: the published ones.

    Raises:
        DesignError: the macros can be packed into none of the grids.
    """
    bounds = rule or GridRule()
    ratings = grid_ratings(width, height, macro_width, macro_height, rule=bounds)
    if not ratings:
        raise DesignError(
            f"{len(macro_width)} macros cannot be packed, centred in gcells, into any grid of {bounds.least_cells} to "
            f"{bounds.most_cells} gcells on a canvas of {width:g} × {height:g} µm: give columns and rows, or more room"
        )
    best = max(rating.rating for rating in ratings)
    good = [rating for rating in ratings if rating.rating >= best * (1 - bounds.tolerance)]
    # Ties go to the better rating, then to the order of the search, rows first.
    good.sort(key=lambda rating: -rating.rating)
    return max(good, key=lambda rating: rating.rating / rating.cells)


def grid_ratings(
    width: float, height: float, macro_width: np.ndarray, macro_height: np.ndarray, *, rule: GridRule
) -> list[GridRating]:
    """Every grid within the bounds in which the macros can be packed; arguments as of `choose_grid`."""
    widths, heights = macro_width + rule.spacing, macro_height + rule.spacing
    order = np.argsort(-(macro_width * macro_height), kind="stable")
    packed_width, packed_height = widths[order].tolist(), heights[order].tolist()
    across = {count: waste(widths, width / count) for count in range(rule.least, rule.most + 1)}
    up = {count: waste(heights, height / count) for count in range(rule.least, rule.most + 1)}
    ratings = []
    for rows in range(rule.least, rule.most + 1):
        for columns in range(rule.least, rule.most + 1):
            aspect = (width / columns) / (height / rows)
            if not (rule.least_cells <= columns * rows <= rule.most_cells) or max(aspect, 1 / aspect) > rule.aspect:
                continue
            empty = _native.empty_share(width, height, columns, rows, packed_width, packed_height, tolerance=0.0)
            if empty >= 0:
                ratings.append(GridRating(columns, rows, empty, across[columns], up[rows]))
    return ratings


def waste(sides: np.ndarray, step: float) -> float:
    """The share of the gcells they span that macros side by side leave unused.

    Each macro's middle stands at the middle of a gcell, so that it spans an odd number of them; it shares its first
    gcell with the macro before it where both of their ends fit into one.

    Args:
        sides: float64 [H], µm, above 0.
        step: µm, a gcell's side.
    """
    if not len(sides):
        return 0.0
    spanned, previous = 0, 0.0
    for side in sides.tolist():
        cells = 2 * max(0, math.ceil((side / step - 1) / 2 - 1e-12)) + 1
        end = step - (cells * step - side) / 2
        spanned += cells - (end + previous <= step)
        previous = end
    total = (spanned + 1) * step
    return float((total - sides.sum()) / total)
