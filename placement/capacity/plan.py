"""How many caches and shards a run needs, from a simulation of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from placement.capacity.fleet import Fleet, FleetOutcome, simulate
from placement.capacity.simulation import TransferCosts
from placement.config import Count, OrNone, Positive, Settings

MEASURED = TransferCosts(
    read_goodput=0.96,
    write_seconds=0.00163,
    write_seconds_per_mb=0.00565,
    write_goodput=0.973,
    write_parts=3,
    write_crowding=0.0013,
    ingest_seconds=0.0004,
)
"""What transfers take beside their share of a link; docs/explanation/scale-model.md says how it was measured."""
ITERATIONS = 3


@dataclasses.dataclass(frozen=True)
class PlanConfig(Fleet, Settings):
    """The command's settings: a fleet of which some is not given.

    Attributes:
        slack: share by which an iteration may be longer than with plenty of caches and shards
    """

    learn_seconds: Positive | None = None  # type: ignore[assignment]
    caches: OrNone | None = None  # type: ignore[assignment]
    shards: Count | None = None  # type: ignore[assignment]
    slack: Positive = 0.02

    def fleet(self, *, caches: int, shards: int) -> Fleet:
        """The run with so many caches and shards."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(Fleet)}
        learn = self.round_seconds if self.learn_seconds is None else self.learn_seconds
        return Fleet(**given | {"learn_seconds": learn, "caches": caches, "shards": shards})


def recommend(config: PlanConfig, *, costs: TransferCosts = MEASURED) -> tuple[Fleet, FleetOutcome]:
    """The smallest fleet of `config` that does as well as the largest, and what it does."""

    def outcome(caches: int, shards: int) -> FleetOutcome:
        return simulate(config.fleet(caches=caches, shards=shards), costs, iterations=ITERATIONS)

    most_caches = config.actors if config.caches is None else config.caches
    most_shards = config.actors if config.shards is None else config.shards
    plenty = (_ample(most_caches, config.caches), _ample(most_shards, config.shards))
    bar = outcome(*plenty).iteration * (1 + config.slack)
    caches = _fewest(0, plenty[0], lambda caches: outcome(caches, plenty[1]).iteration <= bar, config.caches)
    shards = _fewest(1, plenty[1], lambda shards: outcome(caches, shards).iteration <= bar, config.shards)
    return config.fleet(caches=caches, shards=shards), outcome(caches, shards)


def _ample(most: int, given: int | None) -> int:
    """More than could help: one for every four actors."""
    return given if given is not None else max(most // 4, 1)


def _fewest(least: int, most: int, good: Callable[[int], bool], given: int | None) -> int:
    """The first of `least`, 1, 2, 4, … that is good; `most` if none below it is."""
    if given is not None:
        return given
    tried = least
    while tried < most and not good(tried):
        tried = max(2 * tried, 1)
    return min(tried, most)
