"""What the learner's process is made of: the loop, the root of the caches, the reading side of the shards."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.table import Table

from placement.distributed.best import BestTracker
from placement.distributed.cluster import measuring
from placement.distributed.cluster.around import Around, Reading, open_reading
from placement.distributed.cluster.joining import Start, agree
from placement.distributed.cluster.link import Link
from placement.distributed.cluster.others import Others
from placement.distributed.cluster.publications import NumberedStore, Publications
from placement.distributed.cluster.role import find
from placement.distributed.cluster.stage import Keeper, Stage
from placement.distributed.evaluator import Evaluation, Evaluator
from placement.distributed.expert import Expert
from placement.distributed.interruption import Interrupted
from placement.distributed.local import RunResult, finish, learn, result
from placement.distributed.metrics import Row
from placement.distributed.progress import TrainingProgress
from placement.distributed.saving import Counters, Saver
from placement.distributed.seeds import Role, role_key
from placement.distributed.supervisor import Supervisor
from placement.distributed.trained_run import began_with, initial_parameters
from placement.distributed.training import Parts, Training
from placement.engine.costs import CostWeights
from placement.modelcache.reverb_cache import ModelCache
from placement.modelcache.reverb_store import RootStore
from placement.modelcache.wire import Layout
from placement.netlist.design import Design


class Learning:
    """A learner from its newest checkpoint on; use it in a `with` statement, which ends its servers.

    Args:
        around: what the process gives.
        designs: the run's.
        saver: of checkpoints.
    """

    def __init__(self, around: Around, designs: Sequence[Design], saver: Saver) -> None:
        config, link = around.config, around.link
        self._config, self._around = config, around
        self._closing = contextlib.ExitStack()
        folder, progress, self._best = Path(config.run_dir), BoardProgress(link), BestTracker(designs)
        initial = initial_parameters(config)
        learner = around.learner(designs)
        counters = saver.restore(learner, self._best)
        if counters.iteration:
            self._best.recover(folder, CostWeights(**dataclasses.asdict(config.env.cost)))
            progress.note(f"goes on after iteration {counters.iteration} of the run in {folder}")
        if initial is not None:
            learner.begin_with(initial.values)
            progress.note(began_with(config, initial))
        publications = Publications(folder, iteration=counters.iteration)
        seen = np.array(saver.restored.get("seen", []), np.int64).reshape(-1, 3)
        start = Start(learner.state, seen, counters.iteration, publications.first)
        learner.state = agree(around.hosts, start).learner
        agent = find(around.makers.agent)(config.policy, designs)
        self._evaluator = LastEvaluator(Evaluator(agent, designs, env=config.env))
        reading = open_reading(around, designs, self._best, publications, seen=seen)
        self._closing.callback(reading.shards.close)
        others = Others(around.hosts.count, Keeper(Stage(designs, config.env), self._best), seen)
        saver.beside = lambda: {"seen": others.seen(reading.shards.seen()).tolist()}
        self._parts = Parts(
            learner=learner,
            replay=reading.episodes,
            store=self._store(learner.parameters(), publications),
            evaluator=self._evaluator,
            best=self._best,
            evaluation_key=role_key(config.seed, Role.EVALUATOR),
            supervisor=Supervisor(),
            interruption=Asked(around.stop),
            progress=progress,
            saver=saver,
            measures=lambda: _measures(link, reading),
            expert=Expert(designs, config.env, config.expert, seed=config.seed) if config.expert.every else None,
            received=others.received,
            hosts=around.hosts,
        )
        self._training = Training(config, self._parts, folder, counters)
        self._begin(counters)

    def __enter__(self) -> Learning:
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
        self._root = ModelCache(bind=self._around.bind, parents=None)
        self._closing.callback(self._root.close)
        store = RootStore(self._root, Layout.of(parameters), self._config.runtime.wire_dtype)
        return NumberedStore(store, publications)

    def _begin(self, counters: Counters) -> None:
        """Publishes the first parameters, and says where they are."""
        training, link = self._training, self._around.link
        if self._config.runtime.evaluator:
            self._evaluator.last = training.done
        link.on_too_large = lambda: self._parts.saver.save(training.state, self._best)
        link.measure = lambda: {
            "iteration": float(training.state.counters.iteration),
            **measuring.cache(self._root.statistics()),
        }
        self._parts.store.publish(counters.iteration, training.state.parameters)
        link.serve(self._root.address)


def _measures(link: Link, reading: Reading) -> Mapping[str, float]:
    """What `metrics.csv` says of the whole run beside the learner's own numbers."""
    replay = reading.episodes
    return {
        **replay.evaluation(),
        **replay.staleness(),
        "stale_episodes": float(replay.stale),
        "orphaned_episodes": float(replay.orphaned),
        **measuring.replay(reading.shards.statistics()),
        **link.orders.summary,
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


class Asked:
    """Stands in for an `Interruption` where no signal comes: the order to stop comes through the board.

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


class BoardProgress:
    """Tells the board what there is to show."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def __enter__(self) -> TrainingProgress:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def iteration(self, row: Row) -> None:
        """An iteration is done."""
        self._link.row(row)

    def note(self, text: str) -> None:
        """A line for people."""
        self._link.note(text)

    def processes(self, table: Table) -> None:
        """The driver has its own."""
