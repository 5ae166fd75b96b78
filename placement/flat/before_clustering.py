"""Cells and macros placed together before an import clusters the cells.

Circuit Training's recipe groups cells by where an earlier placement put them: groups that span too far are broken up,
small ones join a neighbour. Chips come without places, so they are placed here first. By connectivity alone clusters
hold cells that no placement keeps together, and what a search saves between such clusters is paid for within them.
"""

from __future__ import annotations

from placement.flat.from_clusters import core_of
from placement.flat.global_placement import PlacerSettings
from placement.flat.mixed_size import place_mixed_size
from placement.netlist.design import Design, Placement
from placement.netlist.flat_design import FlatDesign
from placement.netlist.pdn_channel import DENSITY

SETTINGS = PlacerSettings(density=DENSITY)


def place_together(flat: FlatDesign, design: Design) -> Placement:
    """A global placement of the flat netlist, for `import_design`: macros may overlap a little.

    Args:
        flat: the design before clustering; what is fixed stays.
        design: the flat netlist on the canvas, with the macros' constraints.

    Raises:
        DesignError: as `place_mixed_size`.
        KeyboardInterrupt: on Ctrl-C.
    """
    return place_mixed_size(flat.netlist, flat.placement, core_of(flat, design), settings=SETTINGS)
