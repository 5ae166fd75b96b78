"""The learner's connection to one shard: a thread that fetches episodes ahead and outlives the shard's deaths."""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
from collections.abc import Callable

from placement.ppo.trajectory import Episode
from placement.replay.shard_items import HUNG_SECONDS, ItemReader, ItemsEnded, gone, probe, require_episodes
from placement.replay.validation import MalformedEpisode, Schema

RETRY_SECONDS = 0.5
PROBE_SECONDS = 5.0
REPEATED_REFUSALS = 100
"""So many refusals on end, and reading is begun anew."""


@dataclasses.dataclass(frozen=True)
class ShardStatistics:
    """What the learner knows of one shard.

    Attributes:
        number: its stable number.
        address: where it was last; empty = never found.
        connected: whether it answers.
        waiting: episodes in its table when it was last asked, at most a second ago or so while it is connected.
        ready: episodes fetched from it that the learner has not taken yet.
        taken: episodes that the learner took.
        refused: malformed items thrown away.
        duplicates: episodes thrown away because they had been fetched before.
        failures: how often it was lost.
        rate: episodes taken per second since the reading began.
        wait: seconds that the learner's thread waited for an episode from this shard.
        skew: taken, over the mean of all shards; 1 = its fair share, NaN before the first.
        error: why it was lost last; empty = never.
    """

    number: int
    address: str
    connected: bool
    waiting: int
    ready: int
    taken: int
    refused: int
    duplicates: int
    failures: int
    rate: float
    wait: float
    skew: float
    error: str


@dataclasses.dataclass(frozen=True)
class ReaderContext:
    """What all of a learner's shard readers share.

    Attributes:
        changed: held round `wants` and `accept`; notified when anything changes.
        stop: set to end the threads.
        wants: whether the reader of that number should fetch another episode.
        accept: takes note of a fetched episode; whether it is new.
        fail: is told of an error that is not the shard's.
        silence: seconds without an answer after which a shard that takes connections counts as down.
    """

    changed: threading.Condition
    stop: threading.Event
    wants: Callable[[int], bool]
    accept: Callable[[Episode], bool]
    fail: Callable[[Exception], None]
    silence: float = HUNG_SECONDS


class ShardReader:
    """Reads one shard in a thread of its own.

    Args:
        number: the shard's.
        address: says where the shard is at present; empty = down.
        schema: what episodes must look like.
        context: shared with the other readers.

    Attributes:
        ready: fetched episodes; `context.changed` guards it.
        taken, refused, duplicates, failures, connected, waiting, error: as in `ShardStatistics`.
        address: as in `ShardStatistics`.
    """

    def __init__(self, number: int, address: Callable[[], str], schema: Schema, *, context: ReaderContext) -> None:
        self.number, self.address, self.error = number, "", ""
        self.ready: collections.deque[Episode] = collections.deque()
        self.taken = self.refused = self.duplicates = self.failures = self.waiting = 0
        self.connected = False
        self._address_now, self._schema, self._context = address, schema, context
        self._items: ItemReader | None = None
        self._waited, self._waiting_since, self._heard = 0.0, 0.0, 0.0
        self._thread = threading.Thread(target=self._run, name=f"replay shard {number} reader", daemon=True)
        self._thread.start()

    def wait_seconds(self) -> float:
        """Spent waiting for this shard's next episode so far."""
        since = self._waiting_since
        return self._waited + (time.monotonic() - since if since else 0.0)

    def idle(self, seconds: float) -> bool:
        """Whether it has brought nothing for so long although it tries to, or is not connected."""
        since = self._waiting_since
        return not self.connected or (since > 0 and time.monotonic() - since >= seconds)

    def watch(self) -> None:
        """Gives the connection up if its shard is down or elsewhere now; called about once a second."""
        items = self._items
        if items is None:
            return
        stays = self._address_now() == self.address
        info = probe(self.address, timeout=PROBE_SECONDS) if stays else None
        if info is not None:
            self.waiting, self._heard = int(info.current_size), time.monotonic()
        elif not stays or time.monotonic() - self._heard > self._context.silence or gone(self.address):
            self.connected = False
            items.cancel()

    def cancel(self) -> None:
        """Ends a wait for the shard."""
        if (items := self._items) is not None:
            items.cancel()

    def join(self, timeout: float) -> None:
        """Waits for the thread to end, after `context.stop` was set."""
        self._thread.join(timeout)

    def _run(self) -> None:
        stop = self._context.stop
        try:
            while not stop.is_set():
                if not self._open():
                    stop.wait(RETRY_SECONDS)
                    continue
                try:
                    self._receive()
                except ItemsEnded as error:
                    self._lose(str(error))
                finally:
                    self._items, self.connected = None, False
        except Exception as error:  # noqa: BLE001  handed to whoever reads
            self._context.fail(error)

    def _open(self) -> bool:
        """Whether the shard answers; a reader of its items is then open."""
        address = self._address_now()
        info = probe(address, timeout=PROBE_SECONDS)
        if info is None:
            return False
        require_episodes(info, self._schema, shard=self.number, address=address)
        self.waiting = int(info.current_size)
        try:
            self._items = ItemReader(address, self._schema)
        except ItemsEnded as error:
            self._lose(str(error))
            return False
        with self._context.changed:
            self.address, self.connected, self._heard = address, True, time.monotonic()
            self._context.changed.notify_all()
        return True

    def _lose(self, error: str) -> None:
        if not self._context.stop.is_set():
            self.failures += 1
            self.error = error
            self.waiting = 0

    def _receive(self) -> None:
        """Fetches what is wanted; raises ItemsEnded when the connection is lost."""
        context, items, repeated = self._context, self._items, 0
        assert items is not None
        while repeated < REPEATED_REFUSALS:
            with context.changed:
                while not context.stop.is_set() and self.connected and not context.wants(self.number):
                    context.changed.wait(0.1)
            if context.stop.is_set():
                return
            self._waiting_since = time.monotonic()
            try:
                episode = items.next()
            except MalformedEpisode:
                self.refused += 1
                repeated += 1
                continue
            finally:
                self._waited, self._waiting_since = self.wait_seconds(), 0.0
            repeated = 0
            with context.changed:
                if context.accept(episode):
                    self.ready.append(episode)
                    context.changed.notify_all()
                else:
                    self.duplicates += 1
