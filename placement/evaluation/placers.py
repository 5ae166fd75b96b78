"""The placers that a comparison runs, each for the same CPU time in all: `time` · `threads` seconds."""

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
from placement.evaluation.settings import CompareConfig
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError

SAMPLING_SHARE = 0.1
"""Of the time of `policy+refine`, for drawing placements from the policy."""
REFINED = 4
"""Drawn placements that enter the successive halving of `policy+refine`."""
SEEDS = 2**31


@dataclasses.dataclass(frozen=True)
class Job:
    """The work of a placer; `watch` keeps a search's state, says whether to stop, and is shown the progress."""

    design: Design
    config: CompareConfig
    seed: int
    watch: Watch

    @property
    def seconds(self) -> float:
        """CPU seconds, all threads together."""
        return self.config.time * self.config.threads


Curve = tuple[tuple[float, float], ...]


class PlacerOutcome(NamedTuple):
    """The best placement of a placer, what it came from, and the curve of (CPU seconds of all threads, best cost)."""

    placement: Placement
    start: str
    curve: Curve


def _best_of(
    job: Job, batches: Iterable[list[Placement]], seconds: float, what: str, begin: float
) -> tuple[PlacerOutcome, list[Placement]]:
    """The best of all placements that come within the CPU time since `begin`, but at least of one batch.

    Returns the `REFINED` best placements, too.
    """
    kept: list[tuple[float, int, Placement]] = []
    curve: list[tuple[float, float]] = []
    number = 0
    for batch in batches:
        for placement in batch:
            cost = compute_costs(job.design, placement, weights=job.config.weights).total
            kept.append((cost, number, placement))
            number += 1
        kept = sorted(kept, key=lambda one: one[:2])[:REFINED]
        spent = time.process_time() - begin
        if kept:
            curve.append((spent, kept[0][0]))
        if spent >= seconds or job.watch.stopped():
            break
    if not kept:
        raise DesignError(f"{job.design.name}: {what} found no legal placement in {seconds:g} s")
    placements = [placement for _, _, placement in kept]
    return PlacerOutcome(placements[0], f"best of {number}", tuple(curve)), placements


def _repeated(kind: str) -> Callable[[Job], PlacerOutcome]:

    def place(job: Job) -> PlacerOutcome:
        begin = time.process_time()
        generator = np.random.default_rng(job.seed)

        def batches() -> Iterable[list[Placement]]:
            while True:
                starts = grid_starts(kind, job.design, job.config.anneal, int(generator.integers(SEEDS)))
                yield [start.placement for start in starts]  # none at a dead end: the next one may have more luck

        return _best_of(job, batches(), job.seconds, kind, begin)[0]

    return place


def _search(job: Job, starts: list[Start], seconds: float) -> SearchResult:
    return search(
        job.design,
        starts,
        config=job.config.anneal,
        seconds=seconds,
        weights=job.config.weights,
        threads=job.config.threads,
        seed=job.seed,
        watch=job.watch,
    )


def _outcome(job: Job, result: SearchResult, begun: Curve = (), after: float = 0.0) -> PlacerOutcome:
    """A search's outcome, which continues the curve `begun` after some CPU seconds."""
    curve = ((after + point.seconds * job.config.threads, point.cost) for point in result.history)
    return PlacerOutcome(result.placement, result.start, (*begun, *curve))


def _anneal(job: Job) -> PlacerOutcome:
    return _outcome(job, _search(job, [], job.config.time))


def _mixed_size(job: Job) -> PlacerOutcome:
    """Places cells and macros together, once; in the time left, anneals the macros among the cells."""
    # late: JAX takes seconds to import
    from placement.evaluation.full_evaluation import FullEvaluator
    from placement.evaluation.mixed_size_start import mixed_size_start, refine_among_cells

    begin, config = time.process_time(), job.config
    assert config.design is not None
    start = mixed_size_start(
        config.design, job.design, config.anneal, weights=config.weights, seed=job.seed, stopped=job.watch.stopped
    )
    curve = [_point(job, start.placement, begin)]
    placement = start.placement
    if 2 * curve[0][0] < job.seconds:  # the cells are placed in less time than cells and macros were
        found = FullEvaluator(config.design, job.design).place(placement, stopped=job.watch.stopped)
        left = begin + job.seconds - time.process_time()
        if left > 0:
            placement, _ = refine_among_cells(
                job.design, placement, found, config.anneal, seconds=left, seed=job.seed, watch=job.watch
            )
            curve.append(_point(job, placement, begin))
    return PlacerOutcome(placement, start.name, tuple(curve))


def _point(job: Job, placement: Placement, begin: float) -> tuple[float, float]:
    """CPU seconds since `begin`, and the placement's cost."""
    cost = compute_costs(job.design, placement, weights=job.config.weights).total
    return time.process_time() - begin, cost


def _drawn(job: Job, seconds: float) -> tuple[PlacerOutcome, list[Placement]]:
    """Placements drawn from the policy within the CPU time, in which its loading and compilation count."""
    begin = time.process_time()
    # late: JAX takes seconds to import
    from placement.evaluation.policies import policy_from_settings

    policy = policy_from_settings(job.config)
    policy.evaluate(0)  # compiles
    generator = np.random.default_rng(job.seed)

    def batches() -> Iterable[list[Placement]]:
        while True:
            drawn = policy.evaluate(int(generator.integers(SEEDS)))
            yield [evaluation.placement for evaluation in drawn if evaluation.placement is not None]

    return _best_of(job, batches(), seconds, "the policy", begin)


def _policy_and_refine(job: Job) -> PlacerOutcome:
    """Draws for a part of the time, then anneals the best draws, made into starts, for the rest."""
    begin = time.process_time()
    outcome, best = _drawn(job, SAMPLING_SHARE * job.seconds)
    anneal = job.config.anneal
    samples = [Start(f"sample {number}", placement) for number, placement in enumerate(best)]
    starts = refinement_starts(job.design, samples, anneal)
    spent = time.process_time() - begin
    left = max(0.1 * job.seconds, job.seconds - spent) / job.config.threads
    if anneal.initial_temperature is None:  # as with the search's own starts: there is as much time
        anneal = dataclasses.replace(anneal, initial_temperature=INITIAL_TEMPERATURE[job.config.weights.name])
        job = dataclasses.replace(job, config=dataclasses.replace(job.config, anneal=anneal))
    return _outcome(job, _search(job, starts, left), outcome.curve, spent)


PLACERS: dict[str, Callable[[Job], PlacerOutcome]] = {
    "random": _repeated("random"),
    "greedy": _repeated("greedy"),
    "anneal": _anneal,
    "mixed_size": _mixed_size,
    "policy": lambda job: _drawn(job, job.seconds)[0],
    "policy+refine": _policy_and_refine,
}
"""The placers by name, as `placement.evaluation.settings.PLACERS` lists them."""
