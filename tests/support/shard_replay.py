"""One shard, its writers and its reader as one replay, for the tests that every kind of replay passes."""

from __future__ import annotations

import functools
import threading

from placement.episode import Episode
from placement.replay.replay import Replay, ReplayClosed
from placement.replay.shard import ReplayShard
from placement.replay.shard_reader import ShardedReplay
from placement.replay.shard_writer import ShardWriter
from placement.transport.addresses import fixed

CONNECT_SECONDS = 60.0


class ShardReplay(Replay):
    """A `Replay` on a shard in this process, with a writer for each thread; nothing is fetched between reads."""

    def __init__(self, *, capacity: int, steps: int, designs: int | None = None) -> None:
        self.shard = ReplayShard(number=0, capacity=capacity, steps=steps)
        addresses = fixed(self.shard.address)
        self._reading = ShardedReplay(addresses, steps=steps, designs=designs, ahead=0)
        self._reading.wait_until_connected(timeout=CONNECT_SECONDS)
        self._make_writer = functools.partial(ShardWriter, addresses, home=0, steps=steps, designs=designs)
        self._local = threading.local()
        self._writers: list[ShardWriter] = []
        self._lock = threading.Lock()
        self._closed = False

    @property
    def rejected(self) -> int:
        """Number of malformed items that were dropped."""
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
        load, (reader,) = self.shard.statistics(), self._reading.statistics()
        return max(load.written - reader.taken - reader.rejected - reader.duplicates, 0)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        for writer in self._writers:
            writer.close()
        self._reading.stop()
        self.shard.close()  # ends the waits of writers and reader at once
        self._reading.close()
