"""The outside judge: the placer coloquinte, which is not ours, places all cells around the macros.

It judges where `pip install coloquinte` installed it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from placement.flat.correspondence import core_of, macros_on_flat
from placement.flat.problem import Core, counted_nets, half_perimeter
from placement.netlist.design import Design, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import read_flat

ROW = 1.4
"""µm, a row of NanGate45."""
_UNITS = 100  # coloquinte's length units per µm
_TURNS = {"N": (1, 1), "FN": (-1, 1), "S": (-1, -1), "FS": (1, -1)}  # the others swap sides
_LOCK = threading.Lock()  # standard output is the process's


def is_installed() -> bool:
    """Whether there is a coloquinte."""
    return importlib.util.find_spec("coloquinte") is not None


def coloquinte_wirelength(folder: Path, design: Design, placement: Placement) -> float:
    """µm: the half perimeters of the nets of 2 to 3,000 pins once coloquinte has placed an imported design's cells.

    Raises DesignError where a macro is turned by 90°, which coloquinte is not asked to take.
    """
    flat = read_flat(folder)
    netlist, macros = flat.netlist, macros_on_flat(flat, design.netlist, placement)
    if (macros.orientation[netlist.hard] >= Orientation.E).any():
        raise DesignError("coloquinte: a macro is turned by 90°")
    rows = flat.floorplan.rows
    height = float(rows.height[0]) if len(rows.height) else ROW
    with _LOCK:
        placed, _ = coloquinte_placement(netlist, macros, core_of(flat, design), row=height)
    return half_perimeter(netlist, placed)


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
    """Where coloquinte's global placer (effort 3) puts the cells, in rows of `row` µm, and its CPU seconds.

    The macros have orientations that do not swap their sides.
    """
    import coloquinte

    cells, hard = netlist.kind == NodeKind.CELL, netlist.kind == NodeKind.HARD
    width = np.round(netlist.width * _UNITS).astype(int)
    height = np.where(cells, round(row * _UNITS), np.round(netlist.height * _UNITS)).astype(int)
    x = np.where(cells, core.width / 2, placement.x - core.x) * _UNITS
    y = np.where(cells, core.height / 2, placement.y - core.y) * _UNITS
    turns = np.array([_TURNS[Orientation(turn).name] for turn in placement.orientation])
    of = netlist.pin_node
    offset = [
        np.round(delta * _UNITS * turns[of, axis] + side[of] / 2).astype(int)
        for axis, (delta, side) in enumerate(((netlist.pin_dx, width), (netlist.pin_dy, height)))
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
    whole = coloquinte.Rectangle(0, int(core.width * _UNITS), 0, int(core.height * _UNITS))
    circuit.setup_rows(whole, round(row * _UNITS), True, True)
    begun = time.process_time()
    with quiet():
        circuit.place_global(3)
    seconds = time.process_time() - begun
    nodes = np.flatnonzero(cells)
    corner = np.array([circuit.cell_x, circuit.cell_y])[:, nodes] / _UNITS
    x, y = corner[0] + width[nodes] / _UNITS / 2 + core.x, corner[1] + row / 2 + core.y
    return placement.moved(nodes, x, y), seconds
