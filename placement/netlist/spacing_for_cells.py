"""The spacing of macros that standard cells need, which searches keep by default.

In a gap between two macros that is narrower than a cell, a global placer puts cells that a legaliser cannot move to any
nearby position; and macros whose halos touch enclose the cells behind them.
"""

import numpy as np

from placement.netlist.flat_design import FlatDesign

SLIVER = 20  # sites; a shorter run is a sliver, in which few cells fit
_MOST_CELLS = 0.99  # fraction of the cells that fit in a channel; a few very wide ones would widen all channels
_MOST_COVERED = 0.9
"""Maximum fraction of the core under macros with half the spacing around them, so that legal placements exist."""

_WIDEST = 0.1
"""Maximum channel, as a fraction of a macro's size; around macros hardly larger than cells, cells need no channel."""


def spacing_for_cells(flat: FlatDesign, halo: np.ndarray) -> float:
    """Spacing in µm that movable macros should keep, so that cells fit between them; 0 without rows.

    If macros have no halos, cells are placed in the gaps, which have `SLIVER` sites plus the width of 99% of the cells,
    and the rows of the height of 99% of the cells. Halos contain no cells, so the gaps between them only need to
    connect the rows on both sides: one site and one row. One more of each is added everywhere, because macros do not
    begin and end on sites and rows. If the macros need most of the core, or are small, there is no spacing.

    Args:
        flat: the design before clustering.
        halo: float64 [N, 4], left, bottom, right and top of each node in orientation N.
    """
    rows, netlist, cells = flat.floorplan.rows, flat.netlist, flat.cells[~flat.placement.fixed[flat.cells]]
    hard, core = netlist.hard, flat.floorplan.core
    if not len(rows) or not len(cells) or not len(hard):
        return 0.0
    site, height = float(np.median(rows.site_width)), rows.row_height
    beside = float((halo[hard, :2].max(axis=0) + halo[hard, 2:].max(axis=0)).max())
    sites = levels = 1.0
    if not beside:
        wide, high = (np.quantile(sides[cells], _MOST_CELLS) for sides in (netlist.width, netlist.height))
        sites, levels = max(SLIVER, np.ceil(wide / site - 1e-6)), np.ceil(high / height - 1e-6)
    channel = float(max((sites + 1) * site, (levels + 1) * height))
    spacing = round(beside + channel, 6)
    covered = float(((netlist.width[hard] + spacing) * (netlist.height[hard] + spacing)).sum())
    size = float(np.median(np.sqrt(netlist.width[hard] * netlist.height[hard])))
    return spacing if covered <= _MOST_COVERED * core.area and channel <= _WIDEST * size else 0.0
