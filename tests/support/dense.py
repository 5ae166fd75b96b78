"""Canvases that are cut into pieces: macros that are known to fit, strewn."""

from __future__ import annotations

import numpy as np

from placement.netlist.design import Design, NodeKind, Placement
from tests.support.designs import Net, Node, build, square_canvas

SIDE = 1000.0
"""µm, of the canvas."""


def dense_design(seed: int, *, macros: int, utilization: float = 0.85) -> Design:
    """A design whose own placement is legal: pieces of the canvas, cut straight through again and again.

    Odd seeds shrink every piece to the utilisation, even ones leave pieces out.
    """
    generator = np.random.default_rng(seed)
    pieces = _cut(generator, macros)
    left, low, width, height = pieces.T
    if seed % 2:
        scale = np.sqrt(utilization)
        left, low = left + width * (1 - scale) / 2, low + height * (1 - scale) / 2
        width, height = width * scale, height * scale
        kept = list(range(macros))
    else:
        kept, covered = [], 0.0
        for piece in generator.permutation(macros):
            if covered + width[piece] * height[piece] <= utilization * SIDE**2:
                kept.append(int(piece))
                covered += width[piece] * height[piece]
    nodes = [Node("port", NodeKind.PORT, 0.0, SIDE / 2)]
    for piece in kept:
        x, y = left[piece] + width[piece] / 2, low[piece] + height[piece] / 2
        nodes.append(Node(f"macro{piece}", NodeKind.HARD, x, y, width[piece], height[piece]))
    net = Net([("port", 0, 0), (nodes[1].name, 0, 0)])
    return build(f"dense{seed}", square_canvas(10, 10, cell=SIDE / 10), nodes, [net])


def strewn(design: Design, sigma: float, *, seed: int) -> Placement:
    """The design's own placement with its macros moved by a normal distribution (µm), inside the canvas."""
    generator = np.random.default_rng(seed)
    nodes, initial, canvas = design.placing_order, design.initial, design.canvas
    places = []
    for at, extent, sides in zip(
        (initial.x, initial.y), (canvas.width, canvas.height), design.netlist.sides(initial.orientation), strict=True
    ):
        half = sides[nodes] / 2
        places.append(np.clip(at[nodes] + generator.normal(0.0, sigma, len(nodes)), half, extent - half))
    return initial.moved(nodes, *places)


def _cut(generator: np.random.Generator, count: int) -> np.ndarray:
    """float64 [count, 4]: lower left corner, width and height of the pieces of the canvas."""
    pieces = [(0.0, 0.0, SIDE, SIDE)]
    while len(pieces) < count:
        index = int(np.argmax([width * height * (1 + generator.random()) for _, _, width, height in pieces]))
        left, low, width, height = pieces.pop(index)
        share = generator.uniform(0.3, 0.7)
        if generator.random() < (0.8 if width > height else 0.2):
            pieces += [(left, low, width * share, height), (left + width * share, low, width * (1 - share), height)]
        else:
            pieces += [(left, low, width, height * share), (left, low + height * share, width, height * (1 - share))]
    return np.array(pieces)
