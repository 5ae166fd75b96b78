"""The learner's side of the sharded replay: draws from all shards fairly, whichever of them live.

Nothing that comes from a shard is trusted: an item that is not a well-formed episode is refused and counted, and an
episode that came before (from a shard's checkpoint, or written twice as its first shard died) is dropped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np

from placement.ppo.trajectory import Episode
from placement.replay.base import ReplayReader, ReplayTimeout
from placement.replay.delivery import Delivery
from placement.replay.interval_set import EpisodeIntervalSet
from placement.replay.shard_items import HUNG_SECONDS, PREFETCH, ShardMismatch
from placement.replay.shard_reader import ShardReader, ShardStatistics
from placement.replay.shard_writer import ShardWriter
from placement.replay.validation import Schema
from placement.transport.addresses import Addresses
from placement.transport.tunnel import Dial, direct

__all__ = ["PREFETCH", "ShardMismatch", "ShardStatistics", "ShardWriter", "ShardedReplay"]

CLOSE_SECONDS = 10.0
WATCH_SECONDS = 1.0
IDLE_SECONDS = 0.25
"""A shard that brings nothing for so long leaves its share of a read to the others."""


class ShardedReplay(ReplayReader):
    """Reads several shards, which may die and return; from each as many episodes as it has its share of.

    Args:
        addresses: of the shards at present.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; None = not checked.
        ahead: episodes fetched ahead from each shard while nobody reads; they are lost if this process dies.
        intervals: int64 [N, 3], as `intervals()` gave them to a checkpoint; None = nothing was taken before.
        numbers: the shards' numbers, for messages and statistics; default: from 0.
        silence: seconds without an answer after which a shard that takes connections counts as down.
        dial: the way to a shard: `Tunnels.dial` where shards ask for the run's token.
    """

    def __init__(
        self,
        addresses: Addresses,
        *,
        steps: int,
        designs: int | None = None,
        ahead: int = 8,
        intervals: np.ndarray | None = None,
        numbers: Sequence[int] | None = None,
        silence: float = HUNG_SECONDS,
        dial: Dial = direct,
    ) -> None:
        self._ahead = ahead
        self._fetched, self._taken = EpisodeIntervalSet(intervals), EpisodeIntervalSet(intervals)
        self._turn = 0
        self._began = time.monotonic()
        self._delivery = Delivery(
            "the replay shards", available=self._available, take=self._take, explain=self._explain
        )
        self._readers: list[ShardReader] = []
        with self._delivery.changed:  # no reader asks what is wanted before all are there
            for place, number in enumerate(range(len(addresses())) if numbers is None else numbers):
                reader = ShardReader(
                    number,
                    lambda place=place: addresses()[place],  # type: ignore[misc]
                    Schema(steps, designs),
                    delivery=self._delivery,
                    wants=self._wants,
                    accept=self._accept,
                    silence=silence,
                    dial=dial,
                )
                self._readers.append(reader)
        self._watcher = threading.Thread(target=self._watch, name="replay shards watcher", daemon=True)
        self._watcher.start()

    def wait_until_connected(self, *, timeout: float) -> None:
        """Waits up to `timeout` seconds for all shards to answer; raises ReplayTimeout naming those that do not."""
        delivery = self._delivery
        with delivery.changed:
            connected = lambda: all(reader.known.connected for reader in self._readers)  # noqa: E731
            delivery.changed.wait_for(lambda: delivery.closed.is_set() or connected(), timeout)
            delivery.raise_if_closed("connect")
            if missing := self._explain():
                raise ReplayTimeout(f"{threading.current_thread().name} waited {timeout:g} s for the shards{missing}")

    def read(self, count: int, *, timeout: float) -> list[Episode]:
        return self._delivery.read(count, timeout=timeout)

    def size(self) -> int:
        """Episodes fetched but not taken, and those in the shards' tables (as of the last second)."""
        with self._delivery.changed:
            return self._available() + sum(reader.known.waiting for reader in self._readers if reader.known.connected)

    @property
    def refused(self) -> int:
        """Malformed items thrown away, over all shards."""
        return sum(reader.known.refused for reader in self._readers)

    @property
    def duplicates(self) -> int:
        """Episodes thrown away because they had come before, over all shards."""
        return sum(reader.known.duplicates for reader in self._readers)

    def intervals(self) -> np.ndarray:
        """int64 [N, 3]: actor, first and last count of the episodes taken, for a checkpoint."""
        with self._delivery.changed:
            return self._taken.rows()

    def statistics(self) -> tuple[ShardStatistics, ...]:
        """What is known of each shard, by number."""
        seconds = max(time.monotonic() - self._began, 1e-9)
        with self._delivery.changed:
            mean = sum(reader.known.taken for reader in self._readers) / len(self._readers)
            return tuple(reader.statistics(seconds=seconds, mean=mean) for reader in self._readers)

    def stop(self) -> None:
        """Wakes all who wait (they get ReplayClosed) and tells the threads to end, without waiting for them."""
        self._delivery.close()

    def close(self) -> None:
        """Wakes all who wait (they get ReplayClosed) and ends the threads; the shards go on. May be called twice."""
        self.stop()
        deadline = time.monotonic() + CLOSE_SECONDS
        for reader in self._readers:
            reader.cancel()
        for reader in self._readers:
            reader.join(max(deadline - time.monotonic(), 0.0))
        self._watcher.join(max(deadline - time.monotonic(), 0.0))
        with self._delivery.changed:
            for reader in self._readers:
                reader.ready.clear()

    # Called with `changed` held.

    def _available(self) -> int:
        return sum(len(reader.ready) for reader in self._readers)

    def _wants(self, mine: ShardReader) -> bool:
        """Whether a reader should fetch: to its share of what is wanted, beyond it where others bring nothing."""
        wanted = self._delivery.wanted
        connected = max(sum(reader.known.connected for reader in self._readers), 1)
        share = max(-(-wanted // connected), self._ahead)
        if len(mine.ready) < share:
            return True
        if self._available() >= wanted:
            return False
        others = (reader for reader in self._readers if reader is not mine)
        return all(len(other.ready) >= share or other.idle(IDLE_SECONDS) for other in others)

    def _accept(self, episode: Episode) -> bool:
        return self._fetched.add(*episode.identity.tolist())

    def _take(self, count: int) -> list[Episode]:
        """Round robin, going on where the last call stopped."""
        taken: list[Episode] = []
        while len(taken) < count:
            reader = self._readers[self._turn % len(self._readers)]
            self._turn += 1
            if reader.ready:
                taken.append(reader.ready.popleft())
                reader.known.taken += 1
                self._taken.add(*taken[-1].identity.tolist())
        return taken

    def _explain(self) -> str:
        down = [
            f"; shard {known.number} ({known.address or 'never found'}) is down: {known.error or 'no answer'}"
            for known in (reader.known for reader in self._readers)
            if not known.connected
        ]
        return "".join(down)

    def _watch(self) -> None:
        """Looks after the connections of all readers."""
        try:
            while not self._delivery.closed.wait(WATCH_SECONDS):
                for reader in self._readers:
                    reader.watch()
        except Exception as error:  # noqa: BLE001  handed to whoever reads
            self._delivery.fail(error)
