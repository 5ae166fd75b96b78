"""An actor's side of the sharded replay: writes to its own shard, to another while that one is down."""

from __future__ import annotations

import threading
import time

import numpy as np

from placement.ppo.trajectory import Episode
from placement.replay.base import ReplayClosed, ReplayTimeout, ReplayWriter
from placement.replay.shard_items import HUNG_SECONDS, ItemWriter, gone, probe, require_episodes
from placement.replay.validation import Schema
from placement.transport.addresses import Addresses
from placement.transport.failover import Failover
from placement.transport.latencies import Latencies
from placement.transport.tunnel import Dial, direct

SLICES = (1.0, 2.0, 4.0, 8.0)
"""Seconds after which a wait is interrupted to see whether the shard still lives; the last again and again."""
PROBE_SECONDS = 5.0
"""That a shard may take to answer when a writer looks for one."""


class ShardWriter(ReplayWriter):
    """Writes episodes to one of several shards. For one thread, save `close`.

    An episode may reach two shards when one dies before it confirms; `ShardedReplay` drops the second.

    Args:
        addresses: of the shards at present.
        home: the number of the shard to write to.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; None = not checked.
        key: the actor's number; writers whose home died spread over the other shards by it.
        retry: seconds after which a shard that was down is asked again.
        silence: seconds without an answer after which a shard that takes connections counts as down.
        dial: the way to a shard: `Tunnels.dial` where shards ask for the run's token.

    Attributes:
        home: where it belongs.
        written, steps: episodes that shards confirmed, and their actions.
        moves: how often it lost a shard that it was connected to.
        latencies: from handing over an episode to its confirmation, waits for room and moves included.
    """

    def __init__(
        self,
        addresses: Addresses,
        *,
        home: int,
        steps: int,
        designs: int | None = None,
        key: int = 0,
        retry: float = 2.0,
        silence: float = HUNG_SECONDS,
        dial: Dial = direct,
    ) -> None:
        shards = len(addresses())
        if not 0 <= home < shards:
            raise ValueError(f"home shard {home}: there are {shards} shards, so it must be in [0, {shards - 1}]")
        self._addresses, self.home, self._silence, self._dial = addresses, home, silence, dial
        self._schema = Schema(steps, designs)
        others = np.random.default_rng([home, key]).permutation(np.delete(np.arange(shards), home)).tolist()
        self._failover = Failover(addresses, retry=retry, order=[home, *others])
        self._connection: ItemWriter | None = None
        self._pending: Episode | None = None
        self.written = self.steps = self.moves = 0
        self.latencies = Latencies()
        self._closed = threading.Event()

    def write(self, episode: Episode, *, timeout: float) -> None:
        """As the base; a timeout also means that no shard was up. Raises ShardMismatch too, see `require_episodes`."""
        self._schema.check(episode)
        self._raise_if_closed()
        start = time.monotonic()
        deadline = start + timeout
        if self._pending is not None and (self._pending.identity != episode.identity).any():
            self._deliver(self._pending, deadline, timeout)
        self._deliver(episode, deadline, timeout)
        self.latencies.record(time.monotonic() - start)

    def _deliver(self, episode: Episode, deadline: float, timeout: float) -> None:
        """Hands the episode to a shard, another if need be, until one confirms it."""
        self._return_home()
        waits = 0
        while True:
            connection = self._connection = self._connection or self._connect(deadline, timeout)
            if connection.pending is None:
                connection.begin(episode)
                self._pending = episode
            piece = SLICES[min(waits, len(SLICES) - 1)]
            if self._confirmed(connection, min(max(deadline - time.monotonic(), 0.001), piece)):
                self._pending = None
                self.written += 1
                self.steps += int(episode.length)
                return
            self._raise_if_closed()
            waits = 0 if self._connection is None else waits + 1
            if self._connection is not None and time.monotonic() >= deadline:
                raise ReplayTimeout(
                    f"{_me()} waited {timeout:g} s to write an episode: replay shard {connection.shard} "
                    f"({connection.address}) is full and the learner took none"
                )

    def _confirmed(self, connection: ItemWriter, seconds: float) -> bool:
        """Waits so long for the table to have the item; drops the connection if its shard is down."""
        try:
            if connection.flush(seconds):
                return True
            lost = not self._closed.is_set() and not self._lives(connection)
        except RuntimeError:
            self._raise_if_closed()
            lost = True
        if lost:
            connection.close()
            self._failover.failed(connection.address)
            self._connection = None
            self.moves += 1
        return False

    def _lives(self, connection: ItemWriter) -> bool:
        """Whether its shard is where it was, and there."""
        if self._addresses()[connection.shard] != connection.address or gone(connection.address):
            return False
        hung = time.monotonic() - connection.began > self._silence
        return not hung or probe(connection.address, timeout=PROBE_SECONDS, dial=self._dial) is not None

    def _connect(self, deadline: float, timeout: float) -> ItemWriter:
        """To the first shard in this writer's order that lives; waits for one until the deadline."""
        while True:
            for shard, address in self._failover.usable():
                left = max(deadline - time.monotonic(), 1.0)
                if (found := self._open(shard, address, min(left, PROBE_SECONDS))) is not None:
                    return found
            if time.monotonic() >= deadline:
                raise ReplayTimeout(
                    f"{_me()} waited {timeout:g} s to write an episode: no replay shard answers "
                    f"({self._failover.describe()})"
                )
            self._closed.wait(0.1)
            self._raise_if_closed()

    def _open(self, shard: int, address: str, timeout: float) -> ItemWriter | None:
        """A writer to that shard; None if it does not answer within `timeout` seconds."""
        info = probe(address, timeout=timeout, dial=self._dial)
        if info is None:
            self._failover.failed(address)
            return None
        require_episodes(info, self._schema, shard=shard, address=address)
        return ItemWriter(address, shard=shard, dial=self._dial)

    def _return_home(self) -> None:
        """Leaves another shard, with nothing under way there, once home is back."""
        away = self._connection
        if away is None or away.shard == self.home or self._pending is not None:
            return
        shard, address = next(self._failover.usable(), (-1, ""))
        if shard == self.home and (back := self._open(shard, address, 1.0)) is not None:
            away.close()
            self._connection = back

    @property
    def shard(self) -> int:
        """The number of the shard that it is connected to; -1 = none."""
        connection = self._connection
        return -1 if connection is None else connection.shard

    def close(self) -> None:
        """Gives up what is under way: whoever writes gets ReplayClosed within seconds. May be called twice."""
        self._closed.set()

    def _raise_if_closed(self) -> None:
        if self._closed.is_set():
            if self._connection is not None:
                self._connection.close()
            raise ReplayClosed(f"{_me()} cannot write: the replay is closed")


def _me() -> str:
    return threading.current_thread().name
