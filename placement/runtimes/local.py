"""`runtime=local`: every role in one process, with actors in threads and the learner in the main thread.

`run` locks the run folder; `_train` builds the roles, from top to bottom, and passes each its inputs.
"""

from placement.config import EPISODES_PER_DESIGN, TrainConfig
from placement.engine.drawn_designs import DrawnDesigns
from placement.engine.pool import make_pool
from placement.modelcache.store import MemoryStore
from placement.netlist.generators.synthetic import SyntheticDesigns
from placement.policy.agent import Agent
from placement.policy.features import FLOAT32, product_dtype
from placement.ppo.drawn_learner import DrawnLearner
from placement.ppo.learner import Learner
from placement.replay.in_process import make_replay
from placement.runtimes.components import Connections, Setup, build_loop
from placement.training import run_folder
from placement.training.actor import Actor, ActorContext, EpisodeSchedule, batches_for
from placement.training.checkpoint import Saver
from placement.training.drawn_actor import DrawnActor, DrawnEnvironments
from placement.training.inference import CentralInference, Inference, LocalInference
from placement.training.learner_loop import complete, finished
from placement.training.metrics import TrainingProgress, make_progress
from placement.training.run_folder import Run
from placement.training.trained_policy import initial_parameters
from placement.utils.compilation import keep_compilations
from placement.utils.disk import checked_space
from placement.utils.interruption import Interruption
from placement.utils.seeds import SeedRole, role_key
from placement.utils.worker_threads import Supervisor, usable_cores


def run(config: TrainConfig, *, progress: TrainingProgress | None = None) -> Run:
    """Trains with the settings `config`, from the run folder's newest checkpoint if there is one.

    Raises:
        DesignError: a design cannot be used.
        ConfigError: the run folder is in use, or contains a run with other settings; `initial_policy` cannot be used.
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
            agent, drawn = Agent(config.policy, designs), _drawn_designs(config)
            learner = Learner if drawn is None else DrawnLearner
            return _train(Setup(config, designs, agent, learner, saver, initial, shown, interruption, drawn=drawn))


def _drawn_designs(config: TrainConfig) -> DrawnDesigns | None:
    """The run's drawn designs, or None if its designs are given; designs of unfinished episodes stay in memory."""
    if config.drawn is None:
        return None
    waiting = 3 * config.ppo.episodes_per_iteration + config.replay.capacity
    played = 2 * config.runtime.actors * config.runtime.envs_per_actor
    distribution = SyntheticDesigns(macros=config.drawn, seed=config.seed)
    return DrawnDesigns(distribution, config.env, kept=(waiting + played) // EPISODES_PER_DESIGN)


def _train(setup: Setup) -> Run:
    config, supervisor, drawn = setup.config, setup.supervisor, setup.drawn
    store = MemoryStore()
    steps = run_folder.steps(setup.designs) if drawn is None else drawn.shape[2]
    replay = make_replay(config.replay, steps=steps, designs=len(setup.designs if drawn is None else drawn))
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
            actor = _actor(setup, context, number, first=iteration)
            supervisor.start(f"actor {number}", actor.run)
    return complete(loop, flips=config.flips and config.drawn is None)


def _inference(config: TrainConfig, agent: Agent, supervisor: Supervisor) -> Inference:
    """Picks actions for the actors; a central loop runs in its own thread."""
    if config.runtime.inference == "local":
        return LocalInference(agent)
    central = CentralInference(agent, actors=config.runtime.actors)
    supervisor.on_stop(central.close)
    supervisor.start("central inference", central.run)
    return central


def _actor(setup: Setup, context: ActorContext, number: int, *, first: int) -> Actor:
    """An actor with its own environments; `first` is the iteration that its first episodes are for."""
    config, designs = setup.config, setup.designs
    envs, actors = config.runtime.envs_per_actor, config.runtime.actors
    threads = config.runtime.env_threads or max(1, usable_cores() // actors)
    compact = product_dtype(config.policy) != FLOAT32
    key = role_key(config.seed, SeedRole.ACTOR, number)
    count = first * config.ppo.episodes_per_iteration  # above any count that was learned from
    if setup.drawn is not None:
        electrostatic = config.policy.electrostatic_bias != 0
        drawn = DrawnEnvironments(setup.drawn, config.env, envs, threads, compact, electrostatic, actors)
        # The best placement of a drawn design is of no interest.
        return DrawnActor(number, context._replace(best=None), drawn, setup.agent, key=key, count=count)
    pool = make_pool(designs, envs, config=config.env, num_threads=threads, compact_maps=compact)
    return Actor(number, context, pool, key=key, count=count, batches=batches_for(envs))
