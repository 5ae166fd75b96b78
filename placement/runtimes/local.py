"""`runtime=local`: every role in one process; actors in threads, the learner in the main thread.

`run` guards the run folder; `_train` builds the parts, from top to bottom, and gives each what it needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from placement.config import TrainConfig
from placement.engine.pool import make_pool
from placement.modelcache.store import MemoryStore
from placement.netlist.design import Design
from placement.policy.agent import Agent
from placement.policy.precision import FLOAT32, product_dtype
from placement.ppo.learner import Learner
from placement.ppo.mesh import make_mesh
from placement.replay.in_process import make_replay
from placement.training import run_record
from placement.training.actor import Actor, ActorContext
from placement.training.best import BestTracker
from placement.training.designs import load_designs, steps
from placement.training.episode_schedule import EpisodeSchedule
from placement.training.evaluator import Evaluator
from placement.training.inference import CentralInference, Inference, LocalInference
from placement.training.learner_loop import LearnerLoop, LearnerParts
from placement.training.progress import TrainingProgress, make_progress
from placement.training.run import complete, restore
from placement.training.run_folder import working_folder
from placement.training.run_result import RunResult
from placement.training.saving import Saver
from placement.training.trained_run import Parameters, initial_parameters
from placement.utils.compilation import keep_compilations
from placement.utils.disk import checked_room
from placement.utils.interruption import Interruption
from placement.utils.seeds import SeedRole, role_key, role_seed
from placement.utils.supervisor import Supervisor


def run(config: TrainConfig, *, progress: TrainingProgress | None = None) -> RunResult:
    """Trains as `config` says, from the run folder's newest checkpoint if there is one.

    Args:
        config: all settings.
        progress: is shown what happens; default: a live table on a terminal, plain lines elsewhere.

    Raises:
        DesignError: a design cannot be used.
        ConfigError: the run folder is in use, or holds a run with other settings; `initial_policy` cannot be
            used.
        CheckpointError: the run's checkpoints cannot be used.
        DiskFull: there is no room in the run folder.
        Diverged: the network came to values that are not finite; the newest checkpoint is the last good one.
        WorkerFailed: an actor failed; a checkpoint of the last good state is saved.
    """
    designs, folder = load_designs(config), working_folder(config.run_dir)
    initial = initial_parameters(config)
    shown = progress or make_progress(config.ppo.iterations, config.runtime.minutes, cost=config.env.cost.name)
    keep_compilations()
    with (
        checked_room(folder),
        run_record.locked(folder),
        Interruption() as interruption,
        Saver(folder, run_record.identity(config, designs)) as saver,
    ):
        saver.refuse_if_other()
        run_record.write_record(folder, config)
        with shown:
            return _train(config, designs, saver, shown, interruption, initial)


def _train(
    config: TrainConfig,
    designs: Sequence[Design],
    saver: Saver,
    progress: TrainingProgress,
    interruption: Interruption,
    initial: Parameters | None,
) -> RunResult:
    folder, seed = working_folder(config.run_dir), role_seed(config.seed, SeedRole.LEARNER)
    # The learner, as the newest checkpoint left it.
    agent, best = Agent(config.policy, designs), BestTracker(designs, config.env.cost.weights())
    learner = Learner(config.policy, config.ppo, config.env, designs, seed=seed, mesh=make_mesh())
    counters = restore(saver, learner, best, folder=folder, initial=initial, progress=progress)
    # What lies between it and the actors: parameters go one way, episodes the other.
    supervisor, store = Supervisor(), MemoryStore()
    replay = make_replay(config.replay, steps=steps(designs), designs=len(designs))
    supervisor.on_stop(store.close)
    supervisor.on_stop(replay.close)
    # Its loop.
    parts = LearnerParts(
        learner=learner,
        replay=replay,
        store=store,
        evaluator=Evaluator(agent, designs, env=config.env),
        best=best,
        evaluation_key=role_key(config.seed, SeedRole.EVALUATOR),
        evaluate_every=config.runtime.evaluate_every,
        supervisor=supervisor,
        interruption=interruption,
        progress=progress,
        saver=saver,
    )
    loop = LearnerLoop(config, parts, folder, counters)
    interruption.at_once = loop.save
    store.publish(counters.iteration, loop.state.parameters)
    # The actors.
    if not loop.done():
        schedule = EpisodeSchedule(
            episodes_per_iteration=config.ppo.episodes_per_iteration,
            max_staleness=config.runtime.max_staleness,
            iteration=counters.iteration,
        )
        supervisor.on_stop(schedule.close)
        inference = _inference(config, agent, supervisor)
        context = ActorContext(inference, schedule, store, replay, best)
        for number in range(config.runtime.actors):
            actor = _actor(config, designs, context, number, first=counters.iteration)
            supervisor.start(f"actor {number}", actor.run)
    return complete(loop, flips=config.flips)


def _inference(config: TrainConfig, agent: Agent, supervisor: Supervisor) -> Inference:
    """Who decides for the actors; a central loop runs in a thread of its own."""
    if config.runtime.inference == "local":
        return LocalInference(agent)
    central = CentralInference(agent, actors=config.runtime.actors)
    supervisor.on_stop(central.close)
    supervisor.start("central inference", central.run)
    return central


def _actor(config: TrainConfig, designs: Sequence[Design], context: ActorContext, number: int, *, first: int) -> Actor:
    """An actor with a pool of its own; `first` is the iteration that its first episodes are for."""
    key = role_key(config.seed, SeedRole.ACTOR, number)
    runtime = config.runtime
    compact = product_dtype(config.policy) != FLOAT32
    pool = make_pool(
        designs, runtime.envs_per_actor, config=config.env, num_threads=runtime.env_threads, compact_maps=compact
    )
    count = first * config.ppo.episodes_per_iteration  # above any count that was learned from
    return Actor(number, context, pool, key=key, count=count, parts=runtime.env_batches)
