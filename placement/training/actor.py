"""The actor: plays whole episodes and writes them to the replay.

An actor plays in rounds: every environment of its pool begins an episode, and the round ends when all have ended. New
parameters are taken between rounds only, so that all actions of an episode carry one version. An environment whose
episode ends early (a dead end, or a smaller design beside a larger one) waits for the round's end; so each design keeps
its share of the episodes, however short its own are.

Axis legend: B environments, T macros to place (the longest design's).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import jax
import numpy as np

from placement.engine.costs import Costs
from placement.engine.pool import EnvironmentPool
from placement.episode import Episode
from placement.modelcache.store import ParameterStore, Snapshot, StoreClosed
from placement.netlist.design import Placement
from placement.replay.base import ReplayClosed, ReplayWriter
from placement.training.best import BestTracker
from placement.training.episode_schedule import ScheduleClosed, Turn
from placement.training.inference import Inference, InferenceClosed
from placement.training.rollout import play

LEARNER_SECONDS = 3600.0
"""That an actor waits for the learner or for other actors before it gives up."""


class TurnSchedule(Protocol):
    """When to begin episodes with which parameters."""

    def begin(self, count: int, *, timeout: float) -> Turn:
        """Begins `count` episodes together; raises TimeoutError, ScheduleClosed."""

    def finish(self, turn: Turn) -> None:
        """All episodes of the turn are written."""


class EpisodeReward(Protocol):
    """Who says what a whole placement is worth, in place of its cost."""

    def __call__(self, design: int, placement: Placement) -> float:
        """The more, the better; `design` is the number of its design among the run's."""


class ActorContext(NamedTuple):
    """What the actors of a process share.

    Attributes:
        inference: picks actions.
        schedule: when to begin episodes with which parameters.
        store: where parameters come from.
        replay: where episodes go.
        best: is told of placements that are better than any before; None = nobody is.
    """

    inference: Inference
    schedule: TurnSchedule
    store: ParameterStore
    replay: ReplayWriter
    best: BestTracker | None


class Actor:
    """One actor.

    Args:
        number: which actor, unique in the run.
        context: what it shares with others.
        pool: B environments, this actor's own.
        key: JAX random key, consumed.
        count: the first episode's number; above those that this actor made before the run was resumed.
        parts: batches that the environments are split into; divides B.
        reward: of episodes that end with everything placed; None: minus their cost, as the pool pays.
    """

    def __init__(
        self,
        number: int,
        context: ActorContext,
        pool: EnvironmentPool,
        *,
        key: jax.Array,
        count: int = 0,
        parts: int = 1,
        reward: EpisodeReward | None = None,
    ) -> None:
        self._number, self._context, self._pool, self._key = number, context, pool, key
        self._count, self._parts, self._reward = count, parts, reward

    def run(self, stop: threading.Event) -> None:
        """Plays until `stop` is set; who sets it closes all else that is shared, too, so that no wait goes on.

        Raises:
            TimeoutError: the learner or the other actors did not go on within an hour.
        """
        shared = self._context
        try:
            while not stop.is_set():
                turn = shared.schedule.begin(self._pool.num_envs, timeout=LEARNER_SECONDS)
                snapshot = shared.store.wait_for(turn.version, timeout=LEARNER_SECONDS)
                for episode in self.play_round(snapshot, stop.is_set):
                    shared.replay.write(episode, timeout=LEARNER_SECONDS)
                shared.schedule.finish(turn)
        except (ScheduleClosed, StoreClosed, ReplayClosed, InferenceClosed):
            if not stop.is_set():
                raise

    def play_round(self, snapshot: Snapshot, stopped: Callable[[], bool] = lambda: False) -> Sequence[Episode]:
        """B whole episodes drawn with `snapshot`; none if `stopped()` became true meanwhile."""
        inference, first, version = self._context.inference, self._count, snapshot.version
        network = inference.network(snapshot)

        paid: dict[int, float] = {}

        def on_end(env: int, costs: np.ndarray) -> None:
            if self._reward is not None:
                if stopped():  # it may take a while for each
                    return
                paid[env] = self._reward(self._pool.config.design_of_env[env], self._pool.placement(env))
            self._report(env, costs, f"actor {self._number}, episode {first + env}, parameters of iteration {version}")

        key = jax.random.fold_in(self._key, first)
        played = play(inference, self._pool, network, key, on_end=on_end, stopped=stopped, parts=self._parts)
        if played is None or (self._reward is not None and len(paid) < np.count_nonzero(~played.dead_end)):
            return []
        played.reward[list(paid)] = list(paid.values())
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


def whole_episode(played: Episode, env: int, *, identity: tuple[int, int], version: int) -> Episode:
    """Environment `env`'s episode of those that `play` gave, as it travels, of the model's `version`."""
    episode = Episode(*(np.array(field[env]) for field in played))
    return episode._replace(identity=np.array(identity, np.int64), version=np.array(version, np.int32))
