"""The replay on a Reverb server in this process: one table per training run, first in first out, each item taken once.

An item is one whole episode. Reading goes through Reverb's dataset (its documentation: `Client.sample` is not for
training) with one worker, which first-in-first-out order needs. A thread of this class turns the dataset's endless
waits into deadlines: it pulls an episode only when a reader wants one, so that Reverb's own prefetch (two episodes at
most) is all that is held beyond `capacity`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from placement.ppo.trajectory import Episode, signature
from placement.replay.base import ReplayClosed, ReplayTimeout
from placement.replay.validation import MalformedEpisode, check
from placement.transport.loopback import quiet_standard_error
from placement.transport.reverb_server import reverb, start_server, tf

TABLE = "episodes"
CLOSE_SECONDS = 10.0
REPEATED_REFUSALS = 100


class ReverbReplay:
    """A `Replay` held by a Reverb server that this object starts and stops.

    Args:
        capacity: episodes that the table holds at most; writers wait when it is full.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; None = not checked.
        timeout: seconds after which a read from Reverb that got nothing is begun anew.
    """

    def __init__(self, *, capacity: int, steps: int, designs: int | None = None, timeout: float = 300.0) -> None:
        self._capacity, self._designs, self._timeout = capacity, designs, timeout
        self._signature = signature(steps)
        self._changed = threading.Condition()
        self._reading = threading.Lock()  # one reader at a time, so that each gets consecutive episodes
        self._received: list[Episode] = []
        self._wanted = self._taken = self._refused = 0
        self._closed = False
        self._error: Exception | None = None
        self._writers = threading.local()
        self._start()

    def _start(self) -> None:
        specs = {name: tf.TensorSpec(array.shape, array.dtype) for name, array in self._signature._asdict().items()}
        self._table = reverb.Table.queue(TABLE, self._capacity, signature=specs)
        self._server = start_server([self._table])
        self._client = self._server.client
        started = threading.Event()
        self._pump = threading.Thread(target=self._run, args=(started,), name="replay reader", daemon=True)
        self._pump.start()
        if not started.wait(CLOSE_SECONDS):
            raise ReplayTimeout(f"Reverb's reader did not start within {CLOSE_SECONDS:g} s")

    @property
    def port(self) -> int:
        """The TCP port that the server listens on, for this machine only."""
        return self._server.port

    @property
    def refused(self) -> int:
        """Items that were malformed and thrown away."""
        return self._refused

    # Writing.

    def write(self, episode: Episode, *, timeout: float) -> None:
        """Adds one episode, waiting up to `timeout` seconds for room.

        Raises:
            MalformedEpisode: the episode breaks the rules of `Episode`.
            ReplayTimeout: there was no room in time. The episode is with Reverb already and enters when there is
                room; writing the same episode again from the same thread goes on waiting for it.
            ReplayClosed: the replay is closed.
        """
        check(episode, self._signature, designs=self._designs)
        deadline = time.monotonic() + timeout
        self._raise_if_closed("write")
        writer = self._thread_writer()
        identity = tuple(int(part) for part in episode.identity)
        if writer.pending not in (None, identity):
            self._flush(writer, deadline, timeout)
        if writer.pending is None:
            writer.begin(episode)
            writer.pending = identity
        self._flush(writer, deadline, timeout)

    def _thread_writer(self) -> _Writer:
        if not hasattr(self._writers, "writer"):
            self._writers.writer = _Writer(self._client)
        return self._writers.writer

    def _flush(self, writer: _Writer, deadline: float, timeout: float) -> None:
        try:
            writer.flush(max(deadline - time.monotonic(), 0.001))
        except reverb.errors.DeadlineExceededError:
            self._raise_if_closed("write")
            raise ReplayTimeout(
                f"{threading.current_thread().name} waited {timeout:g} s to write an episode: the Reverb table is full "
                f"({self._capacity} episodes) and the learner took none"
            ) from None
        except RuntimeError:
            self._raise_if_closed("write")
            raise
        self._raise_if_closed("write")

    # Reading.

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        """Takes the `count` oldest episodes, waiting up to `timeout` seconds; malformed items are refused and counted.

        Raises:
            ReplayTimeout: fewer came in time; they stay for the next read.
            ReplayClosed: the replay is closed.
            RuntimeError: reading from Reverb failed.
        """
        deadline = time.monotonic() + timeout
        if not self._reading.acquire(timeout=timeout):
            raise ReplayTimeout(
                f"{threading.current_thread().name} waited {timeout:g} s for another reader of the Reverb replay"
            )
        try:
            with self._changed:
                return self._take(count, deadline, timeout)
        finally:
            self._reading.release()

    def _take(self, count: int, deadline: float, timeout: float) -> list[Episode]:
        """`count` episodes; the condition is held."""
        self._wanted = count
        self._changed.notify_all()
        try:
            self._changed.wait_for(
                lambda: self._closed or self._error or len(self._received) >= count,
                max(deadline - time.monotonic(), 0.0),
            )
        finally:
            self._wanted = 0
        self._raise_if_closed("read")
        if self._error is not None:
            raise RuntimeError(f"reading from Reverb failed: {self._error}") from self._error
        if len(self._received) < count:
            raise ReplayTimeout(
                f"{threading.current_thread().name} waited {timeout:g} s for {count} episodes from the Reverb table "
                f"and {len(self._received)} came: the actors are too slow or have stopped"
            )
        taken, self._received = self._received[:count], self._received[count:]
        self._taken += count
        return taken

    def _run(self, started: threading.Event) -> None:
        """The reading thread: keeps a dataset's iterator going and fills `_received` as far as a reader wants."""
        try:
            while not self._closed:
                iterator = iter(self._dataset())
                started.set()
                self._receive(iterator)
        except Exception as error:  # noqa: BLE001  handed to whoever reads
            with self._changed:
                self._error = error
                self._changed.notify_all()
        finally:
            started.set()

    def _receive(self, iterator: Iterator[Any]) -> None:
        """Receives until the replay is closed or the iterator ends (Reverb's deadline passed without an item)."""
        repeated = 0
        while repeated < REPEATED_REFUSALS:
            with self._changed:
                while not self._closed and self._wanted <= len(self._received):
                    self._changed.wait(1.0)
                if self._closed:
                    return
            try:
                episode = self._next(iterator)
                repeated = 0
            except StopIteration:
                return
            except (MalformedEpisode, tf.errors.InvalidArgumentError):
                self._refused += 1
                repeated += 1
                continue
            with self._changed:
                self._received.append(episode)
                self._changed.notify_all()

    def _next(self, iterator: Iterator[Any]) -> Episode:
        data = next(iterator).data
        arrays = {name: np.asarray(data[name].numpy(), expected.dtype) for name, expected in self._fields()}
        episode = Episode(**arrays)
        check(episode, self._signature, designs=self._designs)
        return episode

    def _fields(self) -> list[tuple[str, np.ndarray]]:
        return list(self._signature._asdict().items())

    def _dataset(self) -> tf.data.Dataset:
        dataset = reverb.TrajectoryDataset(
            f"localhost:{self._server.port}",
            TABLE,
            dtypes={name: array.dtype for name, array in self._fields()},
            shapes={name: tf.TensorShape(array.shape) for name, array in self._fields()},
            max_in_flight_samples_per_worker=1,
            num_workers_per_iterator=1,
            rate_limiter_timeout_ms=int(self._timeout * 1000),
        )
        options = tf.data.Options()
        options.autotune.enabled = False
        options.experimental_optimization.apply_default_optimizations = False
        return dataset.with_options(options)

    # Both.

    def size(self) -> int:
        """Episodes waiting to be read, those that Reverb has fetched ahead included."""
        inserted = self._table.info.rate_limiter_info.insert_stats.completed
        return max(int(inserted) - self._taken - self._refused, 0)

    def close(self) -> None:
        """Wakes all who wait (they get ReplayClosed), ends the server, frees what is held. May be called twice."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._received.clear()
            self._changed.notify_all()
        with quiet_standard_error():
            self._wake_pump()
            self._server.stop()  # also ends the waits of writers

    def _wake_pump(self) -> None:
        """Gives the reading thread, which Reverb cannot interrupt, items to wake up by until it has ended."""
        deadline = time.monotonic() + CLOSE_SECONDS
        writer = _Writer(self._client)
        while self._pump.is_alive() and time.monotonic() < deadline:
            if self._table.can_insert(1):
                writer.begin(self._signature)
                with contextlib.suppress(reverb.errors.DeadlineExceededError):
                    writer.flush(0.05)
            self._pump.join(0.02)

    def _raise_if_closed(self, what: str) -> None:
        if self._closed:
            raise ReplayClosed(f"{threading.current_thread().name} cannot {what}: the Reverb replay is closed")


class _Writer:
    """One thread's Reverb writer, which has one item under way at most."""

    def __init__(self, client: reverb.Client) -> None:
        self._writer = client.trajectory_writer(num_keep_alive_refs=1)
        self.pending: tuple[int, ...] | None = None

    def begin(self, episode: Episode) -> None:
        """Hands over an episode without waiting."""
        self._writer.append(episode._asdict())
        self._writer.create_item(TABLE, 1.0, {name: column[-1] for name, column in self._writer.history.items()})

    def flush(self, timeout: float) -> None:
        """Waits up to `timeout` seconds until the table has the item; raises DeadlineExceededError."""
        self._writer.flush(0, timeout_ms=max(int(timeout * 1000), 1))
        self.pending = None
