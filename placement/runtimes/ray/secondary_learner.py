"""A learner host beside the first: it reads its own shards and learns with the others, and tells nobody of it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import jax
import numpy as np

from placement.netlist.design import Design
from placement.replay.base import ReplayClosed
from placement.runtimes.ray import host_assignment, telemetry
from placement.runtimes.ray.learner_host import LearnerHost, open_reading
from placement.runtimes.ray.publications import PublicationNumbers
from placement.runtimes.ray.rendezvous import InitialState, agree
from placement.training.best import BestTracker
from placement.training.input_pipeline import InputPipeline


def learn_along(learner_host: LearnerHost, designs: Sequence[Design]) -> None:
    """Learns with the other hosts until told to stop: publishing, saving and evaluating are the first host's.

    Args:
        learner_host: the process.
        designs: the run's.

    Raises:
        ReplayTimeout: no episodes came.
        JaxRuntimeError: another host is gone.
    """
    config, coordinator = learner_host.config, learner_host.coordinator
    learner = learner_host.learner(designs)
    start = agree(learner_host.hosts, InitialState(learner.state, np.zeros((0, 3), np.int64), 0, 0))
    learner.state = start.learner
    numbers = PublicationNumbers(start.first, iteration=start.iteration)
    numbers.newest = start.iteration
    # What is said to be the best is played again, so that nothing untrue is learned from; the first host keeps it.
    reading = open_reading(learner_host, designs, BestTracker(designs), numbers, seen=start.seen)
    with contextlib.closing(reading.shards):
        coordinator.measure = lambda: telemetry.collected(reading.episodes, reading.shards.statistics())
        coordinator.ready()
        with (
            contextlib.suppress(ReplayClosed),
            InputPipeline(reading.episodes, learner, episodes=host_assignment.share(config)) as pipeline,
        ):
            while numbers.newest < config.ppo.iterations:
                prepared = pipeline.next(timeout=config.replay.timeout).prepared
                elapsed = learner_host.hosts.first(0.0)
                learner.learn(prepared, iteration=numbers.newest, elapsed=elapsed)
                jax.block_until_ready(learner.state)  # what the hosts exchange next must not overtake it
                numbers.newest += 1
    learner_host.stop.wait()
