"""What follows a mixed-size start: the macros annealed among the placed cells."""

from __future__ import annotations

import dataclasses
from typing import Any

from placement.config import CostWeights
from placement.engine.costs import proxy_cost
from placement.engine.soft import place_soft_macros
from placement.evaluation.flat_evaluation import FlatPlaced
from placement.flat.cell_context import cell_context, macros_of
from placement.netlist.design import Design, Placement
from placement.search.config import AnnealConfig, Budget
from placement.search.search import SearchResult, Watch, search
from placement.search.starts import Start
from placement.training.mixed_size import NAME

WEIGHTS = CostWeights(1.0, 1.0, 60.0, "chip")
"""Of the cost among the cells. With a weight of 1 wires that cross arrays of macros stay above the tracks."""
HOT = 0.04
"""Temperature among the cells at the beginning, as `AnnealConfig.hot`: the macros are near where they belong."""

USABLE_TRACKS = 0.7
"""Share of the tracks beyond which the chip cost counts wire: kUsable in engine/native/cost."""


def wire_beyond_tracks(design: Design, placed: FlatPlaced) -> float:
    """µm of wire that the tracks which macros leave do not hold, by the nets' boxes on gcells of `cell_context`.

    Args:
        design: the clustered one.
        placed: a placement of it with all cells.
    """
    among = cell_context(placed.flat, design, placed.placement)
    names = ("routes_horizontal", "routes_vertical", "macro_routes_horizontal", "macro_routes_vertical")
    tracks: dict[str, Any] = {name: getattr(among.canvas, name) / USABLE_TRACKS for name in names}
    among = dataclasses.replace(among, canvas=dataclasses.replace(among.canvas, **tracks))
    unit = (among.canvas.width + among.canvas.height) * float(among.netlist.net_weight.sum())
    return proxy_cost(among, among.initial, weights=WEIGHTS).congestion_cost * unit


def refine_among_cells(
    design: Design,
    placement: Placement,
    placed: FlatPlaced,
    config: AnnealConfig,
    *,
    budget: Budget,
    seed: int,
    watch: Watch,
) -> tuple[Placement, SearchResult]:
    """The hard macros annealed while all cells stand where the flat check put them.

    Args:
        design: the clustered one.
        placement: of it, legal.
        placed: the same with all cells.
        config: what macros keep clear of, how they are annealed, and the soft placer.
        budget: of the one thread.
        seed: of the moves, at least 0.
        watch: what is done beside.

    Returns:
        `placement` with the hard macros moved and the soft macros placed for them, and the search.

    Raises:
        DesignError: `placement` is not legal.
        OSError: the watch's folder cannot be written.
    """
    hot = HOT if config.hot is None else config.hot
    among = cell_context(placed.flat, design, placed.placement)
    annealed = search(
        among,
        [Start(NAME, among.initial)],
        config=dataclasses.replace(config, hot=hot, cold=min(config.cold, hot)),
        budget=budget,
        weights=WEIGHTS,
        seed=seed,
        watch=watch,
    )
    placement = macros_of(placed.flat, design, placement, annealed.placement)
    if len(design.netlist.soft):
        placement = place_soft_macros(design, placement, config.soft_placer)
    return placement, annealed
