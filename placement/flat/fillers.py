"""Where cells and fillers begin. Fillers are cells without nets in the room to spare, so that cells may stay together.

Axis legend: M movable cells, J fillers, X bins across, Y bins up. Lengths in µm.
"""

from __future__ import annotations

import numpy as np

from placement.flat.grid import Grid, used_share
from placement.flat.problem import FlatProblem
from placement.netlist.errors import DesignError


def first_places(problem: FlatProblem, rng: np.random.Generator) -> np.ndarray:
    """float64 [2, M]: the middle of the core, each cell a little beside it."""
    side = np.array([[problem.core.width], [problem.core.height]])
    return side / 2 + 0.005 * side * rng.normal(size=(2, len(problem.cells)))


def fill(
    problem: FlatProblem,
    cells: np.ndarray | None,
    free: np.ndarray,
    *,
    grid: Grid,
    side: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """float64 [2, J]: places of squares of `side` µm that fill the room which the cells leave of `free` [X, Y].

    They lie where there is room: beside `cells` (float64 [2, M]) if these are given. Raises DesignError where the
    cells need more than there is.
    """
    spare = float(free.sum()) * grid.bin_area - problem.cell_area
    if spare < 0:
        raise DesignError(
            f"the {len(problem.cells)} cells cover {problem.cell_area:.1f} µm², more than the "
            f"{spare + problem.cell_area:.1f} µm² that they may fill"
        )
    room = free
    if cells is not None:
        room = free - used_share(cells[0], cells[1], (problem.width, problem.height), grid=grid)
    chance = np.cumsum(np.maximum(room, 0.0).ravel())
    count = int(spare / side**2) if chance[-1] > 0 else 0
    # Evenly spaced draws: every bin gets its share to within one.
    chosen = np.searchsorted(chance, (np.arange(count) + rng.random(count)) / max(count, 1) * chance[-1], side="right")
    i, j = np.divmod(np.minimum(chosen, free.size - 1), grid.up)
    return np.stack([(i + rng.random(count)) * grid.bin_width, (j + rng.random(count)) * grid.bin_height])
