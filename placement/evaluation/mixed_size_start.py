"""Places cells and macros together as a search's start, and anneals the macros among the placed cells afterwards."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from placement.annealing.anneal_config import SOFT_PLACER, AnnealConfig
from placement.annealing.finishing import flip_macros
from placement.annealing.search import SearchResult, Watch, search
from placement.annealing.starts import Start, legal
from placement.config import CostWeights
from placement.engine import _native
from placement.engine.costs import compute_costs
from placement.engine.soft import place_soft_macros
from placement.evaluation.full_evaluation import PlacedCells
from placement.flat.cell_context import cell_context, macros_of
from placement.flat.correspondence import clustered_nodes, core_of, macros_from_flat
from placement.flat.global_placement import PlacerSettings, place_mixed_size
from placement.netlist.design import Design, Placement
from placement.netlist.feasibility import ready
from placement.netlist.flat_design import read_flat
from placement.netlist.load import find
from placement.netlist.pdn_channel import DENSITY

NAME = "mixed size"
SETTINGS = PlacerSettings(overflow=0.05, density=DENSITY)
"""Macros are most of the charge; at an overflow of 7% the cells would not be spread yet."""
WEIGHTS = CostWeights(1.0, 1.0, 60.0, "chip")
"""Cost weights among the cells. With a congestion weight of 1, wires across macro arrays stay above the tracks."""
INITIAL_TEMPERATURE = 0.04
"""`AnnealConfig.initial_temperature` among the cells; low, since the macros are near their final positions."""


def mixed_size_start(
    name: str,
    design: Design,
    config: AnnealConfig,
    *,
    weights: CostWeights,
    seed: int,
    stopped: Callable[[], bool] = lambda: False,
) -> Start:
    """Places all cells and macros together, makes the hard macros legal, and orients them by the cost of `weights`.

    `name` is the clustered design's name for `load`. Raises DesignError if there is no flat netlist, or the macros
    cannot be placed or made legal, and KeyboardInterrupt once `stopped()` is true.
    """
    design = ready(design)
    flat = read_flat(find(name).parent)
    core = core_of(flat, design)
    halo = np.where(np.isin(np.arange(flat.netlist.num_nodes), flat.netlist.hard), config.spacing_in(design) / 2, 0.0)
    core = dataclasses.replace(core, halo=np.maximum(np.asarray(core.halo), halo[:, None]))
    settings = dataclasses.replace(SETTINGS, seed=seed)
    orientation = flat.placement.orientation.copy()
    orientation[flat.netlist.hard] = design.initial.orientation[clustered_nodes(flat, design.netlist)]
    begin = dataclasses.replace(flat.placement, orientation=orientation)
    placed = place_mixed_size(flat.netlist, begin, core, settings=settings, stopped=stopped)
    if stopped():
        raise KeyboardInterrupt
    placement = place_soft_macros(design, legal(design, macros_from_flat(flat, design, placed), config), SOFT_PLACER)
    return Start(NAME, flip_macros(design, placement, weights=weights).placement)


def refine_among_cells(
    design: Design,
    placement: Placement,
    placed: PlacedCells,
    config: AnnealConfig,
    *,
    seconds: float,
    moves: int | None = None,
    seed: int,
    watch: Watch,
) -> tuple[Placement, SearchResult]:
    """Anneals the hard macros while all cells keep their positions from the full evaluation; takes the arguments of
    `search`.

    Returns the legal `placement` of the clustered design with the hard macros moved and the soft macros placed for
    them, and the search.
    """
    given = config.initial_temperature
    among = cell_context(placed.flat, design, placed.placement)
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
    moved = macros_of(placed.flat, design, placement, annealed.placement)
    return place_soft_macros(design, moved, SOFT_PLACER), annealed


def wire_beyond_tracks(design: Design, placed: PlacedCells) -> float:
    """Wire in µm that exceeds the tracks left by macros, estimated by the nets' boxes on gcells of `cell_context`."""
    among = cell_context(placed.flat, design, placed.placement)
    names = ("routes_horizontal", "routes_vertical", "macro_routes_horizontal", "macro_routes_vertical")
    tracks: dict[str, Any] = {name: getattr(among.canvas, name) / _native.USABLE_TRACKS for name in names}
    among = dataclasses.replace(among, canvas=dataclasses.replace(among.canvas, **tracks))
    unit = (among.canvas.width + among.canvas.height) * float(among.netlist.net_weight.sum())
    return compute_costs(among, among.initial, weights=WEIGHTS).congestion_cost * unit
