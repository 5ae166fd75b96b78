"""A discrete-event model of reads and writes at any scale: hosts' links, shared by their transfers.

Models pass over a `SharedLink`, which serves all its transfers at once, each at an equal share of its rate (processor
sharing, which is what TCP comes to over a long enough time). Episodes, many of which are as small as what a connection
may have under way, pass over a `QueuedLink`, where parts of them stand in a queue. Everything else is a fixed time.
The constants are measured by benchmarks/bench_caches.py and benchmarks/bench_shards.py; benchmarks/scale_model.py shows
how well it gives their figures back.
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
"""A generator that yields seconds to wait, or a function that is given what to call when to go on."""

CROWD = 16
"""Beyond so many transfers at once a link gets no slower: measured with 16 to 49."""
IDLE_SECONDS, SLEEP_SECONDS = 1.0, 0.1
"""gRPC's threads that call back sleep so long after so long without an event (its `CallbackAlternativeCQ`)."""


@dataclasses.dataclass(frozen=True)
class TransferCosts:
    """What transfers take beside their share of a link; measured, see `docs/explanation/scale-model.md`.

    Attributes:
        read_seconds, read_seconds_per_mb: of one read of a model, fixed and for each megabyte.
        read_goodput: share of a link's rate that carries models.
        write_seconds, write_seconds_per_mb: of one write of an episode.
        write_goodput: share of a link's rate that carries episodes.
        write_parts: of an episode, each of which stands in a link's queue as a whole; one after another.
        write_crowding: how much slower, as a share, a link gets by the square of the further transfers under way
            (as measured while a learner reads).
        ingest_seconds: of the learner's CPU for each episode that it fetches.
    """

    read_seconds: float = 0.0
    read_seconds_per_mb: float = 0.0
    read_goodput: float = 1.0
    write_seconds: float = 0.0
    write_seconds_per_mb: float = 0.0
    write_goodput: float = 1.0
    write_parts: int = 1
    write_crowding: float = 0.0
    ingest_seconds: float = 0.0


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
        """Calls `call` so many seconds from now."""
        heapq.heappush(self._events, (self.now + seconds, next(self._order), call))

    def start(self, process: Process) -> None:
        """Runs a process from now on."""

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
        """Goes on until that time, or until nothing more happens, or `done()`."""
        while self._events and self._events[0][0] <= until and not done():
            self.now, _, call = heapq.heappop(self._events)
            call()


class SharedLink:
    """One direction of a host's link, shared equally by its transfers.

    Args:
        clock: simulated time.
        megabits: Mbit/s.
        goodput: share of it that carries what is sent.
    """

    def __init__(self, clock: Clock, megabits: float, *, goodput: float = 1.0) -> None:
        self._clock, self._rate = clock, megabits / 8 * goodput
        self._transfers: list[tuple[float, int, Resume]] = []  # by the share at which each is complete
        self._order = itertools.count()
        self._share = 0.0  # megabytes that each transfer under way for ever would have had
        self._at, self._plan = 0.0, 0

    def send(self, megabytes: float) -> Callable[[Resume], None]:
        """What a process yields to send so much."""
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
        """Plans the next completion; a newer plan makes the older ones void."""
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
    """One direction of a host's link with a queue, in which parts of episodes stand: first come, first served.

    Args:
        clock: simulated time.
        megabits: Mbit/s.
        costs: of writes.
        burst: megabytes that may pass at once after an idle time (a token bucket).
    """

    def __init__(self, clock: Clock, megabits: float, costs: TransferCosts, *, burst: float = 0.0) -> None:
        self._clock, self._rate, self._burst = clock, megabits / 8 * costs.write_goodput, burst
        self._costs = costs
        self._waiting: deque[tuple[int, float, Resume]] = deque()  # parts left, megabytes of each, what then
        self._busy = False
        self._tokens, self._at = burst, 0.0

    def send(self, megabytes: float, *, episodes: int = 1) -> Callable[[Resume], None]:
        """What a process yields to send so much, which is so many episodes."""
        parts = self._costs.write_parts * episodes
        return lambda resume: self._begin(parts, megabytes / parts, resume)

    def _begin(self, parts: int, megabytes: float, resume: Resume) -> None:
        self._waiting.append((parts, megabytes, resume))
        if not self._busy:
            self._busy = True
            self._tokens = min(self._burst, self._tokens + (self._clock.now - self._at) * self._rate)
            self._serve()

    def _serve(self) -> None:
        """Lets the first part pass."""
        parts, megabytes, resume = self._waiting.popleft()
        at_once = min(self._tokens, megabytes)
        self._tokens -= at_once
        further = min(len(self._waiting), CROWD)
        seconds = (megabytes - at_once) / self._rate * (1 + self._costs.write_crowding * further**2)
        self._clock.after(seconds, lambda: self._passed(parts - 1, megabytes, resume))

    def _passed(self, parts: int, megabytes: float, resume: Resume) -> None:
        if parts:
            self._waiting.append((parts, megabytes, resume))
        else:
            resume()
        if self._waiting:
            self._serve()
        else:
            self._busy, self._at = False, self._clock.now


class CallbackThreads:
    """The threads of a process's Reverb client: they sleep a tenth of a second after each second without an event.

    What arrives meanwhile is seen only when they wake up.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._event = clock, 0.0

    def until_awake(self) -> float:
        """Seconds until they would see an event; 0 = at once."""
        phase = (self._clock.now - self._event) % (IDLE_SECONDS + SLEEP_SECONDS)
        return max(IDLE_SECONDS + SLEEP_SECONDS - phase, 0.0) if phase >= IDLE_SECONDS else 0.0

    def stay_awake(self) -> None:
        """Notes an event."""
        self._event = self._clock.now

    def write(self, seconds: float, send: Callable[[Resume], None]) -> Process:
        """A write that takes so long beside its transfer; its confirmation waits until the threads are awake."""
        awake = self._clock.now + self.until_awake()
        yield seconds
        yield send
        yield max(awake - self._clock.now, 0.0)
        self.stay_awake()


class Signal:
    """A number that rises, and that processes wait for."""

    def __init__(self, value: int = -1) -> None:
        self.value = value
        self._waiting: list[tuple[int, Resume]] = []

    def raise_to(self, value: int) -> None:
        """Sets it, and lets those go on who waited for no more."""
        self.value = value
        ready = [resume for wanted, resume in self._waiting if wanted <= value]
        self._waiting = [(wanted, resume) for wanted, resume in self._waiting if wanted > value]
        for resume in ready:
            resume()

    def reaches(self, value: int) -> Callable[[Resume], None]:
        """What a process yields to wait until it is at least `value`."""

        def wait(resume: Resume) -> None:
            if self.value >= value:
                resume()
            else:
                self._waiting.append((value, resume))

        return wait


class Store:
    """A learner's root, or a cache: the newest version it has, and its link to readers."""

    def __init__(self, clock: Clock, megabits: float, costs: TransferCosts) -> None:
        self._clock, self._costs = clock, costs
        self.version = Signal()
        self._link = SharedLink(clock, megabits, goodput=costs.read_goodput)

    def read(self, megabytes: float) -> Process:
        """One read of the newest model, to be run with `yield from`."""
        yield self._costs.read_seconds + megabytes * self._costs.read_seconds_per_mb
        yield self._link.send(megabytes)

    def follow(self, parent: Store, megabytes: float) -> Process:
        """What a cache does all the time."""
        while True:
            yield parent.version.reaches(self.version.value + 1)
            version = parent.version.value
            yield from parent.read(megabytes)
            self.version.raise_to(version)
