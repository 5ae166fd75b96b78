"""The actor, which plays whole episodes and writes them to the replay, within the bound on staleness.

An actor plays in rounds: every environment of its pool begins an episode, and the round ends when all have ended. New
parameters are fetched between rounds only, so that all actions of an episode use one version. An environment whose
episode ends early waits for the round's end, so each design keeps its share of the episodes.

The learner publishes version i after i iterations. Episodes are counted in the order in which they begin; those that
iteration i learns from may be drawn with version i - max_staleness at the earliest (`EpisodeSchedule`).

Axis legend: B environments, T macros to place (the longest design's).
"""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import jax
import numpy as np

from placement.engine.costs import Costs
from placement.engine.pool import EnvironmentPool
from placement.episode import Episode
from placement.modelcache.store import ParameterStore, Snapshot, StoreClosed
from placement.replay.replay import ReplayClosed, ReplayWriter
from placement.training.best import BestTracker
from placement.training.inference import Inference, InferenceClosed
from placement.training.rollout import play, whole_episode

LEARNER_SECONDS = 3600.0  # timeout of an actor's waits for the learner and for other actors, in seconds
OVERLAPPED_ENVS = 256
"""Minimum environments for stepping in two batches, one of which steps while the policy decides for the other."""


class ScheduleClosed(RuntimeError):
    """The run is ending, and no more episodes begin."""


class Ticket(NamedTuple):
    """Permission to begin some episodes together, the first for `iteration`, with parameters of `version` or newer."""

    iteration: int
    version: int


class TicketSchedule(Protocol):
    """Decides when episodes begin, and with which parameters; `finish` reports that a ticket's episodes are written."""

    def begin(self, count: int, *, timeout: float) -> Ticket:
        """Begins `count` episodes together; raises TimeoutError, ScheduleClosed."""

    def finish(self, ticket: Ticket) -> None: ...


class EpisodeSchedule:
    """Issues tickets to begin episodes; shared by all actors of a process.

    No actor begins episodes of a later iteration before all of the earlier ones are written. Otherwise a fast actor's
    episodes would overtake a slow one's and make those older than the bound.

    Args:
        episodes_per_iteration: number of whole episodes that one iteration learns from.
        max_staleness: maximum number of versions that an episode may lag behind when it is learned from. 0: actors and
            learner take turns; 1: actors collect for the next iteration while the learner learns.
        iteration: number of completed iterations.
    """

    def __init__(self, *, episodes_per_iteration: int, max_staleness: int, iteration: int = 0) -> None:
        self._per_iteration = episodes_per_iteration
        self._max_staleness = max_staleness
        self._begun = iteration * episodes_per_iteration
        self._under_way: list[int] = []  # iterations of the unfinished tickets
        self._changed = threading.Condition()
        self._closed = False

    def begin(self, count: int, *, timeout: float) -> Ticket:
        """Begins `count` episodes together, once all those of earlier iterations are written.

        The first episode decides, so that a group that extends into the next iteration never waits for itself; its last
        episodes lag by one version more for each further iteration that the group extends into.

        Raises TimeoutError if other actors do not write their episodes in time, and ScheduleClosed after `close`.
        """
        with self._changed:
            ready = self._changed.wait_for(lambda: self._closed or self._may_begin(), timeout)
            name = threading.current_thread().name
            if self._closed:
                raise ScheduleClosed(f"{name} starts no more episodes: the run is ending")
            iteration = self._begun // self._per_iteration
            if not ready:
                raise TimeoutError(
                    f"{name} waited {timeout:g} s for other actors to write their episodes for iteration "
                    f"{min(self._under_way)}, to begin those for iteration {iteration}"
                )
            self._begun += count
            self._under_way.append(iteration)
        return Ticket(iteration, max(iteration - self._max_staleness, 0))

    def finish(self, ticket: Ticket) -> None:
        with self._changed:
            self._under_way.remove(ticket.iteration)
            self._changed.notify_all()

    def close(self) -> None:
        """Wakes all waiting actors with ScheduleClosed. May be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _may_begin(self) -> bool:
        next_iteration = self._begun // self._per_iteration
        return all(iteration >= next_iteration for iteration in self._under_way)


class ActorContext(NamedTuple):
    """State shared by the actors of a process; `best` is None if good placements are found elsewhere."""

    inference: Inference
    schedule: TicketSchedule
    store: ParameterStore
    replay: ReplayWriter
    best: BestTracker | None


class Actor:
    """One actor, with a unique number in the run, a pool of B environments and its own JAX random key.

    Args:
        count: the first episode's number; above those that this actor made before the run was resumed.
        batches: number of batches that the environments are split into; divides B.
    """

    def __init__(
        self,
        number: int,
        context: ActorContext,
        pool: EnvironmentPool,
        *,
        key: jax.Array,
        count: int = 0,
        batches: int = 1,
    ) -> None:
        self._number, self._context, self._pool, self._key = number, context, pool, key
        self._count, self._batches = count, batches

    def run(self, stop: threading.Event) -> None:
        """Plays until `stop` is set; the caller that sets it also closes all shared objects, so that all waits end.

        Raises TimeoutError if the learner or the other actors make no progress within an hour.
        """
        shared = self._context
        try:
            while not stop.is_set():
                ticket = shared.schedule.begin(self._pool.num_envs, timeout=LEARNER_SECONDS)
                snapshot = shared.store.wait_for(ticket.version, timeout=LEARNER_SECONDS)
                for episode in self.play_round(snapshot, stop.is_set):
                    shared.replay.write(episode, timeout=LEARNER_SECONDS)
                shared.schedule.finish(ticket)
        except (ScheduleClosed, StoreClosed, ReplayClosed, InferenceClosed):
            if not stop.is_set():
                raise

    def play_round(self, snapshot: Snapshot, stopped: Callable[[], bool] = lambda: False) -> Sequence[Episode]:
        """Plays B whole episodes with `snapshot`; returns none if `stopped()` became true."""
        inference, first, version = self._context.inference, self._count, snapshot.version
        network = inference.network(snapshot)

        def on_end(env: int, costs: np.ndarray) -> None:
            self._report(env, costs, f"actor {self._number}, episode {first + env}, parameters of iteration {version}")

        key = jax.random.fold_in(self._key, first)
        played = play(inference, self._pool, network, key, on_end=on_end, stopped=stopped, batches=self._batches)
        if played is None:
            return []
        self._count += self._pool.num_envs
        return [
            whole_episode(played, env, identity=(self._number, first + env), version=version)
            for env in range(self._pool.num_envs)
        ]

    def _report(self, env: int, costs: np.ndarray, origin: str) -> None:
        design, best = self._pool.config.design_of_env[env], self._context.best
        found = Costs(*(float(cost) for cost in costs))
        if best is not None and found.total < best.limit(design):
            best.report(design, found, self._pool.placement(env), origin=origin)


def batches_for(envs: int) -> int:
    """The number of batches that an actor splits its environments into."""
    return 2 if envs >= OVERLAPPED_ENVS and envs % 2 == 0 else 1
