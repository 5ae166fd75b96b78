"""What the learner's process is made of: the loop, the root of the caches, the reading side of the shards."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.table import Table

from placement.modelcache.cache import ModelCache
from placement.modelcache.layout import Layout
from placement.modelcache.store import RootStore
from placement.netlist.design import Design
from placement.runtimes.local import RunResult, finish, learn, result
from placement.runtimes.ray import telemetry
from placement.runtimes.ray.coordinator_client import CoordinatorClient
from placement.runtimes.ray.learner_host import LearnerHost, Reading, open_reading
from placement.runtimes.ray.peer_episodes import PeerEpisodes
from placement.runtimes.ray.publications import NumberedStore, Publications
from placement.runtimes.ray.rendezvous import InitialState, agree
from placement.runtimes.ray.role_process import find
from placement.training.best import BestTracker
from placement.training.episode_verifier import BestVerifier, EpisodeVerifier
from placement.training.evaluator import Evaluation, Evaluator
from placement.training.expert import Expert
from placement.training.interruption import Interrupted
from placement.training.learner_loop import LearnerLoop, LearnerParts
from placement.training.metrics import Row
from placement.training.progress import TrainingProgress
from placement.training.saving import Counters, Saver
from placement.training.seeds import SeedRole, role_key
from placement.training.supervisor import Supervisor
from placement.training.trained_run import began_with, initial_parameters


class PrimaryLearner:
    """A learner from its newest checkpoint on; use it in a `with` statement, which ends its servers.

    Args:
        learner_host: what the process gives.
        designs: the run's.
        saver: of checkpoints.
    """

    def __init__(self, learner_host: LearnerHost, designs: Sequence[Design], saver: Saver) -> None:
        config, coordinator = learner_host.config, learner_host.coordinator
        self._config, self._host = config, learner_host
        self._closing = contextlib.ExitStack()
        folder, progress, self._best = Path(config.run_dir), CoordinatorProgress(coordinator), BestTracker(designs)
        initial = initial_parameters(config)
        learner = learner_host.learner(designs)
        counters = saver.restore(learner, self._best)
        if counters.iteration:
            self._best.recover(folder, config.env.cost.weights())
            progress.note(f"goes on after iteration {counters.iteration} of the run in {folder}")
        if initial is not None:
            learner.begin_with(initial.values)
            progress.note(began_with(config, initial))
        publications = Publications(folder, iteration=counters.iteration)
        seen = np.array(saver.restored.get("seen", []), np.int64).reshape(-1, 3)
        start = InitialState(learner.state, seen, counters.iteration, publications.first)
        learner.state = agree(learner_host.hosts, start).learner
        agent = find(learner_host.makers.agent)(config.policy, designs)
        self._evaluator = LastEvaluator(Evaluator(agent, designs, env=config.env))
        reading = open_reading(learner_host, designs, self._best, publications, seen=seen)
        self._closing.callback(reading.shards.close)
        verifier = BestVerifier(EpisodeVerifier(designs, config.env), self._best)
        peers = PeerEpisodes(learner_host.hosts.count, verifier, seen)
        saver.beside = lambda: {"seen": peers.seen(reading.shards.intervals()).tolist()}
        self._parts = LearnerParts(
            learner=learner,
            replay=reading.episodes,
            store=self._store(learner.parameters(), publications),
            evaluator=self._evaluator,
            best=self._best,
            evaluation_key=role_key(config.seed, SeedRole.EVALUATOR),
            supervisor=Supervisor(),
            interruption=RequestedStop(learner_host.stop),
            progress=progress,
            saver=saver,
            measures=lambda: _measures(coordinator, reading),
            expert=Expert(designs, config.env, config.expert, seed=config.seed) if config.expert.every else None,
            received=peers.received,
            hosts=learner_host.hosts,
        )
        self._training = LearnerLoop(config, self._parts, folder, counters)
        self._begin(counters)

    def __enter__(self) -> PrimaryLearner:
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def run(self) -> RunResult:
        """Learns until done or told to stop."""
        interrupted = learn(self._training, self._parts)
        return finish(self._config, self._training, self._parts, interrupted=interrupted)

    def save(self) -> RunResult:
        """Saves the newest consistent state, from any thread; how far the run is."""
        self._parts.saver.save(self._training.state, self._best)
        return result(self._config, self._training, self._parts, interrupted=True)

    def _store(self, parameters: Any, publications: Publications) -> NumberedStore:
        self._root = ModelCache(bind=self._host.bind, parents=None)
        self._closing.callback(self._root.close)
        store = RootStore(self._root, Layout(parameters), self._config.runtime.wire_dtype)
        return NumberedStore(store, publications)

    def _begin(self, counters: Counters) -> None:
        """Publishes the first parameters, and says where they are."""
        training, coordinator = self._training, self._host.coordinator
        if self._config.runtime.evaluator:
            self._evaluator.last = training.done
        coordinator.on_too_large = lambda: self._parts.saver.save(training.state, self._best)
        coordinator.measure = lambda: {
            "iteration": float(training.state.counters.iteration),
            **telemetry.cache(self._root.statistics()),
        }
        self._parts.store.publish(counters.iteration, training.state.parameters)
        coordinator.serve(self._root.address)


def _measures(coordinator: CoordinatorClient, reading: Reading) -> Mapping[str, float]:
    """What `metrics.csv` says of the whole run beside the learner's own numbers."""
    replay = reading.episodes
    return {
        **replay.evaluation(),
        **replay.staleness(),
        "stale_episodes": float(replay.stale),
        "orphaned_episodes": float(replay.orphaned),
        **telemetry.replay(reading.shards.statistics()),
        **coordinator.reply.summary,
    }


class LastEvaluator:
    """Where evaluations have a process of their own, the learner's does only the last one.

    Args:
        evaluator: evaluates in this process.

    Attributes:
        last: whether this is the last time.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.last = lambda: True

    def evaluate(self, parameters: Any, key: jax.Array, *, stopped: Any) -> list[Evaluation]:
        """The greedy episode of each design; nothing if this is not the last time."""
        return self._evaluator.evaluate(parameters, key, stopped=stopped) if self.last() else []

    def finite(self, parameters: Any) -> bool:
        """Whether what the network says are finite numbers."""
        return self._evaluator.finite(parameters)


class RequestedStop:
    """Stands in for an `Interruption` where no signal comes: the order to stop comes through the coordinator.

    Attributes:
        requested: set when the run is to stop.
    """

    def __init__(self, requested: threading.Event) -> None:
        self.requested = requested

    @contextlib.contextmanager
    def breakable(self) -> Iterator[None]:
        """A block that is not begun any more once the run is to stop; raises Interrupted then."""
        if self.requested.is_set():
            raise Interrupted
        yield


class CoordinatorProgress:
    """Tells the coordinator what there is to show."""

    def __init__(self, coordinator: CoordinatorClient) -> None:
        self._coordinator = coordinator

    def __enter__(self) -> TrainingProgress:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def iteration(self, row: Row) -> None:
        """An iteration is done."""
        self._coordinator.row(row)

    def note(self, text: str) -> None:
        """A line for people."""
        self._coordinator.note(text)

    def processes(self, table: Table) -> None:
        """The driver has its own."""
