"""Turns groups of macros to the orientation of their neighbours.

A macro that turned alone would differ from the rest of its group.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.annealer import Annealer
from placement.annealing.legaliser import fits
from placement.annealing.tidying import Straightened
from placement.engine.costs import CostWeights, IncrementalCost, compute_costs
from placement.engine.tidiness import equal_neighbours
from placement.netlist.design import Design, Placement

BOUND = 2.5  # first bound on the cost increase by turns, in units of `anneal.tidy` times the cost
ATTEMPTS = 3  # number of bounds, each half of the previous one
MOST_TURNED = 64  # maximum number of macros in a group that turns; bounds the time per turn
WEIGHTS = 0.1, 0.05, 0.02, 0.01
"""Weights of tidiness, relative to the cost, while annealing lowers the cost again. They decrease, so the tidiness that
costs the most is given up first.
"""
MOVES = 2000  # moves between two comparisons with the cost before the turns


class _Turn(NamedTuple):
    group: tuple[int, ...]  # nodes
    orientation: int  # after the turn
    pairs: int  # pairs of neighbours that become alike


def turn_groups(
    design: Design,
    placement: Placement,
    *,
    weights: CostWeights,
    config: AnnealConfig,
    seconds: float | None = None,
    moves: int | None = None,
    seed: int = 0,
    stopped: Callable[[], bool] = lambda: False,
) -> Straightened:
    """Returns `placement` with groups of macros turned (`turned_alike`), at no higher cost.

    Turns may raise the cost at first. Annealing in the new orientations then lowers it; if that fails, a lower bound is
    tried.

    Args:
        design: the design of the placement.
        placement: a legal placement.
        weights: weights of the cost; its weight of tidiness is ignored.
        config: settings of the search.
        seconds: maximum CPU seconds of this thread.
        moves: maximum number of moves, instead of `seconds`.
        seed: seed of the moves.
        stopped: called between rounds; once it returns true, `placement` itself is returned.

    Raises:
        DesignError: `placement` is not a whole placement of `design`, or not legal.
    """
    weights = weights._replace(tidy=0.0)
    begun, done = time.thread_time(), 0
    base = compute_costs(design, placement, weights=weights).total

    def tidier(weight: float) -> CostWeights:
        return weights._replace(tidy=weight * (base or 1.0))

    def result(found: Placement, *, finished: bool) -> Straightened:
        return Straightened(found, time.thread_time() - begun, done, finished)

    for attempt in range(ATTEMPTS):
        most = base * (1 + BOUND / 2**attempt * (config.tidy or 0.0))
        turned = turned_alike(design, placement, weights=tidier(WEIGHTS[0]), config=config, most=most)
        held, stage = _with_orientations(design, turned), -1
        while True:
            if compute_costs(design, turned, weights=weights).total <= base:
                return result(turned, finished=True)
            if stopped():
                return result(placement, finished=False)
            spent = (time.thread_time() - begun) / seconds if seconds is not None else done / max(1, moves or 1)
            now = int((spent * ATTEMPTS - attempt) * len(WEIGHTS))
            if now >= len(WEIGHTS):
                break
            if now != stage:
                stage = now
                annealer = Annealer(held, turned, config=config, weights=tidier(WEIGHTS[stage]), seed=seed)
            count = MOVES if moves is None else min(MOVES, moves - done, max(1, moves // (ATTEMPTS * len(WEIGHTS))))
            annealer.run(count, 0.0, base)
            turned = annealer.placement
            done += count
    return result(placement, finished=True)


def _with_orientations(design: Design, placement: Placement) -> Design:
    """Returns the design with each hard macro's orientation in `placement` as the only one allowed."""
    allowed, hard = design.constraints.orientations.copy(), design.netlist.hard
    allowed[hard] = 1 << placement.orientation[hard]
    return dataclasses.replace(design, constraints=dataclasses.replace(design.constraints, orientations=allowed))


def turned_alike(
    design: Design, placement: Placement, *, weights: CostWeights, config: AnnealConfig, most: float
) -> Placement:
    """Returns `placement` with groups of macros turned within a bound on the cost.

    A group is a maximal set of connected neighbours of equal size in one orientation. It takes the orientation of a
    neighbour outside it, if that keeps its sides. The turn that costs the least per pair made alike comes first. Turns
    may raise the cost, within the bound.

    Args:
        design: the design of the placement.
        placement: a legal placement.
        weights: weights of the cost, including tidiness; the turns are compared by it.
        config: settings of the search.
        most: upper bound of the cost without tidiness.

    Raises:
        DesignError: `placement` is not a whole placement of `design`.
    """
    cost = IncrementalCost(design, placement, weights=weights)
    neighbours = equal_neighbours(design, placement)
    increases: dict[_Turn, float] = {}  # of the cost, when last computed
    while True:
        before, turns = cost.costs.total, list(_turns(neighbours, cost.placement))
        for turn in turns:
            if turn not in increases:
                _apply(cost, turn)
                increases[turn] = cost.costs.total - before
                _undo(cost, turn)
        best = min(turns, key=lambda turn: increases[turn] / turn.pairs, default=None)
        if best is None or math.isinf(increases[best]):
            return cost.placement
        _apply(cost, best)
        turned = cost.placement
        within = compute_costs(design, turned, weights=weights._replace(tidy=0.0)).total <= most
        if within and fits(design, turned, spacing=config.spacing_in(design)):
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
