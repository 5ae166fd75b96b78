"""Prepares the learner's next batch while it learns: reads episodes, replays them, and moves them to the devices.

A thread collects an iteration's episodes a few at a time and replays each as it arrives; once all have arrived it moves
them to the devices. There are two host buffers: the learner learns from one while the other is filled. The results are
bit-identical to those without the thread. If there are several learner hosts, the thread only reads, because the hosts'
joint operations must run in one order.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import threading
from typing import NamedTuple

from placement.engine.observation import Observation
from placement.engine.state import IllegalAction
from placement.episode import Episode
from placement.ppo.learner import Learner, Prepared
from placement.replay.replay import ReplayClosed, ReplayReader, ReplayTimeout

BUFFERS = 2
CHUNK = 8  # number of episodes read and replayed at a time
CLOSE_SECONDS = 30.0
SLICE_SECONDS = 0.1  # waits for episodes are split into slices of this many seconds, to check whether to stop


class Batch(NamedTuple):
    """One iteration's input: all learner hosts' episodes, each host's as read, and the arguments of `learn`."""

    episodes: list[Episode]
    prepared: Prepared


class InputPipeline:
    """Prepares batches of `episodes` whole episodes for a learner; a context manager that stops the thread at its end.

    Nobody else should read `replay`. `rejected` counts well-formed episodes with an illegal action.
    """

    def __init__(self, replay: ReplayReader, learner: Learner, *, episodes: int) -> None:
        self._replay, self._learner, self._count = replay, learner, episodes
        self.rejected = self._read = 0
        self._stop = threading.Event()
        self._buffers = itertools.cycle([learner.buffer(episodes) if learner.alone else None for _ in range(BUFFERS)])
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="input pipeline")
        self._next = self._thread.submit(self._prepare, next(self._buffers))

    def __enter__(self) -> InputPipeline:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def next(self, *, timeout: float) -> Batch:
        """Returns the next batch, waiting up to `timeout` seconds; the previous one must no longer be used.

        Raises:
            ReplayTimeout: too few episodes arrived in time; they are kept for the next call.
            ReplayClosed: the replay is closed.
            Exception: any other error of the thread.
        """
        concurrent.futures.wait([self._next], timeout)
        if not self._next.done():
            raise ReplayTimeout(
                f"the learner waited {timeout:g} s for {self._count} episodes and {self._read} arrived: the actors "
                "are too slow or have stopped"
            )
        episodes, prepared = self._next.result()
        self._next = self._thread.submit(self._prepare, next(self._buffers))
        if prepared is None:
            prepared = self._learner.prepare(episodes)
            episodes = self._learner.episodes(prepared)
        return Batch(episodes, prepared)

    def close(self) -> None:
        """Ends the thread and drops the episodes that it has read. May be called twice."""
        self._stop.set()
        ended, _ = concurrent.futures.wait([self._next], CLOSE_SECONDS)
        self._thread.shutdown(wait=bool(ended))

    def _prepare(self, buffer: Observation | None) -> tuple[list[Episode], Prepared | None]:
        """Fills the buffer with the next batch and moves it to the devices; raises ReplayClosed when it must stop."""
        episodes: list[Episode] = []
        while len(episodes) < self._count:
            self._read = len(episodes)
            try:
                chunk = self._replay.read(min(CHUNK, self._count - len(episodes)), timeout=SLICE_SECONDS)
            except ReplayTimeout:
                chunk = []
            if self._stop.is_set():
                raise ReplayClosed("the learner prepares no more batches: the run is ending")
            episodes += self._replayed(chunk, buffer, at=len(episodes))
        return episodes, None if buffer is None else self._learner.load(episodes, buffer)

    def _replayed(self, episodes: list[Episode], buffer: Observation | None, *, at: int) -> list[Episode]:
        """Replays episodes into the buffer from row `at`; returns the legal ones."""
        if not episodes or buffer is None:
            return episodes
        try:
            self._learner.render(episodes, buffer, at=at)
        except IllegalAction:
            if len(episodes) == 1:
                self.rejected += 1
                return []
            good: list[Episode] = []
            for episode in episodes:
                good += self._replayed([episode], buffer, at=at + len(good))
            return good
        return episodes
