"""Random constraints for tests, on any design. Lengths are in µm."""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.constraints import ALL_ORIENTATIONS, Constraints, MacroGrid, SnapGrid
from placement.netlist.design import Design
from placement.netlist.floorplan import Region


def constrained(design: Design, **changes: object) -> Design:
    """Returns the design with some fields of its constraints changed."""
    return dataclasses.replace(design, constraints=dataclasses.replace(design.constraints, **changes))  # type: ignore[arg-type]


def randomly_constrained(design: Design, seed: int, *, turns: bool = True) -> Design:
    """Returns the design with a random subset of halos, blockages, regions, orientations, grids and keep-outs.

    A movable macro may keep the orientation of the initial placement. Every bound is a whole number of twentieths of
    the canvas, so that nothing differs by a rounding error.

    Args:
        design: whose constraints to draw.
        seed: of all that is random.
        turns: whether orientations may be forbidden.
    """
    generator = np.random.default_rng(seed)
    canvas, netlist = design.canvas, design.netlist
    unit = np.array([canvas.width / 20, canvas.height / 20])

    def chosen(share: float) -> bool:
        return bool(generator.random() < share)

    def rectangles(count: int, least: int, most: int) -> np.ndarray:
        low = generator.integers(0, 20, (count, 2))
        high = np.minimum(low + generator.integers(least, most + 1, (count, 2)), 20)
        return np.concatenate((low * unit, high * unit), axis=1)

    halo = np.zeros((netlist.num_nodes, 2))
    if chosen(0.6):
        halo[netlist.hard] = generator.choice([0.0, 0.1, 0.25, 0.5], (len(netlist.hard), 2)) * unit.min()
    if seed % 2:  # four sides
        uneven = np.random.default_rng([seed, 1])
        halo = np.tile(halo, 2) * uneven.choice([0.0, 0.5, 1.0], (netlist.num_nodes, 4))
    orientations = np.full(netlist.num_nodes, ALL_ORIENTATIONS)
    if turns and chosen(0.5):
        orientations[netlist.hard] = generator.integers(1, 256, len(netlist.hard))
        orientations[netlist.hard] |= 1 << design.initial.orientation[netlist.hard].astype(np.int64)
    regions = []
    for number in range(int(generator.integers(0, 3))):
        members = generator.choice(netlist.hard, min(2, len(netlist.hard)), replace=False)
        shapes = np.concatenate((rectangles(1, 9, 14), rectangles(1, 5, 9)))
        regions.append(Region(f"region{number}", shapes, np.sort(members), is_exclusive=chosen(0.3)))
    grid = SnapGrid()
    if chosen(0.5):
        pitch = float(generator.choice([0.05, 0.5, 1.7]) * unit.min() / 4)
        grid = SnapGrid(pitch, float(generator.choice([0.0, pitch])), float(pitch / 3), 0.0)
    constraints = Constraints(
        halo=halo,
        blockages=rectangles(int(generator.integers(0, 3)), 1, 5),
        regions=tuple(regions),
        orientations=orientations,
        grid=grid,
        port_keepout=float(unit.min() / 2) if chosen(0.4) else 0.0,
    )
    if chosen(0.4):
        own = [SnapGrid(*(generator.choice([0.0, 0.3, 0.4], 2) * unit.min()), *generator.random(2)) for _ in range(8)]
        members = generator.choice(netlist.hard, (len(netlist.hard) + 1) // 2, replace=False)
        constraints = dataclasses.replace(constraints, macro_grids=(MacroGrid(np.sort(members), tuple(own)),))
    return dataclasses.replace(design, constraints=constraints)
