"""The spacing of macros that standard cells need, which searches keep by default.

A gap between two macros that is narrower than a cell is area in which a global placer puts cells, and from which a
legaliser cannot take them anywhere near; and macros whose halos touch wall in what lies behind them.
"""

from __future__ import annotations

import numpy as np

from placement.netlist.flat_design import FlatDesign

SLIVER = 20
"""A run of fewer sites is a sliver: few cells fit in it, and hardly any beside another."""
_MOST_CELLS = 0.99
"""The share of the cells that fit in a channel: a few very wide ones would widen all channels."""
_MOST_COVERED = 0.9
"""Of the core, by macros with half the spacing on every side, for there to be legal placements that are found."""

_WIDEST = 0.1
"""Of a macro's size, the channel: where macros are hardly larger than cells, these get past them as they are."""


def spacing_for_cells(flat: FlatDesign, halo: np.ndarray) -> float:
    """µm that movable macros should keep from each other, for cells to get between them; 0 without rows.

    Where macros have no halos, cells are placed in the gaps: these have `SLIVER` sites and as many as 99% of the cells
    are wide, and the rows that 99% of the cells are high. Halos have no cells, so the gaps between them have what
    connects the rows on both sides: one site and one row. Everywhere it is one more of each, because macros do not
    begin and end on sites and rows. Where the macros need most of the core, or are small, there is no spacing.

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
