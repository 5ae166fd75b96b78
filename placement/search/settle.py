"""Soft macros annealed where hard ones stand: what those cost once their cells are well placed."""

from __future__ import annotations

import contextlib
import dataclasses

from placement.config import CHIP_COST
from placement.engine.costs import DEFAULT_WEIGHTS, CostWeights
from placement.engine.soft import place_soft_macros
from placement.flat.clusters import spread_clusters
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.search.config import AnnealConfig, Budget
from placement.search.search import search
from placement.search.starts import Start

MOVES = 100_000
"""A cost ranks made placements better the longer soft macros are annealed for it; beyond these, little is gained for
the time on made designs, on CT-Ariane something (docs/experiments/2026-11-where-cells-begin.md)."""

HOT = 0.1
"""Temperature at the beginning, in multiples of the cost per macro that may move."""

_LEFT_OUT: dict[str, tuple[str, ...]] = {"proxy": (), "chip": ("soft_draw",)}
"""Kinds of moves, by cost. By the chip cost a draw takes as long as two other soft moves, and here saves no more."""

_CHECK_EACH = 1_000  # moves for each soft macro, and their temperature at the beginning, for the flat check
_CHECK_HOT = 1.0
_ROUNDS = 50


def settle_soft_macros(
    design: Design,
    placement: Placement,
    *,
    weights: CostWeights = DEFAULT_WEIGHTS,
    moves: int = MOVES,
    hot: float = HOT,
    seed: int = 0,
) -> Placement:
    """`placement` with its soft macros placed and then annealed; hard macros stand where they stood.

    Two beginnings are raced: soft macros as `analytic` places them, and spread around the macros as charges.

    Args:
        design: whose macros.
        placement: of all nodes.
        weights: of the cost that is lowered.
        moves: of soft macros.
        hot: the temperature at the beginning. On Ariane 1, with a thousand moves and more for each soft macro, ends
            some percent cheaper than `HOT`, on made designs no cheaper
            (docs/experiments/2026-11-annealed-clusters.md).
        seed: of the moves.

    Raises:
        DesignError: `placement` is not a whole placement of `design`.
    """
    fixed = placement.fixed.copy()
    fixed[design.netlist.hard] = True
    if fixed[design.netlist.soft].all():
        return placement
    held = dataclasses.replace(place_soft_macros(design, placement, "analytic"), fixed=fixed)
    starts = [Start("analytic", held)]
    with contextlib.suppress(DesignError):  # no room clear of the macros
        starts.append(Start("spread", spread_clusters(design, held)))
    found = search(
        dataclasses.replace(design, initial=held),
        starts,
        config=AnnealConfig(hot=hot, round_moves=max(1, moves // _ROUNDS), without=_LEFT_OUT[weights.name]),
        budget=Budget(moves=moves),
        weights=weights,
        seed=seed,
    )
    return dataclasses.replace(found.placement, fixed=placement.fixed)


def settle_for_check(design: Design, placement: Placement) -> Placement:
    """`settle_soft_macros` by the chip cost, as the full evaluation's cells begin (`FullEvaluator`'s `anneal`).

    Args:
        design: the clustered one.
        placement: of all nodes; its hard macros are read.

    Raises:
        DesignError: `placement` is not a whole placement of `design`, or its hard macros are not legal.
    """
    moves = max(MOVES, _CHECK_EACH * len(design.netlist.soft))
    return settle_soft_macros(design, placement, weights=CHIP_COST.weights(), moves=moves, hot=_CHECK_HOT)
