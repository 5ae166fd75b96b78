"""Small designs for tests: explicit ones, and random ones that use every feature of a design.

Nothing here reads files. Lengths are in µm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.netlist.design import Canvas, Design, Netlist, NodeKind, Orientation, Placement


class Node(NamedTuple):
    """A node and its position, for `build`."""

    name: str
    kind: NodeKind
    x: float
    y: float
    width: float = 0.0
    height: float = 0.0
    orientation: Orientation = Orientation.N
    fixed: bool = False


class Net(NamedTuple):
    """A net for `build`: its pins as (node name, dx, dy), the driver's first, and its weight."""

    pins: Sequence[tuple[str, float, float]]
    weight: float = 1.0


def build(name: str, canvas: Canvas, nodes: Sequence[Node], nets: Sequence[Net]) -> Design:
    """Returns a design of the given nodes and nets; each entry of a net becomes a separate pin."""
    index = {node.name: number for number, node in enumerate(nodes)}
    pins = [pin for net in nets for pin in net.pins]
    netlist = Netlist(
        names=tuple(node.name for node in nodes),
        kind=np.array([node.kind for node in nodes]),
        width=np.array([node.width for node in nodes]),
        height=np.array([node.height for node in nodes]),
        file_index=np.arange(len(nodes)),
        pin_node=np.array([index[pin[0]] for pin in pins], dtype=np.int32),
        pin_dx=np.array([pin[1] for pin in pins], dtype=np.float64),
        pin_dy=np.array([pin[2] for pin in pins], dtype=np.float64),
        net_weight=np.array([net.weight for net in nets], dtype=np.float64),
        net_start=np.cumsum([0, *(len(net.pins) for net in nets)]),
        net_pins=np.arange(len(pins)),
    )
    placement = Placement(
        x=np.array([node.x for node in nodes]),
        y=np.array([node.y for node in nodes]),
        orientation=np.array([node.orientation for node in nodes]),
        placed=np.ones(len(nodes), dtype=bool),
        fixed=np.array([node.fixed or node.kind == NodeKind.PORT for node in nodes]),
    )
    return Design(name, netlist, canvas, placement)


def square_canvas(
    columns: int = 5, rows: int = 5, *, cell: float = 10.0, smoothing: int = 0, overlap_threshold: float = 0.0
) -> Canvas:
    """Returns a canvas of square gcells of `cell` µm; 2 horizontal and 4 vertical tracks per µm; macros block half."""
    return Canvas(
        width=columns * cell,
        height=rows * cell,
        columns=columns,
        rows=rows,
        routes_horizontal=2.0,
        routes_vertical=4.0,
        macro_routes_horizontal=1.0,
        macro_routes_vertical=2.0,
        smoothing=smoothing,
        overlap_threshold=overlap_threshold,
    )


def four_macros() -> Design:
    """Returns three movable hard macros, a fixed one, a soft macro, two ports and four nets on 5 × 5 gcells of 10
    µm.
    """
    nodes = [
        Node("left", NodeKind.PORT, 0.0, 25.0),
        Node("right", NodeKind.PORT, 50.0, 15.0),
        Node("large", NodeKind.HARD, 15.0, 15.0, 20.0, 10.0),
        Node("middle", NodeKind.HARD, 35.0, 35.0, 10.0, 16.0, Orientation.FN),
        Node("small", NodeKind.HARD, 15.0, 35.0, 6.0, 8.0, Orientation.E),
        Node("kept", NodeKind.HARD, 45.0, 5.0, 10.0, 10.0, fixed=True),
        Node("cluster", NodeKind.SOFT, 25.0, 25.0, 12.0, 12.0),
    ]
    nets = [
        Net([("left", 0, 0), ("large", -8, 2)]),
        Net([("large", 8, 2), ("middle", 3, -4), ("cluster", 0, 0)], 2.0),
        Net([("cluster", 0, 0), ("small", 1, 2), ("kept", -4, 4), ("right", 0, 0)], 0.5),
        Net([("middle", 0, 5), ("small", -1, -2)]),
    ]
    return build("four_macros", square_canvas(), nodes, nets)


def random_design(
    seed: int,
    *,
    hard: int = 8,
    soft: int = 6,
    ports: int = 5,
    cells: int = 2,
    nets: int = 40,
    canvas: Canvas | None = None,
) -> Design:
    """A random design with every feature: weights below and above 1, pins that share a place, nets that repeat, nets
    of one pin and of many, fixed macros, all orientations, macros beyond the canvas edge, standard cells.

    Args:
        seed: of all that is random, the canvas included.
        hard: number of hard macros.
        soft: number of soft macros.
        ports: number of ports.
        cells: number of standard cells.
        nets: number of nets.
        canvas: the canvas; a random one of 1 × 1 to 14 × 14 gcells, smoothing 0 to 4, when None.
    """
    generator = np.random.default_rng(seed)
    canvas = _random_canvas(generator) if canvas is None else canvas
    kinds = [NodeKind.HARD] * hard + [NodeKind.SOFT] * soft + [NodeKind.PORT] * ports + [NodeKind.CELL] * cells
    generator.shuffle(kinds)
    nodes = [_random_node(generator, NodeKind(kind), number, canvas) for number, kind in enumerate(kinds)]
    return build(f"random_{seed}", canvas, nodes, _random_nets(generator, nodes, nets))


def random_placement(design: Design, seed: int, *, spill: float = 0.1, on_grid: bool = False) -> Placement:
    """Puts macros and standard cells anywhere (overlapping), in any orientation; ports and fixed nodes do not move.

    Args:
        design: whose nodes to throw.
        seed: of all that is random.
        spill: centres may lie this fraction of the canvas beyond its edges.
        on_grid: put every centre on the centre of a gcell, as an episode does.
    """
    generator = np.random.default_rng(seed)
    canvas, initial, netlist = design.canvas, design.initial, design.netlist
    size = netlist.num_nodes
    if on_grid:
        x = (generator.integers(0, canvas.columns, size) + 0.5) * canvas.cell_width
        y = (generator.integers(0, canvas.rows, size) + 0.5) * canvas.cell_height
    else:
        x = generator.uniform(-spill, 1 + spill, size) * canvas.width
        y = generator.uniform(-spill, 1 + spill, size) * canvas.height
    stays = initial.fixed
    turned = (netlist.kind == NodeKind.HARD) & ~stays
    return Placement(
        x=np.where(stays, initial.x, x),
        y=np.where(stays, initial.y, y),
        orientation=np.where(turned, generator.integers(0, len(Orientation), size), initial.orientation),
        placed=np.ones(size, dtype=bool),
        fixed=initial.fixed,
    )


def _random_canvas(generator: np.random.Generator) -> Canvas:
    width, height = generator.uniform(20, 200, 2)
    columns, rows = (int(count) for count in generator.integers(1, 15, 2))
    routes = generator.uniform(1, 60, 2)
    return Canvas(
        width=float(width),
        height=float(height),
        columns=columns,
        rows=rows,
        routes_horizontal=float(routes[0]),
        routes_vertical=float(routes[1]),
        macro_routes_horizontal=float(routes[0] * generator.uniform(0, 1)),
        macro_routes_vertical=float(routes[1] * generator.uniform(0, 1)),
        smoothing=int(generator.integers(0, 5)),
        overlap_threshold=float(generator.choice([0.0, 0.5])),
    )


def _random_node(generator: np.random.Generator, kind: NodeKind, number: int, canvas: Canvas) -> Node:
    x, y = (float(value) for value in generator.uniform(0, 1, 2) * (canvas.width, canvas.height))
    if kind == NodeKind.PORT:  # on an edge, half of them exactly at the far one
        side = generator.integers(4)
        x, y = [(0.0, y), (canvas.width, y), (x, 0.0), (x, canvas.height)][side]
        return Node(f"port_{number}", kind, x, y)
    if kind == NodeKind.CELL:
        return Node(f"cell_{number}", kind, x, y, 0.5, 1.0)
    least = min(canvas.width, canvas.height)
    width, height = (float(value) for value in generator.uniform(0.01, 0.25, 2) * least)
    if kind == NodeKind.SOFT:
        return Node(f"Grp_{number}", kind, x, y, width, height)
    orientation = Orientation(int(generator.integers(len(Orientation))))
    return Node(f"macro_{number}", kind, x, y, width, height, orientation, bool(generator.random() < 0.15))


def _random_nets(generator: np.random.Generator, nodes: Sequence[Node], count: int) -> list[Net]:
    """Returns `count` nets; every macro has only a few pin positions, so that positions and whole nets repeat."""
    places = {
        node.name: [
            (float(dx), float(dy)) for dx, dy in generator.uniform(-0.5, 0.5, (3, 2)) * (node.width, node.height)
        ]
        for node in nodes
    }
    nets: list[Net] = []
    for _ in range(count):
        weight = float(generator.choice([1.0, 1.0, 0.3, 2.0, 7.0, generator.uniform(0.1, 9)]))
        if nets and generator.random() < 0.15:  # the same net again, with a different weight
            nets.append(nets[int(generator.integers(len(nets)))]._replace(weight=weight))
            continue
        size = int(generator.choice([1, 2, 2, 2, 3, 3, 3, 4, 5, 9]))
        chosen = [nodes[int(number)] for number in generator.integers(0, len(nodes), size)]
        nets.append(Net([_random_pin(generator, node, places[node.name]) for node in chosen], weight))
    return nets


def _random_pin(
    generator: np.random.Generator, node: Node, places: Sequence[tuple[float, float]]
) -> tuple[str, float, float]:
    if node.kind in (NodeKind.PORT, NodeKind.CELL):
        return (node.name, 0.0, 0.0)
    return (node.name, *places[int(generator.integers(len(places)))])
