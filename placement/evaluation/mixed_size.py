"""What follows a mixed-size start: the macros annealed among the placed cells."""

from __future__ import annotations

import dataclasses
from typing import Any

from placement.annealing.config import SOFT_PLACER, AnnealConfig
from placement.annealing.search import SearchResult, Watch, search
from placement.annealing.starts import Start
from placement.config import CostWeights
from placement.engine import _native
from placement.engine.costs import compute_costs
from placement.engine.soft import place_soft_macros
from placement.evaluation.flat_evaluation import FlatPlaced
from placement.evaluation.mixed_size_start import NAME
from placement.flat.among_cells import among_cells, macros_of
from placement.netlist.design import Design, Placement

WEIGHTS = CostWeights(1.0, 1.0, 60.0, "chip")
"""Of the cost among the cells. With a weight of 1 wires that cross arrays of macros stay above the tracks."""
INITIAL_TEMPERATURE = 0.04
"""Among the cells, as `AnnealConfig.initial_temperature`: the macros are near where they belong."""


def wire_beyond_tracks(design: Design, placed: FlatPlaced) -> float:
    """µm of wire that the tracks which macros leave do not hold, by the nets' boxes on gcells of `among_cells`.

    Args:
        design: the clustered one.
        placed: a placement of it with all cells.
    """
    among = among_cells(placed.flat, design, placed.placement)
    names = ("routes_horizontal", "routes_vertical", "macro_routes_horizontal", "macro_routes_vertical")
    tracks: dict[str, Any] = {name: getattr(among.canvas, name) / _native.USABLE_TRACKS for name in names}
    among = dataclasses.replace(among, canvas=dataclasses.replace(among.canvas, **tracks))
    unit = (among.canvas.width + among.canvas.height) * float(among.netlist.net_weight.sum())
    return compute_costs(among, among.initial, weights=WEIGHTS).congestion_cost * unit


def refine_among_cells(
    design: Design,
    placement: Placement,
    placed: FlatPlaced,
    config: AnnealConfig,
    *,
    seconds: float,
    moves: int | None = None,
    seed: int,
    watch: Watch,
) -> tuple[Placement, SearchResult]:
    """The hard macros annealed while all cells stand where the flat check put them.

    Args:
        design: the clustered one.
        placement: of it, legal.
        placed: the same with all cells.
        config: what macros keep clear of, and how they are annealed.
        seconds: CPU seconds of the one thread.
        moves: instead of `seconds`.
        seed: of the moves, at least 0.
        watch: what is done beside.

    Returns:
        `placement` with the hard macros moved and the soft macros placed for them, and the search.

    Raises:
        DesignError: `placement` is not legal.
        OSError: the watch's folder cannot be written.
    """
    given = config.initial_temperature
    among = among_cells(placed.flat, design, placed.placement)
    annealed = search(
        among,
        [Start(NAME, among.initial)],
        config=dataclasses.replace(config, initial_temperature=INITIAL_TEMPERATURE if given is None else given),
        seconds=seconds,
        moves=moves,
        weights=WEIGHTS,
        seed=seed,
        watch=watch,
    )
    placement = macros_of(placed.flat, design, placement, annealed.placement)
    if len(design.netlist.soft):
        placement = place_soft_macros(design, placement, SOFT_PLACER)
    return placement, annealed
