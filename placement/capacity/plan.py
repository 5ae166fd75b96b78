"""Plans the caches and shards of a run by simulating it: actors, a tree of caches, shards and a learner.

The learner and each cache and shard have their own host, behind a link of limited rate.
"""

import dataclasses
import random
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from placement.capacity.simulation import (
    CallbackThreads,
    Clock,
    Process,
    QueuedLink,
    SharedLink,
    Signal,
    Store,
    TransferCosts,
)
from placement.config import Count, FanOut, OrNone, Positive, Settings
from placement.modelcache.tree import ROOT, plan_tree

MEASURED = TransferCosts(
    read_goodput=0.96,
    write_seconds=0.00163,
    write_seconds_per_mb=0.00565,
    write_goodput=0.973,
    write_chunks=3,
    write_crowding=0.0013,
    ingest_seconds=0.0004,
)
"""Costs of transfers besides their share of a link; docs/explanation/scale-model.md describes their measurement."""
WARM_UP = 2  # number of first iterations that are not counted
ITERATIONS = 3  # number of iterations that are counted when a fleet is chosen
SLACK = 0.02  # fraction by which an iteration may exceed that with plenty of caches and shards


@dataclasses.dataclass(frozen=True)
class Fleet:
    """The run to plan.

    Attributes:
        actors: number of actors
        model_mb: size of the parameters, MB
        episode_mb: size of an episode, MB; the default is Ariane's
        episodes: episodes per round of an actor
        round_seconds: time to play a round, ± 10%
        learn_seconds: time to learn from all rounds; null: same as round_seconds
        max_staleness: versions that an episode may lag behind
        caches: number of model caches (0: actors read from the learner); null: find a sufficient number
        fan_out: caches or readers that one cache serves
        shards: number of replay shards; null: find a sufficient number
        megabits: bandwidth of each host's link, Mbit/s
    """

    actors: Count = 64
    model_mb: Positive = 16.0
    episode_mb: Positive = 0.0022
    episodes: Count = 16
    round_seconds: Positive = 60.0
    learn_seconds: Positive = 60.0
    max_staleness: OrNone = 1
    caches: OrNone = 0
    fan_out: FanOut = 8
    shards: Count = 1
    megabits: Positive = 10_000.0


class FleetOutcome(NamedTuple):
    """The performance of a fleet, in seconds.

    Attributes:
        read, read_p99: latency of an actor's read of the model.
        write, write_p99: latency of writing a round's episodes.
        iteration: time from one publication to the next.
        idle: fraction of the iteration in which the learner waited for episodes.
    """

    read: float
    read_p99: float
    write: float
    write_p99: float
    iteration: float
    idle: float


@dataclasses.dataclass(frozen=True)
class PlanConfig(Fleet, Settings):
    """A run whose caches and shards are planned."""

    learn_seconds: Positive | None = None  # type: ignore[assignment]
    caches: OrNone | None = None  # type: ignore[assignment]
    shards: Count | None = None  # type: ignore[assignment]

    def fleet(self, *, caches: int, shards: int) -> Fleet:
        """The run with the given numbers of caches and shards."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(Fleet)}
        learn = self.round_seconds if self.learn_seconds is None else self.learn_seconds
        return Fleet(**given | {"learn_seconds": learn, "caches": caches, "shards": shards})


def recommend(config: PlanConfig, *, costs: TransferCosts = MEASURED) -> tuple[Fleet, FleetOutcome]:
    """Returns the smallest fleet of `config` that performs as well as the largest, and its performance."""

    def outcome(caches: int, shards: int) -> FleetOutcome:
        return simulate(config.fleet(caches=caches, shards=shards), costs, iterations=ITERATIONS)

    ample = max(config.actors // 4, 1)  # More would not help.
    most_caches = ample if config.caches is None else config.caches
    most_shards = ample if config.shards is None else config.shards
    bar = outcome(most_caches, most_shards).iteration * (1 + SLACK)
    caches, shards = most_caches, most_shards
    if config.caches is None:
        caches = _fewest(0, most_caches, lambda count: outcome(count, most_shards).iteration <= bar)
    if config.shards is None:
        shards = _fewest(1, most_shards, lambda count: outcome(caches, count).iteration <= bar)
    return config.fleet(caches=caches, shards=shards), outcome(caches, shards)


def _fewest(least: int, most: int, good: Callable[[int], bool]) -> int:
    """The first of `least`, 1, 2, 4, … that is good; `most` if none below it is."""
    count = least
    while count < most and not good(count):
        count = max(2 * count, 1)
    return min(count, most)


def simulate(fleet: Fleet, costs: TransferCosts, *, iterations: int = 6, seed: int = 0) -> FleetOutcome:
    """Simulates a fleet for some iterations beyond the first ones, which are not counted."""
    return _FleetRun(fleet, costs, random.Random(seed)).outcome(WARM_UP + iterations)


def build_stores(clock: Clock, fleet: Fleet, costs: TransferCosts) -> tuple[Store, list[Store]]:
    """The learner's root, and for each actor the store that it reads from: a leaf of the running tree of caches."""
    tree = plan_tree([f"cache{number}" for number in range(fleet.caches)], fleet.fan_out)
    stores = {number: Store(clock, fleet.megabits, costs) for number in (ROOT, *range(fleet.caches))}
    for number, parent in enumerate(tree.parents):
        clock.start(stores[number].follow(stores[parent], fleet.model_mb))
    return stores[ROOT], [stores[tree.readable("", actor)[0]] for actor in range(fleet.actors)]


class _FleetRun:
    def __init__(self, fleet: Fleet, costs: TransferCosts, generator: random.Random) -> None:
        self.fleet, self.costs, self.generator = fleet, costs, generator
        self.clock = Clock()
        self.root, stores = build_stores(self.clock, fleet, costs)
        self.shards = [QueuedLink(self.clock, fleet.megabits, costs) for _ in range(fleet.shards)]
        # The transfer is from the shards, over few connections.
        self.learner_link = SharedLink(self.clock, fleet.megabits, goodput=costs.write_goodput)
        self.learner_cpu = SharedLink(self.clock, 8.0)  # a megabyte represents a second of CPU
        self.rounds = Signal(0)  # number of rounds that the learner has
        self.reads: list[tuple[int, float]] = []  # iteration, seconds
        self.writes: list[tuple[int, float]] = []
        self.waits: list[float] = []
        self.published: list[float] = []
        self.clock.start(self._learner())
        for actor, store in enumerate(stores):
            self.clock.start(self._actor(store, self.shards[actor % fleet.shards]))

    def outcome(self, iterations: int) -> FleetOutcome:
        self.clock.run(float("inf"), done=lambda: len(self.published) > iterations)
        reads = np.array([seconds for iteration, seconds in self.reads if iteration >= WARM_UP] or [0.0])
        writes = np.array([seconds for iteration, seconds in self.writes if iteration >= WARM_UP] or [0.0])
        spans = np.diff(self.published)[WARM_UP:]
        return FleetOutcome(
            read=float(reads.mean()),
            read_p99=float(np.percentile(reads, 99)),
            write=float(writes.mean()),
            write_p99=float(np.percentile(writes, 99)),
            iteration=float(spans.mean()),
            idle=float(sum(self.waits[WARM_UP : WARM_UP + len(spans)]) / spans.sum()),
        )

    def _actor(self, store: Store, shard: QueuedLink) -> Process:
        fleet, costs, version = self.fleet, self.costs, -1
        share, threads = 0, CallbackThreads(self.clock)
        megabytes = fleet.episode_mb * fleet.episodes
        fixed = fleet.episodes * (costs.write_seconds + fleet.episode_mb * costs.write_seconds_per_mb)
        while True:
            yield store.version.reaches(max(share - fleet.max_staleness, 0))
            if store.version.value > version:
                version, start = store.version.value, self.clock.now
                yield store.read(fleet.model_mb)
                self.reads.append((version, self.clock.now - start))
            yield fleet.round_seconds * self.generator.uniform(0.9, 1.1)
            start = self.clock.now
            yield from threads.write(fixed, shard.send(megabytes, episodes=fleet.episodes))
            self.writes.append((version, self.clock.now - start))
            self.clock.start(self._fetch(megabytes))
            share += 1

    def _fetch(self, megabytes: float) -> Process:
        """Transfers a round's episodes from a shard to the learner."""
        yield self.learner_link.send(megabytes)
        yield self.learner_cpu.send(self.fleet.episodes * self.costs.ingest_seconds)
        self.rounds.raise_to(self.rounds.value + 1)

    def _learner(self) -> Process:
        version = 0
        while True:
            self.root.version.raise_to(version)
            self.published.append(self.clock.now)
            yield self.rounds.reaches((version + 1) * self.fleet.actors)
            self.waits.append(self.clock.now - self.published[-1])
            yield self.fleet.learn_seconds
            version += 1
