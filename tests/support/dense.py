"""Canvases that are cut into pieces: macros that are known to fit, at perturbed positions."""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.constraints import ALL_ORIENTATIONS, Constraints, SnapGrid
from placement.netlist.design import Design, NodeKind, Placement
from placement.netlist.floorplan import Region
from tests.support.designs import Net, Node, build, square_canvas

SIDE = 1000.0
"""Side of the canvas in µm."""


def dense_design(seed: int, *, macros: int, utilization: float = 0.85) -> Design:
    """Returns a design whose own placement is legal: pieces of the canvas, cut straight through repeatedly.

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


def constrained_design(seed: int, *, utilization: float, most: int = 12) -> Design:
    """Returns at most `most` macros with random constraints; every second design is legalisable by construction."""
    generator = np.random.default_rng([seed, 1])
    design = dense_design(seed, macros=int(generator.integers(3, most + 1)), utilization=utilization)
    netlist, hard, count = design.netlist, design.netlist.hard, design.netlist.num_nodes
    halo, regions, initial = np.zeros((count, 4)), [], design.initial
    fixed = initial.fixed.copy()
    fixed[generator.permutation(hard)[: int(generator.integers(0, 2))]] = len(hard) > 2
    blockages = np.zeros((0, 4))
    if seed % 4 > 1:  # other sizes, which may or may not fit
        sizes = np.stack((netlist.width, netlist.height)) * np.exp(generator.normal(0.0, 0.3, (2, count)))
        sizes[:, hard] *= np.sqrt(utilization * SIDE**2 / sizes[:, hard].prod(axis=0).sum())
        netlist = dataclasses.replace(netlist, width=np.minimum(sizes[0], SIDE), height=np.minimum(sizes[1], SIDE))
        fixed = initial.fixed
        corners = generator.uniform(0, 0.8 * SIDE, (int(generator.integers(0, 3)), 2))
        blockages = np.concatenate((corners, corners + generator.uniform(20, 150, corners.shape)), axis=1)
        halo[hard] = np.tile(generator.uniform(0, 10, (1, 2)) * generator.integers(0, 2), 2)
        if seed % 8 > 5:  # with four sides
            halo[hard] *= np.random.default_rng([seed, 2]).choice([0.0, 0.5, 1.0], (len(hard), 4))
        if generator.integers(0, 2):
            box, nodes = np.array([[0.0, 0.0, 0.6 * SIDE, SIDE]]), np.sort(hard[: len(hard) // 3])
            regions.append(Region("fence", box, nodes, is_exclusive=bool(generator.integers(0, 2))))
    constraints = Constraints(
        halo=halo, blockages=blockages, regions=tuple(regions), orientations=np.full(count, ALL_ORIENTATIONS),
        grid=SnapGrid(), port_keepout=0.0,
    )  # fmt: skip
    initial = dataclasses.replace(initial, fixed=fixed)
    return dataclasses.replace(design, netlist=netlist, initial=initial, constraints=constraints)


def strewn(design: Design, sigma: float, *, seed: int) -> Placement:
    """Returns the design's own placement with its macros moved by a normal distribution (µm), inside the canvas."""
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
    """Returns lower left corner, width and height of the pieces of the canvas, float64 [count, 4]."""
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
