"""Decides locally how many episodes an actor plays with each version of the parameters.

Each new version grants an actor episode credits: the iteration's episodes divided by the living actors. Beginning an
episode takes one credit; at zero the actor waits for the next version. An actor has at most `1 + max_staleness` grants,
so no episode is older than the learner allows. A group of environments may begin with fewer credits than it needs; the
rest is taken from the next grant. When an actor or a shard dies, episodes are lost: the learner reports the shortfall,
and every actor gets credits for its share of it.
"""

import math
import threading
import time
from collections.abc import Callable

from placement.modelcache.store import ParameterStore, StoreTimeout
from placement.runtimes.ray.messages import Shortfall
from placement.training.actor import ScheduleClosed, Ticket

LOOK_SECONDS = 0.5  # seconds without a new version after which the number of actors and the shortfall are read again


class EpisodeCredits:
    """Counts an actor's credits: episodes that it may begin; negative if it began some ahead of the next grant."""

    def __init__(self, *, episodes_per_iteration: int, max_staleness: int) -> None:
        self._per_iteration, self._shares = episodes_per_iteration, 1 + max_staleness
        self._credit = 0.0
        self._version = -1
        self._shortfall = 0

    def version(self, version: int, actors: int) -> None:
        """Takes the newest version, with the number of living actors."""
        if version <= self._version:
            return
        share = self._per_iteration / max(actors, 1)
        passed = self._shares if self._version < 0 else min(version - self._version, self._shares)
        self._credit = min(self._credit + passed * share, self._shares * share)
        self._version = version

    def shortfall(self, shortfall: Shortfall, actors: int) -> None:
        """Takes a report of missing episodes; each report counts once."""
        if shortfall.number != self._shortfall:
            self._shortfall = shortfall.number
            if shortfall.missing:
                self._credit = max(self._credit, math.ceil(shortfall.missing / max(actors, 1)))

    def take(self, count: int) -> bool:
        """Spends `count` credits if there is any credit left; returns whether there was."""
        if self._credit <= 1e-9:
            return False
        self._credit -= count
        return True


class CreditedSchedule:
    """Issues tickets to begin episodes, like an `EpisodeSchedule`, for an actor in a separate process.

    New versions appear in `store`. `credits` limits the episodes that may begin (None: no limit), `actors` returns the
    number of living ones, and `shortfall` the learner's last report.
    """

    def __init__(
        self,
        store: ParameterStore,
        credits: EpisodeCredits | None,
        *,
        actors: Callable[[], int],
        shortfall: Callable[[], Shortfall],
    ) -> None:
        self._store, self._credits, self._actors, self._shortfall = store, credits, actors, shortfall
        self._closed = False

    def begin(self, count: int, *, timeout: float) -> Ticket:
        """Waits until `count` episodes may begin together; raises TimeoutError, and ScheduleClosed after `close`."""
        deadline = time.monotonic() + timeout
        version = self._store.version()
        while True:
            if self._closed:
                raise ScheduleClosed(f"{threading.current_thread().name} starts no more episodes: the run is ending")
            if version >= 0 and self._may_begin(version, count):
                return Ticket(version, version)
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{threading.current_thread().name} waited {timeout:g} s for the learner to publish parameters "
                    f"after version {version}"
                )
            version = self._next(version)

    def finish(self, ticket: Ticket) -> None:
        """Does nothing, since written episodes are not counted."""

    def close(self) -> None:
        """Stops further episodes from beginning. May be called twice."""
        self._closed = True

    def _may_begin(self, version: int, count: int) -> bool:
        if self._credits is None:
            return True
        actors = max(self._actors(), 1)
        self._credits.version(version, actors)
        self._credits.shortfall(self._shortfall(), actors)
        return self._credits.take(count)

    def _next(self, version: int) -> int:
        """The newest version, as soon as it is above `version`, or after a while."""
        try:
            return self._store.wait_for(version + 1, timeout=LOOK_SECONDS).version
        except StoreTimeout:
            return version
