"""The replay of a run in one process: in its memory, or on a Reverb server that it starts, for this machine only."""

from __future__ import annotations

import functools
import logging
import threading
from typing import TYPE_CHECKING

from placement.config import ConfigError, ReplayConfig
from placement.episode import Episode
from placement.replay.replay import MemoryReplay, Replay, ReplayClosed
from placement.transport.addresses import fixed

if TYPE_CHECKING:
    from placement.replay.shard_writer import ShardWriter

_log = logging.getLogger(__name__)
CONNECT_SECONDS = 10.0
INSTALL_REVERB = "on Linux x86-64 with Python 3.11, `make install` in a checkout installs it"
"""Advice to install Reverb; pip alone finds no compatible versions (CONTRIBUTING.md, "Changing the pinned packages").
"""


def make_replay(config: ReplayConfig, *, steps: int, designs: int | None = None) -> Replay:
    """Makes the replay named by `config.name`; `auto` is Reverb if it can be imported, else memory, and is logged once.

    Args:
        config: the kind of replay, and its capacity in episodes.
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
                    f"it: {INSTALL_REVERB}"
                ) from error
            _warn_once(str(error))
    return MemoryReplay(capacity=config.capacity, steps=steps, designs=designs)


@functools.cache
def _warn_once(reason: str) -> None:
    _log.warning(
        "Reverb is not installed (%s): episodes stay in this process's memory. It would let actors in other processes "
        "and on other machines feed the learner; %s.",
        reason,
        INSTALL_REVERB,
    )


class ReverbReplay(Replay):
    """A `Replay` on a Reverb server in this process: one shard, a writer for each thread, and the reader.

    Episodes are fetched only during a read, so that only Reverb's own prefetch is stored beyond `capacity`. Malformed
    items are rejected and counted.

    Args:
        capacity: maximum number of episodes in the table; writers wait when it is full.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; None = not checked.

    Raises:
        ImportError: Reverb is not installed.
    """

    def __init__(self, *, capacity: int, steps: int, designs: int | None = None) -> None:
        # Imported late, since TensorFlow takes seconds.
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
        load, (reader,) = self._shard.statistics(), self._reading.statistics()
        return max(load.written - reader.taken - reader.rejected - reader.duplicates, 0)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        for writer in self._writers:
            writer.close()
        self._reading.stop()
        self._shard.close()  # ends the waits of writers and reader at once
        self._reading.close()
