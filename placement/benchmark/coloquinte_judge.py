"""Independent judge: coloquinte, a placer from outside this project, places all cells around the macros.

It is used if `pip install coloquinte` installed it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from placement.flat.correspondence import core_of, macros_on_flat
from placement.flat.problem import Core, as_turned, counted_nets, half_perimeter
from placement.flat.routing import RoutingResources, route_estimate
from placement.netlist.design import Design, Netlist, NodeKind, Placement
from placement.netlist.flat_design import read_flat

ROW = 1.4  # height of a row of NanGate45 in µm
_ROW_UNITS = 140  # minimum number of coloquinte's length units per row
_LOCK = threading.Lock()  # standard output is shared by the process


def is_installed() -> bool:
    """Returns whether coloquinte is installed."""
    return importlib.util.find_spec("coloquinte") is not None


def coloquinte_scores(folder: Path, design: Design, placement: Placement) -> dict[str, float]:
    """Returns the scores of coloquinte's cell placement around the macros of an imported design.

    `coloquinte_wirelength` (µm) is the sum of half perimeters of the nets of 2 to 3,000 pins; `coloquinte_overflow` is
    the share of the wires above capacity after the project's router has routed them.
    """
    flat = read_flat(folder)
    netlist, macros, core = flat.netlist, macros_on_flat(flat, design.netlist, placement), core_of(flat, design)
    rows = flat.floorplan.rows
    height = float(rows.height[0]) if len(rows.height) else ROW
    with _LOCK:
        placed, _ = coloquinte_placement(netlist, macros, core, row=height)
    routed = route_estimate(netlist, placed, core, RoutingResources.of(design.canvas))
    return {"coloquinte_wirelength": half_perimeter(netlist, placed), "coloquinte_overflow": routed.overflow}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Discards standard output, to which coloquinte writes."""
    kept = os.dup(1)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def coloquinte_placement(
    netlist: Netlist, placement: Placement, core: Core, *, row: float = ROW
) -> tuple[Placement, float]:
    """Returns the cells as placed by coloquinte's global placer (effort 3) in rows of `row` µm, and its CPU seconds.

    It receives macros with the sides and pins of their orientation.
    """
    import coloquinte

    netlist, units = as_turned(netlist, placement.orientation), 10 ** math.ceil(math.log10(_ROW_UNITS / row) - 1e-3)
    cells, hard = netlist.kind == NodeKind.CELL, netlist.kind == NodeKind.HARD
    width = np.round(netlist.width * units).astype(int)
    height = np.where(cells, round(row * units), np.round(netlist.height * units)).astype(int)
    x = np.where(cells, core.width / 2, placement.x - core.x) * units
    y = np.where(cells, core.height / 2, placement.y - core.y) * units
    of = netlist.pin_node
    offset = [
        np.round(delta * units + side[of] / 2).astype(int)
        for delta, side in ((netlist.pin_dx, width), (netlist.pin_dy, height))
    ]
    circuit: Any = coloquinte.Circuit(netlist.num_nodes)
    circuit.cell_width, circuit.cell_height = width.tolist(), height.tolist()
    circuit.cell_is_fixed, circuit.cell_is_obstruction = (~cells).tolist(), hard.tolist()
    circuit.cell_x, circuit.cell_y = (
        (at - side / 2).round().astype(int).tolist() for at, side in ((x, width), (y, height))
    )
    for net in np.flatnonzero(counted_nets(netlist)):
        pins = netlist.net_pins[netlist.net_start[net] : netlist.net_start[net + 1]]
        circuit.add_net(of[pins].tolist(), offset[0][pins].tolist(), offset[1][pins].tolist())
    whole = coloquinte.Rectangle(0, int(core.width * units), 0, int(core.height * units))
    circuit.setup_rows(whole, round(row * units), True, True)
    begun = time.process_time()
    with quiet():
        circuit.place_global(3)
    seconds = time.process_time() - begun
    nodes = np.flatnonzero(cells)
    corner = np.array([circuit.cell_x, circuit.cell_y])[:, nodes] / units
    x, y = corner[0] + width[nodes] / units / 2 + core.x, corner[1] + row / 2 + core.y
    return placement.moved(nodes, x, y), seconds
