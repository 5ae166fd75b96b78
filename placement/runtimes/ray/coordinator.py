"""The coordinator: every process sends it heartbeats with its address, and gets the other processes' addresses.

One small process. It holds nothing that heartbeats do not bring again: if it restarts, it is filled within two of them.
No parameters and no episodes pass through it.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping

from placement.runtimes.ray import host_assignment
from placement.runtimes.ray.messages import (
    Heartbeat,
    HeartbeatReply,
    Rendezvous,
    RoleName,
    RunView,
    ServerLocation,
    Shortfall,
    Who,
)

COORDINATOR = "coordinator"
"""Its name, by which the processes of a run find it; Ray keeps the names of different runs apart."""
OPTIONS = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": 0}
"""How Ray runs it: it takes no processor for itself and is restarted as often as it dies."""
LOST_HEARTBEATS = 10.0
"""A process that missed this many heartbeats in a row counts as dead until it sends one again."""
NOTES = 200
EDITION_BITS = 62


class Coordinator:
    """The coordinator. It needs no lock: Ray calls one method at a time.

    Args:
        shards, caches: how many the run has.
        heartbeat_seconds: between two heartbeats of a process.
        learners: learner hosts.
        clock: seconds; monotonic.
    """

    def __init__(
        self,
        *,
        shards: int,
        caches: int,
        heartbeat_seconds: float,
        learners: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._learners = learners
        self._counts = {RoleName.SHARD: shards, RoleName.CACHE: caches, RoleName.LEARNER: 1}
        self._lost_after = LOST_HEARTBEATS * heartbeat_seconds
        self._clock = clock
        self._heartbeats: dict[Who, Heartbeat] = {}
        self._heard: dict[Who, float] = {}
        self._rows: deque[Mapping[str, float]] = deque(maxlen=NOTES)
        self._notes: deque[str] = deque(maxlen=NOTES)
        self._restarts: dict[str, float] = {}
        self._shortfalls: dict[int, Shortfall] = {}
        self._locations: dict[RoleName, tuple[ServerLocation, ...]] = {}
        # A restarted coordinator must not repeat an edition that a process already has, whatever its clock says.
        self._edition = secrets.randbits(EDITION_BITS)
        self._stop = False
        self._publish()

    # From the roles.

    def heartbeat(self, heartbeat: Heartbeat, edition: int) -> HeartbeatReply:
        """Takes a heartbeat from a process that has the addresses of `edition`."""
        before = self._heartbeats.get(heartbeat.who)
        self._heartbeats[heartbeat.who], self._heard[heartbeat.who] = heartbeat, self._clock()
        if before is None or (before.address, before.host) != (heartbeat.address, heartbeat.host):
            self._publish()
        self._forget_the_lost()
        return self._reply(heartbeat.who, edition)

    def report_shortfall(self, shortfall: Shortfall, host: int = 0) -> None:
        """Learner host `host` waits for episodes that do not come."""
        self._shortfalls[host] = shortfall

    def row(self, row: Mapping[str, float]) -> None:
        """A row of the learner's metrics, to be shown."""
        self._rows.append(row)

    def note(self, text: str) -> None:
        """A line for people."""
        self._notes.append(text)

    # From the driver.

    def forget(self, who: Who) -> None:
        """The process has died."""
        if self._heartbeats.pop(who, None) is not None:
            self._heard.pop(who)
            self._publish()

    def restarts(self, counts: dict[str, float]) -> None:
        """How often each role was restarted, for `metrics.csv`."""
        self._restarts = counts

    def stop(self) -> None:
        """From now on the answer to every heartbeat says to stop."""
        self._stop = True

    def view(self) -> RunView:
        """What the driver shows; each row and note is returned once."""
        self._forget_the_lost()
        view = RunView(tuple(self._heartbeats.values()), tuple(self._rows), tuple(self._notes), os.getpid())
        self._rows.clear()
        self._notes.clear()
        return view

    def _reply(self, who: Who, edition: int) -> HeartbeatReply:
        known, to_learner = edition == self._edition, who.role is RoleName.LEARNER
        host = host_assignment.host_of(who.number, self._learners)
        first = self._heartbeats.get(Who(RoleName.LEARNER, 0))
        return HeartbeatReply(
            edition=self._edition,
            shards=None if known else self._locations[RoleName.SHARD],
            caches=None if known else self._locations[RoleName.CACHE],
            root=self._locations[RoleName.LEARNER][0],
            actors=sum(
                other.role is RoleName.ACTOR and host_assignment.host_of(other.number, self._learners) == host
                for other in self._heartbeats
            ),
            shortfall=self._shortfalls.get(host, Shortfall()),
            rendezvous=Rendezvous() if first is None else first.rendezvous,
            stop=self._stop,
            summary=summarise(list(self._heartbeats.values())) | self._restarts if to_learner else {},
        )

    def _publish(self) -> None:
        """Updates the addresses; if they changed, the edition rises."""
        locations = {role: self._locations_of(role, count) for role, count in self._counts.items()}
        if locations != self._locations:
            self._locations = locations
            self._edition += 1

    def _locations_of(self, role: RoleName, count: int) -> tuple[ServerLocation, ...]:
        newest = (self._heartbeats.get(Who(role, number)) for number in range(count))
        return tuple(ServerLocation() if one is None else ServerLocation(one.address, one.host) for one in newest)

    def _forget_the_lost(self) -> None:
        now = self._clock()
        for who in [who for who, heard in self._heard.items() if now - heard > self._lost_after]:
            self.forget(who)


def summarise(heartbeats: list[Heartbeat]) -> dict[str, float]:
    """Each role's measures over its processes: rates and counts are added up, others averaged (the worst of a p99).

    Keys are `<role>_<measure>`, and `<role>s` the number of processes.
    """
    gathered: dict[str, list[float]] = {}
    counts: dict[str, float] = {}
    for one in heartbeats:
        role = one.who.role.value
        counts[f"{role}s"] = counts.get(f"{role}s", 0.0) + 1
        for name, value in one.measures.items():
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
