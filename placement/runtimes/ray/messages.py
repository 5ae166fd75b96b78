"""The messages between a run's processes and its coordinator: a few numbers and names."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping


class RoleName(enum.StrEnum):
    """The kinds of processes."""

    LEARNER = "learner"
    SHARD = "shard"
    CACHE = "cache"
    ACTOR = "actor"
    EVALUATOR = "evaluator"


@dataclasses.dataclass(frozen=True)
class Who:
    """One process of a role.

    Attributes:
        role: of the process.
        number: stable among those of its role, from 0.
    """

    role: RoleName
    number: int

    def __str__(self) -> str:
        first_of_few = self.number == 0 and self.role in (RoleName.LEARNER, RoleName.EVALUATOR)
        return self.role.value if first_of_few else f"{self.role} {self.number}"


@dataclasses.dataclass(frozen=True)
class Rendezvous:
    """Where learner hosts find each other.

    Attributes:
        number: rises each time that they restart; 0 = none yet.
        address: `host:port` that the first of them waits at.
    """

    number: int = 0
    address: str = ""


@dataclasses.dataclass(frozen=True)
class Heartbeat:
    """What a process tells the coordinator of itself, at intervals.

    Attributes:
        who: the process.
        incarnation: a different number at each start of the process.
        host: name or address of its machine.
        pid: its process number.
        address: `host:port` that it serves at; "" if it serves nothing.
        ready: whether it has finished starting.
        measures: numbers by name, for people and `metrics.csv`.
        rendezvous: where the first learner host waits for the others.
    """

    who: Who
    incarnation: int
    host: str
    pid: int
    address: str = ""
    ready: bool = False
    measures: Mapping[str, float] = dataclasses.field(default_factory=dict)
    rendezvous: Rendezvous = Rendezvous()


@dataclasses.dataclass(frozen=True)
class ServerLocation:
    """Where a server is.

    Attributes:
        address: `host:port`; "" while it is down.
        host: its machine.
    """

    address: str = ""
    host: str = ""


@dataclasses.dataclass(frozen=True)
class Shortfall:
    """The learner waits for episodes that do not come.

    Attributes:
        number: rises with each such message.
        missing: episodes.
    """

    number: int = 0
    missing: int = 0


@dataclasses.dataclass(frozen=True)
class HeartbeatReply:
    """The coordinator's answer to a heartbeat.

    Attributes:
        edition: of the addresses; only a process with another edition gets them.
        shards, caches: by number; None: unchanged.
        root: the learner's own cache.
        actors: how many live, of those that belong to the same learner host.
        shortfall: of that host.
        rendezvous: of the learner hosts.
        stop: whether the run is ending.
        summary: numbers over all roles, for the learner's `metrics.csv`.
    """

    edition: int = -1
    shards: tuple[ServerLocation, ...] | None = None
    caches: tuple[ServerLocation, ...] | None = None
    root: ServerLocation = ServerLocation()
    actors: int = 0
    shortfall: Shortfall = Shortfall()
    rendezvous: Rendezvous = Rendezvous()
    stop: bool = False
    summary: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class RunView:
    """All that the driver is shown.

    Attributes:
        heartbeats: the newest of each process that lives.
        rows: the learner's rows of metrics that were not shown yet.
        notes: lines for people that were not shown yet.
        coordinator: the process number of the coordinator that tells this.
    """

    heartbeats: tuple[Heartbeat, ...]
    rows: tuple[Mapping[str, float], ...]
    notes: tuple[str, ...]
    coordinator: int
