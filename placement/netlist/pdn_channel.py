"""The channel around hard macros that the power distribution network (PDN) needs and cells keep free.

Lengths in µm. The engine's chip cost uses the same constants; `native/chip_constants.hpp` defines them for both.
"""

import numpy as np

from placement.netlist import _native

DENSITY: float = _native.DENSITY  # fraction of the free area that cells may fill; the default of OpenROAD's placer
CELL_SHARE: float = _native.CELL_SHARE
"""Fraction of a soft macro's area that its cells need; clusters are drawn at half utilisation (Circuit Training)."""
PDN_CHANNEL = 10.0
"""Width in µm that power straps take around a macro in a public contest's flow; about seven rows of NanGate45 cells."""
_ROOMY = 0.7
"""Maximum fraction of the free area at `DENSITY` that cells need beside a channel; in a fuller design the channel would
decide the wirelength, and no flow would reserve so much."""


def pdn_channel(width: np.ndarray, height: np.ndarray, *, core: float, cells: float) -> float:
    """Width in µm of the channel around each macro: `PDN_CHANNEL`, half of it, or 0 if the design is too full.

    It depends only on the design, so that placements are comparable: the area that is left if all macros are placed
    side by side, a channel apart, must suffice for the cells at `DENSITY`. `width` and `height` (float64 [H], µm) are
    the hard macros', `core` the area for macros and cells, `cells` the area of the standard cells (µm²).
    """
    need = cells / (_ROOMY * DENSITY)
    for channel in (PDN_CHANNEL, PDN_CHANNEL / 2):
        if core - float(((width + channel) * (height + channel)).sum()) >= need:
            return channel
    return 0.0
