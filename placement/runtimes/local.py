"""`runtime=local`: every role in one process; actors in threads, the learner in the main thread.

`run` guards the run folder; `_train` builds the roles, from top to bottom, and gives each what it needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from placement.config import TrainConfig
from placement.engine.pool import make_pool
from placement.modelcache.store import MemoryStore
from placement.netlist.design import Design
from placement.policy.agent import Agent
from placement.policy.features import FLOAT32, product_dtype
from placement.ppo.learner import Learner
from placement.replay.in_process import make_replay
from placement.runtimes.components import Connections, Setup, build_loop
from placement.training import run_folder
from placement.training.actor import Actor, ActorContext, EpisodeSchedule, batches_for
from placement.training.checkpoint import Saver
from placement.training.inference import CentralInference, Inference, LocalInference
from placement.training.learner_loop import complete, finished
from placement.training.metrics import TrainingProgress, make_progress
from placement.training.run_folder import Run
from placement.training.trained_policy import initial_parameters
from placement.utils.compilation import keep_compilations
from placement.utils.disk import checked_space
from placement.utils.interruption import Interruption
from placement.utils.seeds import SeedRole, role_key
from placement.utils.worker_threads import Supervisor


def run(config: TrainConfig, *, progress: TrainingProgress | None = None) -> Run:
    """Trains as `config` says, from the run folder's newest checkpoint if there is one.

    Raises:
        DesignError: a design cannot be used.
        ConfigError: the run folder is in use, or holds a run with other settings; `initial_policy` cannot be used.
        CheckpointError: the run's checkpoints cannot be used.
        DiskFull: there is not enough space in the run folder.
        Diverged: the network reached values that are not finite; the newest checkpoint is the last good one.
        WorkerFailed: an actor failed; a checkpoint of the last good state is saved.
    """
    designs, folder = run_folder.load_designs(config), run_folder.working_folder(config.run_dir)
    initial = initial_parameters(config)
    shown = progress or make_progress(config.ppo.iterations, config.runtime.minutes, cost=config.env.cost.name)
    with (
        checked_space(folder),
        run_folder.locked(folder),
        Interruption() as interruption,
        Saver(folder, run_folder.identity(config, designs)) as saver,
    ):
        saver.require_same_run()
        run_folder.write_record(folder, config)
        with shown:
            done = finished(config, designs, saver, note=shown.note)
            if done is not None:
                return done
            keep_compilations()
            agent = Agent(config.policy, designs)
            return _train(Setup(config, designs, agent, Learner, saver, initial, shown, interruption))


def _train(setup: Setup) -> Run:
    config, designs, supervisor = setup.config, setup.designs, setup.supervisor
    store = MemoryStore()
    replay = make_replay(config.replay, steps=run_folder.steps(designs), designs=len(designs))
    supervisor.on_stop(store.close)
    supervisor.on_stop(replay.close)
    loop = build_loop(setup, lambda *_: Connections(replay, store, config.runtime.evaluate_every))
    setup.interruption.at_once = loop.save
    if not loop.done():
        iteration = loop.state.counters.iteration
        schedule = EpisodeSchedule(
            episodes_per_iteration=config.ppo.episodes_per_iteration,
            max_staleness=config.runtime.max_staleness,
            iteration=iteration,
        )
        supervisor.on_stop(schedule.close)
        inference = _inference(config, setup.agent, supervisor)
        context = ActorContext(inference, schedule, store, replay, loop.components.best)
        for number in range(config.runtime.actors):
            actor = _actor(config, designs, context, number, first=iteration)
            supervisor.start(f"actor {number}", actor.run)
    return complete(loop, flips=config.flips)


def _inference(config: TrainConfig, agent: Agent, supervisor: Supervisor) -> Inference:
    """Picks actions for the actors; a central loop runs in a thread of its own."""
    if config.runtime.inference == "local":
        return LocalInference(agent)
    central = CentralInference(agent, actors=config.runtime.actors)
    supervisor.on_stop(central.close)
    supervisor.start("central inference", central.run)
    return central


def _actor(config: TrainConfig, designs: Sequence[Design], context: ActorContext, number: int, *, first: int) -> Actor:
    """An actor with a pool of its own; `first` is the iteration that its first episodes are for."""
    envs = config.runtime.envs_per_actor
    compact = product_dtype(config.policy) != FLOAT32
    pool = make_pool(designs, envs, config=config.env, num_threads=config.runtime.env_threads, compact_maps=compact)
    return Actor(
        number,
        context,
        pool,
        key=role_key(config.seed, SeedRole.ACTOR, number),
        count=first * config.ppo.episodes_per_iteration,  # above any count that was learned from
        batches=batches_for(envs),
    )
