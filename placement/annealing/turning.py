"""Turns groups of macros. A macro alone would differ from the rest of its group after it turned."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.legaliser import fits
from placement.engine.costs import CostWeights, IncrementalCost, compute_costs
from placement.engine.tidiness import equal_neighbours
from placement.netlist.design import Design, Placement

MOST_TURNED = 64  # maximum number of macros in a group that turns; bounds the time per turn


class _Turn(NamedTuple):
    group: tuple[int, ...]  # nodes
    orientation: int  # afterwards
    pairs: int  # pairs of neighbours that become alike


def turn_groups(
    design: Design, placement: Placement, *, weights: CostWeights, config: AnnealConfig, most: float
) -> Placement:
    """Returns `placement` with groups of macros turned as long as that lowers the cost.

    A group is a maximal set of connected neighbours of equal size in one orientation. It takes the orientation of a
    neighbour outside it that keeps its sides. The turn that lowers the cost most per pair made alike comes first.

    Args:
        design: the design of the placement.
        placement: a legal placement.
        weights: weights of the cost, including tidiness.
        config: settings of the search.
        most: upper bound of the cost without tidiness.

    Raises:
        DesignError: `placement` is not a whole placement of `design`.
    """
    cost = IncrementalCost(design, placement, weights=weights)
    neighbours = equal_neighbours(design, placement)
    increases: dict[_Turn, float] = {}  # of the cost
    while True:
        before, turns = cost.costs.total, list(_turns(neighbours, cost.placement))
        for turn in turns:
            if turn not in increases:
                _apply(cost, turn)
                increases[turn] = cost.costs.total - before
                _undo(cost, turn)
        best = min(turns, key=lambda turn: increases[turn] / turn.pairs, default=None)
        if best is None or increases[best] >= 0:
            return cost.placement
        _apply(cost, best)
        turned = cost.placement
        if (
            cost.costs.total < before  # the increase may be outdated by other turns
            and compute_costs(design, turned, weights=weights._replace(tidy=0.0)).total <= most
            and fits(design, turned, spacing=config.spacing_in(design), blockages=config.blockages)
        ):
            cost.commit()
        else:
            _undo(cost, best)
            increases[best] = math.inf


def _turns(neighbours: Mapping[int, np.ndarray], placement: Placement) -> Iterator[_Turn]:
    """Yields the turns of every movable group to the orientations around it."""
    grouped: set[int] = set()
    for first in neighbours:
        if first in grouped:
            continue
        group, around = [first], Counter[int]()
        grouped.add(first)
        own = int(placement.orientation[first])
        for node in group:  # grows meanwhile
            for other in neighbours[node].tolist():
                if placement.orientation[other] != own:
                    around[int(placement.orientation[other])] += 1
                elif other not in grouped:
                    grouped.add(other)
                    group.append(other)
        if len(group) <= MOST_TURNED and not placement.fixed[group].any():
            for to, pairs in around.items():
                if to ^ own < 4:  # N, FN, S, FS are 0 to 3, and E, FE, W, FW 4 to 7
                    yield _Turn(tuple(group), to, pairs)


def _apply(cost: IncrementalCost, turn: _Turn) -> None:
    for node in turn.group:
        cost.orient(node, turn.orientation)


def _undo(cost: IncrementalCost, turn: _Turn) -> None:
    for _ in turn.group:
        cost.undo()
