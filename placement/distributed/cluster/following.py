"""A learner host beside the first: it reads its own shards and learns with the others, and tells nobody of it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import jax
import numpy as np

from placement.distributed.best import BestTracker
from placement.distributed.cluster import measuring, sharing
from placement.distributed.cluster.around import Around, open_reading
from placement.distributed.cluster.joining import Start, agree
from placement.distributed.cluster.publications import Numbers
from placement.distributed.input_pipeline import InputPipeline
from placement.netlist.design import Design
from placement.replay.base import ReplayClosed


def follow(around: Around, designs: Sequence[Design]) -> None:
    """Learns with the other hosts until told to stop: publishing, saving and evaluating are the first host's.

    Args:
        around: the process.
        designs: the run's.

    Raises:
        ReplayTimeout: no episodes came.
        JaxRuntimeError: another host is gone.
    """
    config, link = around.config, around.link
    learner = around.learner(designs)
    start = agree(around.hosts, Start(learner.state, np.zeros((0, 3), np.int64), 0, 0))
    learner.state = start.learner
    numbers = Numbers(start.first, iteration=start.iteration)
    numbers.newest = start.iteration
    # What is said to be the best is played again, so that nothing untrue is learned from; the first host keeps it.
    reading = open_reading(around, designs, BestTracker(designs), numbers, seen=start.seen)
    with contextlib.closing(reading.shards):
        link.measure = lambda: measuring.collected(reading.episodes, reading.shards.statistics())
        link.ready()
        with (
            contextlib.suppress(ReplayClosed),
            InputPipeline(reading.episodes, learner, episodes=sharing.share(config)) as pipeline,
        ):
            while numbers.newest < config.ppo.iterations:
                prepared = pipeline.next(timeout=config.replay.timeout).prepared
                elapsed = around.hosts.first(0.0)
                learner.learn(prepared, iteration=numbers.newest, elapsed=elapsed)
                jax.block_until_ready(learner.state)  # what the hosts exchange next must not overtake it
                numbers.newest += 1
    around.stop.wait()
