"""How many processes a run has, and who belongs to which learner host: every host has shards and actors of its own.

An actor writes to the shards of one host only, so that every host gets its share of an iteration's episodes whatever
becomes of other hosts' shards. Imports nothing heavy: all processes use this.
"""

from __future__ import annotations

from placement.config import ConfigError, RuntimeConfig, TrainConfig
from placement.runtimes.ray.messages import RoleName


def processes_of(runtime: RuntimeConfig) -> dict[RoleName, int]:
    """How many processes of each role a run has."""
    evaluators = int(runtime.evaluator and runtime.evaluate_every > 0)
    counts = (runtime.shards, runtime.caches, runtime.learners, runtime.actors, evaluators)
    roles = (RoleName.SHARD, RoleName.CACHE, RoleName.LEARNER, RoleName.ACTOR, RoleName.EVALUATOR)
    return dict(zip(roles, counts, strict=True))


def host_of(number: int, learners: int) -> int:
    """The learner host that an actor, a shard or the evaluator (number 0) belongs to."""
    return number % learners


def shards_of(host: int, *, shards: int, learners: int) -> tuple[int, ...]:
    """The numbers of a learner host's shards."""
    return tuple(range(host, shards, learners))


def share(config: TrainConfig) -> int:
    """Episodes that each learner host reads for one iteration."""
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
