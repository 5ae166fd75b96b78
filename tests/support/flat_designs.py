"""Small synthetic flat designs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from placement.flat.global_placement import place_before_clustering
from placement.netlist.builder import file_indices
from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Floorplan, Rows
from placement.netlist.generators.flat import FlatOptions, flat_on_floorplan
from placement.netlist.geometry import Rectangle
from placement.netlist.import_constraints import ConstraintSettings
from placement.netlist.importing import ImportSettings, import_flat, write_design
from placement.netlist.technology import Technology

_PITCH = 10.0


def write_generated(folder: Path, *, cells: int, macros: int, ports: int, macro_pins: int, seed: int) -> None:
    """Writes a design like `generate flat`, with fewer pins."""
    options = FlatOptions(cells=cells, macros=macros, ports=ports, macro_pins=macro_pins, macro_utilization=0.5)
    settings = ImportSettings(constraints=ConstraintSettings(halo=(0.0, 0.0)))
    flat = flat_on_floorplan(folder.name, options, seed=seed)
    write_design(folder, import_flat(flat, settings, place=place_before_clustering))


def chain_design(
    blocks: Sequence[tuple[str, int]], *, macro_after: int | None = None, parallel: int = 0, seed: int = 0
) -> FlatDesign:
    """Returns cells of 2 × 2 µm in a chain from port `in` to port `out`, on rows of a square core.

    Args:
        blocks: (prefix, number of cells) of each; cells are called by prefix and number.
        macro_after: a macro of 20 × 20 µm (`macro`) takes the place of the link behind this many cells.
        parallel: more links between cells, drawn at random; of two blocks, from the first to the second.
        seed: of the draws.
    """
    names = [f"{prefix}{number}" for prefix, count in blocks for number in range(count)]
    cells = len(names)
    macros = [] if macro_after is None else ["macro"]
    names += [*macros, "in", "out"]
    kind = np.array([NodeKind.CELL] * cells + [NodeKind.HARD] * len(macros) + [NodeKind.PORT] * 2, dtype=np.int8)
    chain = list(range(cells))
    if macro_after is not None:
        chain.insert(macro_after, cells)
    chain = [len(names) - 2, *chain, len(names) - 1]
    links = list(itertools.pairwise(chain))
    draw = np.random.default_rng(seed)
    split = blocks[0][1] if len(blocks) == 2 else cells
    for _ in range(parallel):
        first, second = draw.integers(0, split), draw.integers(split if split < cells else 0, cells)
        if first != second:
            links.append((int(first), int(second)))
    pin_node = np.array([node for link in links for node in link])
    side = int(np.ceil(np.sqrt(cells))) * _PITCH + 4 * _PITCH
    at = np.arange(cells)
    across = int(np.ceil(np.sqrt(cells)))
    return FlatDesign(
        name="chain",
        netlist=Netlist(
            names=tuple(names),
            kind=kind,
            width=np.select([kind == NodeKind.CELL, kind == NodeKind.HARD], [2.0, 20.0], 0.0),
            height=np.select([kind == NodeKind.CELL, kind == NodeKind.HARD], [2.0, 20.0], 0.0),
            file_index=file_indices(kind, pin_node),
            pin_node=pin_node,
            pin_dx=np.zeros(len(pin_node)),
            pin_dy=np.zeros(len(pin_node)),
            net_weight=np.ones(len(links)),
            net_start=2 * np.arange(len(links) + 1),
            net_pins=np.arange(len(pin_node)),
        ),
        placement=Placement(
            x=np.concatenate((at % across * _PITCH + 5, [side / 2] * len(macros), [0.0, side])),
            y=np.concatenate((at // across * _PITCH + 5, [side - 12] * len(macros), [side / 2, side / 2])),
            orientation=np.zeros(len(names), dtype=np.int8),
            placed=np.ones(len(names), dtype=np.bool_),
            fixed=kind == NodeKind.PORT,
        ),
        floorplan=Floorplan(
            units=1000.0,
            die=Rectangle(0.0, 0.0, side, side),
            core=Rectangle(0.0, 0.0, side, side),
            rows=Rows.filling(Rectangle(0.0, 0.0, side, side), 2.0, int(side / 2), site_width=0.5),
        ),
        technology=Technology(),
        master=np.full(len(names), -1),
        master_names=(),
        written_names={},
    )
