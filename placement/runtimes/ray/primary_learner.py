"""The first learner host: from the newest checkpoint on it learns, publishes, measures and saves.

`opened` builds the parts, from top to bottom, and gives each what it needs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from placement.modelcache.cache import ModelCache
from placement.modelcache.store import Layout
from placement.replay.sharded import ShardedReplay
from placement.runtimes.ray import telemetry
from placement.runtimes.ray.episode_collector import EpisodeCollector
from placement.runtimes.ray.learner_host import LearnerHost
from placement.runtimes.ray.peer_episodes import PeerEpisodes
from placement.runtimes.ray.publications import Publications, RootStore
from placement.runtimes.ray.rendezvous import InitialState, agree
from placement.runtimes.ray.role_process import find
from placement.training import run_record
from placement.training.best import BestTracker
from placement.training.designs import load_designs
from placement.training.episode_verifier import EpisodeVerifier
from placement.training.evaluator import Evaluator
from placement.training.learner_loop import LearnerLoop, LearnerParts
from placement.training.run import restore
from placement.training.run_folder import working_folder
from placement.training.saving import Saver
from placement.training.stored_run import published
from placement.training.trained_run import initial_parameters
from placement.utils.disk import checked_room
from placement.utils.interruption import Interruption
from placement.utils.seeds import SeedRole, role_key
from placement.utils.supervisor import Supervisor

LOCK_NAME = ".learner.lock"
LOCK_SECONDS = 30.0
"""That a learner waits for one of before, whose run was killed, to be gone."""


@contextlib.contextmanager
def opened(host: LearnerHost) -> Iterator[LearnerLoop]:
    """The learner's loop, ready to run, with its servers open.

    Raises:
        ConfigError: the run folder holds another run, or the devices cannot share the work evenly.
        CheckpointError: its checkpoints cannot be used.
    """
    config, coordinator, folder = host.config, host.coordinator, working_folder(host.config.run_dir)
    designs = load_designs(config)
    with contextlib.ExitStack() as opening:
        opening.enter_context(published(config, note=coordinator.note))
        opening.enter_context(checked_room(folder))
        opening.enter_context(run_record.locked(folder, name=LOCK_NAME, timeout=LOCK_SECONDS))
        saver = opening.enter_context(Saver(folder, run_record.identity(config, designs)))
        saver.refuse_if_other()
        # The learner, as the newest checkpoint left it, the same on every host.
        learner, best = host.learner(designs), BestTracker(designs, config.env.cost.weights())
        initial = initial_parameters(config)
        counters = restore(saver, learner, best, folder=folder, initial=initial, progress=coordinator)
        publications = Publications(folder, iteration=counters.iteration)
        initial_state = InitialState(learner.state, saver.learned_before, counters.iteration, publications.first)
        learner.state = agree(host.hosts, initial_state).learner
        # Episodes come from this host's shards, and from the other hosts, who read theirs.
        replay, shards = host.open_shards(designs, best, publications, learned=saver.learned_before)
        opening.callback(shards.close)
        peers = PeerEpisodes(host.hosts.count, EpisodeVerifier(designs, config.env, best), saver.learned_before)
        saver.learned = lambda: peers.learned(shards.intervals())
        # Parameters go to the root of the caches.
        root = opening.enter_context(contextlib.closing(ModelCache(bind=host.network.bind, token=host.network.token)))
        store = RootStore(root, Layout(learner.parameters()), publications)
        # The loop. Where evaluations have a process of their own, it does only the last one.
        runtime, agent = config.runtime, find(host.makers.agent)(config.policy, designs)
        parts = LearnerParts(
            learner=learner,
            replay=replay,
            store=store,
            evaluator=Evaluator(agent, designs, env=config.env),
            best=best,
            evaluation_key=role_key(config.seed, SeedRole.EVALUATOR),
            evaluate_every=0 if runtime.evaluator else runtime.evaluate_every,
            supervisor=Supervisor(),
            interruption=Interruption(host.stop),
            progress=coordinator,
            saver=saver,
            measures=lambda: {**_measures(replay, shards), **coordinator.reply.summary},
            received=peers.received,
            hosts=host.hosts,
        )
        loop = LearnerLoop(config, parts, folder, counters)
        coordinator.on_too_large = loop.save
        coordinator.measure = lambda: {
            "iteration": float(loop.state.counters.iteration),
            **telemetry.cache(root),
        }
        parts.store.publish(counters.iteration, loop.state.parameters)
        coordinator.serve(root.address)
        yield loop


def _measures(replay: EpisodeCollector, shards: ShardedReplay) -> Mapping[str, float]:
    """What `metrics.csv` says of the shards and of the episodes that came."""
    return {
        **replay.evaluation(),
        **replay.staleness(),
        "stale_episodes": float(replay.stale),
        "orphaned_episodes": float(replay.orphaned),
        **telemetry.replay(shards.statistics()),
    }
