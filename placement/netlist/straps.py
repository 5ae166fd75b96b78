"""How far standard cells keep from hard macros: room for power straps.

Lengths in µm.
"""

from __future__ import annotations

import numpy as np

DENSITY = 0.7
"""Share of the free room that cells may fill: what OpenROAD's placer takes where it is told nothing."""

STRAPS = 10.0
"""µm around a macro that power straps take, as a public contest's flow has it; about seven rows of NanGate45 cells."""

ROOMY = 0.7
"""The straps leave cells that need at most this share of the room at `DENSITY`: in a design fuller than that they would
decide the wirelength, and no flow would take so much."""

CELL_SHARE = 0.5
"""Of a soft macro's area that its cells need: clusters are drawn at half utilisation (Circuit Training)."""


def straps_between(width: np.ndarray, height: np.ndarray, *, core: float, cells: float) -> float:
    """µm around each macro that are for power straps: `STRAPS`, or half, or none of it where the design is too full.

    The same for all placements of a design, so that they compare: what would be left if macros stood side by side, as
    far apart as the straps are wide, has to hold the cells at `DENSITY`.

    Args:
        width: float64 [H], of the hard macros, µm.
        height: float64 [H], of the same.
        core: area where macros and cells may stand, µm².
        cells: area of the standard cells, µm².
    """
    need = cells / (ROOMY * DENSITY)
    for straps in (STRAPS, STRAPS / 2):
        if core - float(((width + straps) * (height + straps)).sum()) >= need:
            return straps
    return 0.0
