"""Samples split into minibatches.

Axis legend: S samples of the iteration, Q chunks of a minibatch, B samples of a chunk.
"""

from __future__ import annotations

import math

import numpy as np
from jax.sharding import Mesh

from placement.ppo.gradient_step import Minibatch
from placement.ppo.mesh import put, split_over

CHUNK_ON_CPU = 32
"""Samples per device that pass through the decoder at once on a CPU (measured: activations fit the caches)."""


def split_minibatches(order: np.ndarray, most: int, *, size: int, mesh: Mesh) -> list[Minibatch]:
    """Minibatches of one shape on the mesh's devices; a remainder is left out.

    Args:
        order: int32 [samples], shuffled indices into S.
        most: samples that an iteration can have: no minibatch is larger.
        size: samples of a minibatch.
        mesh: over whose devices each chunk is split.
    """
    if not len(order):
        return []
    size = min(size, math.ceil(most / mesh.size) * mesh.size)
    count = max(1, round(len(order) / size))
    each = min(size, math.ceil(len(order) / count))
    chunks, chunk = _chunks(size, mesh)
    result = []
    for start in range(0, count * each, each):
        part = order[start : start + each]
        if not len(part):
            break
        indices, weights = np.zeros(chunks * chunk, np.int32), np.zeros(chunks * chunk, np.float32)
        indices[: len(part)], weights[: len(part)] = part, 1
        shaped = Minibatch(indices.reshape(chunks, chunk), weights.reshape(chunks, chunk))
        result.append(put(shaped, split_over(mesh, 1)))
    return result


def all_minibatches(order: np.ndarray, most: int, *, size: int, mesh: Mesh) -> list[Minibatch]:
    """As `split_minibatches`, but none is left out: the last one is filled up with the index `most`, past all samples.

    Args:
        order: int32 [samples], indices into S.
        most: samples of the iteration.
        size: samples of a minibatch.
        mesh: over whose devices each chunk is split.
    """
    size = min(size, math.ceil(most / mesh.size) * mesh.size)
    missing = -len(order) % size
    return split_minibatches(np.append(order, np.full(missing, most, np.int32)), most, size=size, mesh=mesh)


def _chunks(size: int, mesh: Mesh) -> tuple[int, int]:
    """(Q, B) of a minibatch of `size`: all at once on an accelerator, cache-sized on a CPU."""
    share = size // mesh.size
    on_cpu = mesh.devices.flat[0].platform == "cpu"
    chunks = math.ceil(share / CHUNK_ON_CPU) if on_cpu else 1
    return chunks, math.ceil(share / chunks) * mesh.size
