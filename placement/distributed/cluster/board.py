"""The board: where every role says that it lives, where it listens and how it does, and hears what it has to know.

One small process. It holds nothing that cannot be told again: who restarts finds it filled within two reports.
Nothing but these few numbers passes through it: no parameters, no episodes.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from placement.distributed.cluster import sharing
from placement.distributed.cluster.messages import Hunger, Meeting, Orders, Place, Report, RoleName, View, Who

BOARD = "board"
"""Its name, by which the processes of a run find it (Ray keeps the names of different runs apart)."""
LOST_REPORTS = 10.0
"""A role that missed this many reports in a row is taken for dead until it reports again."""
NOTES = 200


class Board:
    """See above. Not locked: Ray calls one method at a time.

    Args:
        shards, caches: how many the run has.
        report_seconds: between two reports of a process.
        learners: learner hosts.
        clock: seconds; monotonic.
    """

    def __init__(
        self,
        *,
        shards: int,
        caches: int,
        report_seconds: float,
        learners: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._learners = learners
        self._counts = {RoleName.SHARD: shards, RoleName.CACHE: caches, RoleName.LEARNER: 1}
        self._lost_after = LOST_REPORTS * report_seconds
        self._clock = clock
        self._reports: dict[Who, Report] = {}
        self._heard: dict[Who, float] = {}
        self._rows: deque[Mapping[str, float]] = deque(maxlen=NOTES)
        self._notes: deque[str] = deque(maxlen=NOTES)
        self._restarts: Mapping[str, float] = {}
        self._hungers: dict[int, Hunger] = {}
        self._places: dict[RoleName, tuple[Place, ...]] = {}
        # A board that is made anew must not repeat an edition that somebody has heard of.
        self._edition = time.time_ns()
        self._stop = False
        self._publish()

    # From the roles.

    def report(self, report: Report, edition: int) -> Orders:
        """Takes a report; `edition` is that of the addresses that the process has."""
        before = self._reports.get(report.who)
        self._reports[report.who], self._heard[report.who] = report, self._clock()
        if before is None or (before.address, before.host) != (report.address, report.host):
            self._publish()
        self._forget_the_lost()
        return self._orders(report.who, edition)

    def hungry(self, hunger: Hunger, host: int = 0) -> None:
        """That learner host waits for episodes that do not come."""
        self._hungers[host] = hunger

    def row(self, row: Mapping[str, float]) -> None:
        """A row of the learner's metrics, to be shown."""
        self._rows.append(row)

    def note(self, text: str) -> None:
        """A line for people."""
        self._notes.append(text)

    # From the driver.

    def forget(self, who: Who) -> None:
        """The process has died."""
        if self._reports.pop(who, None) is not None:
            self._heard.pop(who)
            self._publish()

    def restarts(self, counts: Mapping[str, float]) -> None:
        """How often each role was restarted, for `metrics.csv`."""
        self._restarts = counts

    def stop(self) -> None:
        """From now on every report is answered with the order to stop."""
        self._stop = True

    def view(self) -> View:
        """What is to be shown; rows and notes are handed out once."""
        self._forget_the_lost()
        view = View(tuple(self._reports.values()), tuple(self._rows), tuple(self._notes), os.getpid())
        self._rows.clear()
        self._notes.clear()
        return view

    # Inside.

    def _orders(self, who: Who, edition: int) -> Orders:
        known = edition == self._edition
        host = sharing.host_of(who.number, self._learners)
        first = self._reports.get(Who(RoleName.LEARNER, 0))
        return Orders(
            edition=self._edition,
            shards=None if known else self._places[RoleName.SHARD],
            caches=None if known else self._places[RoleName.CACHE],
            root=self._places[RoleName.LEARNER][0],
            actors=sum(
                other.role is RoleName.ACTOR and sharing.host_of(other.number, self._learners) == host
                for other in self._reports
            ),
            hunger=self._hungers.get(host, Hunger()),
            meeting=Meeting() if first is None else first.meeting,
            stop=self._stop,
            summary=self._summary() if who.role is RoleName.LEARNER else {},
        )

    def _publish(self) -> None:
        """Writes the addresses anew, and a new edition if they differ."""
        places = {role: self._places_of(role, count) for role, count in self._counts.items()}
        if places != self._places:
            self._places = places
            self._edition += 1

    def _places_of(self, role: RoleName, count: int) -> tuple[Place, ...]:
        reports = (self._reports.get(Who(role, number)) for number in range(count))
        return tuple(Place() if report is None else Place(report.address, report.host) for report in reports)

    def _forget_the_lost(self) -> None:
        now = self._clock()
        for who in [who for who, heard in self._heard.items() if now - heard > self._lost_after]:
            self.forget(who)

    def _summary(self) -> dict[str, float]:
        return {**summarise(list(self._reports.values())), **self._restarts}


def summarise(reports: list[Report]) -> dict[str, float]:
    """Each role's measures over its processes: rates and counts are added up, others averaged (the worst of a p99).

    Keys are `<role>_<measure>`, and `<role>s` the number of processes.
    """
    gathered: dict[str, list[float]] = {}
    counts: dict[str, float] = {}
    for report in reports:
        role = report.who.role.value
        counts[f"{role}s"] = counts.get(f"{role}s", 0.0) + 1
        for name, value in report.measures.items():
            gathered.setdefault(f"{role}_{name}", []).append(float(value))
    return counts | {name: _combine(name, values) for name, values in sorted(gathered.items())}


def _combine(name: str, values: list[float]) -> float:
    finite = [value for value in values if value == value]
    if not finite:
        return float("nan")
    if name.endswith("_p99") or name.endswith("_max"):
        return max(finite)
    if name.endswith(("_mean", "_p50", "_fraction", "_mb")):
        return sum(finite) / len(finite)
    return sum(finite)


def board_options() -> dict[str, Any]:
    """How Ray runs the board: it takes no processor for itself and is restarted as often as it dies."""
    return {"num_cpus": 0, "max_restarts": -1, "max_task_retries": 0}
