"""The learner's side of the sharded replay, which reads from all live shards fairly and survives the death of any.

No data from a shard are trusted: an item that is not a well-formed episode is rejected and counted, and an episode that
was read before (from a shard's checkpoint, or written twice because its first shard died) is dropped.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from placement.episode import Episode, EpisodeIntervalSet, MalformedEpisode, Schema
from placement.replay.replay import Delivery, ReplayReader, ReplayTimeout
from placement.replay.shard_items import ItemReader, ItemsEnded, is_gone, is_silent, probe, require_episodes
from placement.transport.addresses import Addresses
from placement.transport.gate import Dial, direct

CLOSE_SECONDS = 10.0
WATCH_SECONDS = 1.0
RETRY_SECONDS = 0.5
IDLE_SECONDS = 0.25  # seconds without an episode after which a shard leaves its share of a read to the others
REPEATED_REJECTIONS = 100  # number of consecutive rejections after which the connection is reopened


@dataclasses.dataclass
class ShardStatistics:
    """The learner's data on one shard."""

    number: int  # its stable number
    address: str = ""  # its last known address; empty = never found
    connected: bool = False  # whether it answers
    waiting: int = 0  # number of episodes in its table, as of about a second ago while it is connected
    ready: int = 0  # number of episodes fetched from it that the learner has not taken yet
    taken: int = 0  # number of episodes that the learner took
    rejected: int = 0  # number of malformed items that were dropped
    duplicates: int = 0  # number of episodes that were dropped because they had been fetched before
    failures: int = 0  # number of times that the connection to it was lost
    rate: float = 0.0  # episodes taken per second since the reading began
    wait: float = 0.0  # seconds that the reader spent waiting for an episode from this shard
    skew: float = 0.0  # `taken` over the mean of all shards; 1 = its fair share, NaN before the first episode
    error: str = ""  # the reason of the last loss; empty = none


class ShardedReplay(ReplayReader):
    """Reads several shards, which may die and return, and takes an equal share of episodes from each.

    Args:
        addresses: returns the current addresses of the shards.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; None = not checked.
        ahead: number of episodes fetched ahead from each shard between reads; they are lost if this process dies.
        intervals: int64 [N, 3], the value of `intervals()` in a checkpoint; None = nothing was taken before.
        numbers: the shards' numbers, for messages and statistics; default: from 0.
        dial: see `Dial`.
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
        dial: Dial = direct,
    ) -> None:
        self._ahead = ahead
        self._fetched, self._taken = EpisodeIntervalSet(intervals), EpisodeIntervalSet(intervals)
        self._next_reader = 0
        self._began = time.monotonic()
        self._delivery = Delivery(
            "the replay shards", available=self._available, take=self._take, explain=self._explain
        )
        self._readers: list[_ShardReader] = []
        with self._delivery.changed:  # No reader may start before all exist.
            for place, number in enumerate(range(len(addresses())) if numbers is None else numbers):
                reader = _ShardReader(
                    number,
                    lambda place=place: addresses()[place],  # type: ignore[misc]
                    Schema(steps, designs),
                    delivery=self._delivery,
                    wants=self._wants,
                    is_new=lambda episode: self._fetched.add(*episode.identity.tolist()),
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
        """Number of episodes fetched but not taken, and of those in the shards' tables (as of the last second)."""
        with self._delivery.changed:
            return self._available() + sum(reader.known.waiting for reader in self._readers if reader.known.connected)

    @property
    def rejected(self) -> int:
        """Number of malformed items that were dropped, over all shards."""
        return sum(reader.known.rejected for reader in self._readers)

    @property
    def duplicates(self) -> int:
        """Number of episodes that were dropped because they had been read before, over all shards."""
        return sum(reader.known.duplicates for reader in self._readers)

    def intervals(self) -> np.ndarray:
        """Actor, first and last count of the episodes taken, for a checkpoint; int64 [N, 3]."""
        with self._delivery.changed:
            return self._taken.rows()

    def statistics(self) -> tuple[ShardStatistics, ...]:
        """The data on each shard, by number."""
        seconds = max(time.monotonic() - self._began, 1e-9)
        with self._delivery.changed:
            mean = sum(reader.known.taken for reader in self._readers) / len(self._readers)
            return tuple(
                dataclasses.replace(
                    reader.known,
                    ready=len(reader.ready),
                    rate=reader.known.taken / seconds,
                    wait=reader.wait_seconds(),
                    skew=reader.known.taken / mean if mean else float("nan"),
                )
                for reader in self._readers
            )

    def stop(self) -> None:
        """Wakes all waiting threads with ReplayClosed and requests its own threads to end, without waiting for them."""
        self._delivery.close()

    def close(self) -> None:
        """Wakes waiting threads with ReplayClosed and ends its own; the shards keep running. May be called twice."""
        self.stop()
        deadline = time.monotonic() + CLOSE_SECONDS
        for reader in self._readers:
            reader.cancel()
        for thread in (*(reader.thread for reader in self._readers), self._watcher):
            thread.join(max(deadline - time.monotonic(), 0.0))
        with self._delivery.changed:
            for reader in self._readers:
                reader.ready.clear()

    # The methods below are called with `changed` held.

    def _available(self) -> int:
        return sum(len(reader.ready) for reader in self._readers)

    def _wants(self, reader: _ShardReader) -> bool:
        """Whether a reader should fetch: up to its share of the wanted episodes; more if the others yield nothing."""
        wanted = self._delivery.wanted
        connected = max(sum(each.known.connected for each in self._readers), 1)
        share = max(-(-wanted // connected), self._ahead)
        if len(reader.ready) < share:
            return True
        if self._available() >= wanted:
            return False
        others = (each for each in self._readers if each is not reader)
        return all(len(other.ready) >= share or other.is_idle() for other in others)

    def _take(self, count: int) -> list[Episode]:
        """Takes episodes round robin, resuming after the shard from which the last call took an episode."""
        taken: list[Episode] = []
        while len(taken) < count:
            reader = self._readers[self._next_reader % len(self._readers)]
            self._next_reader += 1
            if reader.ready:
                taken.append(reader.ready.popleft())
                reader.known.taken += 1
                self._taken.add(*taken[-1].identity.tolist())
        return taken

    def _explain(self) -> str:
        return "".join(
            f"; shard {known.number} ({known.address or 'never found'}) is down: {known.error or 'no answer'}"
            for known in (reader.known for reader in self._readers)
            if not known.connected
        )

    def _watch(self) -> None:
        """Checks the connections of all readers about once a second."""
        try:
            while not self._delivery.closed.wait(WATCH_SECONDS):
                for reader in self._readers:
                    reader.check_connection()
        except Exception as error:  # noqa: BLE001  raised in the reading thread
            self._delivery.fail(error)


class _ShardReader:
    """Fetches one shard's episodes ahead in its own thread, and survives the shard's deaths.

    Args:
        number: the shard's number.
        address: returns the shard's current address; empty = down.
        schema: what episodes must satisfy.
        delivery: notified of new episodes and of errors that are not the shard's; its closing ends the thread.
        wants: whether this reader should fetch another episode; called with `delivery.changed` held.
        is_new: registers a fetched episode and returns whether it is new; called with `delivery.changed` held.
        dial: see `Dial`.

    Attributes:
        ready: fetched episodes; `delivery.changed` guards it.
        known: the shard's statistics; `ShardedReplay.statistics` fills in `ready`, `rate`, `wait` and `skew`.
    """

    def __init__(
        self,
        number: int,
        address: Callable[[], str],
        schema: Schema,
        *,
        delivery: Delivery,
        wants: Callable[[_ShardReader], bool],
        is_new: Callable[[Episode], bool],
        dial: Dial,
    ) -> None:
        self.known = ShardStatistics(number)
        self.ready: collections.deque[Episode] = collections.deque()
        self._address_now, self._schema, self._delivery = address, schema, delivery
        self._wants, self._is_new, self._dial = wants, is_new, dial
        self._items: ItemReader | None = None
        self._waited, self._waiting_since, self._heard = 0.0, 0.0, 0.0
        self.thread = threading.Thread(target=self._run, name=f"replay shard {number} reader", daemon=True)
        self.thread.start()

    def wait_seconds(self) -> float:
        """Seconds spent waiting for this shard's next episode so far."""
        since = self._waiting_since
        return self._waited + (time.monotonic() - since if since else 0.0)

    def is_idle(self) -> bool:
        """Whether it has fetched nothing for a while despite trying, or is not connected."""
        since = self._waiting_since
        return not self.known.connected or (since > 0 and time.monotonic() - since >= IDLE_SECONDS)

    def check_connection(self) -> None:
        """Drops the connection if its shard is down or has another address now."""
        items = self._items
        if items is None:
            return
        address = self.known.address
        moved = self._address_now() != address
        info = None if moved else probe(address, dial=self._dial)
        if info is not None:
            self.known.waiting, self._heard = int(info.current_size), time.monotonic()
        elif moved or is_silent(self._heard) or is_gone(address):
            self.known.connected = False
            items.cancel()

    def cancel(self) -> None:
        """Ends a wait for the shard."""
        if (items := self._items) is not None:
            items.cancel()

    def _run(self) -> None:
        closed = self._delivery.closed
        try:
            while not closed.is_set():
                try:
                    if (items := self._connect()) is not None:
                        self._receive(items)
                    else:
                        closed.wait(RETRY_SECONDS)
                except ItemsEnded as error:
                    if not closed.is_set():
                        self.known.failures += 1
                        self.known.error, self.known.waiting = str(error), 0
                finally:
                    self._items, self.known.connected = None, False
        except Exception as error:  # noqa: BLE001  raised in the reading thread
            self._delivery.fail(error)

    def _connect(self) -> ItemReader | None:
        """A reader of the shard's items; None if the shard does not answer."""
        address, changed = self._address_now(), self._delivery.changed
        info = probe(address, dial=self._dial)
        if info is None:
            return None
        require_episodes(info, self._schema, shard=self.known.number, address=address)
        self._items = ItemReader(address, self._schema, dial=self._dial)
        with changed:
            self.known.address, self.known.connected, self._heard = address, True, time.monotonic()
            self.known.waiting = int(info.current_size)
            changed.notify_all()
        return self._items

    def _receive(self, items: ItemReader) -> None:
        """Fetches the wanted episodes; raises ItemsEnded when the connection is lost."""
        delivery, repeated = self._delivery, 0
        while repeated < REPEATED_REJECTIONS:
            with delivery.changed:
                while not delivery.closed.is_set() and self.known.connected and not self._wants(self):
                    delivery.changed.wait(0.1)
            if delivery.closed.is_set():
                return
            self._waiting_since = time.monotonic()
            try:
                episode = items.next()
            except MalformedEpisode:
                self.known.rejected += 1
                repeated += 1
                continue
            finally:
                self._waited, self._waiting_since = self.wait_seconds(), 0.0
            repeated = 0
            with delivery.changed:
                if self._is_new(episode):
                    self.ready.append(episode)
                    delivery.changed.notify_all()
                else:
                    self.known.duplicates += 1
