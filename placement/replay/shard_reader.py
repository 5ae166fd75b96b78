"""The learner's connection to one shard: a thread that fetches episodes ahead and outlives the shard's deaths."""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
from collections.abc import Callable

from placement.ppo.trajectory import Episode
from placement.replay.delivery import Delivery
from placement.replay.shard_items import HUNG_SECONDS, ItemReader, ItemsEnded, gone, probe, require_episodes
from placement.replay.validation import MalformedEpisode, Schema
from placement.transport.tunnel import Dial, direct

RETRY_SECONDS = 0.5
PROBE_SECONDS = 5.0
REPEATED_REFUSALS = 100
"""So many refusals on end, and reading is begun anew."""


@dataclasses.dataclass
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
    address: str = ""
    connected: bool = False
    waiting: int = 0
    ready: int = 0
    taken: int = 0
    refused: int = 0
    duplicates: int = 0
    failures: int = 0
    rate: float = 0.0
    wait: float = 0.0
    skew: float = 0.0
    error: str = ""


class ShardReader:
    """Reads one shard in a thread of its own.

    Args:
        number: the shard's.
        address: says where the shard is at present; empty = down.
        schema: what episodes must look like.
        delivery: is told of what comes, and of an error that is not the shard's; its closing ends the thread.
        wants: whether this reader should fetch another episode; called with `delivery.changed` held.
        accept: takes note of a fetched episode; whether it is new. Called with `delivery.changed` held.
        silence: seconds without an answer after which a shard that takes connections counts as down.
        dial: the way to the shard.

    Attributes:
        ready: fetched episodes; `delivery.changed` guards it.
        known: of the shard; `ready`, `rate`, `wait` and `skew` are filled in by `statistics` only.
    """

    def __init__(
        self,
        number: int,
        address: Callable[[], str],
        schema: Schema,
        *,
        delivery: Delivery,
        wants: Callable[[ShardReader], bool],
        accept: Callable[[Episode], bool],
        silence: float = HUNG_SECONDS,
        dial: Dial = direct,
    ) -> None:
        self.known = ShardStatistics(number)
        self.ready: collections.deque[Episode] = collections.deque()
        self._address_now, self._schema, self._delivery = address, schema, delivery
        self._wants, self._accept, self._silence, self._dial = wants, accept, silence, dial
        self._items: ItemReader | None = None
        self._waited, self._waiting_since, self._heard = 0.0, 0.0, 0.0
        self._thread = threading.Thread(target=self._run, name=f"replay shard {number} reader", daemon=True)
        self._thread.start()

    def statistics(self, *, seconds: float, mean: float) -> ShardStatistics:
        """What is known of the shard, `seconds` after the reading began; `mean`: episodes taken, of all shards."""
        return dataclasses.replace(
            self.known,
            ready=len(self.ready),
            rate=self.known.taken / seconds,
            wait=self._wait_seconds(),
            skew=self.known.taken / mean if mean else float("nan"),
        )

    def _wait_seconds(self) -> float:
        """Spent waiting for this shard's next episode so far."""
        since = self._waiting_since
        return self._waited + (time.monotonic() - since if since else 0.0)

    def idle(self, seconds: float) -> bool:
        """Whether it has brought nothing for so long although it tries to, or is not connected."""
        since = self._waiting_since
        return not self.known.connected or (since > 0 and time.monotonic() - since >= seconds)

    def watch(self) -> None:
        """Gives the connection up if its shard is down or elsewhere now; called about once a second."""
        items = self._items
        if items is None:
            return
        address = self.known.address
        stays = self._address_now() == address
        info = probe(address, timeout=PROBE_SECONDS, dial=self._dial) if stays else None
        if info is not None:
            self.known.waiting, self._heard = int(info.current_size), time.monotonic()
        elif not stays or time.monotonic() - self._heard > self._silence or gone(address):
            self.known.connected = False
            items.cancel()

    def cancel(self) -> None:
        """Ends a wait for the shard."""
        if (items := self._items) is not None:
            items.cancel()

    def join(self, timeout: float) -> None:
        """Waits for the thread to end, after `delivery` was closed."""
        self._thread.join(timeout)

    def _run(self) -> None:
        closed = self._delivery.closed
        try:
            while not closed.is_set():
                try:
                    if self._open():
                        self._receive()
                    else:
                        closed.wait(RETRY_SECONDS)
                except ItemsEnded as error:
                    if not closed.is_set():
                        self.known.failures += 1
                        self.known.error, self.known.waiting = str(error), 0
                finally:
                    self._items, self.known.connected = None, False
        except Exception as error:  # noqa: BLE001  handed to whoever reads
            self._delivery.fail(error)

    def _open(self) -> bool:
        """Whether the shard answers; a reader of its items is then open."""
        address, changed = self._address_now(), self._delivery.changed
        info = probe(address, timeout=PROBE_SECONDS, dial=self._dial)
        if info is None:
            return False
        require_episodes(info, self._schema, shard=self.known.number, address=address)
        self._items = ItemReader(address, self._schema, dial=self._dial)
        with changed:
            self.known.address, self.known.connected, self._heard = address, True, time.monotonic()
            self.known.waiting = int(info.current_size)
            changed.notify_all()
        return True

    def _receive(self) -> None:
        """Fetches what is wanted; raises ItemsEnded when the connection is lost."""
        delivery, items, repeated = self._delivery, self._items, 0
        assert items is not None
        while repeated < REPEATED_REFUSALS:
            with delivery.changed:
                while not delivery.closed.is_set() and self.known.connected and not self._wants(self):
                    delivery.changed.wait(0.1)
            if delivery.closed.is_set():
                return
            self._waiting_since = time.monotonic()
            try:
                episode = items.next()
            except MalformedEpisode:
                self.known.refused += 1
                repeated += 1
                continue
            finally:
                self._waited, self._waiting_since = self._wait_seconds(), 0.0
            repeated = 0
            with delivery.changed:
                if self._accept(episode):
                    self.ready.append(episode)
                    delivery.changed.notify_all()
                else:
                    self.known.duplicates += 1
