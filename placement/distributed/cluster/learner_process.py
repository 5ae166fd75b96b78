"""The learner in a process of its own: the loop, the root of the caches, the reading side of the shards."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.distributed.cluster import measuring
from placement.distributed.cluster.link import Link
from placement.distributed.cluster.role import Role, find, keep_off_accelerators

if TYPE_CHECKING:
    from rich.table import Table

    from placement.distributed.cluster.collecting import Collecting
    from placement.distributed.local import RunResult
    from placement.distributed.progress import TrainingProgress
    from placement.distributed.training import Training
    from placement.netlist.design import Design

LOCK_NAME = ".learner.lock"
LOCK_SECONDS = 30.0
"""That a learner waits for one of before, whose run was killed, to be gone."""


class LearnerProcess(Role):
    """The learner: from the newest checkpoint on, until done or told to stop."""

    _saved: Callable[[], RunResult | None] = staticmethod(lambda: None)

    def run(self) -> RunResult:
        """Trains.

        Raises:
            ConfigError: the run folder holds another run.
            CheckpointError: its checkpoints cannot be used.
            ReplayTimeout: no episodes came.
        """
        if not self.resources().gpus and self.config.runtime.address == "local":
            keep_off_accelerators()
        link = self.connect()
        from placement.distributed import record
        from placement.distributed.compilation import keep_compilations
        from placement.distributed.saving import Saver
        from placement.netlist.load import load

        keep_compilations()
        designs = [load(name) for name in self.config.design]
        folder = Path(self.config.run_dir)
        with record.locked(folder, name=LOCK_NAME, timeout=LOCK_SECONDS), contextlib.ExitStack() as closing:
            closing.callback(link.close)
            saver = Saver(folder, self.config, designs)
            closing.callback(saver.close)
            saver.refuse_if_other()
            return self._train(link, designs, saver, closing)

    def _train(self, link: Link, designs: Sequence[Design], saver: Any, closing: contextlib.ExitStack) -> RunResult:
        """Restores, serves, learns."""
        import dataclasses

        from placement.distributed.best import BestTracker
        from placement.distributed.cluster.collecting import Collecting, Stage
        from placement.distributed.cluster.publications import NumberedStore, Publications
        from placement.distributed.local import finish, learn, result
        from placement.distributed.saving import Counters
        from placement.distributed.seeds import Role as Seeded
        from placement.distributed.seeds import role_key, role_seed
        from placement.distributed.supervisor import Supervisor
        from placement.distributed.training import Parts, Training
        from placement.engine.costs import CostWeights
        from placement.modelcache.reverb_cache import ModelCache
        from placement.modelcache.reverb_store import RootStore
        from placement.modelcache.wire import Layout
        from placement.ppo.mesh import make_mesh
        from placement.replay.sharded import ShardedReplay

        config, folder = self.config, Path(self.config.run_dir)
        seed = role_seed(config.seed, Seeded.LEARNER)
        learner = find(self.makers.learner)(config.policy, config.ppo, config.env, designs, seed=seed, mesh=make_mesh())
        best, progress, asked = BestTracker(designs), BoardProgress(link), Asked(self._stop)
        counters: Counters = saver.restore(learner, best)
        if counters.iteration:
            best.recover(folder, CostWeights(**dataclasses.asdict(config.env.cost)))
            progress.note(f"goes on after iteration {counters.iteration} of the run in {folder}")
        publications = Publications(folder, iteration=counters.iteration)
        root = ModelCache(bind=self.bind(), parents=None)
        closing.callback(root.close)
        steps = max(len(design.placing_order) for design in designs)
        shards = ShardedReplay(link.shards, steps=steps, designs=len(designs))
        closing.callback(shards.close)
        replay = Collecting(
            shards,
            publications,
            Stage(designs, config.env),
            best,
            oldest=self._oldest(),
            hungry=link.hungry,
            waiting_for=lambda: f"{link.orders.actors} actors through {sum(map(bool, link.shards()))} shards",
        )
        replay.stop = self._stop
        parts = Parts(
            learner=learner,
            replay=replay,
            store=NumberedStore(
                RootStore(root, Layout.of(learner.parameters()), config.runtime.wire_dtype), publications
            ),
            evaluator=self._evaluator(designs),
            best=best,
            evaluation_key=role_key(config.seed, Seeded.EVALUATOR),
            supervisor=Supervisor(),
            interruption=asked,
            progress=progress,
            saver=saver,
            measures=lambda: measures(link, replay, shards),
        )
        training = Training(config, parts, folder, counters)

        def saved() -> RunResult:
            saver.save(training.state, best)
            return result(config, training, parts, interrupted=True)

        self._saved = saved
        link.on_too_large = lambda: saver.save(training.state, best)
        link.measure = lambda: {
            "iteration": float(training.state.counters.iteration),
            **measuring.cache(root.statistics()),
        }
        parts.store.publish(counters.iteration, training.state.parameters)
        link.serve(root.address)
        return finish(config, training, parts, interrupted=learn(training, parts))

    def stop(self) -> RunResult | None:
        """Ends the loop's waits and saves at once; how far the run is, None if it has not begun."""
        super().stop()
        return self._saved()

    def _evaluator(self, designs: Sequence[Design]) -> Any:
        from placement.distributed.evaluator import Evaluator

        return Evaluator(find(self.makers.agent)(self.config.policy, designs), designs, env=self.config.env)

    def _oldest(self) -> int:
        """Versions that an episode may lag behind: the bound, and what groups of environments reach beyond it."""
        runtime = self.config.runtime
        if runtime.staleness == "drop":
            return runtime.max_staleness
        together = runtime.actors * runtime.envs_per_actor
        return runtime.max_staleness + math.ceil(together / self.config.ppo.episodes_per_iteration)


def measures(link: Link, replay: Collecting, shards: Any) -> Mapping[str, float]:
    """What `metrics.csv` says of the whole run beside the learner's own numbers."""
    return {
        "stale_episodes": float(replay.stale),
        "orphaned_episodes": float(replay.orphaned),
        **measuring.replay(shards.statistics()),
        **link.orders.summary,
    }


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
        from placement.distributed.interruption import Interrupted

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

    def iteration(self, row: Mapping[str, float]) -> None:
        """An iteration is done."""
        self._link.row(row)

    def note(self, text: str) -> None:
        """A line for people."""
        self._link.note(text)

    def processes(self, table: Table) -> None:
        """The driver has its own."""


__all__ = ["Asked", "BoardProgress", "LearnerProcess", "Training"]
