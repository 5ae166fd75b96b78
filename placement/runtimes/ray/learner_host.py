"""The learner hosts: the first one publishes, evaluates and saves; all read their own shards and learn together."""

import contextlib
import dataclasses
import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from placement.config import TrainConfig
from placement.episode import Episode, EpisodeIntervalSet
from placement.modelcache.cache import ModelCache
from placement.modelcache.store import Layout, ParameterPublisher
from placement.netlist.design import Design
from placement.ppo.learner import Hosts, Learner
from placement.replay.replay import ReplayClosed
from placement.replay.shard_reader import ShardedReplay
from placement.runtimes.components import Connections, Setup, build_loop, make_learner
from placement.runtimes.ray import telemetry
from placement.runtimes.ray.coordinator import CoordinatorClient
from placement.runtimes.ray.episode_collector import Bounds, EpisodeCollector, PublicationNumbers, Publications
from placement.runtimes.ray.messages import host_of, shards_of, share
from placement.runtimes.ray.rendezvous import InitialState, agree
from placement.runtimes.ray.role_process import Factories, find
from placement.training import run_folder
from placement.training.best import BestTracker, EpisodeVerifier
from placement.training.checkpoint import Counters, Saver
from placement.training.input_pipeline import InputPipeline
from placement.training.learner_loop import LearnerLoop
from placement.training.rollout import EVALUATOR, actor_of
from placement.training.stored_run import published
from placement.training.trained_policy import initial_parameters
from placement.transport.gate import NetworkAccess
from placement.utils.disk import checked_space
from placement.utils.interruption import Interruption

LOCK_NAME = ".learner.lock"
LOCK_SECONDS = 30.0  # timeout in seconds for the previous learner, whose run was killed, to end


@dataclasses.dataclass(frozen=True)
class LearnerHost:
    """The part of a learner process that learning uses; `stop` is set when the run must end."""

    config: TrainConfig
    coordinator: CoordinatorClient
    network: NetworkAccess
    factories: Factories
    stop: threading.Event
    hosts: Hosts

    def open_shards(
        self, designs: Sequence[Design], best: BestTracker, numbers: PublicationNumbers, *, learned: np.ndarray
    ) -> tuple[EpisodeCollector, ShardedReplay]:
        """The episodes that may be learned from, and this host's shards that they come from.

        `learned` are the episodes learned from before, int64 [N, 3], in the format of `EpisodeIntervalSet.rows`; new
        best placements are added to `best`.
        """
        config, coordinator, hosts = self.config, self.coordinator, self.hosts
        mine = shards_of(hosts.index, shards=config.runtime.shards, learners=hosts.count)
        shards = ShardedReplay(
            lambda: coordinator.shards(mine),
            steps=run_folder.steps(designs),
            designs=len(designs),
            intervals=learned,
            numbers=mine,
            dial=self.network.dial,
        )
        episodes = EpisodeCollector(
            shards,
            numbers,
            EpisodeVerifier(designs, config.env, best),
            bounds=Bounds(share(config), _oldest(config), strict=hosts.count > 1),
            stop=self.stop,
            report_shortfall=coordinator.report_shortfall,
        )
        return episodes, shards


@contextlib.contextmanager
def opened(host: LearnerHost) -> Iterator[LearnerLoop]:
    """The first host's loop, ready to run, with its servers open; raises CheckpointError.

    ConfigError: the run folder contains another run, or the devices cannot share the work evenly.
    """
    config, coordinator, network = host.config, host.coordinator, host.network
    folder, runtime = run_folder.working_folder(config.run_dir), config.runtime
    designs = run_folder.load_designs(config)
    with contextlib.ExitStack() as opening:
        opening.enter_context(published(config, note=coordinator.note))
        opening.enter_context(checked_space(folder))
        opening.enter_context(run_folder.locked(folder, name=LOCK_NAME, timeout=LOCK_SECONDS))
        saver = opening.enter_context(Saver(folder, run_folder.identity(config, designs)))
        saver.require_same_run()
        root = opening.enter_context(contextlib.closing(ModelCache(bind=network.bind, token=network.token)))

        def connect(learner: Learner, best: BestTracker, counters: Counters) -> Connections:
            learned = saver.learned_before
            publications = Publications(folder, iteration=counters.iteration)
            start = InitialState(learner.state, learned, counters.iteration, publications.first)
            learner.state = agree(host.hosts, start).learner
            # Episodes come from this host's shards, and from the other hosts, which read theirs.
            replay, shards = host.open_shards(designs, best, publications, learned=learned)
            opening.callback(shards.close)
            peers = PeerEpisodes(host.hosts.count, EpisodeVerifier(designs, config.env, best), learned)
            saver.learned = lambda: peers.learned(shards.intervals())
            return Connections(
                replay,
                RootStore(root, Layout(learner.parameters()), publications),
                evaluate_every=0 if runtime.evaluator else runtime.evaluate_every,
                measures=lambda: {**_measures(replay, shards), **coordinator.reply.summary},
                received=peers.received,
            )

        setup = Setup(
            config,
            designs,
            find(host.factories.agent)(config.policy, designs),
            find(host.factories.learner),
            saver,
            initial_parameters(config),
            coordinator,
            Interruption(host.stop),
            hosts=host.hosts,
        )
        loop = build_loop(setup, connect)
        coordinator.on_too_large = loop.save
        coordinator.measure = lambda: {"iteration": float(loop.state.counters.iteration), **telemetry.cache(root)}
        coordinator.serve(root.address)
        yield loop


def follow(host: LearnerHost) -> None:
    """Learns with the other hosts until it must stop; the first host publishes, saves and evaluates.

    Raises ReplayTimeout if no episodes arrive, and JaxRuntimeError if another host is gone.
    """
    config, coordinator = host.config, host.coordinator
    designs = run_folder.load_designs(config)
    learner = make_learner(config, designs, find(host.factories.learner), host.hosts)
    start = agree(host.hosts, InitialState(learner.state, np.zeros((0, 3), np.int64), 0, 0))
    learner.state = start.learner
    numbers = PublicationNumbers(start.first, iteration=start.iteration)
    numbers.newest = start.iteration
    # Episodes that claim to be the best are replayed, so that nothing false is learned from; host 0 keeps them.
    best = BestTracker(designs, config.env.cost.weights())
    replay, shards = host.open_shards(designs, best, numbers, learned=start.learned)
    with contextlib.closing(shards), contextlib.suppress(ReplayClosed):
        coordinator.measure = lambda: telemetry.collected(replay, shards.statistics())
        coordinator.ready()
        with InputPipeline(replay, learner, episodes=share(config)) as pipeline:
            while numbers.newest < config.ppo.iterations:
                prepared = pipeline.next(timeout=config.replay.timeout).prepared
                learner.learn(prepared, iteration=numbers.newest, elapsed=host.hosts.first(0.0))
                jax.block_until_ready(learner.state)  # The next exchange of the hosts must not overtake it.
                numbers.newest += 1
    host.stop.wait()


class RootStore(ParameterPublisher):
    """Publishes iterations under their numbers, at the root of the tree of caches, which the caller closes."""

    def __init__(self, cache: ModelCache, layout: Layout, publications: Publications) -> None:
        self._cache, self._layout, self._publications = cache, layout, publications

    def publish(self, iteration: int, parameters: Any) -> None:
        """Makes the parameters after `iteration` iterations the newest; raises SnapshotMismatch for another layout."""
        self._cache.publish(self._layout.pack(self._publications.number(iteration), parameters))


class PeerEpisodes:
    """Keeps the other hosts' identities of episodes, and their best placements, on the first of several hosts.

    `learned` are all hosts' episodes that were learned from before, int64 [N, 3].
    """

    def __init__(self, learners: int, verifier: EpisodeVerifier, learned: np.ndarray) -> None:
        self._learners, self._verifier, self._learned = learners, verifier, EpisodeIntervalSet(learned)
        self._lock = threading.Lock()  # Another thread may save a checkpoint.

    def received(self, episodes: Sequence[Episode]) -> None:
        for episode in episodes:
            actor, count = episode.identity.tolist()
            if self._host(actor):
                with self._lock:
                    self._learned.add(actor, count)
                self._verifier.keep(episode, int(episode.version))

    def learned(self, mine: np.ndarray) -> np.ndarray:
        """All hosts' episodes learned from, int64 [N, 3]; `mine` are those that this host has read."""
        with self._lock:
            others = self._learned.rows()
        both = [(mine, True), (others, False)]
        return np.concatenate([rows[[(not self._host(int(row[0]))) is own for row in rows]] for rows, own in both])

    def _host(self, identity: int) -> int:
        """The host whose shards the actor of that identity writes to."""
        actor = actor_of(identity)
        return 0 if actor == EVALUATOR else host_of(actor, self._learners)


def _oldest(config: TrainConfig) -> int:
    """Maximum versions that an episode may lag behind: the bound, plus the excess by groups of environments."""
    runtime = config.runtime
    if runtime.staleness == "drop":
        return runtime.max_staleness
    together = math.ceil(runtime.actors / runtime.learners) * runtime.envs_per_actor
    return runtime.max_staleness + math.ceil(together / share(config))


def _measures(replay: EpisodeCollector, shards: ShardedReplay) -> dict[str, float]:
    """The columns of `metrics.csv` on the shards and the received episodes."""
    return {
        **replay.evaluation(),
        **replay.staleness(),
        "stale_episodes": float(replay.stale),
        "orphaned_episodes": float(replay.orphaned),
        **telemetry.replay(shards.statistics()),
    }
