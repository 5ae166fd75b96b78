"""Anytime placers, which improve a placement on one thread until their CPU time ends."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from placement.annealing.anneal_config import INITIAL_TEMPERATURE
from placement.annealing.search import SearchResult, Watch, search
from placement.annealing.starts import Start, grid_starts, refinement_starts
from placement.engine.costs import compute_costs
from placement.evaluation.settings import AnnealSettings
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError

SAMPLING_SHARE = 0.1  # share of the time of `policy+refine` for drawing placements from the policy
REFINED = 4  # number of drawn placements that enter the successive halving of `policy+refine`
SEEDS = 2**31


class Task(NamedTuple):
    """The task of a placer: `config.time` is in CPU seconds, from now on."""

    design: Design
    config: AnnealSettings
    seed: int


Curve = tuple[tuple[float, float], ...]


class Found(NamedTuple):
    """A placer's placement of a design, and its curve of (CPU seconds, best chip cost)."""

    design: Design
    placement: Placement
    curve: Curve = ()


def _best_of(
    task: Task, batches: Iterable[list[Placement]], seconds: float, what: str, begin: float
) -> tuple[Found, list[Placement]]:
    """Returns the best of all placements made within the CPU time since `begin`, from at least one batch.

    Also returns the `REFINED` best placements.
    """
    kept: list[tuple[float, int, Placement]] = []
    curve: list[tuple[float, float]] = []
    number = 0
    for batch in batches:
        for placement in batch:
            cost = compute_costs(task.design, placement, weights=task.config.weights).total
            kept.append((cost, number, placement))
            number += 1
        kept = sorted(kept, key=lambda one: one[:2])[:REFINED]
        spent = time.process_time() - begin
        if kept:
            curve.append((spent, kept[0][0]))
        if spent >= seconds:
            break
    if not kept:
        raise DesignError(f"{task.design.name}: {what} found no legal placement in {seconds:g} s")
    placements = [placement for _, _, placement in kept]
    return Found(task.design, placements[0], tuple(curve)), placements


def _repeated(kind: str) -> Callable[[Task], Found]:

    def place(task: Task) -> Found:
        begin = time.process_time()
        generator = np.random.default_rng(task.seed)

        def batches() -> Iterable[list[Placement]]:
            while True:
                starts = grid_starts(kind, task.design, task.config.anneal, int(generator.integers(SEEDS)))
                yield [start.placement for start in starts]  # empty at a dead end; the next one may succeed

        return _best_of(task, batches(), task.config.time, kind, begin)[0]

    return place


def _search(task: Task, starts: list[Start], seconds: float) -> SearchResult:
    return search(
        task.design,
        starts,
        config=task.config.anneal,
        seconds=seconds,
        weights=task.config.weights,
        seed=task.seed,
    )


def _outcome(task: Task, result: SearchResult, begun: Curve = (), after: float = 0.0) -> Found:
    """Returns a search's result; its curve continues the curve `begun` after some CPU seconds."""
    curve = ((after + point.seconds, point.cost) for point in result.history)
    return Found(task.design, result.placement, (*begun, *curve))


def _anneal(task: Task) -> Found:
    return _outcome(task, _search(task, [], task.config.time))


def _mixed_size(task: Task) -> Found:
    """Places cells and macros together once, then anneals the macros among the cells in the remaining time."""
    # imported late: JAX takes seconds to import
    from placement.evaluation.full_evaluation import FullEvaluator
    from placement.evaluation.mixed_size_start import mixed_size_start, refine_among_cells

    begin, config = time.process_time(), task.config
    assert config.design is not None
    start = mixed_size_start(config.design, task.design, config.anneal, weights=config.weights, seed=task.seed)
    curve = [_point(task, start.placement, begin)]
    placement = start.placement
    if 2 * curve[0][0] < task.config.time:  # placing the cells takes less time than cells and macros together did
        found = FullEvaluator(config.design, task.design).place(placement)
        left = begin + task.config.time - time.process_time()
        if left > 0:
            placement, _ = refine_among_cells(
                task.design, placement, found, config.anneal, seconds=left, seed=task.seed, watch=Watch()
            )
            curve.append(_point(task, placement, begin))
    return Found(task.design, placement, tuple(curve))


def _point(task: Task, placement: Placement, begin: float) -> tuple[float, float]:
    """Returns the CPU seconds since `begin`, and the placement's cost."""
    cost = compute_costs(task.design, placement, weights=task.config.weights).total
    return time.process_time() - begin, cost


def _drawn(task: Task, seconds: float) -> tuple[Found, list[Placement]]:
    """Draws placements from the policy within the CPU time, which includes its loading and compilation."""
    begin = time.process_time()
    # imported late: JAX takes seconds to import
    from placement.evaluation.policies import policy_from_settings

    policy = policy_from_settings(task.config)
    policy.evaluate(0)  # compiles
    generator = np.random.default_rng(task.seed)

    def batches() -> Iterable[list[Placement]]:
        while True:
            drawn = policy.evaluate(int(generator.integers(SEEDS)))
            yield [evaluation.placement for evaluation in drawn if evaluation.placement is not None]

    return _best_of(task, batches(), seconds, "the policy", begin)


def _policy_and_refine(task: Task) -> Found:
    """Draws placements for a share of the time, then anneals the best as starts for the rest."""
    begin = time.process_time()
    outcome, best = _drawn(task, SAMPLING_SHARE * task.config.time)
    anneal = task.config.anneal
    samples = [Start(f"sample {number}", placement) for number, placement in enumerate(best)]
    starts = refinement_starts(task.design, samples, anneal)
    spent = time.process_time() - begin
    left = max(0.1 * task.config.time, task.config.time - spent)
    if anneal.initial_temperature is None:  # the temperature of a search's own starts, for the same time
        anneal = dataclasses.replace(anneal, initial_temperature=INITIAL_TEMPERATURE[task.config.weights.name])
        task = task._replace(config=dataclasses.replace(task.config, anneal=anneal))
    return _outcome(task, _search(task, starts, left), outcome.curve, spent)


ANYTIME_PLACERS: dict[str, Callable[[Task], Found]] = {  # placers by name
    "random": _repeated("random"),
    "greedy": _repeated("greedy"),
    "search": _anneal,
    "mixed_size": _mixed_size,
    "policy": lambda task: _drawn(task, task.config.time)[0],
    "policy+refine": _policy_and_refine,
}
