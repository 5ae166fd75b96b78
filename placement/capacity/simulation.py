"""A discrete-event model of reads and writes at any scale, over hosts' links that transfers share.

Models pass over a `SharedLink`, which serves all its transfers at once, each at an equal share of its rate (processor
sharing, to which TCP converges). Episodes, many of which are no larger than a connection's window, pass over a
`QueuedLink` in chunks. Everything else is a fixed time. The constants are measured by benchmarks/bench_caches.py and
benchmarks/bench_shards.py; benchmarks/scale_model.py shows how well the model reproduces those measurements.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Generator
from typing import TypeAlias

Resume: TypeAlias = Callable[[], None]
Process: TypeAlias = Generator["float | Callable[[Resume], None]", None, None]
"""A generator that yields seconds to wait, or a function that takes the callback that resumes it."""

CROWD = 16  # number of concurrent transfers beyond which a link slows down no further (measured with 16 to 49)
IDLE_SECONDS, SLEEP_SECONDS = 1.0, 0.1
"""After `IDLE_SECONDS` without an event, gRPC's callback threads (`CallbackAlternativeCQ`) sleep `SLEEP_SECONDS`."""


@dataclasses.dataclass(frozen=True)
class TransferCosts:
    """Costs of transfers besides their share of a link; docs/explanation/scale-model.md has the measurements."""

    read_goodput: float = 1.0  # fraction of a link's rate that carries models
    # write_seconds, write_seconds_per_mb: time of one write of an episode, and its increase per MB
    write_seconds: float = 0.0
    write_seconds_per_mb: float = 0.0
    write_goodput: float = 1.0  # fraction of a link's rate that carries episodes
    write_chunks: int = 1  # number of chunks of an episode, which pass a link's queue one after another
    # fraction, per squared number of other transfers under way, by which a link slows down (measured while a learner
    # reads)
    write_crowding: float = 0.0
    ingest_seconds: float = 0.0  # CPU time of the learner for each episode that it fetches


class Clock:
    """Simulated time.

    Attributes:
        now: seconds since the start.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Resume]] = []
        self._order = itertools.count()

    def after(self, seconds: float, call: Resume) -> None:
        """Calls `call` after a number of seconds."""
        heapq.heappush(self._events, (self.now + seconds, next(self._order), call))

    def start(self, process: Process) -> None:
        """Starts a process now."""

        def resume() -> None:
            try:
                wanted = next(process)
            except StopIteration:
                return
            if callable(wanted):
                wanted(resume)
            else:
                self.after(wanted, resume)

        self.after(0.0, resume)

    def run(self, until: float, *, done: Callable[[], bool] = lambda: False) -> None:
        """Continues until the time `until`, until no events are left, or until `done()`."""
        while self._events and self._events[0][0] <= until and not done():
            self.now, _, call = heapq.heappop(self._events)
            call()


class SharedLink:
    """One direction of a host's link, shared equally by its transfers.

    Args:
        clock: simulated time.
        megabits: Mbit/s.
        goodput: fraction of the rate that carries payload.
    """

    def __init__(self, clock: Clock, megabits: float, *, goodput: float = 1.0) -> None:
        self._clock, self._rate = clock, megabits / 8 * goodput
        self._transfers: list[tuple[float, int, Resume]] = []  # by the share at which each is complete
        self._order = itertools.count()
        self._share = 0.0  # megabytes that a transfer under way from the beginning would have had
        self._at, self._plan = 0.0, 0

    def send(self, megabytes: float) -> Callable[[Resume], None]:
        """The wait of a process that sends a number of megabytes."""
        return lambda resume: self._begin(megabytes, resume)

    def _begin(self, megabytes: float, resume: Resume) -> None:
        self._advance()
        heapq.heappush(self._transfers, (self._share + megabytes, next(self._order), resume))
        self._schedule()

    def _advance(self) -> None:
        elapsed, self._at = self._clock.now - self._at, self._clock.now
        if self._transfers:
            self._share += elapsed * self._rate / len(self._transfers)

    def _schedule(self) -> None:
        """Plans the next completion; a newer plan replaces the older ones."""
        self._plan += 1
        if self._transfers:
            left = max(self._transfers[0][0] - self._share, 0.0)
            plan = self._plan
            self._clock.after(left / self._rate * len(self._transfers), lambda: self._complete(plan))

    def _complete(self, plan: int) -> None:
        if plan != self._plan:
            return
        self._advance()
        _, _, resume = heapq.heappop(self._transfers)
        resume()
        self._schedule()


class QueuedLink:
    """One direction of a host's link with a queue of episodes' chunks: first come, first served.

    Args:
        clock: simulated time.
        megabits: Mbit/s.
        costs: the costs of writes.
        burst: megabytes that may pass at once after an idle period (a token bucket).
    """

    def __init__(self, clock: Clock, megabits: float, costs: TransferCosts, *, burst: float = 0.0) -> None:
        self._clock, self._rate, self._burst = clock, megabits / 8 * costs.write_goodput, burst
        self._costs = costs
        self._waiting: deque[tuple[int, float, Resume]] = deque()  # chunks left, megabytes of each, callback
        self._busy = False
        self._tokens, self._at = burst, 0.0

    def send(self, megabytes: float, *, episodes: int = 1) -> Callable[[Resume], None]:
        """The wait of a process that sends a number of megabytes in a number of episodes."""
        chunks = self._costs.write_chunks * episodes
        return lambda resume: self._begin(chunks, megabytes / chunks, resume)

    def _begin(self, chunks: int, megabytes: float, resume: Resume) -> None:
        self._waiting.append((chunks, megabytes, resume))
        if not self._busy:
            self._busy = True
            self._tokens = min(self._burst, self._tokens + (self._clock.now - self._at) * self._rate)
            self._serve()

    def _serve(self) -> None:
        """Passes the first chunk."""
        chunks, megabytes, resume = self._waiting.popleft()
        at_once = min(self._tokens, megabytes)
        self._tokens -= at_once
        further = min(len(self._waiting), CROWD)
        seconds = (megabytes - at_once) / self._rate * (1 + self._costs.write_crowding * further**2)
        self._clock.after(seconds, lambda: self._passed(chunks - 1, megabytes, resume))

    def _passed(self, chunks: int, megabytes: float, resume: Resume) -> None:
        if chunks:
            self._waiting.append((chunks, megabytes, resume))
        else:
            resume()
        if self._waiting:
            self._serve()
        else:
            self._busy, self._at = False, self._clock.now


class CallbackThreads:
    """The threads of a process's Reverb client, which, while asleep, notice events only when they wake up."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._event = clock, 0.0

    def write(self, seconds: float, send: Callable[[Resume], None]) -> Process:
        """A write with a duration besides its transfer; its confirmation waits until the threads are awake."""
        phase = (self._clock.now - self._event) % (IDLE_SECONDS + SLEEP_SECONDS)
        awake = self._clock.now + (IDLE_SECONDS + SLEEP_SECONDS - phase if phase >= IDLE_SECONDS else 0.0)
        yield seconds
        yield send
        yield max(awake - self._clock.now, 0.0)
        self._event = self._clock.now


class Signal:
    """A rising number that processes wait for."""

    def __init__(self, value: int = -1) -> None:
        self.value = value
        self._waiting: list[tuple[int, Resume]] = []

    def raise_to(self, value: int) -> None:
        """Sets it, and resumes the processes that waited for at most `value`."""
        self.value = value
        ready = [resume for wanted, resume in self._waiting if wanted <= value]
        self._waiting = [(wanted, resume) for wanted, resume in self._waiting if wanted > value]
        for resume in ready:
            resume()

    def reaches(self, value: int) -> Callable[[Resume], None]:
        """The wait of a process until the number is at least `value`."""

        def wait(resume: Resume) -> None:
            if self.value >= value:
                resume()
            else:
                self._waiting.append((value, resume))

        return wait


class Store:
    """A learner's root, or a cache, with its newest version and its link to readers."""

    def __init__(self, clock: Clock, megabits: float, costs: TransferCosts) -> None:
        self.version = Signal()
        self._link = SharedLink(clock, megabits, goodput=costs.read_goodput)

    def read(self, megabytes: float) -> Callable[[Resume], None]:
        """The wait of a process that reads the newest model once."""
        return self._link.send(megabytes)

    def follow(self, parent: Store, megabytes: float) -> Process:
        """A cache's endless process: reads each new version from its parent."""
        while True:
            yield parent.version.reaches(self.version.value + 1)
            version = parent.version.value
            yield parent.read(megabytes)
            self.version.raise_to(version)
