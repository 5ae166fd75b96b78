"""A made-up flat netlist on a floorplan with rows and layers, as an import would read it.

Lengths in µm.
"""

from __future__ import annotations

import math

import numpy as np

from placement.netlist.assembly.flat_protobuf import even_rows
from placement.netlist.design import NodeKind, Placement
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Floorplan, Rectangle
from placement.netlist.generators.flat import ROW_HEIGHT, FlatOptions, flat_draft
from placement.netlist.technology import LayerDirection, RoutingLayer, Technology

SITE_WIDTH = 0.19
"""µm, of NanGate45."""
# µm between tracks of metal1 to metal10, as NanGate45's LEF has them; metal1 runs across, the directions alternate.
_PITCHES = (0.14, 0.19, 0.14, 0.28, 0.28, 0.28, 0.8, 0.8, 1.6, 1.6)


def flat_on_floorplan(name: str, options: FlatOptions | None = None, *, seed: int = 0) -> FlatDesign:
    """A design of `generators.flat` on rows and layers of NanGate45; its macros may move, its ports may not.

    Args:
        name: of the design.
        options: what it looks like.
        seed: of all draws.

    Raises:
        DesignError: the options make no sense.
    """
    made = flat_draft(options, seed=seed)
    netlist, width = made.netlist, math.ceil(made.width / SITE_WIDTH) * SITE_WIDTH
    rows = math.ceil(made.height / ROW_HEIGHT)
    core = Rectangle(0.0, 0.0, width, rows * ROW_HEIGHT)
    across, up = LayerDirection.HORIZONTAL, LayerDirection.VERTICAL
    layers = tuple(
        RoutingLayer(f"metal{number + 1}", up if number % 2 else across, pitch, pitch, pitch / 2, number)
        for number, pitch in enumerate(_PITCHES)
    )
    standing = made.placement
    return FlatDesign(
        name=name,
        netlist=netlist,
        placement=Placement(
            x=standing.x,
            y=standing.y,
            orientation=standing.orientation,
            placed=standing.placed,
            fixed=netlist.kind == NodeKind.PORT,
        ),
        floorplan=Floorplan(
            units=1000.0, die=core, core=core, rows=even_rows(core, ROW_HEIGHT, rows, site_width=SITE_WIDTH)
        ),
        technology=Technology(layers=layers),
        master=np.full(netlist.num_nodes, -1),
        master_names=(),
        written_names={},
    )
