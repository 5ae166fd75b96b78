"""The designs that a judge learns from: flat netlists drawn by the generator, no two alike.

Every number is drawn from a wide range that no real design was looked at for.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from placement.engine.costs import proxy_cost
from placement.flat.global_placement import place_before_clustering
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.generators.flat import FlatOptions
from placement.netlist.generators.flat_floorplan import flat_on_floorplan
from placement.netlist.importing import ImportedDesign, import_design
from placement.search.config import AnnealConfig
from placement.search.starts import make_starts

ATTEMPTS = 20
"""Draws whose macros do not fit the core are drawn anew, at most so often."""
_TRACKS = ("routes_horizontal", "routes_vertical", "macro_routes_horizontal", "macro_routes_vertical")


class Draw(NamedTuple):
    """What a design is made with.

    Attributes:
        options: of the generator.
        demand: the wires of a placement in rows over what all tracks could take, were there no macros.
    """

    options: FlatOptions
    demand: float


def draw(generator: np.random.Generator, *, cells: tuple[int, int], macros: tuple[int, int]) -> Draw:
    """A design's options.

    Args:
        generator: consumed.
        cells: the fewest and the most standard cells.
        macros: the fewest and the most hard macros.
    """

    def between(low: float, high: float) -> float:
        return float(generator.uniform(low, high))

    def log(low: float, high: float) -> float:
        return float(np.exp(generator.uniform(np.log(low), np.log(high))))

    options = FlatOptions(
        cells=round(log(*cells)),
        macros=round(log(*macros)),
        ports=round(log(30, 250)),
        macro_pins=round(log(8, 60)),
        bank=round(log(1, 8)),
        bank_cells=between(0.3, 1.0),
        size_spread=log(1, 6),
        macro_aspect=log(1, 3),
        core_aspect=log(0.5, 2),
        macro_utilization=between(0.15, 0.55),
        cell_utilization=between(0.3, 0.7),
        rent_exponent=between(0.5, 0.8),
    )
    return Draw(options, between(0.15, 0.8))


def make_design(
    name: str, *, seed: int, cells: tuple[int, int] = (3000, 10_000), macros: tuple[int, int] = (10, 60)
) -> ImportedDesign:
    """A design drawn with `seed`, imported.

    Args:
        name: of the design.
        seed: of all draws.
        cells: the fewest and the most standard cells.
        macros: the fewest and the most hard macros.

    Raises:
        DesignError: no draw of `ATTEMPTS` has macros that fit.
    """
    generator = np.random.default_rng([seed, 0xDE51])
    failed: DesignError | None = None
    for _ in range(ATTEMPTS):
        drawn = draw(generator, cells=cells, macros=macros)
        try:
            flat = flat_on_floorplan(name, drawn.options, seed=int(generator.integers(2**31)))
            imported = import_design(flat, place=place_before_clustering)
            return dataclasses.replace(imported, design=with_demand(imported.design, drawn.demand))
        except DesignError as error:
            failed = error
    assert failed is not None
    raise failed


def with_demand(design: Design, demand: float) -> Design:
    """The design with as many more or fewer routing tracks, of all kinds alike, as give it a demand.

    Args:
        design: which.
        demand: half perimeters of the clustered nets, the macros standing in rows, over the length of all tracks.

    Raises:
        DesignError: no room was found for all macros.
    """
    canvas = design.canvas
    placement = make_starts(design, AnnealConfig(starts=("packed",)), 0)[0].placement
    length = canvas.width * canvas.height * (canvas.routes_horizontal + canvas.routes_vertical)
    share = proxy_cost(design, placement).wirelength / (length * demand)
    tracks = {field: getattr(canvas, field) * share for field in _TRACKS}
    return dataclasses.replace(design, canvas=dataclasses.replace(canvas, **tracks))
