"""The channel that macros leave to standard cells by default.

A gap between two macros that is narrower than a cell is area in which a global placer puts cells, and from which a
legaliser cannot take them anywhere near; and gaps of no width wall in what lies behind them.
"""

from __future__ import annotations

import numpy as np

from placement.netlist.flat_design import FlatDesign

SLIVER = 20
"""A run of fewer sites is a sliver: few cells fit in it, and hardly any beside another."""
_MOST_CELLS = 0.99
"""The share of the cells that fit in a channel: a few very wide ones would widen all channels."""
_MOST_COVERED = 0.9
"""Of the core, by macros with half a channel on every side, for there to be legal placements that are found."""


def cell_channel(flat: FlatDesign) -> float:
    """µm between macros in which nearly all cells fit, wherever the macros are on the sites; 0 without rows.

    A channel is `SLIVER` sites and as many as 99% of the cells are wide, and the rows that 99% of the cells are high;
    one more of each, because macros do not begin and end on sites and rows. Where the macros need most of the core,
    there is none.
    """
    rows, netlist, cells = flat.floorplan.rows, flat.netlist, flat.cells[~flat.placement.fixed[flat.cells]]
    if not len(rows) or not len(cells) or not len(netlist.hard):
        return 0.0
    site, height = float(np.median(rows.site_width)), rows.row_height
    wide, high = (np.quantile(sides[cells], _MOST_CELLS) for sides in (netlist.width, netlist.height))
    sites, levels = max(SLIVER, np.ceil(wide / site - 1e-6)) + 1, np.ceil(high / height - 1e-6) + 1
    channel = round(float(max(sites * site, levels * height)), 6)
    hard, core = netlist.hard, flat.floorplan.core
    covered = float(((netlist.width[hard] + channel) * (netlist.height[hard] + channel)).sum())
    return channel if covered <= _MOST_COVERED * core.area else 0.0
