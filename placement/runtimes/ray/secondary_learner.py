"""A learner host beside the first: it reads its own shards and learns with the others."""

from __future__ import annotations

import contextlib

import jax
import numpy as np

from placement.replay.base import ReplayClosed
from placement.runtimes.ray import host_assignment, telemetry
from placement.runtimes.ray.learner_host import LearnerHost
from placement.runtimes.ray.publications import PublicationNumbers
from placement.runtimes.ray.rendezvous import InitialState, agree
from placement.training.best import BestTracker
from placement.training.designs import load_designs
from placement.training.input_pipeline import InputPipeline


def learn_along(host: LearnerHost) -> None:
    """Learns with the other hosts until told to stop: publishing, saving and evaluating are the first host's.

    Raises:
        ReplayTimeout: no episodes came.
        JaxRuntimeError: another host is gone.
    """
    config, coordinator = host.config, host.coordinator
    designs = load_designs(config)
    learner = host.learner(designs)
    start = agree(host.hosts, InitialState(learner.state, np.zeros((0, 3), np.int64), 0, 0))
    learner.state = start.learner
    numbers = PublicationNumbers(start.first, iteration=start.iteration)
    numbers.newest = start.iteration
    # What is said to be the best is played again, so that nothing untrue is learned from; the first host keeps it.
    replay, shards = host.open_shards(designs, BestTracker(designs), numbers, learned=start.learned)
    with contextlib.closing(shards), contextlib.suppress(ReplayClosed):
        coordinator.measure = lambda: telemetry.collected(replay, shards.statistics())
        coordinator.ready()
        with InputPipeline(replay, learner, episodes=host_assignment.share(config)) as pipeline:
            while numbers.newest < config.ppo.iterations:
                prepared = pipeline.next(timeout=config.replay.timeout).prepared
                learner.learn(prepared, iteration=numbers.newest, elapsed=host.hosts.first(0.0))
                jax.block_until_ready(learner.state)  # what the hosts exchange next must not overtake it
                numbers.newest += 1
    host.stop.wait()
