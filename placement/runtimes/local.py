"""`runtime=local`: every role in one process; actors in threads, the learner in the main thread."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path

from placement.config import ConfigError, TrainConfig
from placement.engine.pool import make_pool
from placement.modelcache.store import MemoryStore
from placement.netlist.design import Design
from placement.netlist.load import load
from placement.policy.agent import Agent
from placement.policy.order import ordered
from placement.ppo.learner import Learner
from placement.ppo.mesh import make_mesh
from placement.replay.factory import make_replay
from placement.training import run_record
from placement.training.actor import Actor, ActorContext
from placement.training.best import BestTracker
from placement.training.compilation import keep_compilations
from placement.training.episode_schedule import EpisodeSchedule
from placement.training.evaluator import Evaluator
from placement.training.expert import Expert
from placement.training.interruption import Interrupted, Interruption
from placement.training.learner_loop import LearnerLoop, LearnerParts
from placement.training.progress import TrainingProgress, make_progress
from placement.training.saving import Saver
from placement.training.seeds import SeedRole, role_key, role_seed
from placement.training.supervisor import Supervisor, WorkerStuck
from placement.training.trained_run import Parameters, began_with, initial_parameters

_log = logging.getLogger(__name__)
STOP_SECONDS = 30.0
"""That actors may take to end."""


@dataclasses.dataclass(frozen=True)
class RunResult:
    """How a run ended.

    Attributes:
        run_dir: the run folder.
        iterations, episodes: done in all.
        seconds: spent in all.
        best_cost: lowest proxy cost found (the designs' mean, where there are several); NaN if none.
        mean_cost: mean proxy cost of the last iteration's sampled episodes; NaN if none was done.
        best_files: placement files of the best, one for each design.
        interrupted: whether it was asked to stop before it was done.
    """

    run_dir: Path
    iterations: int
    episodes: int
    seconds: float
    best_cost: float
    mean_cost: float
    best_files: tuple[Path, ...]
    interrupted: bool


def run(config: TrainConfig, *, progress: TrainingProgress | None = None) -> RunResult:
    """Trains as `config` says, from the run folder's newest checkpoint if there is one.

    Args:
        config: all settings.
        progress: is shown what happens; default: a live table on a terminal, plain lines elsewhere.

    Raises:
        DesignError: a design cannot be used.
        ConfigError: the run folder is in use, or holds a run with other settings; `initial_policy` cannot be used.
        CheckpointError: the run's checkpoints cannot be used.
        Diverged: the network came to values that are not finite; the newest checkpoint is the last good one.
        WorkerFailed: an actor failed; a checkpoint of the last good state is saved.
    """
    designs = [ordered(load(name), config.env.order) for name in config.design]
    if len({design.name for design in designs}) < len(designs):
        raise ConfigError(f"design={list(config.design)}: every design must have another name")
    keep_compilations()
    initial = initial_parameters(config)
    folder = Path(config.run_dir)
    shown = progress or make_progress(config.ppo.iterations, config.runtime.minutes)
    with run_record.locked(folder), Interruption() as interruption:
        saver = Saver(folder, config, designs)
        try:
            saver.refuse_if_other()
            run_record.write_record(folder, config)
            with shown:
                return _train(config, designs, saver, shown, interruption, initial)
        finally:
            saver.close()


def _train(
    config: TrainConfig,
    designs: Sequence[Design],
    saver: Saver,
    progress: TrainingProgress,
    interruption: Interruption,
    initial: Parameters | None,
) -> RunResult:
    """Restores or begins with `initial`, starts the actors, learns, stops."""
    folder = Path(config.run_dir)
    agent = Agent(config.policy, designs)
    seed = role_seed(config.seed, SeedRole.LEARNER)
    learner = Learner(config.policy, config.ppo, config.env, designs, seed=seed, mesh=make_mesh())
    best = BestTracker(designs)
    weights = config.env.cost.weights()
    counters = saver.restore(learner, best)
    if counters.iteration:
        best.recover(folder, weights)
        progress.note(f"goes on after iteration {counters.iteration} of the run in {folder}")
    if initial is not None:
        learner.begin_with(initial.values)
        progress.note(began_with(config, initial))
    supervisor, store = Supervisor(), MemoryStore()
    steps = max(len(design.placing_order) for design in designs)
    replay = make_replay(config.replay, steps=steps, designs=len(designs))
    parts = LearnerParts(
        learner=learner,
        replay=replay,
        store=store,
        evaluator=Evaluator(agent, designs, env=config.env),
        best=best,
        evaluation_key=role_key(config.seed, SeedRole.EVALUATOR),
        supervisor=supervisor,
        interruption=interruption,
        progress=progress,
        saver=saver,
        expert=Expert(designs, config.env, config.expert, seed=seed) if config.expert.every else None,
    )
    training = LearnerLoop(config, parts, folder, counters)
    interruption.at_once = lambda: saver.save(training.state, best)
    supervisor.on_stop(store.close)
    supervisor.on_stop(replay.close)
    store.publish(counters.iteration, training.state.parameters)
    if not training.done():
        schedule = EpisodeSchedule(
            episodes_per_iteration=config.ppo.episodes_per_iteration,
            max_staleness=config.runtime.max_staleness,
            iteration=counters.iteration,
        )
        supervisor.on_stop(schedule.close)
        context = ActorContext(agent, schedule, store, replay, best)
        _start_actors(config, designs, context, supervisor, first=counters.iteration)
    return finish(config, training, parts, interrupted=learn(training, parts))


def _start_actors(
    config: TrainConfig, designs: Sequence[Design], context: ActorContext, supervisor: Supervisor, *, first: int
) -> None:
    """Starts the actors' threads; `first` is the iteration that the first episodes are for."""
    for number in range(config.runtime.actors):
        pool = make_pool(designs, config.runtime.envs_per_actor, config=config.env, num_threads=1)
        key = role_key(config.seed, SeedRole.ACTOR, number)
        count = first * config.ppo.episodes_per_iteration  # above any count that was learned from
        actor = Actor(number, context, pool, key=key, count=count)
        supervisor.start(f"actor {number}", actor.run)


def learn(training: LearnerLoop, parts: LearnerParts) -> bool:
    """Runs the loop; whatever ends it, the last good state is saved and the actors end. Whether it was interrupted."""
    interrupted = False
    try:
        training.run()
    except Interrupted:
        interrupted = True
        parts.progress.note("stopping …")
    finally:
        parts.saver.save(training.state, parts.best)
        try:
            parts.supervisor.shut_down(timeout=STOP_SECONDS)
        except WorkerStuck as error:
            _log.warning("%s", error)
    return interrupted


def finish(config: TrainConfig, training: LearnerLoop, parts: LearnerParts, *, interrupted: bool) -> RunResult:
    """Writes the best placements and says where everything is."""
    ended = result(config, training, parts, interrupted=interrupted)
    note = parts.progress.note
    if interrupted:
        note(f"stopped after iteration {ended.iterations} with a checkpoint: the same command goes on from there")
    for file in ended.best_files:
        note(f"best placement: {file} (proxy cost {ended.best_cost:.4f})")
    if config.flips and not interrupted:
        for path, flipped in parts.best.write_flipped(ended.run_dir, config.env.cost.weights()):
            cost = flipped.costs.proxy_cost
            note(f"the same, {flipped.flipped} macros flipped: {path} (proxy cost {cost:.4f})")
    note(f"run folder: {ended.run_dir}")
    return ended


def result(config: TrainConfig, training: LearnerLoop, parts: LearnerParts, *, interrupted: bool) -> RunResult:
    """How far the run is; the best placements are on disk."""
    folder, counters, best = Path(config.run_dir), training.state.counters, parts.best
    best.write(folder)
    files = tuple(folder / best.file_name(index) for index in range(len(config.design)) if best.best(index) is not None)
    return RunResult(
        run_dir=folder,
        iterations=counters.iteration,
        episodes=counters.episodes,
        seconds=counters.seconds,
        best_cost=best.mean_cost(),
        mean_cost=training.last.get("proxy_cost_mean", float("nan")),
        best_files=files,
        interrupted=interrupted,
    )
