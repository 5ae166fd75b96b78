"""Where arrays live: data parallelism over a one-axis mesh of devices, parameters on every device, batches split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from placement.config import ConfigError

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
