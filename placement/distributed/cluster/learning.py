"""What the learner's process is made of: the loop, the root of the caches, the reading side of the shards."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from rich.table import Table

from placement.config import TrainConfig
from placement.distributed.best import BestTracker
from placement.distributed.cluster import measuring
from placement.distributed.cluster.collecting import Bounds, Collecting, Stage
from placement.distributed.cluster.link import Link
from placement.distributed.cluster.publications import NumberedStore, Publications
from placement.distributed.cluster.role import Makers, find
from placement.distributed.evaluator import Evaluation, Evaluator
from placement.distributed.interruption import Interrupted
from placement.distributed.local import RunResult, finish, learn, result
from placement.distributed.metrics import Row
from placement.distributed.progress import TrainingProgress
from placement.distributed.saving import Counters, Saver
from placement.distributed.seeds import Role, role_key, role_seed
from placement.distributed.supervisor import Supervisor
from placement.distributed.training import Parts, Training
from placement.engine.costs import CostWeights
from placement.modelcache.reverb_cache import ModelCache
from placement.modelcache.reverb_store import RootStore
from placement.modelcache.wire import Layout
from placement.netlist.design import Design
from placement.ppo.mesh import make_mesh
from placement.replay.sharded import ShardedReplay


@dataclasses.dataclass(frozen=True)
class Around:
    """What the process gives to its learning.

    Attributes:
        config: the run's settings.
        link: to the board.
        bind: address that the root of the caches listens on.
        makers: of the network and its learner.
        stop: set when the run is to end.
    """

    config: TrainConfig
    link: Link
    bind: str
    makers: Makers
    stop: threading.Event


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
        seed = role_seed(config.seed, Role.LEARNER)
        learner = find(around.makers.learner)(
            config.policy, config.ppo, config.env, designs, seed=seed, mesh=make_mesh()
        )
        counters = saver.restore(learner, self._best)
        if counters.iteration:
            self._best.recover(folder, CostWeights(**dataclasses.asdict(config.env.cost)))
            progress.note(f"goes on after iteration {counters.iteration} of the run in {folder}")
        publications = Publications(folder, iteration=counters.iteration)
        agent = find(around.makers.agent)(config.policy, designs)
        self._evaluator = LastEvaluator(Evaluator(agent, designs, env=config.env))
        replay, shards = self._replay(designs, publications)
        self._parts = Parts(
            learner=learner,
            replay=replay,
            store=self._store(learner.parameters(), publications),
            evaluator=self._evaluator,
            best=self._best,
            evaluation_key=role_key(config.seed, Role.EVALUATOR),
            supervisor=Supervisor(),
            interruption=Asked(around.stop),
            progress=progress,
            saver=saver,
            measures=lambda: _measures(link, replay, shards),
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

    def _replay(self, designs: Sequence[Design], publications: Publications) -> tuple[Collecting, ShardedReplay]:
        config, link = self._config, self._around.link
        steps = max(len(design.placing_order) for design in designs)
        shards = ShardedReplay(link.shards, steps=steps, designs=len(designs))
        self._closing.callback(shards.close)
        collecting = Collecting(
            shards,
            publications,
            Stage(designs, config.env),
            self._best,
            bounds=Bounds(config.ppo.episodes_per_iteration, oldest(config)),
            stop=self._around.stop,
            hungry=link.hungry,
        )
        return collecting, shards

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


def oldest(config: TrainConfig) -> int:
    """Versions that an episode may lag behind: the bound, and what groups of environments reach beyond it."""
    runtime = config.runtime
    if runtime.staleness == "drop":
        return runtime.max_staleness
    together = runtime.actors * runtime.envs_per_actor
    return runtime.max_staleness + math.ceil(together / config.ppo.episodes_per_iteration)


def _measures(link: Link, replay: Collecting, shards: ShardedReplay) -> Mapping[str, float]:
    """What `metrics.csv` says of the whole run beside the learner's own numbers."""
    return {
        **replay.evaluation(),
        **replay.staleness(),
        "stale_episodes": float(replay.stale),
        "orphaned_episodes": float(replay.orphaned),
        **measuring.replay(shards.statistics()),
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
