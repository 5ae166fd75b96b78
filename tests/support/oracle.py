"""The proxy cost in plain Python, slow and directly from its definition, as reference for the engine.

Nothing is shared with the engine and nothing is clever here: one loop per sentence of the definition, exact sums
(`math.fsum`). Lengths are in µm; maps are indexed [row][column], R rows and C columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from placement.netlist.design import Canvas, Design, Netlist, NodeKind, Orientation, Placement

Cell = tuple[int, int]
"""Column and row of a gcell."""

Map = list[list[float]]


class OracleCosts(NamedTuple):
    """The terms of the cost, as in `placement.engine.costs.Costs`."""

    wirelength: float
    wirelength_cost: float
    density_cost: float
    congestion_cost: float
    total: float


class OracleMaps(NamedTuple):
    """The maps, [R][C]: density, horizontal and vertical congestion."""

    density: Map
    horizontal: Map
    vertical: Map


def costs(design: Design, placement: Placement, weights: tuple[float, float, float] = (1.0, 0.5, 0.5)) -> OracleCosts:
    """Returns all terms of the proxy cost of a whole placement; weights of wirelength, density and congestion."""
    canvas, netlist = design.canvas, design.netlist
    total_weight = math.fsum(netlist.net_weight)
    length = wirelength(netlist, placement)
    length_cost = length / ((canvas.width + canvas.height) * total_weight) if total_weight > 0 else 0.0
    all_maps = maps(design, placement)
    density_part = density_cost(all_maps.density)
    congestion_part = congestion_cost(all_maps.horizontal, all_maps.vertical)
    total = weights[0] * length_cost + weights[1] * density_part + weights[2] * congestion_part
    return OracleCosts(length, length_cost, density_part, congestion_part, total)


def maps(design: Design, placement: Placement) -> OracleMaps:
    """Returns the density map and the two congestion maps of a whole placement."""
    horizontal, vertical = congestion_maps(design, placement)
    return OracleMaps(density_map(design, placement), horizontal, vertical)


def pin_position(netlist: Netlist, placement: Placement, pin: int) -> tuple[float, float]:
    """Returns a pin's position in µm: pins turn with hard macros but not with soft ones; ports and cells are points."""
    node = int(netlist.pin_node[pin])
    x, y = float(placement.x[node]), float(placement.y[node])
    dx, dy = float(netlist.pin_dx[pin]), float(netlist.pin_dy[pin])
    kind = NodeKind(int(netlist.kind[node]))
    if kind == NodeKind.SOFT:
        return x + dx, y + dy
    if kind != NodeKind.HARD:
        return x, y
    turned = {
        Orientation.N: (dx, dy),
        Orientation.FN: (-dx, dy),
        Orientation.S: (-dx, -dy),
        Orientation.FS: (dx, -dy),
        Orientation.E: (dy, -dx),
        Orientation.FE: (-dy, -dx),
        Orientation.W: (-dy, dx),
        Orientation.FW: (dy, dx),
    }[Orientation(int(placement.orientation[node]))]
    return x + turned[0], y + turned[1]


def net_pins(netlist: Netlist, net: int) -> list[int]:
    """Returns the pins of a net, the driver's first."""
    return [int(pin) for pin in netlist.net_pins[netlist.net_start[net] : netlist.net_start[net + 1]]]


def wirelength(netlist: Netlist, placement: Placement) -> float:
    """Returns the weighted sum of the nets' half perimeters in µm."""
    lengths = []
    for net in range(netlist.num_nets):
        positions = [pin_position(netlist, placement, pin) for pin in net_pins(netlist, net)]
        xs, ys = [x for x, _ in positions], [y for _, y in positions]
        lengths.append(float(netlist.net_weight[net]) * ((max(xs) - min(xs)) + (max(ys) - min(ys))))
    return math.fsum(lengths)


def cell_of(canvas: Canvas, x: float, y: float) -> Cell:
    """Returns the gcell of a point, clamped to the grid."""
    column = math.floor(x / (canvas.width / canvas.columns))
    row = math.floor(y / (canvas.height / canvas.rows))
    return min(max(column, 0), canvas.columns - 1), min(max(row, 0), canvas.rows - 1)


def macro_sides(netlist: Netlist, placement: Placement, node: int) -> tuple[float, float, float, float]:
    """Returns left, bottom, right and top of a macro in µm."""
    width, height = float(netlist.width[node]), float(netlist.height[node])
    if Orientation(int(placement.orientation[node])).swaps_sides:
        width, height = height, width
    x, y = float(placement.x[node]), float(placement.y[node])
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def shared_sides(canvas: Canvas, sides: tuple[float, float, float, float], cell: Cell) -> tuple[float, float]:
    """Returns width and height, µm, of the overlap of a rectangle and a gcell; (0, 0) if they share no area."""
    left, bottom, right, top = sides
    cell_width, cell_height = canvas.width / canvas.columns, canvas.height / canvas.rows
    column, row = cell
    across = min(right, (column + 1) * cell_width) - max(left, column * cell_width)
    up = min(top, (row + 1) * cell_height) - max(bottom, row * cell_height)
    return (across, up) if across > 0 and up > 0 else (0.0, 0.0)


def density_map(design: Design, placement: Placement) -> Map:
    """Returns the area of hard and soft macros in each gcell over the gcell's area."""
    canvas, netlist = design.canvas, design.netlist
    area = (canvas.width / canvas.columns) * (canvas.height / canvas.rows)
    macros = [node for node in range(netlist.num_nodes) if netlist.kind[node] in (NodeKind.HARD, NodeKind.SOFT)]
    result = []
    for row in range(canvas.rows):
        line = []
        for column in range(canvas.columns):
            shares = [shared_sides(canvas, macro_sides(netlist, placement, node), (column, row)) for node in macros]
            line.append(math.fsum(across * up for across, up in shares) / area)
        result.append(line)
    return result


def density_cost(density: Map) -> float:
    """Returns half the mean of the densest tenth; with fewer than ten gcells, of those that are not empty."""
    values = sorted((value for line in density for value in line), reverse=True)
    if len(values) < 10:
        occupied = [value for value in values if value != 0]
        return 0.5 * math.fsum(occupied) / len(occupied) if occupied else 0.0
    count = math.floor(0.1 * len(values))
    return 0.5 * math.fsum(values[:count]) / count


def congestion_cost(horizontal: Map, vertical: Map) -> float:
    """Returns the mean of the busiest twentieth of both maps together, at least of one value."""
    values = sorted((value for each in (horizontal, vertical) for line in each for value in line), reverse=True)
    count = math.floor(0.05 * len(values))
    return math.fsum(values[:count]) / count if count else values[0]


def congestion_maps(design: Design, placement: Placement) -> tuple[Map, Map]:
    """Returns horizontal and vertical routing demand over capacity: smoothed nets, and blockage by hard macros."""
    canvas, netlist = design.canvas, design.netlist
    horizontal_capacity = (canvas.height / canvas.rows) * canvas.routes_horizontal
    vertical_capacity = (canvas.width / canvas.columns) * canvas.routes_vertical
    horizontal, vertical = _empty(canvas), _empty(canvas)
    for net in range(netlist.num_nets):
        weight = max(float(netlist.net_weight[net]), 1.0)
        cells = [cell_of(canvas, *pin_position(netlist, placement, pin)) for pin in net_pins(netlist, net)]
        for direction, line, start, end in net_segments(cells[0], set(cells)):
            for step in range(min(start, end), max(start, end)):
                if direction == "horizontal":
                    horizontal[line][step] += weight / horizontal_capacity
                else:
                    vertical[step][line] += weight / vertical_capacity
    horizontal, vertical = _smoothed(canvas, horizontal, vertical)
    for node in netlist.hard:
        _block(canvas, macro_sides(netlist, placement, int(node)), horizontal, vertical)
    return horizontal, vertical


def net_segments(driver: Cell, cells: set[Cell]) -> list[tuple[str, int, int, int]]:
    """Returns the route of a net: (`horizontal`, row, column, column) and (`vertical`, column, row, row) segments."""
    if len(cells) == 3:
        return _three_cells(cells)
    segments = []
    for cell in cells - {driver}:
        segments.append(("horizontal", driver[1], driver[0], cell[0]))
        segments.append(("vertical", cell[0], driver[1], cell[1]))
    return segments


def _three_cells(cells: set[Cell]) -> list[tuple[str, int, int, int]]:
    (x1, y1), (x2, y2), (x3, y3) = sorted(cells)
    if x1 < x2 < x3 and min(y1, y3) < y2 < max(y1, y3):
        return [
            ("horizontal", y1, x1, x2),
            ("horizontal", y2, x2, x3),
            ("vertical", x2, y1, y2),
            ("vertical", x3, y2, y3),
        ]
    if x2 == x3 and x1 < x2 and y1 < min(y2, y3):
        return [("horizontal", y1, x1, x2), ("vertical", x2, y1, max(y2, y3))]
    if y2 == y3:
        return [("horizontal", y1, x1, x2), ("horizontal", y2, x2, x3), ("vertical", x2, y1, y2)]
    (x1, y1), (x2, y2), (x3, y3) = sorted(cells, key=lambda cell: (cell[1], cell[0]))
    return [
        ("horizontal", y2, min(x1, x2, x3), max(x1, x2, x3)),
        ("vertical", x1, y1, y2),
        ("vertical", x3, y2, y3),
    ]


def _empty(canvas: Canvas) -> Map:
    return [[0.0] * canvas.columns for _ in range(canvas.rows)]


def _smoothed(canvas: Canvas, horizontal: Map, vertical: Map) -> tuple[Map, Map]:
    """Spreads each vertical value evenly along its row, each horizontal one along its column."""
    reach = math.floor(canvas.smoothing)
    smooth_horizontal, smooth_vertical = _empty(canvas), _empty(canvas)
    for row in range(canvas.rows):
        for column in range(canvas.columns):
            near = [near for near in range(column - reach, column + reach + 1) if 0 <= near < canvas.columns]
            for other in near:
                smooth_vertical[row][other] += vertical[row][column] / len(near)
            near = [near for near in range(row - reach, row + reach + 1) if 0 <= near < canvas.rows]
            for other in near:
                smooth_horizontal[other][column] += horizontal[row][column] / len(near)
    return smooth_horizontal, smooth_vertical


def _block(canvas: Canvas, sides: tuple[float, float, float, float], horizontal: Map, vertical: Map) -> None:
    """Adds the blockage of one hard macro, including its two exceptions."""
    left, bottom, right, top = sides
    if right <= 0 or top <= 0 or left >= canvas.width or bottom >= canvas.height:
        return
    cell_width, cell_height = canvas.width / canvas.columns, canvas.height / canvas.rows
    vertical_share = canvas.macro_routes_vertical / (cell_width * canvas.routes_vertical)
    horizontal_share = canvas.macro_routes_horizontal / (cell_height * canvas.routes_horizontal)
    first_column, first_row = cell_of(canvas, left, bottom)
    last_column, last_row = cell_of(canvas, right, top)
    partial_vertical = partial_horizontal = False
    for row in range(first_row, last_row + 1):
        for column in range(first_column, last_column + 1):
            across, up = shared_sides(canvas, sides, (column, row))
            vertical[row][column] += across * vertical_share
            horizontal[row][column] += up * horizontal_share
            if first_row != last_row and row in (first_row, last_row) and abs(up - cell_height) > 1e-5:
                partial_vertical = True
            if first_column != last_column and column in (first_column, last_column):
                partial_horizontal = partial_horizontal or abs(across - cell_width) > 1e-5
    if partial_vertical:
        for column in range(first_column, last_column + 1):
            vertical[last_row][column] -= shared_sides(canvas, sides, (column, last_row))[0] * vertical_share
    if partial_horizontal:
        for row in range(first_row, last_row + 1):
            horizontal[row][last_column] -= shared_sides(canvas, sides, (last_column, row))[1] * horizontal_share
