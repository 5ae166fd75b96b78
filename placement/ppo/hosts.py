"""Several learner hosts that act as one: each reads episodes of its own, all learn from all of them.

Episodes travel as actions (about 2 kB each), so the hosts simply give each other theirs before an iteration; from then
on every host holds the same batch, and the gradient step, jitted over the mesh of all hosts' devices, shares the work
out and averages the gradients. Parameters are the same everywhere: one host publishes and saves.

Axis legend: H hosts, B episodes of one host.
"""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
from jax.experimental import multihost_utils

from placement.config import ConfigError
from placement.ppo.trajectory import Episode


@dataclasses.dataclass(frozen=True)
class Hosts:
    """The learner hosts, as one of them sees them.

    Attributes:
        index: which one this is, from 0; host 0 publishes, evaluates and saves.
        count: H.
    """

    index: int = 0
    count: int = 1

    def share(self, total: int) -> int:
        """How many of an iteration's episodes each host reads; raises ConfigError unless they can be shared evenly."""
        if total % self.count:
            raise ConfigError(
                f"ppo.episodes_per_iteration={total}: must be divisible by the {self.count} learner hosts"
            )
        return total // self.count

    def exchange(self, episodes: list[Episode]) -> list[Episode]:
        """All hosts' episodes, host by host; every host must call this with as many. Waits for all of them."""
        if self.count == 1:
            return episodes
        mine = Episode(*(np.stack(values) for values in zip(*episodes, strict=True)))
        everyone = multihost_utils.process_allgather(_as_bytes(mine))  # [H, B, …]
        fields = Episode(*(_back(gathered, field) for gathered, field in zip(everyone, mine, strict=True)))
        batch = Episode(*(field.reshape(-1, *field.shape[2:]) for field in fields))
        return [Episode(*(field[index] for field in batch)) for index in range(len(batch.actions))]


def join_hosts(coordinator: str, *, index: int, count: int, timeout: float = 120.0) -> Hosts:
    """Makes this process one of `count` learner hosts; call it before JAX computes anything.

    Args:
        coordinator: host:port on which host 0 waits for the others.
        index: which one this is, from 0.
        count: how many there are.
        timeout: seconds that the hosts wait for each other.

    Raises:
        RuntimeError: the others did not come in time, or JAX has already been used.
    """
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        coordinator_address=coordinator,
        num_processes=count,
        process_id=index,
        initialization_timeout=int(timeout),
        # Listens where the others look for it, and nowhere else.
        coordinator_bind_address=coordinator if index == 0 else None,
    )
    return Hosts(index, count)


def _as_bytes(episode: Episode) -> Episode:
    """Every field as uint8 with an axis of bytes at its end: JAX would cut 64-bit numbers down to 32."""
    return Episode(*(np.ascontiguousarray(field)[..., None].view(np.uint8) for field in episode))


def _back(gathered: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Bytes with the leading axis H as `like`'s dtype."""
    return np.ascontiguousarray(gathered).view(like.dtype)[..., 0]
