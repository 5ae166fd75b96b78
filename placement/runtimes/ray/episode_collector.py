"""The learner's side of the sharded replay: drops episodes that are too old or false, and reports a shortfall.

The publications of a run have their own numbers, which rise through every restart of the learner, while iterations fall
back: a learner that died resumes from its last checkpoint, and the parameters that it then publishes differ from the
dead one's of the same iteration. A learner takes numbers that no earlier one took, so that an episode's number shows
whether it was drawn with an earlier learner's parameters.

Axis legend: T macros to place (the longest design's).
"""

import collections
import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placement.engine.state import IllegalAction
from placement.episode import Episode
from placement.netlist.files import write_whole
from placement.replay.replay import ReplayClosed, ReplayReader, ReplayTimeout
from placement.runtimes.ray.messages import Shortfall
from placement.training.best import EpisodeVerifier
from placement.training.rollout import is_evaluation

_log = logging.getLogger(__name__)
SLICE_SECONDS = 0.5
"""Seconds without an episode after which the collector checks whether to stop and whether to report a shortfall."""
SHORTFALL_SECONDS = 3.0
BUSY_FACTOR = 10
"""Factor by which the collector waits longer before it reports a shortfall while the learner still learns."""
REPEATED = 100
LAGS = 4  # number of columns of the distribution of staleness before the last one (this many or more)


PUBLICATIONS_NAME = "publications.json"
BLOCK = 1000  # number of publication numbers that are reserved at once


class PublicationNumbers:
    """The publication numbers of one start of the learner, at `iteration`, for learner hosts that do not publish.

    Args:
        first: the number of the first parameters.
        iteration: the iteration at which this learner starts.
        unseen: iterations beyond `newest` whose parameters may already be published.

    Attributes:
        newest: the last iteration known to be done; -1 before the first parameters are numbered.
    """

    def __init__(self, first: int, *, iteration: int, unseen: int = 1) -> None:
        self.first, self.begun, self.newest, self._unseen = first, iteration, -1, unseen

    @property
    def possible(self) -> int:
        """The last iteration whose parameters an episode can have used."""
        return self.newest + self._unseen

    def iteration(self, number: int) -> int | None:
        """The iteration whose parameters this learner published as `number`; None if another learner did."""
        return number - self.first + self.begun if number >= self.first else None


class Publications(PublicationNumbers):
    """The publication numbers of one start of the learner, for the host that publishes; `folder` records them."""

    def __init__(self, folder: Path, *, iteration: int) -> None:
        self._path = folder / PUBLICATIONS_NAME
        # An unreadable file is an error, since numbers would otherwise be used twice.
        known = json.loads(self._path.read_text(encoding="utf-8"))["reserved"] if self._path.exists() else 0
        self._reserved = int(known)
        super().__init__(self._reserved, iteration=iteration, unseen=0)
        self._reserve()

    def number(self, iteration: int) -> int:
        """The number of the parameters after `iteration` iterations; reserved in the run folder before it is used."""
        number = self.first + iteration - self.begun
        while number >= self._reserved:
            self._reserve()
        self.newest = iteration
        return number

    def _reserve(self) -> None:
        self._reserved += BLOCK
        write_whole(self._path, json.dumps({"reserved": self._reserved}) + "\n")


class Bounds(NamedTuple):
    """The episodes that the learner accepts."""

    episodes: int  # number of episodes in one iteration
    oldest: int  # maximum number of versions that an episode may lag behind when it is learned from
    # whether episodes with an illegal action are rejected here; otherwise the input pipeline rejects them
    strict: bool = False


class EpisodeCollector:
    """Reads episodes from all shards for the learner's loop: recent ones, drawn with this learner's parameters.

    It finds the best placements, too: an episode that claims to be cheaper than any before is replayed. Episodes may be
    read ahead of the iteration that learns from them; their age is counted for that iteration. For one reading thread.

    Setting `stop` ends all waits with ReplayClosed; `report_shortfall` is called when episodes do not arrive.

    Attributes:
        stale: number of episodes dropped because they were too old.
        orphaned: number of episodes dropped because they were drawn with a dead learner's parameters.
        untrue: number of episodes rejected because their cost differs from their claim.
    """

    def __init__(
        self,
        source: ReplayReader,
        publications: PublicationNumbers,
        verifier: EpisodeVerifier,
        *,
        bounds: Bounds,
        stop: threading.Event,
        report_shortfall: Callable[[Shortfall], None] = lambda shortfall: None,
    ) -> None:
        self._source, self._publications, self._verifier = source, publications, verifier
        self._bounds, self._stop, self._report_shortfall = bounds, stop, report_shortfall
        self._kept: list[Episode] = []
        self._accepted = 0
        self._shortfall = Shortfall()
        self._came, self._waiting = time.monotonic(), 0
        self._evaluated: dict[int, tuple[int, float]] = {}
        self._lags: collections.Counter[int] = collections.Counter()
        self.stale = self.orphaned = self.untrue = 0

    @property
    def rejected(self) -> int:
        """Number of items that were rejected as malformed or false."""
        return int(getattr(self._source, "rejected", 0)) + self.untrue

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        """Takes `count` episodes; their version is the iteration whose parameters they were drawn with.

        Raises:
            ReplayTimeout: fewer arrived within `timeout` seconds; they are kept for the next read.
            ReplayClosed: the replay is closed, or the run must stop.
        """
        deadline = time.monotonic() + timeout
        while len(self._kept) < count:
            if self._stop.is_set():
                raise ReplayClosed("the learner cannot read: the run is ending")
            left = deadline - time.monotonic()
            if left <= 0:
                raise ReplayTimeout(f"the learner waited {timeout:g} s for {count} episodes: {len(self._kept)} arrived")
            try:
                got = self._source.read(count - len(self._kept), timeout=min(left, SLICE_SECONDS))
            except ReplayTimeout:
                got = []
            self._check_shortfall(bool(got))
            self._kept += [accepted for accepted in map(self._accept, got) if accepted is not None]
        taken, self._kept = self._kept[:count], self._kept[count:]
        return taken

    def _target(self) -> int:
        """The iteration that the next accepted episode is for: the current one, or the one after it."""
        newest = self._publications.newest
        return min(max(self._publications.begun + self._accepted // self._bounds.episodes, newest), newest + 1)

    def _check_shortfall(self, got: bool) -> None:
        """Reports a shortfall if nothing arrived for some seconds, or longer while the learner still learns."""
        now, before, self._waiting = time.monotonic(), self._waiting, self._source.size()
        if got or self._waiting > before:
            self._came = now
            if self._shortfall.missing:
                self._report(0)
        busy = self._target() > self._publications.newest
        if now - self._came > SHORTFALL_SECONDS * (BUSY_FACTOR if busy else 1):
            self._came = now
            self._report(self._bounds.episodes - self._accepted % self._bounds.episodes - self._waiting)

    def size(self) -> int:
        return self._source.size()

    def close(self) -> None:
        """Wakes a waiting reader. May be called twice."""
        self._source.close()

    def staleness(self) -> dict[str, float]:
        """Counts of the episodes read since the last call by lag in versions: 0, 1, … (the last count: or more)."""
        lags, self._lags = self._lags, collections.Counter()
        counts = [lags[lag] for lag in range(LAGS)]
        more = sum(count for lag, count in lags.items() if lag >= LAGS)
        return {f"staleness_{lag}": float(count) for lag, count in enumerate(counts)} | {f"staleness_{LAGS}_up": more}

    def evaluation(self) -> dict[str, float]:
        """Mean cost of the greedy episodes since the last call (one for each design), and their iteration."""
        evaluated, self._evaluated = self._evaluated, {}
        if not evaluated:
            return {}
        iterations, costs = zip(*evaluated.values(), strict=True)
        return {"greedy_cost": sum(costs) / len(costs), "greedy_iteration": float(max(iterations))}

    def _report(self, missing: int) -> None:
        self._shortfall = Shortfall(self._shortfall.number + 1, missing)
        self._report_shortfall(self._shortfall)

    def _accept(self, episode: Episode) -> Episode | None:
        """The episode with its iteration as version, or None if it must not be learned from."""
        iteration = self._publications.iteration(int(episode.version))
        if iteration is None:
            self.orphaned += 1
            return None
        # A host other than the first may receive episodes of parameters that it is only about to make.
        evaluation, lag = is_evaluation(episode), max(self._target() - iteration, 0)
        if lag > self._bounds.oldest and not evaluation:
            self.stale += 1
            return None
        if (reason := self._wrong(episode, iteration)) is not None:
            self.untrue += 1
            if self.untrue == 1 or self.untrue % REPEATED == 0:
                _log.warning("an episode is rejected (%d so far): %s", self.untrue, reason)
            return None
        if evaluation:
            self._evaluated[int(episode.design)] = iteration, float(episode.costs[4])
            return None
        self._accepted += 1
        self._lags[lag] += 1
        return episode._replace(version=np.array(iteration, np.int32))

    def _wrong(self, episode: Episode, iteration: int) -> str | None:
        """Keeps the episode's placement if it is the best; returns the reason if the episode is rejected."""
        if iteration > self._publications.possible:
            return f"parameters {iteration} do not exist"
        if self._bounds.strict:
            try:
                self._verifier.require_legal(episode)
            except IllegalAction as error:
                return str(error)
        return self._verifier.keep(episode, iteration)
