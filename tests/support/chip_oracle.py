"""The chip cost in plain Python, slow and directly from its definition, as reference for the engine.

One loop per sentence of the definition (docs/explanation/chip-cost.md), exact sums. Lengths are in µm; maps are indexed
[row][column], R rows and C columns.
"""

from __future__ import annotations

import dataclasses
import math

from placement.netlist.design import Canvas, Design, NodeKind, Placement
from tests.support.legality_oracle import with_halo
from tests.support.oracle import (
    Map,
    OracleCosts,
    cell_of,
    macro_sides,
    net_pins,
    pin_position,
    shared_sides,
    wirelength,
)

USABLE = 0.7
CELL_SHARE = 0.5
TARGET_DENSITY, LARGE_BLOCK, FULL_WEIGHT, LACK_WEIGHT = 0.7, 8, 0.5, 0.5
TREES = {
    **{3: 1.0, 4: 1.0828, 5: 1.1536, 6: 1.2206, 7: 1.2823, 8: 1.3385, 9: 1.3991, 10: 1.4493, 15: 1.6899, 20: 1.8924},
    **{25: 2.0743, 30: 2.2334, 35: 2.3895, 40: 2.5356, 45: 2.6625, 50: 2.7933},
}
"""Length of a tree over the half perimeter by number of pins (Cheng: "RISA", ICCAD 1994)."""


def chip_costs(
    design: Design, placement: Placement, weights: tuple[float, float, float] = (1.0, 0.5, 0.5)
) -> OracleCosts:
    """Returns all terms of the chip cost of a whole placement; weights of wirelength, density and congestion."""
    canvas, netlist = design.canvas, design.netlist
    total_weight = math.fsum(netlist.net_weight)
    extent = (canvas.width + canvas.height) * total_weight
    length = wirelength(netlist, placement)
    binned = dataclasses.replace(design, canvas=bins(design))
    soft = cover(binned, placement, NodeKind.SOFT, CELL_SHARE**0.5)
    room = room_length(binned, cover(binned, placement, NodeKind.HARD, straps=straps(design)), soft)
    excess = wire_excess(design, placement)
    parts = [value / extent if extent > 0 else 0.0 for value in (length, room, excess)]
    return OracleCosts(length, *parts, math.fsum(weight * part for weight, part in zip(weights, parts, strict=True)))


def bins(design: Design) -> Canvas:
    """Returns the canvas with bins about as large as the mean cluster's cells: 1 to 4 along a gcell's side."""
    canvas, netlist = design.canvas, design.netlist
    area = CELL_SHARE * math.fsum(float(netlist.width[node]) * float(netlist.height[node]) for node in netlist.soft)
    if area <= 0:
        return canvas
    sides = math.sqrt(canvas.cell_width * canvas.cell_height * len(netlist.soft) / area)
    count = min(4, max(1, math.floor(sides + 0.5)))
    return dataclasses.replace(canvas, columns=canvas.columns * count, rows=canvas.rows * count)


def straps(design: Design) -> float:
    """Returns the PDN channel in µm: of 10, 5, 0 the first that leaves cells at most 70% utilisation at density 0.7."""
    if design.pdn_channel is not None:
        return design.pdn_channel
    canvas, netlist = design.canvas, design.netlist
    cells = CELL_SHARE * math.fsum(float(netlist.width[node]) * float(netlist.height[node]) for node in netlist.soft)
    for width in (10.0, 5.0):
        taken = math.fsum((float(netlist.width[n]) + width) * (float(netlist.height[n]) + width) for n in netlist.hard)
        if cells > 0 and (canvas.width * canvas.height - taken) * 0.7 * 0.7 >= cells:
            return width
    return 0.0


def cover(design: Design, placement: Placement, kind: NodeKind, scale: float = 1.0, straps: float | None = None) -> Map:
    """Returns each gcell's share of area under macros of a kind, summed, their sides scaled about their centres.

    With `straps` what cells keep free around a macro is covered, too: so many µm, or its halo where that is more.
    """
    canvas, netlist = design.canvas, design.netlist
    area = canvas.cell_width * canvas.cell_height
    result = []
    for row in range(canvas.rows):
        line = []
        for column in range(canvas.columns):
            boxes = [_scaled(macro_sides(netlist, placement, int(node)), scale) for node in netlist.indices(kind)]
            if straps is not None:
                boxes = [
                    _kept_free(design, placement, int(node), box, straps)
                    for node, box in zip(netlist.indices(kind), boxes, strict=True)
                ]
            shared = [shared_sides(canvas, box, (column, row)) for box in boxes]
            line.append(math.fsum(across * up for across, up in shared) / area)
        result.append(line)
    return result


def _scaled(sides: tuple[float, float, float, float], scale: float) -> tuple[float, float, float, float]:
    left, bottom, right, top = sides
    x, y, width, height = (left + right) / 2, (bottom + top) / 2, scale * (right - left) / 2, scale * (top - bottom) / 2
    return x - width, y - height, x + width, y + height


def _kept_free(
    design: Design, placement: Placement, node: int, sides: tuple[float, float, float, float], straps: float
) -> tuple[float, float, float, float]:
    left, bottom, right, top = sides
    a, b, c, d = with_halo(design, placement, node)
    return min(left - straps, a), min(bottom - straps, b), max(right + straps, c), max(top + straps, d)


def room_length(design: Design, hard: Map, soft: Map) -> float:
    """Returns weighted µm of wire: overflowing area moves half the side of each block that it must leave, with pins.

    In large blocks what is beyond the room at the target density goes the whole side, too. Of it, summed over blocks of
    one size, the overflow of the whole canvas at that density is subtracted: it counts once, as part of the canvas's.
    """
    canvas, netlist = design.canvas, design.netlist
    cell_area, side = canvas.cell_width * canvas.cell_height, (canvas.cell_width + canvas.cell_height) / 2
    way, size, spread = 0.0, 1, {}
    while True:
        spread[size] = 0.0
        for bottom in range(0, canvas.rows, size):
            for left in range(0, canvas.columns, size):
                block = [
                    (row, column)
                    for row in range(bottom, min(bottom + size, canvas.rows))
                    for column in range(left, min(left + size, canvas.columns))
                ]
                cells = math.fsum(soft[row][column] for row, column in block)
                free = math.fsum(max(0.0, 1.0 - hard[row][column]) for row, column in block)
                way += size * side * cell_area * FULL_WEIGHT * max(0.0, cells - free)
                spread[size] += max(0.0, cells / TARGET_DENSITY - free) if size >= LARGE_BLOCK else 0.0
        if size >= canvas.rows and size >= canvas.columns:
            break
        size *= 2
    missing_area = spread[size]
    way += LACK_WEIGHT * size * side * cell_area * missing_area
    way += math.fsum(
        size * side * cell_area * (beyond - missing_area) for size, beyond in spread.items() if size >= LARGE_BLOCK
    )
    area = CELL_SHARE * math.fsum(float(netlist.width[node]) * float(netlist.height[node]) for node in netlist.soft)
    return way * soft_pins(design) / area if area > 0 else 0.0


def soft_pins(design: Design) -> float:
    """Returns the summed weights of the nets at soft macros, per position of a net's pins; unconnected positions are
    omitted.
    """
    netlist = design.netlist
    weights = []
    for net in range(netlist.num_nets):
        places = {
            (int(netlist.pin_node[pin]), *_offset(design, pin))
            for pin in net_pins(netlist, net)
        }  # fmt: skip
        if len(places) < 2:
            continue
        soft = [place for place in places if netlist.kind[place[0]] == NodeKind.SOFT]
        weights.append(len(soft) * float(netlist.net_weight[net]))
    return math.fsum(weights)


def _offset(design: Design, pin: int) -> tuple[float, float]:
    netlist = design.netlist
    if netlist.kind[netlist.pin_node[pin]] in (NodeKind.PORT, NodeKind.CELL):
        return 0.0, 0.0
    return float(netlist.pin_dx[pin]), float(netlist.pin_dy[pin])


def wire_excess(design: Design, placement: Placement) -> float:
    """Returns µm of wire beyond the usable tracks that macros leave, in both directions."""
    canvas, netlist = design.canvas, design.netlist
    demand = {axis: [[0.0] * canvas.columns for _ in range(canvas.rows)] for axis in (0, 1)}
    for net in range(netlist.num_nets):
        pins = net_pins(netlist, net)
        places = {(int(netlist.pin_node[pin]), *_offset(design, pin)) for pin in pins}
        positions = [pin_position(netlist, placement, pin) for pin in pins]
        xs, ys = [x for x, _ in positions], [y for _, y in positions]
        first, last = cell_of(canvas, min(xs), min(ys)), cell_of(canvas, max(xs), max(ys))
        cells = [(c, r) for c in range(first[0], last[0] + 1) for r in range(first[1], last[1] + 1)]
        each = float(netlist.net_weight[net]) * tree_factor(len(places)) / len(cells)
        for column, row in cells:
            demand[0][row][column] += each * (max(xs) - min(xs))
            demand[1][row][column] += each * (max(ys) - min(ys))
    tracks = (
        (canvas.routes_horizontal, canvas.macro_routes_horizontal),
        (canvas.routes_vertical, canvas.macro_routes_vertical),
    )
    shut = tracks_shut(design, placement)
    return math.fsum(
        max(0.0, demand[axis][row][column] - _room(canvas, min(1.0, shut[axis][row][column]), *tracks[axis]))
        for axis in (0, 1)
        for row in range(canvas.rows)
        for column in range(canvas.columns)
    )


def tracks_shut(design: Design, placement: Placement) -> tuple[Map, Map]:
    """Returns the share of each gcell's horizontal and vertical tracks that hard macros block, summed over the macros.

    A macro that covers half of a gcell's width, or more, cuts the horizontal tracks as far as it is high there; a
    narrower one in proportion; upwards the same.
    """
    canvas, netlist = design.canvas, design.netlist
    maps = tuple([[0.0] * canvas.columns for _ in range(canvas.rows)] for _ in range(2))
    for row in range(canvas.rows):
        for column in range(canvas.columns):
            for node in netlist.hard:
                width, height = shared_sides(canvas, macro_sides(netlist, placement, int(node)), (column, row))
                across, up = width / canvas.cell_width, height / canvas.cell_height
                maps[0][row][column] += min(1.0, 2 * across) * up
                maps[1][row][column] += min(1.0, 2 * up) * across
    return maps[0], maps[1]


def _room(canvas: Canvas, shut: float, free: float, taken: float) -> float:
    return USABLE * canvas.cell_width * canvas.cell_height * (free - min(taken, free) * shut)


def tree_factor(places: int) -> float:
    """Interpolates linearly between the table's entries; extrapolates as the square root."""
    if places <= 3:
        return 1.0
    above = min((count for count in TREES if count >= places), default=None)
    if above is None:
        return TREES[max(TREES)] * math.sqrt(places / max(TREES))
    below = max(count for count in TREES if count < places)
    return TREES[below] + (TREES[above] - TREES[below]) * (places - below) / (above - below)
