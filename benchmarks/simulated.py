"""Runs the simulation of capacity/ as bench_shards.py and bench_caches.py run the real processes; for
scale_model.py.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np

from placement.capacity.plan import Fleet, build_stores
from placement.capacity.simulation import CallbackThreads, Clock, Process, QueuedLink, Store, TransferCosts


class Pace(NamedTuple):
    """The load of `simulate_writes`.

    Attributes:
        writers, shards: their numbers.
        megabytes: size of an episode.
        megabits: rate of each shard's link.
        making: seconds between one write and the next, ± 50%.
        burst: megabytes that may pass a link at once.
        warm: whether each writer's first write, which does not count, is done before.
        processes: number of processes over which the writers of every shard are distributed.
    """

    writers: int
    shards: int
    megabytes: float
    megabits: float
    making: float
    burst: float = 0.0
    warm: bool = False
    processes: int = 1


def simulate_writes(pace: Pace, costs: TransferCosts, *, seconds: float, seed: int = 0) -> np.ndarray:
    """Returns the latencies in seconds of writers that only write, as in benchmarks/bench_shards.py.

    Each begins writes for `seconds`, at least two, of which the first does not count.
    """
    clock, chance = Clock(), random.Random(seed)
    shards = [QueuedLink(clock, pace.megabits, costs, burst=pace.burst) for _ in range(pace.shards)]
    threads = [CallbackThreads(clock) for _ in range(pace.processes)]
    latencies: list[float] = []

    def writer(shard: QueuedLink, threads: CallbackThreads) -> Process:
        yield pace.making * chance.random()
        written = int(pace.warm)
        while clock.now < seconds or written < 2:
            start = clock.now
            fixed = costs.write_seconds + pace.megabytes * costs.write_seconds_per_mb
            yield from threads.write(fixed, shard.send(pace.megabytes))
            written += 1
            if written > 1:
                latencies.append(clock.now - start)
            yield pace.making * chance.uniform(0.5, 1.5)

    for number in range(pace.writers):
        clock.start(writer(shards[number % pace.shards], threads[number // pace.shards % pace.processes]))
    clock.run(float("inf"))
    return np.array(latencies)


def simulate_reads(fleet: Fleet, costs: TransferCosts, *, period: float, reads: int) -> np.ndarray:
    """Returns the latencies in seconds of the first `reads` reads of actors that only read, as in bench_caches.py.

    Args:
        fleet: its actors, model, caches and links are used.
        costs: transfer costs of reads.
        period: seconds between two publications.
        reads: reads of each actor.
    """
    clock = Clock()
    root, stores = build_stores(clock, fleet, costs)
    latencies: list[float] = []

    def learner() -> Process:
        for version in range(1_000_000):
            root.version.raise_to(version)
            yield period

    def reader(store: Store) -> Process:
        version = -1
        for _ in range(reads):
            yield store.version.reaches(version + 1)
            version, start = store.version.value, clock.now
            yield store.read(fleet.model_mb)
            latencies.append(clock.now - start)
        while True:  # continues until the others have finished
            yield store.version.reaches(version + 1)
            version = store.version.value
            yield store.read(fleet.model_mb)

    clock.start(learner())
    for store in stores:
        clock.start(reader(store))
    clock.run(float("inf"), done=lambda: len(latencies) >= reads * fleet.actors)
    return np.array(latencies)
