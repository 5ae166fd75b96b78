"""From the replay to the devices ahead of the learner: read, play again, put on the devices, while it learns.

A thread collects an iteration's episodes a few at a time and plays each again as it comes; once all are there it puts
them on the devices. There are two host buffers: the learner learns from one while the other is filled. What the learner
gets does not depend on when: the results are the same as without the thread, to the last bit. Where there are several
learner hosts, the thread only reads: what the hosts do together they must do in one order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from placement.engine.actions import IllegalAction
from placement.engine.observation import Observation
from placement.ppo.learner import Learner, Prepared
from placement.ppo.trajectory import Episode
from placement.replay.base import ReplayReader, ReplayTimeout

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


class _Ready(NamedTuple):
    episodes: list[Episode]
    prepared: Prepared | None
    buffer: Observation | None


class InputPipeline:
    """Prepares batches for a learner; a context manager, whose end stops the thread.

    Args:
        replay: where episodes come from; nobody else should read it.
        learner: who is to learn from them.
        episodes: whole episodes of a batch.

    Attributes:
        refused: well-formed episodes that took an action that no rule allows, and were thrown away.
        busy_seconds: that the thread spent on anything but waiting.
    """

    def __init__(self, replay: ReplayReader, learner: Learner, *, episodes: int) -> None:
        self._replay, self._learner, self._count = replay, learner, episodes
        self.refused, self.busy_seconds = 0, 0.0
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._free = [learner.buffer(episodes) if learner.alone else None for _ in range(BUFFERS)]
        self._used: _Ready | None = None  # by the learner
        self._ready: _Ready | None = None
        self._read = 0
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="input pipeline", daemon=True)
        self._thread.start()

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
        with self._changed:
            if self._used is not None:
                self._free.append(self._used.buffer)
                self._used = None
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._ready is not None or self._error is not None, timeout)
            if self._ready is None:
                if self._error is not None:
                    raise self._error
                raise ReplayTimeout(
                    f"the learner waited {timeout:g} s for {self._count} episodes and {self._read} came: the actors "
                    "are too slow or have stopped"
                )
            used, self._used, self._ready = self._ready, self._ready, None
            self._changed.notify_all()
        if used.prepared is not None:
            return Batch(used.episodes, used.prepared)
        prepared = self._learner.prepare(used.episodes)
        return Batch(self._learner.episodes(prepared), prepared)

    def close(self) -> None:
        """Ends the thread; what it has read is lost. May be called twice."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._prepare_next()
        except Exception as error:  # noqa: BLE001  raised again by `next`
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _prepare_next(self) -> None:
        """Fills a free buffer with the next batch and hands it over; returns early when told to stop."""
        if not self._wait_for(lambda: bool(self._free)):
            return
        buffer = self._free.pop()
        episodes: list[Episode] = []
        while len(episodes) < self._count:
            self._read = len(episodes)
            try:
                chunk = self._replay.read(min(CHUNK, self._count - len(episodes)), timeout=SLICE_SECONDS)
            except ReplayTimeout:
                chunk = []
            if self._stop.is_set():
                return
            start = time.monotonic()
            episodes += self._played(chunk, buffer, at=len(episodes))
            self.busy_seconds += time.monotonic() - start
        self._read = self._count
        start = time.monotonic()
        prepared = None if buffer is None else self._learner.load(episodes, buffer)
        self.busy_seconds += time.monotonic() - start
        if self._wait_for(lambda: self._ready is None):
            with self._changed:
                self._ready = _Ready(episodes, prepared, buffer)
                self._changed.notify_all()

    def _wait_for(self, condition: Callable[[], bool]) -> bool:
        """Waits for the learner, as long as it takes; False when told to stop."""
        with self._changed:
            while not condition() and not self._stop.is_set():
                self._changed.wait(1.0)
        return not self._stop.is_set()

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
