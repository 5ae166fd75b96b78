"""Generates synthetic flat designs: standard cells with Rent-like locality, macros in banks, ports on the edge; rows
and layers.

Axis legend: M standard cells, H hard macros, Q ports, E nets. Lengths in µm.
"""

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Floorplan, Rows, spread_on_edges
from placement.netlist.geometry import Rectangle
from placement.netlist.technology import LayerDirection, RoutingLayer, Technology

ROW_HEIGHT, SITE_WIDTH = 1.4, 0.19  # row height and site width of NanGate45, in µm
# µm between tracks of metal1 to metal10 in NanGate45's LEF; metal1 is horizontal, the directions alternate.
_PITCHES = (0.14, 0.19, 0.14, 0.28, 0.28, 0.28, 0.8, 0.8, 1.6, 1.6)
_WIDTHS = (0.57, 0.76, 0.95, 1.14, 1.33, 1.9, 3.23)  # widths of cells, multiples of NanGate45's 0.19 µm
_WIDTH_SHARES = (0.2, 0.25, 0.2, 0.1, 0.08, 0.07, 0.1)
# Fractions of nets with 2, 3, … pins, as in the flat Ariane.
_DEGREES = (0.55, 0.295, 0.076, 0.024, 0.014, 0.008, 0.008, 0.008, 0.008, 0.009)
_RANGES = {
    **{"cells": (16, math.inf), "macros": (0, math.inf), "ports": (1, math.inf), "macro_pins": (2, math.inf)},
    **{"bank": (1, math.inf), "bank_cells": (1e-3, 1.0), "size_spread": (1, 100), "macro_aspect": (1, 100)},
    **{"core_aspect": (0.1, 10), "macro_utilization": (1e-3, 0.8), "cell_utilization": (1e-3, 0.8)},
    "rent_exponent": (1e-3, 0.999),
}


@dataclasses.dataclass(frozen=True)
class FlatOptions:
    """The properties of a flat design."""

    cells: int = 2000  # cells, macros, ports: their numbers
    macros: int = 8
    ports: int = 40
    macro_pins: int = 40  # number of pins of each macro, half of them outputs
    bank: int = 1  # macros of one shape that are connected to the same cells, like the memories of one cache
    bank_cells: float = 1.0  # fraction of the cells that banks are connected to; the others have no macro near them
    size_spread: float = 1.0  # area of the largest macro over that of the smallest
    macro_aspect: float = 1.0  # maximum ratio of a macro's sides
    core_aspect: float = 1.0  # height of the core over its width
    macro_utilization: float = 0.4  # fraction of the core that macros cover
    cell_utilization: float = 0.4  # fraction of the remaining area that cells cover
    rent_exponent: float = 0.65  # p of Rent's rule T = t·Bᵖ, which sets the nets' locality

    def __post_init__(self) -> None:
        for field, (low, high) in _RANGES.items():
            if not low <= getattr(self, field) <= high:
                right = f"from {low:g} to {high:g}" if high < math.inf else f"at least {low}"
                raise DesignError(f"{field}: {getattr(self, field)} must be {right}")


def drawn_options(seed: int) -> tuple[FlatOptions, float]:
    """Random options of a synthetic design, and the halo of its macros in µm.

    20 to 110 macros, 150 to 500 cells for each (5,000 to 30,000 in total), banks of 1 to 16, and so on. Nothing is
    taken from a real design.
    """
    rng = np.random.default_rng([17, seed])
    macros = round(float(np.exp(rng.uniform(np.log(20), np.log(110)))))
    bank = min(int(rng.choice([1, 2, 4, 8, 16])), max(macros // 2, 1))
    cells = int(np.clip(macros * rng.uniform(150, 500), 5000, 30000))
    options = FlatOptions(
        cells=cells,
        macros=macros,
        macro_pins=int(rng.integers(30, 120)),
        ports=int(rng.integers(100, 400)),
        bank=bank,
        macro_utilization=round(rng.uniform(0.35, 0.6), 2),
        cell_utilization=round(rng.uniform(0.3, 0.45), 2),
        rent_exponent=round(rng.uniform(0.55, 0.7), 2),
        bank_cells=round(rng.uniform(0.2, 1), 2),
        core_aspect=round(float(np.exp(rng.uniform(-0.4, 0.4))), 2),
    )
    halo = float(rng.integers(0, 5))
    if rng.random() < 0.6:
        options = dataclasses.replace(options, size_spread=round(rng.uniform(1, 4), 2))
    if rng.random() < 0.6:
        options = dataclasses.replace(options, macro_aspect=round(rng.uniform(1, 2.5), 2))
    return options, halo


class FlatDraft(NamedTuple):
    """A flat netlist (macros, ports, cells) on a bare core of `width` × `height` µm.

    Macros and ports are placed and fixed, cells are not placed. `flat_on_floorplan` adds rows and layers.
    """

    netlist: Netlist
    placement: Placement
    width: float
    height: float


def flat_draft(options: FlatOptions | None = None, *, seed: int = 0) -> FlatDraft:
    """Generates a design with `seed`.

    Cells are leaves of a binary tree. A net's sinks are drawn from the subtree of its driver that has 2^l leaves,
    P(level ≥ l) = 2^(−(1−p)·l), so that about Bᵖ nets leave a subtree of B leaves. Macros are placed on a grid of
    slots, nearest to the edge first, or in rows if they differ; a bank of them is connected to one range of the leaves.
    Raises DesignError if the macros do not fit.
    """
    options = options or FlatOptions()
    rng = np.random.default_rng(seed)
    width = rng.choice(_WIDTHS, options.cells, p=_WIDTH_SHARES)
    free = float(width.sum()) * ROW_HEIGHT / options.cell_utilization
    side = float(np.sqrt(free / (1 - options.macro_utilization * (options.macros > 0))))
    core_width, core_height = side / np.sqrt(options.core_aspect), side * np.sqrt(options.core_aspect)
    macro_width, macro_height = _macro_sizes(options, side, rng)
    sides = np.unique(np.concatenate((macro_width, macro_height)))
    if core_width == core_height and len(sides) == 1:
        macro_x, macro_y = _on_slots(options, sides[0], core_width)
    else:
        macro_x, macro_y = _in_rows(options, macro_width, macro_height, core_width, core_height)
    # The terms are swapped to run anticlockwise from the lower left corner.
    port_y, port_x = spread_on_edges(Rectangle(0.0, 0.0, core_height, core_width), options.ports).T
    counts = (options.macros, options.ports, options.cells)
    node_width = np.concatenate([macro_width, np.zeros(options.ports), width])
    node_height = np.concatenate([macro_height, np.zeros(options.ports), np.full(options.cells, ROW_HEIGHT)])
    kind = np.repeat([NodeKind.HARD, NodeKind.PORT, NodeKind.CELL], counts).astype(np.int8)
    pin_node, pin_dx, pin_dy = _pins(options, macro_width, macro_height)
    nets = _nets(options, rng)
    nodes, named = sum(counts), zip(("macro", "port", "cell"), counts, strict=True)
    names = tuple(f"{what}{number}" for what, count in named for number in range(count))
    return FlatDraft(
        Netlist(
            names=names,
            kind=kind,
            width=node_width,
            height=node_height,
            file_index=np.arange(nodes) + np.minimum(np.arange(nodes), options.macros) * options.macro_pins,
            pin_node=pin_node,
            pin_dx=pin_dx,
            pin_dy=pin_dy,
            net_weight=np.ones(len(nets)),
            net_start=np.concatenate([[0], np.cumsum([len(net) for net in nets])]),
            net_pins=np.concatenate(nets),
        ),
        Placement(
            x=np.concatenate([macro_x, port_x, np.zeros(options.cells)]),
            y=np.concatenate([macro_y, port_y, np.zeros(options.cells)]),
            orientation=np.zeros(nodes, np.int8),
            placed=kind != NodeKind.CELL,
            fixed=kind != NodeKind.CELL,
        ),
        core_width,
        core_height,
    )


def _macro_sizes(options: FlatOptions, side: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Widths and heights, float64 [H] each, of macros that cover their fraction of `side`² µm²; equal within a bank."""
    banks = -(-options.macros // options.bank)
    area, aspect = np.ones(banks), np.ones(banks)
    if options.size_spread > 1:
        area = np.exp(rng.uniform(0, np.log(options.size_spread), banks))
    if options.macro_aspect > 1:
        aspect = np.exp(rng.uniform(-np.log(options.macro_aspect), np.log(options.macro_aspect), banks))
    of_bank = np.arange(options.macros) // options.bank
    area, aspect = area[of_bank], aspect[of_bank]
    area = area * (side**2 * options.macro_utilization / max(area.sum(), 1.0))
    return np.sqrt(area / aspect), np.sqrt(area * aspect)


def _on_slots(options: FlatOptions, macro: float, side: float) -> tuple[np.ndarray, np.ndarray]:
    """Places squares of `macro` µm on a grid of slots, nearest to the edge first."""
    slots = int(np.ceil(np.sqrt(options.macros)))
    if macro > side / slots:
        raise DesignError(f"{options.macros} square macros do not fit at a utilization of {options.macro_utilization}")
    at = (np.arange(slots) + 0.5) * side / slots
    x, y = (grid.ravel() for grid in np.meshgrid(at, at))
    from_edge = np.minimum(np.minimum(x, side - x), np.minimum(y, side - y))
    chosen = np.argsort(from_edge, kind="stable")[: options.macros]
    return x[chosen], y[chosen]


def _in_rows(
    options: FlatOptions, macro_width: np.ndarray, macro_height: np.ndarray, width: float, height: float
) -> tuple[np.ndarray, np.ndarray]:
    """Places macros in evenly spaced rows, each as full as possible, highest macros first."""
    x, y = np.zeros(options.macros), np.zeros(options.macros)
    rows: list[list[int]] = []
    left = 0.0
    for macro in np.argsort(-macro_height, kind="stable"):
        if not rows or macro_width[macro] > left:
            rows.append([])
            left = width
        rows[-1].append(int(macro))
        left -= macro_width[macro]
    gap = (height - sum(macro_height[row[0]] for row in rows)) / max(len(rows), 1)
    if gap < 0 or macro_width.max(initial=0.0) > width:
        raise DesignError(
            f"{options.macros} macros do not fit in rows at macro_utilization {options.macro_utilization}: reduce it, "
            "size_spread or macro_aspect"
        )
    low = 0.0
    for row in rows:
        ends = np.cumsum(macro_width[row])
        x[row] = ends - macro_width[row] / 2 + (width - ends[-1]) / len(row) * (np.arange(len(row)) + 0.5)
        y[row] = low + macro_height[row] / 2
        low += macro_height[row[0]] + gap
    return x, y


def _pins(
    options: FlatOptions, macro_width: np.ndarray, macro_height: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Node, dx and dy of every pin: the macros' on their left sides, then one per port and per cell."""
    macros, own = options.macros, options.macro_pins
    others = options.ports + options.cells
    along = np.tile((np.arange(own) + 0.5) / own - 0.5, macros) * np.repeat(macro_height, own)
    node = np.concatenate((np.repeat(np.arange(macros), own), macros + np.arange(others)))
    dx = np.concatenate((np.repeat(-macro_width / 2, own), np.zeros(others)))
    return node, dx, np.concatenate((along, np.zeros(others)))


def _nets(options: FlatOptions, rng: np.random.Generator) -> list[np.ndarray]:
    """The nets' pins, drivers first: one net per cell, per port and per macro output; macro inputs join as sinks."""
    first_cell = options.macros * options.macro_pins + options.ports
    degrees = 2 + rng.choice(len(_DEGREES), options.cells, p=_DEGREES)
    sinks: list[list[int]] = []
    for cell, degree in enumerate(degrees):
        block = 2 ** (1 + int(rng.exponential(1 / ((1 - options.rent_exponent) * np.log(2)))))
        first = cell // block * block
        near = first + rng.integers(0, max(min(block, options.cells - first), 1), degree - 1)
        sinks.append([first_cell + int(other) for other in near if other != cell])
    nets: list[np.ndarray] = []
    outputs = options.macro_pins // 2
    banks = -(-options.macros // options.bank)
    apart = max(options.cells // max(banks, 1), 1)
    region = max(round(apart * options.bank_cells), 1)
    for macro in range(options.macros):
        first = min(macro // options.bank * apart, options.cells - 1)
        near = first + rng.integers(0, min(region, options.cells - first), options.macro_pins)
        for pin in range(options.macro_pins):
            own = macro * options.macro_pins + pin
            if pin < outputs:
                nets.append(np.array([own, first_cell + near[pin]]))
            else:
                sinks[near[pin]].append(own)
    for port, cell in enumerate(rng.integers(0, options.cells, options.ports)):
        own = options.macros * options.macro_pins + port
        if port % 2:
            sinks[cell].append(own)
        else:
            nets.append(np.array([own, first_cell + cell]))
    nets += [np.array([first_cell + cell, *to]) for cell, to in enumerate(sinks) if to]
    return nets


def flat_on_floorplan(name: str, options: FlatOptions | None = None, *, seed: int = 0) -> FlatDesign:
    """Puts a design of `flat_draft` on rows and layers of NanGate45; its macros may move, its ports may not."""
    draft = flat_draft(options, seed=seed)
    rows = math.ceil(draft.height / ROW_HEIGHT)
    core = Rectangle(0.0, 0.0, math.ceil(draft.width / SITE_WIDTH) * SITE_WIDTH, rows * ROW_HEIGHT)
    across, up = LayerDirection.HORIZONTAL, LayerDirection.VERTICAL
    layers = tuple(
        RoutingLayer(f"metal{number + 1}", up if number % 2 else across, pitch, pitch, pitch / 2, number)
        for number, pitch in enumerate(_PITCHES)
    )
    return FlatDesign(
        name=name,
        netlist=draft.netlist,
        placement=dataclasses.replace(draft.placement, fixed=draft.netlist.kind == NodeKind.PORT),
        floorplan=Floorplan(1000.0, core, core, Rows.filling(core, ROW_HEIGHT, rows, site_width=SITE_WIDTH)),
        technology=Technology(layers=layers),
        master=np.full(draft.netlist.num_nodes, -1),
        master_names=(),
        written_names={},
    )
