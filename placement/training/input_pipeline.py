"""From the replay to the devices ahead of the learner: read, play again, put on the devices, while it learns.

A thread collects an iteration's episodes a few at a time and plays each again as it comes; once all are there it puts
them on the devices. There are two host buffers: the learner learns from one while the other is filled. What the learner
gets does not depend on when: the results are the same as without the thread, to the last bit. Where there are several
learner hosts, the thread only reads: what the hosts do together they must do in one order.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import threading
from typing import NamedTuple

from placement.engine.actions import IllegalAction
from placement.engine.observation import Observation
from placement.episode import Episode
from placement.ppo.learner import Learner, Prepared
from placement.replay.base import ReplayClosed, ReplayReader, ReplayTimeout

BUFFERS = 2
CHUNK = 8
"""Episodes read and played again at a time."""
CLOSE_SECONDS = 30.0
SLICE_SECONDS = 0.1
"""A wait for episodes is cut into pieces of this length, to see whether to stop."""


class Batch(NamedTuple):
    """One iteration's input.

    Attributes:
        episodes: all learner hosts', each one's in the order in which they were read.
        prepared: for `Learner.learn`.
    """

    episodes: list[Episode]
    prepared: Prepared


class InputPipeline:
    """Prepares batches for a learner; a context manager, whose end stops the thread.

    Args:
        replay: where episodes come from; nobody else should read it.
        learner: who is to learn from them.
        episodes: whole episodes of a batch.

    Attributes:
        refused: well-formed episodes that took an action that no rule allows, and were thrown away.
    """

    def __init__(self, replay: ReplayReader, learner: Learner, *, episodes: int) -> None:
        self._replay, self._learner, self._count = replay, learner, episodes
        self.refused = self._read = 0
        self._stop = threading.Event()
        self._buffers = itertools.cycle([learner.buffer(episodes) if learner.alone else None for _ in range(BUFFERS)])
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="input pipeline")
        self._next = self._thread.submit(self._prepare, next(self._buffers))

    def __enter__(self) -> InputPipeline:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def next(self, *, timeout: float) -> Batch:
        """The next batch, waiting up to `timeout` seconds; the one before must not be used any more.

        Raises:
            ReplayTimeout: too few episodes came in time; they stay for the next call.
            ReplayClosed: the replay is closed.
            Exception: whatever else went wrong in the thread.
        """
        concurrent.futures.wait([self._next], timeout)
        if not self._next.done():
            raise ReplayTimeout(
                f"the learner waited {timeout:g} s for {self._count} episodes and {self._read} came: the actors "
                "are too slow or have stopped"
            )
        episodes, prepared = self._next.result()
        self._next = self._thread.submit(self._prepare, next(self._buffers))
        if prepared is None:
            prepared = self._learner.prepare(episodes)
            episodes = self._learner.episodes(prepared)
        return Batch(episodes, prepared)

    def close(self) -> None:
        """Ends the thread; what it has read is lost. May be called twice."""
        self._stop.set()
        ended, _ = concurrent.futures.wait([self._next], CLOSE_SECONDS)
        self._thread.shutdown(wait=bool(ended))

    def _prepare(self, buffer: Observation | None) -> tuple[list[Episode], Prepared | None]:
        """Fills the buffer with the next batch and puts it on the devices; raises ReplayClosed when told to stop."""
        episodes: list[Episode] = []
        while len(episodes) < self._count:
            self._read = len(episodes)
            try:
                chunk = self._replay.read(min(CHUNK, self._count - len(episodes)), timeout=SLICE_SECONDS)
            except ReplayTimeout:
                chunk = []
            if self._stop.is_set():
                raise ReplayClosed("the learner prepares no more batches: the run is ending")
            episodes += self._played(chunk, buffer, at=len(episodes))
        return episodes, None if buffer is None else self._learner.load(episodes, buffer)

    def _played(self, episodes: list[Episode], buffer: Observation | None, *, at: int) -> list[Episode]:
        """Plays episodes again into the buffer from row `at`; returns those that could be played."""
        if not episodes or buffer is None:
            return episodes
        try:
            self._learner.render(episodes, buffer, at=at)
        except IllegalAction:
            if len(episodes) == 1:
                self.refused += 1
                return []
            good: list[Episode] = []
            for episode in episodes:
                good += self._played([episode], buffer, at=at + len(good))
            return good
        return episodes
