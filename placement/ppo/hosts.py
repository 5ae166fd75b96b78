"""Where the learner computes: a mesh of devices, which may belong to several hosts that act as one.

Parallelism is over data, on a mesh with one axis: parameters are on every device, batches are split.
Each learner host reads episodes of its own, and all learn from all of them.

Episodes travel as actions (about 2 kB each). Before an iteration the hosts exchange theirs, so every host holds the
same batch. The gradient step is jitted over the mesh of all hosts' devices: each device computes a part, and the
gradients are averaged. Parameters are the same everywhere; one host publishes and saves.

Axis legend: H hosts, B episodes of one host.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from placement.config import ConfigError
from placement.episode import Episode

MEET_SECONDS = 3600.0
"""Deadline of the hosts' waits for each other between two exchanges: one may evaluate, or lack episodes."""
DATA = "data"
"""The mesh's only axis."""


def make_mesh(devices: Sequence[jax.Device] | None = None) -> Mesh:
    """A mesh over `devices`; when None, over all of the default backend's, those of other learner hosts included."""
    return Mesh(np.array(jax.devices() if devices is None else devices), (DATA,))


def single_device_mesh() -> Mesh:
    """A mesh of the default backend's first device."""
    return make_mesh(jax.local_devices()[:1])


def replicated(mesh: Mesh) -> NamedSharding:
    """The whole array on every device."""
    return NamedSharding(mesh, PartitionSpec())


def split_over(mesh: Mesh, axis: int) -> NamedSharding:
    """Split along `axis`, the other axes whole."""
    return NamedSharding(mesh, PartitionSpec(*[None] * axis, DATA))


def put(tree: Any, sharding: NamedSharding) -> Any:
    """A pytree of host arrays on the devices, also where some of them belong to other processes.

    Every process must give the same values.
    """
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)
    return jax.tree.map(lambda leaf: _put_leaf(leaf, sharding), tree)


def _put_leaf(leaf: Any, sharding: NamedSharding) -> jax.Array:
    if isinstance(leaf, jax.Array) and leaf.sharding == sharding:
        return leaf
    host = np.asarray(leaf)
    return jax.make_array_from_callback(host.shape, sharding, lambda part: host[part])


def check_divisible(minibatch_size: int, mesh: Mesh) -> None:
    """Raises ConfigError unless every device gets as many samples of a minibatch."""
    if minibatch_size % mesh.size:
        below, above = minibatch_size // mesh.size * mesh.size, -(-minibatch_size // mesh.size) * mesh.size
        choices = f"{above}" if not below else f"{below} or {above}"
        raise ConfigError(
            f"ppo.minibatch_size={minibatch_size}: must be divisible by the {mesh.size} devices, such as {choices}"
        )


@dataclasses.dataclass(frozen=True)
class Hosts:
    """The learner hosts, as one of them sees them.

    Attributes:
        index: which one this is, from 0; host 0 publishes, evaluates and saves.
        count: H.
    """

    index: int = 0
    count: int = 1

    def exchange(self, episodes: list[Episode]) -> list[Episode]:
        """All hosts' episodes, host by host; every host must call this with as many. Waits for all of them.

        Raises:
            JaxRuntimeError: another host is gone, or did not come in time.
        """
        if self.count == 1:
            return episodes
        from orbax.checkpoint import multihost  # slow to import, and only needed here

        # What JAX's exchange itself waits is not for us to set.
        multihost.get_barrier_sync_fn()(key="exchange", timeout_ms=int(1000 * MEET_SECONDS))
        mine = Episode(*(np.stack(values) for values in zip(*episodes, strict=True)))
        # One array, as several at once may overtake each other; bytes, as JAX would cut 64-bit numbers down to 32.
        packed = np.concatenate([np.ascontiguousarray(field).reshape(-1).view(np.uint8) for field in mine])
        everyone = np.asarray(multihost_utils.process_allgather(packed))  # [H, bytes]
        ends = np.cumsum([field.nbytes for field in mine])[:-1]
        parts = zip(np.split(everyone, ends, axis=1), mine, strict=True)
        flat = ((np.ascontiguousarray(part).reshape(-1).view(field.dtype), field) for part, field in parts)
        batch = Episode(*(values.reshape(-1, *field.shape[1:]) for values, field in flat))  # an axis of H · B
        return [Episode(*(field[index] for field in batch)) for index in range(len(batch.actions))]

    def first(self, value: float) -> float:
        """Host 0's value, on every host; all must call this. Raises JaxRuntimeError if another host is gone."""
        if self.count == 1:
            return value
        sent = np.frombuffer(np.float64(value).tobytes(), np.uint8)
        return float(np.asarray(multihost_utils.broadcast_one_to_all(sent)).view(np.float64)[0])


def join_hosts(coordinator: str, *, index: int, count: int, timeout: float = 120.0, bind: str = "127.0.0.1") -> Hosts:
    """Makes this process one of `count` learner hosts; call it before JAX computes anything.

    Args:
        coordinator: host:port on which host 0 waits for the others.
        index: which one this is, from 0.
        count: how many there are.
        timeout: seconds that the hosts wait for each other.
        bind: this host's address, at which the others reach it when hosts compute on CPUs.

    Raises:
        RuntimeError: the others did not come in time, or JAX has already been used.
    """
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    _listen_at(bind)
    jax.distributed.initialize(
        coordinator_address=coordinator,
        num_processes=count,
        process_id=index,
        initialization_timeout=int(timeout),
        # Listens where the others look for it, and nowhere else.
        coordinator_bind_address=coordinator if index == 0 else None,
    )
    return Hosts(index, count)


def _listen_at(address: str) -> None:
    """Has the CPUs' collectives listen at `address`; JAX has no setting for that, and takes the machine's name's."""
    from jax._src import xla_bridge

    library = xla_bridge.xla_client._xla
    made = library.make_gloo_tcp_collectives
    made = made.func if isinstance(made, functools.partial) else made
    library.make_gloo_tcp_collectives = functools.partial(made, hostname=address)
