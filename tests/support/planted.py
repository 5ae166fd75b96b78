"""Generates designs whose best wirelength is known by construction.

The construction is that of the PEKO suite (Chang, Cong, Romesis, Xie: "Optimality and scalability study of existing
placement algorithms", 2003), here for macros, with ports, and proven for any placement without overlaps.
"""

import random
from typing import NamedTuple

import numpy as np

from placement.netlist.builder import NetlistBuilder, all_placed
from placement.netlist.design import Canvas, Design, Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.generators.draws import Draws

MACRO_SIDE = 60.0  # side of every macro and every gcell, in µm
_ROUTES = (1.0, 1.0, 0.5, 0.5)
"""Routing tracks per µm, across and up, and those that a macro blocks; so few that congestion matters at this size."""


class Planted(NamedTuple):
    """A design with its solution."""

    design: Design  # the problem; its initial placement differs from the optimum
    optimum: Placement  # a placement of minimum wirelength, with all macros at gcell centres
    wirelength: float  # its weighted half-perimeter wirelength, µm; no placement without overlaps has less


def planted(
    *, seed: int, block_columns: int = 5, block_rows: int = 4, columns: int = 8, rows: int = 8,
    multi_pin_nets: int = 30, name: str = "planted",
) -> Planted:  # fmt: skip
    """Generates a design of `block_columns` · `block_rows` square macros on a grid of gcells of their size.

    In the planted placement the macros fill a block of the grid at its left edge. The nets are: one of two pins between
    any two neighbours; `multi_pin_nets` of three to nine macros within a window of the block as small as their number
    allows; and one from a port on the left edge to each macro of the block's first column, at its height. All pins of
    macros are at their centres, so orientations do not matter.

    **Why no placement is shorter.** Let a net join k macros of side s that do not overlap, and let its bounding box be
    X × Y, its lower left corner the origin. Two centres with the same ⌊x/s⌋ and ⌊y/s⌋ would be less than s apart in x
    and in y, hence overlap; so k ≤ (⌊X/s⌋ + 1)(⌊Y/s⌋ + 1), and X + Y ≥ `least_span(k)` · s, the least a − 1 + b − 1
    with a·b ≥ k. A macro inside the canvas has its centre at least s/2 from the left edge, where the ports are. Each
    net of the planted placement has exactly the length of its bound, so their sum is minimal.

    Args:
        seed: seed of all choices; equal arguments give bit-identical designs.
        block_columns: macros across in the planted placement.
        block_rows: macros up in the planted placement.
        columns: gcells across the canvas.
        rows: gcells up the canvas.
        multi_pin_nets: number of nets of three or more macros.
        name: the design's name.

    Raises:
        DesignError: the block does not fit into the grid, or has fewer than two macros.
    """
    if not (1 <= block_columns <= columns and 1 <= block_rows <= rows) or block_columns * block_rows < 2:
        raise DesignError(
            f"a block of {block_columns} × {block_rows} macros: must be at least 2 macros, and at most the "
            f"{columns} × {rows} gcells"
        )
    draws = Draws(random.Random(f"planted {seed}"))
    count = block_columns * block_rows
    slot_of = draws.shuffled(range(count))  # macro → slot of the block, row by row
    builder = NetlistBuilder()
    ports = [builder.port(f"side_input[{row}]") for row in range(block_rows)]
    macros = [builder.macro(f"block_{index}", NodeKind.HARD, MACRO_SIDE, MACRO_SIDE) for index in range(count)]
    macro_at = {slot: macros[index] for index, slot in enumerate(slot_of)}
    spans = 0.0
    for slots in _windows(draws, block_columns, block_rows, multi_pin_nets):
        weight = float(1 + draws.below(3))
        pins = [builder.pin(macro_at[slot], 0.0, 0.0) for slot in draws.shuffled(slots)]
        builder.net(weight, pins[0], pins[1:])
        spans += weight * least_span(len(slots))
    for row, port in enumerate(ports):
        builder.net(1.0, port, [builder.pin(macro_at[row * block_columns], 0.0, 0.0)])
    first_row = draws.below(rows - block_rows + 1)
    cells = np.array([(slot % block_columns, first_row + slot // block_columns) for slot in slot_of])
    netlist = builder.build()
    canvas = Canvas(columns * MACRO_SIDE, rows * MACRO_SIDE, columns, rows, *_ROUTES)
    optimum = _placed(netlist, cells, first_row)
    packed = np.array([(index % columns, index // columns) for index in range(count)])
    initial = _placed(netlist, packed, first_row)
    if initial == optimum:
        initial = _placed(netlist, packed[::-1], first_row)
    wirelength = spans * MACRO_SIDE + block_rows * MACRO_SIDE / 2
    return Planted(Design(name=name, netlist=netlist, canvas=canvas, initial=initial), optimum, wirelength)


def least_span(count: int) -> int:
    """Minimum (a − 1) + (b − 1) with a·b ≥ count, which is the minimum span of `count` macros, in macro sides."""
    return min(a - 1 + -(-count // a) - 1 for a in range(1, count + 1))


def _windows(draws: Draws, block_columns: int, block_rows: int, multi_pin_nets: int) -> list[list[int]]:
    """The slots of each net between macros: all pairs of neighbours, then random smallest windows."""
    slots = [(column, row) for row in range(block_rows) for column in range(block_columns)]
    nets = []
    for column, row in slots:
        for right, up in ((1, 0), (0, 1)):
            if column + right < block_columns and row + up < block_rows:
                nets.append([row * block_columns + column, (row + up) * block_columns + column + right])
    shapes = [
        (count, width, height)
        for count in range(3, 10)
        for width in range(1, block_columns + 1)
        for height in range(1, block_rows + 1)
        if width * height >= count and width - 1 + height - 1 == least_span(count)
    ]
    for _ in range(multi_pin_nets if shapes else 0):
        count, width, height = shapes[draws.below(len(shapes))]
        left, bottom = draws.below(block_columns - width + 1), draws.below(block_rows - height + 1)
        inside = [(bottom + up) * block_columns + left + across for up in range(height) for across in range(width)]
        nets.append(draws.shuffled(inside)[:count])
    return nets


def _placed(netlist: Netlist, cells: np.ndarray, first_row: int) -> Placement:
    """Places macros on the centres of gcells `cells` (int [T, 2], column and row), and ports on the left edge."""
    x, y = np.zeros(netlist.num_nodes), np.zeros(netlist.num_nodes)
    y[netlist.ports] = (first_row + np.arange(len(netlist.ports)) + 0.5) * MACRO_SIDE
    x[netlist.hard] = (cells[:, 0] + 0.5) * MACRO_SIDE
    y[netlist.hard] = (cells[:, 1] + 0.5) * MACRO_SIDE
    return all_placed(netlist, x, y)
