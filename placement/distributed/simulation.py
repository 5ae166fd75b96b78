"""A discrete-event model of reads and writes at any scale: hosts' links, shared by their transfers.

A link serves all its transfers at once, each at an equal share of its rate (processor sharing, which is what TCP comes
to over a long enough time). Everything else is a fixed time. Its constants are measured by benchmarks/bench_caches.py
and benchmarks/bench_shards.py; benchmarks/scale_model.py shows how well it gives their figures back.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Callable, Generator
from typing import TypeAlias

Resume: TypeAlias = Callable[[], None]
Process: TypeAlias = Generator["float | Callable[[Resume], None]", None, None]
"""A generator that yields seconds to wait, or a function that is given what to call when to go on."""

CROWD = 64
"""Beyond so many transfers at once a link gets no slower: no more were measured."""


@dataclasses.dataclass(frozen=True)
class Costs:
    """What transfers take beside their share of a link; measured, see `docs/scaling.md`.

    Attributes:
        read_seconds, read_seconds_per_mb: of one read of a model, fixed and for each megabyte.
        read_goodput: share of a link's rate that carries models.
        write_seconds, write_seconds_per_mb: of one write of an episode.
        write_goodput: share of a link's rate that carries episodes.
        write_crowding: how much slower, as a share, a link gets with each further transfer under way (what is lost in a
            full queue is sent again).
        ingest_seconds: of the learner's CPU for each episode that it fetches.
    """

    read_seconds: float = 0.0
    read_seconds_per_mb: float = 0.0
    read_goodput: float = 1.0
    write_seconds: float = 0.0
    write_seconds_per_mb: float = 0.0
    write_goodput: float = 1.0
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


class Link:
    """One direction of a host's link.

    Args:
        clock: simulated time.
        megabits: Mbit/s.
        goodput: share of it that carries what is sent.
        crowding: how much slower it gets with each further transfer, as a share.
        burst: megabytes that may pass at once after an idle time (a token bucket).
    """

    def __init__(
        self, clock: Clock, megabits: float, *, goodput: float = 1.0, crowding: float = 0.0, burst: float = 0.0
    ) -> None:
        self._clock, self._rate, self._burst = clock, megabits / 8 * goodput, burst
        self._crowding = crowding
        self._transfers: list[tuple[float, int, Resume]] = []  # by the share at which each is complete
        self._order = itertools.count()
        self._share = 0.0  # megabytes that each transfer under way for ever would have had
        self._at = 0.0
        self._tokens, self._plan = burst, 0

    def send(self, megabytes: float) -> Callable[[Resume], None]:
        """What a process yields to send so much."""
        return lambda resume: self._begin(megabytes, resume)

    def _begin(self, megabytes: float, resume: Resume) -> None:
        self._advance()
        if not self._transfers:
            passed = min(self._tokens, megabytes)
            self._tokens -= passed
            megabytes -= passed
        heapq.heappush(self._transfers, (self._share + megabytes, next(self._order), resume))
        self._schedule()

    def _advance(self) -> None:
        elapsed, self._at = self._clock.now - self._at, self._clock.now
        if self._transfers:
            self._share += elapsed * self._each()
        else:
            self._tokens = min(self._burst, self._tokens + elapsed * self._rate)

    def _schedule(self) -> None:
        """Plans the next completion; a newer plan makes the older ones void."""
        self._plan += 1
        if self._transfers:
            left = max(self._transfers[0][0] - self._share, 0.0)
            plan = self._plan
            self._clock.after(left / self._each(), lambda: self._complete(plan))

    def _each(self) -> float:
        """Megabytes a second of every transfer under way, of which there is one at least."""
        transfers = len(self._transfers)
        return self._rate / transfers / (1 + self._crowding * (min(transfers, CROWD) - 1))

    def _complete(self, plan: int) -> None:
        if plan != self._plan:
            return
        self._advance()
        _, _, resume = heapq.heappop(self._transfers)
        resume()
        self._schedule()


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

    def __init__(self, clock: Clock, megabits: float, costs: Costs) -> None:
        self._clock, self._costs = clock, costs
        self.version = Signal()
        self._link = Link(clock, megabits, goodput=costs.read_goodput)

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
