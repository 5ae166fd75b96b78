"""Mixed-size placement: cells and macros placed together, made legal, then the macros annealed among the cells."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from placement.config import CostWeights
from placement.engine.costs import proxy_cost
from placement.engine.soft import place_soft_macros
from placement.evaluation.flat_evaluation import FlatPlaced, read_flat_of
from placement.flat.among_cells import among_cells, macros_of
from placement.flat.from_clusters import core_of, macros_from_flat
from placement.flat.global_placement import PlacerSettings
from placement.flat.mixed_size import place_mixed_size
from placement.netlist.design import Design, Placement
from placement.netlist.feasibility import ready
from placement.netlist.straps import DENSITY
from placement.search.config import AnnealConfig, Budget
from placement.search.flips import flip_macros
from placement.search.search import SearchResult, Watch, search
from placement.search.starts import Start, legal
from placement.training.compilation import keep_compilations

NAME = "mixed size"
SETTINGS = PlacerSettings(overflow=0.05, density=DENSITY)
"""Macros are most of the charge: at 7% the cells would not be spread yet."""

WEIGHTS = CostWeights(1.0, 1.0, 60.0, "chip")
"""Of the cost among the cells. With a weight of 1 wires that cross arrays of macros stay above the tracks."""
HOT = 0.04
"""Temperature among the cells at the beginning, as `AnnealConfig.hot`: the macros are near where they belong."""

USABLE_TRACKS = 0.7
"""Share of the tracks beyond which the chip cost counts wire: kUsable in engine/native/cost."""


def mixed_size_start(
    name: str,
    design: Design,
    config: AnnealConfig,
    *,
    weights: CostWeights,
    seed: int,
    stopped: Callable[[], bool] = lambda: False,
) -> Start:
    """The hard macros where they fall when all cells and macros are placed together, moved off each other, and turned.

    Args:
        name: of the design, as `load` takes it; its flat netlist lies in its folder.
        design: the clustered one.
        config: what macros keep clear of, and the soft placer.
        weights: of the cost that the macros' orientations lower.
        seed: of the first places, at least 0.
        stopped: is asked between iterations.

    Raises:
        DesignError: there is no flat netlist, or the macros cannot be placed or made legal.
        KeyboardInterrupt: `stopped` said True, or Ctrl-C.
    """
    keep_compilations()
    design = ready(design)
    flat, _ = read_flat_of(name)
    core = core_of(flat, design)
    halo = np.where(np.isin(np.arange(flat.netlist.num_nodes), flat.netlist.hard), config.spacing / 2, 0.0)
    core = dataclasses.replace(core, halo=np.maximum(np.asarray(core.halo), halo[:, None]))
    settings = dataclasses.replace(SETTINGS, seed=seed)
    placed = place_mixed_size(flat.netlist, flat.placement, core, settings=settings, stopped=stopped)
    if stopped():
        raise KeyboardInterrupt
    placement = legal(design, macros_from_flat(flat, design, placed), config)
    if len(design.netlist.soft):
        placement = place_soft_macros(design, placement, config.soft_placer)
    return Start(NAME, flip_macros(design, placement, weights=weights).placement)


def wire_beyond_tracks(design: Design, placed: FlatPlaced) -> float:
    """µm of wire that the tracks which macros leave do not hold, by the nets' boxes on gcells of `among_cells`.

    Args:
        design: the clustered one.
        placed: a placement of it with all cells.
    """
    among = among_cells(placed.flat, design, placed.placement)
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
    among = among_cells(placed.flat, design, placed.placement)
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
