"""The replay on a Reverb server in this process: a shard, its writers and its reader under one roof."""

from __future__ import annotations

import threading

from placement.ppo.trajectory import Episode
from placement.replay.base import Replay, ReplayClosed
from placement.replay.shard import ReplayShard
from placement.replay.sharded import ShardedReplay, ShardWriter
from placement.transport.addresses import fixed

START_SECONDS = 10.0


class ReverbReplay(Replay):
    """A `Replay` held by a Reverb server that this object starts and stops, for this machine only.

    Episodes are fetched only while somebody reads, so that Reverb's own prefetch is all that is held beyond `capacity`.
    Malformed items are refused and counted.

    Args:
        capacity: episodes that the table holds at most; writers wait when it is full.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; None = not checked.
    """

    def __init__(self, *, capacity: int, steps: int, designs: int | None = None) -> None:
        self._steps, self._designs = steps, designs
        self._shard = ReplayShard(number=0, capacity=capacity, steps=steps)
        self._addresses = fixed(self._shard.address)
        self._reading = ShardedReplay(self._addresses, steps=steps, designs=designs, ahead=0)
        self._reading.wait_until_connected(timeout=START_SECONDS)
        self._mine = threading.local()
        self._writers: list[ShardWriter] = []
        self._lock = threading.Lock()
        self._closed = False

    @property
    def port(self) -> int:
        """The TCP port that the server listens on."""
        return self._shard.port

    @property
    def refused(self) -> int:
        """Items that were malformed and thrown away."""
        return self._reading.refused

    def write(self, episode: Episode, *, timeout: float) -> None:
        self._writer().write(episode, timeout=timeout)

    def _writer(self) -> ShardWriter:
        """The calling thread's writer."""
        if not hasattr(self._mine, "writer"):
            with self._lock:
                if self._closed:
                    raise ReplayClosed(f"{threading.current_thread().name} cannot write: the Reverb replay is closed")
                self._mine.writer = ShardWriter(self._addresses, home=0, steps=self._steps, designs=self._designs)
                self._writers.append(self._mine.writer)
        return self._mine.writer

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        return self._reading.read(count, timeout=timeout)

    def size(self) -> int:
        load, (reader,) = self._shard.statistics(), self._reading.statistics()
        return max(load.written - reader.taken - reader.refused - reader.duplicates, 0)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        for writer in self._writers:
            writer.close()
        self._reading.stop()
        self._shard.close()  # ends the waits of writers and reader, which in one process nothing else does so soon
        self._reading.close()
