"""Mixed-size placements: cells and macros placed together, then the macros made legal and turned."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from placement.config import CostWeights
from placement.engine.soft import place_soft_macros
from placement.flat.correspondence import clustered_nodes, core_of, macros_from_flat
from placement.flat.electrostatic import PlacerSettings
from placement.flat.global_placement import place_mixed_size
from placement.netlist.design import Design
from placement.netlist.feasibility import ready
from placement.netlist.load import find
from placement.netlist.straps import DENSITY
from placement.netlist.user_placement import read_imported_flat
from placement.search.config import AnnealConfig
from placement.search.flips import flip_macros
from placement.search.starts import Start, legal

NAME = "mixed size"
SETTINGS = PlacerSettings(overflow=0.05, density=DENSITY)
"""Macros are most of the charge: at 7% the cells would not be spread yet."""


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
    design = ready(design)
    flat = read_imported_flat(find(name).parent)
    core = core_of(flat, design)
    halo = np.where(np.isin(np.arange(flat.netlist.num_nodes), flat.netlist.hard), config.spacing / 2, 0.0)
    core = dataclasses.replace(core, halo=np.maximum(np.asarray(core.halo), halo[:, None]))
    settings = dataclasses.replace(SETTINGS, seed=seed)
    orientation = flat.placement.orientation.copy()
    orientation[flat.netlist.hard] = design.initial.orientation[clustered_nodes(flat, design.netlist)]
    begin = dataclasses.replace(flat.placement, orientation=orientation)
    placed = place_mixed_size(flat.netlist, begin, core, settings=settings, stopped=stopped)
    if stopped():
        raise KeyboardInterrupt
    placement = legal(design, macros_from_flat(flat, design, placed), config)
    if len(design.netlist.soft):
        placement = place_soft_macros(design, placement, config.soft_placer)
    return Start(NAME, flip_macros(design, placement, weights=weights).placement)
