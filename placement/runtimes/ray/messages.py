"""The processes of a run: their roles and numbers, their learner hosts, and the messages between them.

Every learner host has its own shards and actors: an actor writes to the shards of one host only, so that every host
gets its share of an iteration's episodes regardless of other hosts' shards. Imports nothing heavy, since all processes
use this module.
"""

import dataclasses
import enum
from collections.abc import Mapping

from placement.config import ConfigError, RuntimeConfig, TrainConfig


class RoleName(enum.StrEnum):
    """The kinds of processes."""

    LEARNER = "learner"
    SHARD = "shard"
    CACHE = "cache"
    ACTOR = "actor"
    EVALUATOR = "evaluator"


@dataclasses.dataclass(frozen=True)
class Who:
    """One process of a role; its number is stable among those of its role, from 0."""

    role: RoleName
    number: int

    def __str__(self) -> str:
        first_of_few = self.number == 0 and self.role in (RoleName.LEARNER, RoleName.EVALUATOR)
        return self.role.value if first_of_few else f"{self.role} {self.number}"


@dataclasses.dataclass(frozen=True)
class Timing:
    """Internal intervals and timeouts in seconds; tests use shorter ones."""

    start: float = 300.0  # timeout for every process to start
    heartbeat: float = 1.0  # interval between two heartbeats of a process
    shard_checkpoint: float = 30.0  # interval between two checkpoints of a shard


def processes_of(runtime: RuntimeConfig) -> dict[RoleName, int]:
    """The number of processes of each role in a run."""
    return {
        RoleName.SHARD: runtime.shards,
        RoleName.CACHE: runtime.caches,
        RoleName.LEARNER: runtime.learners,
        RoleName.ACTOR: runtime.actors,
        RoleName.EVALUATOR: int(runtime.evaluator and runtime.evaluate_every > 0),
    }


def host_of(number: int, learners: int) -> int:
    """The learner host that an actor, a shard or the evaluator (number 0) belongs to."""
    return number % learners


def shards_of(host: int, *, shards: int, learners: int) -> tuple[int, ...]:
    """The numbers of a learner host's shards."""
    return tuple(range(host, shards, learners))


def share(config: TrainConfig) -> int:
    """Number of episodes that each learner host reads for one iteration."""
    return config.ppo.episodes_per_iteration // config.runtime.learners


def require_shares(config: TrainConfig) -> None:
    """Raises ConfigError unless an iteration's work can be shared evenly by the learner hosts."""
    learners = config.runtime.learners
    for key in ("episodes_per_iteration", "minibatch_size"):
        value = getattr(config.ppo, key)
        if value % learners:
            raise ConfigError(
                f"ppo.{key}={value}: must be divisible by the {learners} learner hosts (runtime.learners), such as "
                f"{value // learners * learners or learners} or {(value // learners + 1) * learners}"
            )


@dataclasses.dataclass(frozen=True)
class Rendezvous:
    """The `host:port` at which the first learner host waits; `number` rises with each restart (0: none yet)."""

    number: int = 0
    address: str = ""


@dataclasses.dataclass(frozen=True)
class Heartbeat:
    """A process's report to the coordinator, at intervals."""

    who: Who
    incarnation: int  # a different number at each start of the process
    host: str  # name or address of its machine
    pid: int
    address: str = ""  # `host:port` at which it serves; "" if it serves nothing
    ready: bool = False  # whether it has finished starting
    # numbers by name, for people and `metrics.csv`
    measures: Mapping[str, float] = dataclasses.field(default_factory=dict)
    rendezvous: Rendezvous = Rendezvous()


@dataclasses.dataclass(frozen=True)
class ServerLocation:
    """The `host:port` of a server ("" while it is down), and its machine."""

    address: str = ""
    host: str = ""


@dataclasses.dataclass(frozen=True)
class Shortfall:
    """The learner's report that it waits for `missing` episodes; `number` rises with each such message."""

    number: int = 0
    missing: int = 0


@dataclasses.dataclass(frozen=True)
class HeartbeatReply:
    """The coordinator's answer to a heartbeat."""

    edition: int = -1  # the edition of the addresses, which only a process with another edition receives
    shards: tuple[ServerLocation, ...] | None = None  # shards, caches: locations by number; None: unchanged
    caches: tuple[ServerLocation, ...] | None = None
    root: ServerLocation = ServerLocation()  # the learner's own cache
    actors: int = 0  # actors, shortfall: living actors and missing episodes of the process's learner host
    shortfall: Shortfall = Shortfall()
    rendezvous: Rendezvous = Rendezvous()
    stop: bool = False  # whether the run is ending
    # numbers over all roles, for the learner's `metrics.csv`
    summary: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class RunView:
    """The data for the driver: newest heartbeats, new rows of metrics and notes, the coordinator's process number."""

    heartbeats: tuple[Heartbeat, ...]
    rows: tuple[Mapping[str, float], ...]
    notes: tuple[str, ...]
    coordinator: int
