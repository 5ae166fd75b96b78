"""Builds the learner and the loop around it, the same for every runtime."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from placement.config import TrainConfig
from placement.engine.drawn_designs import DrawnDesigns
from placement.episode import Episode
from placement.modelcache.store import ParameterPublisher
from placement.netlist.design import Design
from placement.policy.agent import Agent
from placement.ppo.learner import Hosts, Learner, make_mesh
from placement.replay.replay import ReplayReader
from placement.training.best import BestTracker
from placement.training.checkpoint import Counters, Saver
from placement.training.learner_loop import LearnerComponents, LearnerLoop
from placement.training.metrics import ProgressSink
from placement.training.rollout import Evaluator
from placement.training.run_folder import working_folder
from placement.training.trained_policy import Parameters
from placement.utils.interruption import Interruption
from placement.utils.seeds import SeedRole, role_key, role_seed
from placement.utils.worker_threads import Supervisor


@dataclasses.dataclass(frozen=True)
class Setup:
    """The inputs from which a runtime builds the learner."""

    config: TrainConfig
    designs: Sequence[Design]  # the designs that the policy is evaluated on
    agent: Agent  # picks the evaluations' actions
    learner: Callable[..., Learner]  # the learner's class
    saver: Saver
    initial: Parameters | None  # initial parameters of a new run; None: random ones
    progress: ProgressSink
    interruption: Interruption
    # the supervisor of the actors in this process
    supervisor: Supervisor = dataclasses.field(default_factory=Supervisor)
    hosts: Hosts = dataclasses.field(default_factory=Hosts)  # the learner hosts, of which this process is one
    # the distribution that episodes' designs are drawn from; None: episodes use `designs`
    drawn: DrawnDesigns | None = None


class Connections(NamedTuple):
    """The learner's connections to the rest of the run, which receives parameters and sends episodes."""

    replay: ReplayReader  # the source of episodes
    store: ParameterPublisher  # the destination of parameters
    evaluate_every: int  # iterations between two evaluations; 0: only when the run is complete
    measures: Callable[[], Mapping[str, float]] = dict  # returns further numbers for each iteration's row
    # called with each iteration's episodes before they are learned from
    received: Callable[[Sequence[Episode]], None] = lambda episodes: None


def make_learner(
    config: TrainConfig, designs: Sequence[Design], learner: Callable[..., Learner], hosts: Hosts
) -> Learner:
    """Makes a new learner of the class `learner`, over the devices of all hosts."""
    seed = role_seed(config.seed, SeedRole.LEARNER)
    return learner(config.policy, config.ppo, config.env, designs, seed=seed, mesh=make_mesh(), hosts=hosts)


def build_loop(setup: Setup, connect: Callable[[Learner, BestTracker, Counters], Connections]) -> LearnerLoop:
    """The learner's loop in the state of the newest checkpoint, with its first parameters published.

    `connect` is the runtime's function that connects the restored learner with the rest of the run. Raises
    CheckpointError.
    """
    config, designs, folder = setup.config, setup.designs, working_folder(setup.config.run_dir)
    learner = make_learner(config, designs if setup.drawn is None else setup.drawn, setup.learner, setup.hosts)
    best = BestTracker(designs, config.env.cost.weights())
    counters, initial, note = setup.saver.restore(learner, best), setup.initial, setup.progress.note
    if counters.iteration:
        best.recover(folder)
        note(f"resumes after iteration {counters.iteration} of the run in {folder}")
    if initial is not None:
        learner.begin_with(initial.values)
        note(f"starts with the parameters of iteration {initial.iteration} of the run in {initial.run}")
    components = LearnerComponents(
        learner=learner,
        best=best,
        evaluator=Evaluator(setup.agent, designs, env=config.env),
        evaluation_key=role_key(config.seed, SeedRole.EVALUATOR),
        supervisor=setup.supervisor,
        interruption=setup.interruption,
        progress=setup.progress,
        saver=setup.saver,
        hosts=setup.hosts,
        **connect(learner, best, counters)._asdict(),
    )
    loop = LearnerLoop(config, components, folder, counters)
    components.store.publish(counters.iteration, loop.state.parameters)
    return loop
