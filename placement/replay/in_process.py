"""The replay of a run in one process: in its memory, or on a Reverb server that it starts, for this machine only."""

from __future__ import annotations

import collections
import functools
import logging
import threading
from typing import TYPE_CHECKING

from placement.config import ConfigError, ReplayConfig
from placement.episode import Episode, Schema
from placement.replay.base import Delivery, Replay, ReplayClosed, ReplayTimeout
from placement.transport.addresses import fixed

if TYPE_CHECKING:
    from placement.replay.shard_writer import ShardWriter

_log = logging.getLogger(__name__)
CONNECT_SECONDS = 10.0


def make_replay(config: ReplayConfig, *, steps: int, designs: int | None = None) -> Replay:
    """Makes the replay named by `config.name`; `auto` is Reverb if it can be imported, else memory, and is logged once.

    Args:
        config: the kind of replay, and how many episodes it holds at most.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; episodes of others are rejected. None = not checked.

    Raises:
        ConfigError: Reverb is requested by name and cannot be imported.
    """
    if config.name != "memory":
        try:
            return ReverbReplay(capacity=config.capacity, steps=steps, designs=designs)
        except ImportError as error:
            if config.name == "reverb":
                raise ConfigError(
                    f"replay.name='reverb': Reverb cannot be imported ({error}); use replay.name=memory, or install "
                    "the `reverb` extra on Python 3.11"
                ) from error
            _warn_once(str(error))
    return MemoryReplay(capacity=config.capacity, steps=steps, designs=designs)


@functools.cache
def _warn_once(reason: str) -> None:
    _log.warning(
        "Reverb is not installed (%s): episodes stay in this process's memory; Reverb (the `reverb` extra, Python "
        "3.11) would let actors in other processes and machines feed the learner.",
        reason,
    )


class MemoryReplay(Replay):
    """A `Replay` in this process's memory: a bounded queue under a condition variable.

    Args:
        capacity: episodes held at most; writers wait when it is full, unless the reader wants more at once.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; None = not checked.
    """

    rejected = 0  # a malformed episode is never added: `write` raises

    def __init__(self, *, capacity: int, steps: int, designs: int | None = None) -> None:
        self._capacity = capacity
        self._schema = Schema(steps, designs)
        self._episodes: collections.deque[Episode] = collections.deque()
        self._delivery = Delivery(
            "the in-memory replay",
            available=lambda: len(self._episodes),
            take=lambda count: [self._episodes.popleft() for _ in range(count)],
        )

    def write(self, episode: Episode, *, timeout: float) -> None:
        self._schema.check(episode)
        delivery = self._delivery
        with delivery.changed:
            ready = delivery.changed.wait_for(lambda: delivery.closed.is_set() or not self._is_full(), timeout)
            delivery.raise_if_closed("write")
            if not ready:
                raise ReplayTimeout(
                    f"{threading.current_thread().name} waited {timeout:g} s to write an episode: the in-memory replay "
                    f"is full ({self._capacity} episodes) and the learner took none"
                )
            self._episodes.append(episode)
            delivery.changed.notify_all()

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        return self._delivery.read(count, timeout=timeout)

    def size(self) -> int:
        with self._delivery.changed:
            return len(self._episodes)

    def close(self) -> None:
        self._delivery.close()
        with self._delivery.changed:
            self._episodes.clear()

    def _is_full(self) -> bool:
        return len(self._episodes) >= max(self._capacity, self._delivery.wanted)


class ReverbReplay(Replay):
    """A `Replay` on a Reverb server in this process: one shard, a writer for each thread, and the reader.

    Episodes are fetched only during a read, so that only Reverb's own prefetch is held beyond `capacity`. Malformed
    items are rejected and counted.

    Args:
        capacity: episodes that the table holds at most; writers wait when it is full.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; None = not checked.

    Raises:
        ImportError: Reverb is not installed.
    """

    def __init__(self, *, capacity: int, steps: int, designs: int | None = None) -> None:
        # Late: TensorFlow takes seconds to import.
        from placement.replay.shard import ReplayShard
        from placement.replay.shard_reader import ShardedReplay
        from placement.replay.shard_writer import ShardWriter

        self._shard = ReplayShard(number=0, capacity=capacity, steps=steps)
        addresses = fixed(self._shard.address)
        self._reading = ShardedReplay(addresses, steps=steps, designs=designs, ahead=0)
        self._reading.wait_until_connected(timeout=CONNECT_SECONDS)
        self._make_writer = functools.partial(ShardWriter, addresses, home=0, steps=steps, designs=designs)
        self._local = threading.local()
        self._writers: list[ShardWriter] = []
        self._lock = threading.Lock()
        self._closed = False

    @property
    def port(self) -> int:
        """The TCP port that the server listens on."""
        return self._shard.port

    @property
    def rejected(self) -> int:
        """Malformed items that were dropped."""
        return self._reading.rejected

    def write(self, episode: Episode, *, timeout: float) -> None:
        if not hasattr(self._local, "writer"):
            with self._lock:
                if self._closed:
                    raise ReplayClosed(f"{threading.current_thread().name} cannot write: the Reverb replay is closed")
                self._local.writer = self._make_writer()
                self._writers.append(self._local.writer)
        self._local.writer.write(episode, timeout=timeout)

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        return self._reading.read(count, timeout=timeout)

    def size(self) -> int:
        load, (reader,) = self._shard.statistics(), self._reading.statistics()
        return max(load.written - reader.taken - reader.rejected - reader.duplicates, 0)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        for writer in self._writers:
            writer.close()
        self._reading.stop()
        self._shard.close()  # ends the waits of writers and reader, which nothing else in one process does as soon
        self._reading.close()
