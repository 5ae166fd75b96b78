"""How far standard cells keep from hard macros: the channel that the power distribution network (PDN) needs.

Lengths in µm. The engine's chip cost uses the same constants; `native/chip_constants.hpp` holds them for both.
"""

from __future__ import annotations

import numpy as np

from placement.netlist import _native

DENSITY: float = _native.DENSITY
"""Share of the free area that cells may fill: the default of OpenROAD's placer."""
CELL_SHARE: float = _native.CELL_SHARE
"""Share of a soft macro's area that its cells need: clusters are drawn at half utilisation (Circuit Training)."""
PDN_CHANNEL = 10.0
"""µm around a macro that power straps take in a public contest's flow; about seven rows of NanGate45 cells."""
_ROOMY = 0.7
"""A channel leaves cells that need at most this share of the free area at `DENSITY`: in a fuller design it would decide
the wirelength, and no flow would reserve so much."""


def pdn_channel(width: np.ndarray, height: np.ndarray, *, core: float, cells: float) -> float:
    """µm of channel around each macro: `PDN_CHANNEL`, half of it, or none if the design is too full.

    It depends on the design alone, so that placements compare: the area that is left if all macros are placed side by
    side, a channel apart, has to hold the cells at `DENSITY`.

    Args:
        width: float64 [H], of the hard macros, µm.
        height: float64 [H], µm.
        core: area for macros and cells, µm².
        cells: area of the standard cells, µm².
    """
    need = cells / (_ROOMY * DENSITY)
    for channel in (PDN_CHANNEL, PDN_CHANNEL / 2):
        if core - float(((width + channel) * (height + channel)).sum()) >= need:
            return channel
    return 0.0
