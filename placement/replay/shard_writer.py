"""An actor's side of the sharded replay, which writes to its own shard, and to another one while that is down."""

import threading
import time

import numpy as np

from placement.episode import Episode, Schema
from placement.replay.replay import ReplayClosed, ReplayTimeout, ReplayWriter
from placement.replay.shard_items import PROBE_SECONDS, ItemWriter, is_gone, is_silent, probe, require_episodes
from placement.transport.addresses import Addresses, Failover
from placement.transport.gate import Dial, direct
from placement.transport.latencies import Latencies

SLICES = (1.0, 2.0, 4.0, 8.0)
"""Seconds after which a wait is interrupted to check whether the shard is still alive; the last value repeats."""
RETRY_SECONDS = 2.0  # seconds after which a shard that was down is tried again


class ShardWriter(ReplayWriter):
    """Writes episodes to one of several shards. For one thread, except `close`.

    An episode may reach two shards when one dies before it confirms; `ShardedReplay` drops the second.

    Args:
        addresses: returns the current addresses of the shards.
        home: the number of the shard to write to.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; None = not checked.
        key: the actor's number, which spreads writers whose home died over the other shards.
        dial: see `Dial`.

    Attributes:
        written, steps: numbers of episodes that shards confirmed, and of their actions.
        moves: number of times that it lost a shard that it was connected to.
        latencies: latencies from the submission of an episode to its confirmation, including waits for full shards and
            moves.
    """

    def __init__(
        self,
        addresses: Addresses,
        *,
        home: int,
        steps: int,
        designs: int | None = None,
        key: int = 0,
        dial: Dial = direct,
    ) -> None:
        shards = len(addresses())
        if not 0 <= home < shards:
            raise ValueError(f"home shard {home}: there are {shards} shards, so it must be in [0, {shards - 1}]")
        self._addresses, self._home, self._dial = addresses, home, dial
        self._schema = Schema(steps, designs)
        others = np.random.default_rng([home, key]).permutation(np.delete(np.arange(shards), home)).tolist()
        self._failover = Failover(addresses, retry=RETRY_SECONDS, order=[home, *others])
        self._connection: ItemWriter | None = None
        self._pending: Episode | None = None
        self.written = self.steps = self.moves = 0
        self.latencies = Latencies()
        self._closed = threading.Event()

    def write(self, episode: Episode, *, timeout: float) -> None:
        """Implements `ReplayWriter.write`; a timeout may also mean that no shard was up. Also raises ShardMismatch."""
        self._schema.check(episode)
        self._raise_if_closed()
        start = time.monotonic()
        deadline = start + timeout
        if self._pending is not None and (self._pending.identity != episode.identity).any():
            self._deliver(self._pending, deadline, timeout)
        self._deliver(episode, deadline, timeout)
        self.latencies.record(time.monotonic() - start)

    def _deliver(self, episode: Episode, deadline: float, timeout: float) -> None:
        """Submits the episode to shards until one confirms it."""
        self._return_home()
        waits = 0
        while True:
            connection = self._connection = self._connection or self._connect(deadline, timeout)
            if connection.pending is None:
                connection.begin(episode)
                self._pending = episode
            seconds = SLICES[min(waits, len(SLICES) - 1)]
            if self._confirmed(connection, min(max(deadline - time.monotonic(), 0.001), seconds)):
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
        """Waits until the table has the item, for at most `seconds`; drops the connection if its shard is down."""
        try:
            if connection.flush(seconds):
                return True
            lost = not self._closed.is_set() and not self._is_alive(connection)
        except RuntimeError:
            self._raise_if_closed()
            lost = True
        if lost:
            connection.close()
            self._failover.failed(connection.address)
            self._connection = None
            self.moves += 1
        return False

    def _is_alive(self, connection: ItemWriter) -> bool:
        """Whether its shard still has the same address and answers there."""
        if self._addresses()[connection.shard] != connection.address or is_gone(connection.address):
            return False
        return not is_silent(connection.began) or probe(connection.address, dial=self._dial) is not None

    def _connect(self, deadline: float, timeout: float) -> ItemWriter:
        """Connects to the first live shard in this writer's order; waits for one until the deadline."""
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
        """Leaves another shard, when no episode is under way there, once home is back."""
        away = self._connection
        if away is None or away.shard == self._home or self._pending is not None:
            return
        shard, address = next(self._failover.usable(), (-1, ""))
        if shard == self._home and (back := self._open(shard, address, 1.0)) is not None:
            away.close()
            self._connection = back

    @property
    def shard(self) -> int:
        """The number of the shard that it is connected to; -1 = none."""
        connection = self._connection
        return -1 if connection is None else connection.shard

    def close(self) -> None:
        """Abandons a write under way, which raises ReplayClosed within seconds. May be called twice."""
        self._closed.set()

    def _raise_if_closed(self) -> None:
        if self._closed.is_set():
            if self._connection is not None:
                self._connection.close()
            raise ReplayClosed(f"{_me()} cannot write: the replay is closed")


def _me() -> str:
    return threading.current_thread().name
